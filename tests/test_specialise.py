"""Kernels that wait for their arguments, grids with sums in them, and the choice among configurations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import drywarp
from drywarp.analysis.best_config import best, config_number
from drywarp.analysis.settle import grid_extents, settle, with_counts
from drywarp.cli.values import argument_file
from drywarp.errors import EmulationError, UsageError
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.load import load, load_kernel
from drywarp.frontends.loaded import LaunchComment, Loaded, Specialised
from drywarp.kernel.launch.launch import Buffer

SOURCE = """__global__ void k(float* data, int n, void* scratch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < REPEAT; ++r) if (i < n) data[i] = data[i] * 1.5f + r;
}"""


class Waiting:
    """A kernel of a language that compiles it for its arguments, with three configurations."""

    name, origin = "k", "k.py"

    def tools(self) -> dict[str, str]:
        return {"waiter": "1.0"}

    def takes(self, arch: str) -> set[str]:
        return {"data", "n", "repeat"}

    def configs(self, arch: str) -> tuple[str, ...]:
        return ("repeat=8", "repeat=1", "repeat=0")

    def specialise(self, arguments: Mapping[str, Any], arch: str, config: int | None) -> Specialised:
        if config == 2:
            raise UsageError("k: repeat=0 cannot be")
        assert isinstance(arguments["data"], Buffer)
        kernel = compile_cuda(SOURCE, arch=arch, options=CudaOptions({"REPEAT": "8" if config == 0 else "1"}))
        given = {"data": arguments["data"], "n": arguments["n"], "scratch": None}
        return Specialised(kernel, given, {**arguments, "tile": 32}, (64, 1, 1), 256, {"scratch": 100})


def loaded(**said: Any) -> Loaded:
    return Loaded(Waiting(), LaunchComment(**said))


ARGS = {"data": "f32[4096]", "n": 4096}


@pytest.mark.parametrize(
    ("grid", "names", "extents"),
    [
        (7, {}, 7),
        ((2, 3), {}, (2, 3)),
        ("64,2", {}, "64,2"),
        ("cdiv(n,256)", {"n": 1000}, "4"),
        ("cdiv(n, 256), min(n, 5), 2*m", {"n": "1000", "m": np.int32(3)}, "4,5,6"),
        ("ceil(n/256)", {"n": 1025.0}, "5"),
        (lambda names: (names["n"] // 2, 1), {"n": 10}, (5, 1)),
        (None, {}, None),
    ],
)
def test_grids(grid: Any, names: Mapping[str, Any], extents: Any) -> None:
    assert grid_extents(grid, None, names) == extents


def test_the_comments_grid_holds_where_none_is_given() -> None:
    assert grid_extents(None, "cdiv(n,2)", {"n": 9}) == "5"
    assert grid_extents(3, "cdiv(n,2)", {"n": 9}) == 3


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("cdiv(m,2)", "unknown name 'm'; known: n"),
        ("n/4", "is 2.25; expected a whole number"),
        ("n/0", "has no value"),
        ("__import__('os')", "expected numbers, names and"),
        ("n.real", "expected numbers, names and"),
    ],
)
def test_grids_that_have_no_value(grid: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^grid '?.*{message}"):
        grid_extents(grid, None, {"n": 9, "data": Buffer("f32", (4,))})


def test_a_grid_of_the_cuda_kernels_own_arguments() -> None:
    source = "// drywarp: --grid cdiv(n,256) --block 256 --arg n=1000 --arg a=f32[1000]\n"
    source += "__global__ void k(float* a, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) a[i] = i; }\n"
    assert drywarp.analyze(source).grid == (4, 1, 1)
    assert drywarp.analyze(source, args={"n": 300}).grid == (2, 1, 1)
    with pytest.raises(UsageError, match="grid '': expected one to three positive integers"):
        drywarp.analyze(source, grid="")


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        ("f32[n]:random(0,81)", "f32[9]:random(0,81)"),
        ("host i32[2*n, cdiv(m, 4)]", "host i32[18,2]"),
        ("f32[n*p.rows]:permutation(seed=3)", "f32[45]:permutation(seed=3)"),
        ("tensormap(box=8x8):f16[n,64]", "tensormap(box=8x8):f16[9,64]"),
        ({"rows": 5, "x": {"data": "f64[p.rows+1]"}}, {"rows": 5, "x": {"data": "f64[6]"}}),
        ("f32[1024,1024]:ones", "f32[1024,1024]:ones"),
        ("@file[n].npy", "@file[n].npy"),
        (7, 7),
    ],
)
def test_extents_over_other_arguments(value: Any, counted: Any) -> None:
    names = {"n": 9, "m": "7", "p.rows": 5, "data": "f32[4]"}
    assert with_counts({"a": value}, names) == {"a": counted}


@pytest.mark.parametrize(
    ("extent", "message"),
    [("k", "unknown name 'k'; known: n"), ("n/2", "is 4.5; expected a whole number"), ("n/0", "has no value")],
)
def test_extents_that_have_no_value(extent: str, message: str) -> None:
    with pytest.raises(UsageError, match=rf"^argument a: 'f32\[{extent}\]': extent '{extent}': .*{message}"):
        with_counts({"a": f"f32[{extent}]"}, {"n": 9})


def test_extents_are_worked_out_wherever_a_launch_is_given(tmp_path: Path) -> None:
    """On the command line's arguments, in a launch comment, in a file of arguments and without data."""
    source = "// drywarp: --grid cdiv(n,256) --block 256 --arg n=1000 --arg a=f32[n]\n"
    source += "__global__ void k(float* a, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) a[i] = i; }\n"
    assert drywarp.analyze(source).grid == drywarp.analyze(source, static=True).grid == (4, 1, 1)
    listed = tmp_path / "a.toml"
    listed.write_text('n = 300\na = "f32[n]"\n')
    assert drywarp.analyze(source, args=argument_file(str(listed))).grid == (2, 1, 1)
    with pytest.raises(EmulationError, match=r"just past the end of a \(1200 bytes\)"):
        drywarp.analyze(source, args={"a": "f32[n-700]"})
    with pytest.raises(UsageError, match="argument a: 'f32\\[m\\]': extent 'm': unknown name 'm'; known: n"):
        drywarp.analyze(source, args={"a": "f32[m]"})


