"""A sweep on a Dask cluster of this machine, whose workers die."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import drywarp
from drywarp.errors import DrywarpError
from drywarp.experiments.sweep.dask_engine import predict_there, with_absolute_paths
from drywarp.experiments.sweep.row import SweepRow
from tests.counting import no_hang
from tests.rows.worker_hooks import hang_at

from .spaces import N, space

distributed = pytest.importorskip("distributed", reason="distributed is not installed")

MANY = {"bx": [32 * k for k in range(1, 11)], "n": [N, 2 * N]}


def test_two_workers_of_which_one_is_killed(tmp_path: Path) -> None:
    drywarp.sweep(space(parameters=MANY), jobs=0, out=tmp_path / "whole.csv")
    out, told, notes = tmp_path / "rows.csv", Counter[int](), list[str]()
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]

        def on_row(row: SweepRow, done: int, of: int) -> None:
            told[row.number] += 1
            if done == 6:
                os.kill(pids[0], signal.SIGKILL)

        drywarp.sweep(
            space(parameters=MANY), scheduler=cluster.scheduler_address, out=out, on_row=on_row, on_note=notes.append
        )
    assert told == Counter(range(1, 41))
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    with out.open(newline="") as file:
        assert [int(row["row"]) for row in csv.DictReader(file)] == list(range(1, 41))
    assert any("was lost; its rows are reassigned" in note for note in notes)


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drywarp.experiments.sweep.dask_engine.CONNECT_S", 1)
    # A port that is taken, so that nobody else gets it, and at which nobody listens.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for address in (f"tcp://127.0.0.1:{taken.getsockname()[1]}", "nonsense://x", "tcp://"):
            with pytest.raises(DrywarpError, match=r"--scheduler .*: no Dask scheduler answers"):
                drywarp.sweep(space(), scheduler=address, out=tmp_path / "rows.csv")


def test_a_scheduler_that_is_lost(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out, place = tmp_path / "rows.csv", tmp_path / "scheduler.json"
    wanted = space(parameters=MANY)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    begin = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    join = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    scheduler = subprocess.Popen([*begin, "--scheduler-file", str(place)], **quiet)
    worker = subprocess.Popen([*join, "--scheduler-file", str(place), "--death-timeout", "600"], **quiet)
    try:
        with no_hang():
            # The file is there before its text is.
            while not place.exists() or not place.read_text().endswith("}"):
                time.sleep(0.01)
        address = json.loads(place.read_text())["address"]
        with distributed.Client(address, set_as_default=False, timeout=600) as client:
            client.wait_for_workers(1, timeout=600)
        with pytest.raises(DrywarpError, match=r"--scheduler .*: connection lost.* finished rows are saved"):
            drywarp.sweep(
                wanted, scheduler=address, out=out, on_row=lambda row, done, of: done == 3 and scheduler.kill()
            )
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert "Traceback" not in capfd.readouterr().err
    assert 3 <= out.read_bytes().count(b"\n") - 1 < 40
    drywarp.sweep(wanted, jobs=0, out=out)
    drywarp.sweep(wanted, jobs=0, out=tmp_path / "whole.csv")
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_row_that_crashes_costs_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "hanging"
    for name, value in hang_at(tmp_path, 1, switch=hanging).items():
        monkeypatch.setenv(name, value)
    with distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        pids = {worker.pid for worker in cluster.workers.values()}
        found = drywarp.sweep(
            space(parameters={"bx": [64, 2048], "n": [N]}, gpus=["a100"]), scheduler=cluster.scheduler_address
        )
        assert [row.ok for row in found.rows] == [True, False]
        hanging.touch()
        late = drywarp.sweep(space(), scheduler=cluster.scheduler_address, time_limit_s=0.001)
        assert set(late.failed) == {"time limit of 0.001 s"}
        assert {worker.pid for worker in cluster.workers.values()} == pids


@pytest.mark.parametrize(("deaths", "answered"), [(0, "ok"), (2, "ok"), (3, "crashed with SIGKILL")])
def test_a_row_whose_process_dies_is_given_to_three(
    monkeypatch: pytest.MonkeyPatch, deaths: int, answered: str
) -> None:
    tried: list[float] = []

    def alone(shared: bytes, launch: object, time_limit_s: float) -> tuple[str, float]:
        tried.append(time_limit_s)
        return ("crashed with SIGKILL" if len(tried) <= deaths else "ok"), 0.1

    monkeypatch.setattr("drywarp.experiments.sweep.dask_engine.alone", alone)
    assert predict_there(b"", {}, 5.0) == (answered, 0.1)
    assert len(tried) == min(deaths + 1, 3)


def test_files_of_arguments_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    launch = {"args": {"x": "f32[4]:@x.npy", "y": "@y.npy", "n": "4", "a": 2.0}, "constants": {}, "includes": ("inc",)}
    assert with_absolute_paths(launch) == {
        "args": {"x": f"f32[4]:@{tmp_path / 'x.npy'}", "y": f"@{tmp_path / 'y.npy'}", "n": "4", "a": 2.0},
        "constants": {},
        "includes": (str(tmp_path / "inc"),),
    }
