"""Analyses and moves of sliders through the server: right figures, clear errors, limits that hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import drywarp
from drywarp.report.serve import ServeLimits, Server
from drywarp.report.serve.asked import Resimulate
from drywarp.report.serve.worker import Worker
from drywarp.support.child import Child
from tests.counting import no_hang
from tests.effort import first

from .local import SAXPY, post, running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def analysed(server: Server) -> dict[str, Any]:
    status, told = post(server, "analyze", {"source": SAXPY, "gpu": "a100"})
    assert status == 200, told
    return told


def test_the_answer_is_that_of_analyze(analysed: dict[str, Any]) -> None:
    expected = drywarp.analyze(SAXPY, gpu="a100", models=("pipeline",))
    assert analysed["time_s"] == expected.time_s
    assert analysed["curve"] == [
        [p.occupancy_warps, p.warps_per_cycle, p.time_s, p.bound] for p in expected.prediction.curve
    ]
    assert analysed["kernel"] == "saxpy"
    assert analysed["occupancy"] == expected.occupancy.warps_per_sm
    assert analysed["events"]["count"] > 0
    assert "dram" in analysed["lambda"]
    assert "long_scoreboard" in analysed["latency"]


def test_a_move_answers_with_another_time(server: Server, analysed: dict[str, Any]) -> None:
    def moved(**said: Any) -> dict[str, Any]:
        status, told = post(server, "resimulate", {"number": analysed["number"], **said})
        assert status == 200, told
        return told

    assert moved()["time_s"] == pytest.approx(analysed["time_s"])
    still = moved(settled=True)
    assert still["time_s"] == analysed["time_s"]
    assert still["curve"] == analysed["curve"]
    assert still["events"] == analysed["events"]
    slower = moved(latency={"long_scoreboard": 4.0}, settled=True)
    assert slower["time_s"] > 1.15 * analysed["time_s"]
    assert moved(latency={"long_scoreboard": 4.0})["time_s"] == pytest.approx(slower["time_s"], rel=0.1)
    fewer = moved(occupancy=analysed["warps_per_block"], settled=True)
    assert fewer["point"][0] == fewer["occupancy"] == analysed["warps_per_block"]
    assert fewer["time_s"] == next(p[2] for p in analysed["curve"] if p[0] == fewer["occupancy"])


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"occupancy": 3}, "multiple of 4 warps"),
        ({"occupancy": 4000}, "up to 64"),
        ({"lambda": {"nonsense": 2}}, "no 'nonsense'"),
        ({"latency": {"nonsense": 2}}, "no 'nonsense'"),
    ],
)
def test_a_move_that_cannot_be(server: Server, analysed: dict[str, Any], said: dict[str, Any], says: str) -> None:
    status, told = post(server, "resimulate", {"number": analysed["number"], **said})
    assert status == 422
    assert says in told["error"]


def test_a_move_of_another_kernel_is_refused(server: Server, analysed: dict[str, Any]) -> None:
    status, told = post(server, "resimulate", {"number": analysed["number"] + 1})
    assert status == 422
    assert "another kernel" in told["error"]


@pytest.mark.parametrize(
    ("source", "gpu", "launch", "says"),
    first(
        [
            (SAXPY, "nosuch", "", "gpu 'nosuch': unknown; expected"),
            (SAXPY.replace("y[i]", "z[i]"), "a100", "", 'identifier "z" is undefined'),
            ('#include "/etc/passwd"\n' + SAXPY, "a100", "", "local files are not read"),
            ("/etc/passwd", "a100", "", "no __global__ function"),
            (SAXPY, "a100", "--arg x=@/etc/passwd", "files are not read"),
            (SAXPY, "a100", "--arg y=f32[8]", "beyond the end"),
            (SAXPY, "/etc/passwd", "", "unknown"),
            (SAXPY, "mi210", "", "unknown"),
            ("no kernel here", "a100", "", "no __global__ function"),
            (SAXPY, "a100", "--block 2048", "2048"),
            (SAXPY, "a100", "--bogus", "unknown option"),
        ],
        6,
    ),
)
def test_what_cannot_be_analysed(server: Server, source: str, gpu: str, launch: str, says: str) -> None:
    status, told = post(server, "analyze", {"source": source, "gpu": gpu, "launch": launch})
    assert status == 422
    assert says in told["error"]


def test_a_compilers_log_comes_as_text(server: Server) -> None:
    status, told = post(server, "analyze", {"source": SAXPY.replace("y[i]", "<b>z[i]"), "gpu": "a100"})
    assert status == 422
    assert told["error"].startswith("<source>(4): error")
    assert "<b>z[i]" in told["log"]


def test_a_header_in_the_servers_folder_is_not_found(
    server: Server, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that compiles works in an empty folder, wherever the server was started."""
    (tmp_path / "mine.h").write_text("#define MINE 1\n")
    monkeypatch.chdir(tmp_path)
    with running() as elsewhere:
        status, told = post(elsewhere, "analyze", {"source": '#include "mine.h"\n' + SAXPY, "gpu": "a100"})
    assert status == 422
    assert "mine.h" in told["error"]