def test_what_the_compiler_fixes_is_the_launchs() -> None:
    said = settle(loaded(), "sm_80", grid="cdiv(n,tile)", args=ARGS)
    assert (said.grid, said.block, said.comment.shared) == ("128", (64, 1, 1), "256")
    assert said.args == {"data": Buffer("f32", (4096,)), "n": 4096, "scratch": Buffer("u8", (12800,))}


@pytest.mark.parametrize(
    ("comment", "given", "message"),
    [
        ({}, {"block": 32}, "k.py: k has blocks of 64 threads; omit --block"),
        ({"block": "32"}, {}, "k.py: k has blocks of 64 threads; omit --block"),
        ({}, {"shared": 1}, "k.py: k takes 256 bytes of shared memory; omit --shared"),
        ({"shared": "1"}, {}, "k.py: k takes 256 bytes of shared memory; omit --shared"),
    ],
)
def test_and_may_not_be_said_otherwise(comment: dict[str, str], given: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        settle(loaded(**comment), "sm_80", grid=1, args=ARGS, **given)


def test_a_comments_arguments_for_another_kernel_are_left_out() -> None:
    comment = loaded(arguments={"n": "5", "width": "7"})
    assert settle(comment, "sm_80", grid=1, args={"data": "f32[64]"}).args == {
        "data": Buffer("f32", (64,)),
        "n": "5",
        "scratch": Buffer("u8", (100,)),
    }


def test_the_fastest_configuration_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        drywarp.frontends.load, "load", lambda *_, **__: Loaded(Waiting(), LaunchComment(), "", {"waiter": "1.0"})
    )
    answer = drywarp.analyze("anything.py", grid="cdiv(n,64)", args=ARGS, config="best")
    assert answer.versions["waiter"] == "1.0"
    assert answer.notes[0].startswith("configuration 1 is predicted to be fastest: repeat=1 (1: ")
    assert answer.notes[1] == "configuration 2 cannot run: k: repeat=0 cannot be"
    slower = drywarp.analyze("anything.py", grid="cdiv(n,64)", args=ARGS, config=0)
    assert answer.time_s < slower.time_s
    assert f"0: {slower.time_s * 1e6:.4g} µs" in answer.notes[0]
    stages: list[str] = []
    some = drywarp.analyze("anything.py", grid="cdiv(n,64)", args=ARGS, config="best:1", on_stage=stages.append)
    assert some.notes[0].startswith("configuration 0 is predicted to be fastest of the 1 that were predicted: repeat=8")
    assert some.notes[1].startswith("2 of 3 configurations were not predicted")
    assert "configuration 1 of 1: emulating a sample of blocks" in stages


@given(count=st.integers(1, 60), most=st.integers(1, 80), cannot=st.sets(st.integers(0, 59)))
def test_some_configurations_are_predicted_instead_of_all(count: int, most: int, cannot: set[int]) -> None:
    tried: list[int] = []
    stages: list[str] = []

    def time_of(number: int, say: Callable[[str], None]) -> float:
        say("emulating")
        if number in cannot:
            raise UsageError("too large")
        tried.append(number)
        return 1 / (number + 1)

    configs = [f"size={number}" for number in range(count)]
    if set(range(count)) <= cannot:
        with pytest.raises(UsageError, match="too large"):
            best(configs, time_of, most)
        return
    number, notes = best(configs, time_of, most, stages.append)
    assert number == tried[-1] == max(tried)
    assert len(tried) <= min(most, count)
    if not cannot:
        # Evenly spaced: no two gaps differ by more than one.
        gaps = {after - before for before, after in itertools.pairwise([*tried, count])}
        assert len(tried) == min(most, count)
        assert max(gaps) - min(gaps) <= 1
        assert ("were not predicted" in notes[-1]) == (most < count)
        assert stages[:2] == [f"configuration 1 of {len(tried)}: {stage}" for stage in ("compiling", "emulating")]
        if most < count:
            assert f"is predicted to be fastest of the {most} that were predicted: size={number} (" in notes[0]
            assert notes[-1].startswith(
                f"{count - most} of {count} configurations were not predicted and may be faster"
            )
            assert f"(--config best:{most}; --config best predicts all)" in notes[-1]


def test_where_none_can_run_the_first_reason_is_given() -> None:
    def time_of(number: int, say: object) -> float:
        raise UsageError(f"reason {number}")

    with pytest.raises(UsageError, match="reason 0"):
        best(("a", "b"), time_of)
    with pytest.raises(UsageError, match="no configurations to choose from"):
        best((), time_of)


@pytest.mark.parametrize(
    ("given", "said", "number"),
    [
        (None, None, None),
        (3, "1", 3),
        ("2", None, 2),
        (None, "best", "best"),
        (None, "4", 4),
        ("best:3", None, "best:3"),
    ],
)
def test_configuration_numbers(given: int | str | None, said: str | None, number: int | str | None) -> None:
    assert config_number(given, said) == number


@pytest.mark.parametrize("given", ["best:0", "best:", "best:x", "best:-1", "bests", "best:1.5"])
def test_numbers_of_configurations_that_are_none(given: str) -> None:
    with pytest.raises(UsageError, match=f"--config '{given}': expected a number, best, or best:N for N config"):
        config_number(given, None)


def test_configurations_that_are_none() -> None:
    with pytest.raises(UsageError, match="--config 'fast': expected a number, best, or best:N"):
        config_number("fast", None)
    with pytest.raises(UsageError, match=r"<source>: --config only applies to triton\.autotune kernels"):
        drywarp.analyze(SOURCE, defines={"REPEAT": "1"}, grid=1, block=32, args={}, config=1)


def test_a_kernel_that_waits_is_no_kernel_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    from drywarp.frontends.python import file as module

    monkeypatch.setattr(module, "load_object", lambda *_, **__: (Waiting(), ""))
    with pytest.raises(UsageError, match=r"k\.py: k cannot be compiled before its arguments are known"):
        load_kernel(object(), arch="sm_80")  # type: ignore[arg-type]
    assert load(object(), arch="sm_80").tools == {"waiter": "1.0"}


def test_of_many_configurations_the_fastest_are_told() -> None:
    number, notes = best([f"size={n}" for n in range(120)], lambda number, say: 1e-6 * (200 - number))
    assert number == 119
    assert notes[0].endswith("size=119 (119: 81 µs, 118: 82 µs, 117: 83 µs and 117 more)")