def test_an_emulation_that_ends_at_its_limit_is_told_with_the_answer() -> None:
    long = "// drywarp: --grid 1 --block 32 --arg a=i32[32]:random\n__global__ void k(int* a) {\n"
    long += "  unsigned x = a[threadIdx.x] | 1;\n  while (x != 0) x = x * 1664525u + 1013904223u | 1;\n  a[0] = x;\n}\n"
    with running(ServeLimits(lane_steps=100_000)) as server:
        status, told = post(server, "analyze", {"source": long, "gpu": "a100"})
    assert status == 200
    assert "no block finished within 100,000 lane steps" in told["notes"][0]


COMPILER_BOMB = """// drywarp: --grid 1 --block 32 --arg a=i32[32]
template <int N, int M> struct F { static const long v = F<N - 1, M>::v + F<N - 1, M + (1 << (N % 30))>::v; };
template <int M> struct F<0, M> { static const long v = M; };
__global__ void k(int* a) { a[0] = (int)F<28, 0>::v; }
"""


def test_one_analysis_at_a_time() -> None:
    """While a compiler does not come to an end nothing else is begun; the server's end is the compiler's."""
    with running(ServeLimits(analysis_seconds=3600.0)) as server, no_hang():
        first: list[tuple[int, dict[str, Any]]] = []
        bomb = {"source": COMPILER_BOMB, "gpu": "a100"}
        thread = threading.Thread(target=lambda: first.append(post(server, "analyze", bomb)))
        thread.start()
        while not server.worker.analysing:
            time.sleep(0.01)
        status, told = post(server, "analyze", {"source": SAXPY, "gpu": "a100"})
        assert (status, "one at a time" in told["error"]) == (429, True)
        status, told = post(server, "resimulate", {"number": 1})
        assert (status, "an analysis is running" in told["error"]) == (429, True)
        while not server.worker.running:
            time.sleep(0.01)
        assert first == []
        server.worker.close()
        thread.join()
        assert first[0][0] == 500
        assert not server.worker.running


def test_a_server_may_end_while_its_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked gets an answer, and no process is left behind."""
    worker, begin = Worker(ServeLimits()), Child.program
    ends: list[tuple[Child, threading.Thread]] = []

    def slow(module: str) -> Child:
        child = begin(module)
        ends.append((child, threading.Thread(target=worker.close)))
        ends[0][1].start()
        time.sleep(0.1)
        return child

    monkeypatch.setattr(Child, "program", slow)
    with no_hang():
        status, _ = worker.ask(Resimulate(1, None, {}, {}, settled=False))
        child, closing = ends[0]
        closing.join()
    assert status == 500
    assert not worker.running
    assert child.connection.closed


def test_the_time_of_an_analysis_is_bounded() -> None:
    """A compiler that does not come to an end is ended; afterwards all goes on."""
    with running(ServeLimits(analysis_seconds=1.0)) as server:
        status, told = post(server, "analyze", {"source": COMPILER_BOMB, "gpu": "a100"})
        assert (status, "stopped after 1 s" in told["error"]) == (504, True)
        assert not server.worker.running
        status, told = post(server, "resimulate", {"number": 1})
        assert status == 422, "a fresh process has no kernel"
