"""Spaces as `tune_kernel` states them: the same configurations and launches as the package itself makes of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.errors import InputFileError, UsageError
from drywarp.experiments.tuners.kernel_tuner import TuningSpace, tuning_space
from drywarp.experiments.tuners.kernel_tuner.launch import OURS, grid_of, launch_of
from drywarp.experiments.tuners.kernel_tuner.values import by_place

SOURCE = "__global__ void scale(float* a, int n) { a[threadIdx.x] *= n; }"
PARAMS = {"block_size_x": [16, 32, 64], "block_size_y": [1, 2, 4, 32], "tile": [1, 2, 3], "pad": [0, 1]}


def space(params: Mapping[str, Any] = PARAMS, **more: Any) -> TuningSpace:
    return tuning_space("scale", SOURCE, (1000, 70), [], params, **more)


def values(found: TuningSpace) -> list[tuple[Any, ...]]:
    return [tuple(c.values()) for c in found.configurations()]


def two_of(block_size_x: int, tile: int) -> bool:
    return block_size_x % tile == 0


def shown(value: Any) -> str:
    """The name of a test's case: without the addresses of functions, which differ in every process."""
    return re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", str(value))


RESTRICTIONS: list[Any] = [
    None,
    ["block_size_x * block_size_y >= 64", "pad == 0 or block_size_x % 32 == 0"],
    lambda p: p["block_size_x"] * p["tile"] <= 64,
    [lambda p: p["tile"] != 2 or p["pad"]],
    [(two_of, ["block_size_x", "tile"])],
    ["32 <= block_size_x*block_size_y <= 256", "tile in (1, 3)", "not pad"],
    ["block_size_x / (tile - 1) > 16"],
]


@pytest.mark.parametrize("restrictions", RESTRICTIONS, ids=shown)
def test_configurations_are_all_that_fulfil_the_restrictions(restrictions: Any) -> None:
    found = space(restrictions=restrictions)
    every = [dict(zip(PARAMS, v, strict=True)) for v in itertools.product(*PARAMS.values())]
    wanted = [tuple(c.values()) for c in every if all(holds(c) for holds in found.allowed)]
    assert values(found) == wanted
    assert all(c[0] * c[1] <= 1024 for c in wanted)


# The package's own reader, unlike its documentation, refuses pairs of a plain function and its names.
@pytest.mark.parametrize("restrictions", [r for r in RESTRICTIONS[:-1] if not (r and r is RESTRICTIONS[4])], ids=shown)
def test_configurations_are_those_of_the_package(restrictions: Any) -> None:
    searchspace = pytest.importorskip("kernel_tuner.searchspace", reason="Kernel Tuner is not installed")
    theirs = searchspace.Searchspace({n: list(v) for n, v in PARAMS.items()}, restrictions, 1024)
    assert sorted(values(space(restrictions=restrictions))) == sorted(theirs.list)


def test_constraints_of_python_constraint_are_asked() -> None:
    constraint = pytest.importorskip("constraint", reason="python-constraint is not installed")
    by_function = space(restrictions=[constraint.FunctionConstraint(lambda x, y, tile, pad: tile > pad)])
    assert {c[2:] for c in values(by_function)} == {(t, p) for t in (1, 2, 3) for p in (0, 1) if t > p}
    pair = (constraint.MaxProdConstraint(64), ["block_size_x", "block_size_y"])
    assert all(c[0] * c[1] <= 64 for c in values(space(restrictions=[pair])))


def test_a_forbidden_part_is_not_walked_through() -> None:
    wide = {f"p{n}": list(range(10)) for n in range(9)}
    found = space(wide, restrictions=[*(f"p{n} == p{n + 1}" for n in range(8))])
    assert len(values(found)) == 10


SIZES = st.sampled_from([1, 2, 3, 5, 16, 33, 48])


@given(x=SIZES, y=SIZES, tile=SIZES, size=st.tuples(st.integers(1, 5000), st.integers(1, 5000)))
def test_grid_is_the_size_over_its_divisors_rounded_up(x: int, y: int, tile: int, size: tuple[int, int]) -> None:
    p = {"block_size_x": x, "block_size_y": y, "tile": tile}
    found = tuning_space("k", SOURCE, size, [], {n: [v] for n, v in p.items()}, grid_div_x=["block_size_x", "tile"])
    assert grid_of(found, p) == (-(-size[0] // (x * tile)), -(-size[1] // y), 1)


DIVISORS: list[Any] = [None, [], ["block_size_x", "tile"], ["block_size_x * tile"], lambda p: p["tile"] * 1.5, 7]
PROBLEMS: list[Any] = [1000, (1000, 70), "tile * 100", ("tile*64", 9), lambda p: (p["tile"] * 10, 7, 3)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=shown)
@pytest.mark.parametrize("divisor", DIVISORS, ids=shown)
def test_launch_is_that_of_the_package(problem: Any, divisor: Any) -> None:
    util = pytest.importorskip("kernel_tuner.util", reason="Kernel Tuner is not installed")
    p = {"block_size_x": 48, "block_size_y": 3, "tile": 5}
    params = {n: [v] for n, v in p.items()}
    ours = launch_of(tuning_space("k<tile>", SOURCE, problem, [], params, divisor, None, ["tile"]), p, {})
    names = ["block_size_x", "block_size_y", "block_size_z"]
    threads, grid = util.setup_block_and_grid(problem, (divisor, None, ["tile"]), p, names)
    assert (ours["block"], ours["grid"]) == (threads, grid)
    name, text = util.prepare_kernel_string("k<tile>", SOURCE, p, grid, threads, names, "CUDA", None)
    macros = dict(line.split(maxsplit=2)[1:] for line in text.splitlines() if line.startswith("#define"))
    assert (ours["entry"], macros_of(ours)) == (name, macros)


def macros_of(launch: Mapping[str, Any]) -> dict[str, str]:
    """The macros that the source defines, with their values."""
    lines = [line.split() for line in launch["source"].splitlines() if line.startswith("#define")]
    return {name: launch["defines"][value] for _, name, value in lines}


def test_blocks_by_other_names_and_by_default() -> None:
    own = tuning_space("k", SOURCE, 100, [], {"BX": [8]}, block_size_names=["BX"])
    assert launch_of(own, {"BX": 8}, {})["block"] == (8, 1, 1)
    upper = tuning_space("k", SOURCE, 100, [], {"BLOCK_SIZE_X": [8]})
    assert launch_of(upper, {"BLOCK_SIZE_X": 8}, {})["block"] == (8, 1, 1)
    assert launch_of(tuning_space("k", SOURCE, 100, [], {"tile": [1]}), {"tile": 1}, {})["block"] == (256, 1, 1)


def test_macros_shared_memory_and_flags() -> None:
    found = space(
        {"tile": [4]},
        smem_args={"size": "tile * 1024"},
        defines={"T": "tile", "U": lambda p: p["tile"] + 1, "V": 9},
        compiler_options=["-I/here", "-DW=1", "--std=c++17", "-maxrregcount=64", "-O3"],
    )
    launch = launch_of(found, {"tile": 4}, {})
    assert macros_of(launch) == {"T": "4", "U": "5", "V": "9"}
    assert launch["defines"]["W"] == "1"
    assert launch["shared"] == 4096
    assert (launch["includes"], launch["std"], launch["max_registers"]) == (("/here",), "c++17", 64)


def test_unroll_factors_are_constants_and_zero_takes_the_pragma_away(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("void f() {\n  #pragma unroll loop_unroll_factor_t\n  for (;;) {}\n}\n")
    found = tuning_space("k", file, 1, [], {"loop_unroll_factor_t": [0, 4]})
    four = launch_of(found, {"loop_unroll_factor_t": 4}, {})
    assert f"constexpr int loop_unroll_factor_t = {OURS}loop_unroll_factor_t;" in four["source"]
    assert four["defines"][OURS + "loop_unroll_factor_t"] == "4"
    assert f'#line 1 "{file}"' in four["source"]
    assert "pragma" not in launch_of(found, {"loop_unroll_factor_t": 0}, {})["source"]


def test_sources_may_be_made_by_a_function_and_have_further_files(tmp_path: Path) -> None:
    made = tuning_space("k", lambda p: f"int tile = {p['tile']};", 1, [], {"tile": [3]}, lang="CUDA")
    assert launch_of(made, {"tile": 3}, {})["source"].endswith("#line 1\nint tile = 3;")
    (tmp_path / "more").mkdir()
    (tmp_path / "a.cu").write_text("int a;")
    several = tuning_space("k", [tmp_path / "a.cu", str(tmp_path / "more/b.h")], 1, [], {"tile": [3]})
    launch = launch_of(several, {"tile": 3}, {})
    assert launch["source"].endswith("int a;")
    assert launch["includes"] == (str(tmp_path), str(tmp_path / "more"))


def test_arrays_are_written_down_once(tmp_path: Path) -> None:
    large = np.arange(5000, dtype=np.float32)
    small = np.array([1.5, 2.5], np.float32)
    given = [np.zeros((3, 4), np.float32), np.ones(7, np.int32), large, small, np.int32(5), "f16[8]:random", None]
    found = by_place(given, tmp_path)
    assert found["arg0"] == "f32[3,4]"
    assert found["arg1"] == "i32[7]:ones"
    assert found["arg2"].startswith(f"@{tmp_path / 'arg2-'}")
    assert (np.load(found["arg2"][1:]) == large).all()
    assert found["arg3"] is not None
    assert (found["arg3"] == small).all()
    assert [found[f"arg{n}"] for n in (4, 5, 6)] == [5, "f16[8]:random", None]
    assert by_place([np.array([1 + 2j], np.complex64)], tmp_path)["arg0"].tolist() == [1.0, 2.0]


def test_arrays_of_the_same_bytes_and_other_types_are_kept_apart(tmp_path: Path) -> None:
    ones = np.arange(2000, dtype=np.int32)
    names = {by_place([array], tmp_path)["arg0"] for array in (ones, ones.view(np.float32), ones.reshape(2, 1000))}
    assert len(names) == 3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"lang": "OpenCL"}, "lang='OpenCL': only CUDA kernels"),
        ({"texmem_args": {"t": 1}}, "texmem_args: CUDA 12 removed texture references"),
        ({"gird_div_x": []}, "no argument 'gird_div_x'"),
        ({"restrictions": ["block_size_x >"]}, "expected a Python expression"),
        ({"restrictions": [3]}, "restriction 3: expected an expression"),
        ({"restrictions": [(two_of, ["other"])]}, "over 'other': no such parameter"),
        ({"restrictions": [lambda a, b: True]}, "expected one dictionary, or parameters"),
    ],
)
def test_what_cannot_be_read_says_so_in_one_line(more: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")) as caught:
        space(**more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: values(space(restrictions=["bloc > 3"])), "restriction 'bloc > 3': name 'bloc'"),
        (lambda: values(space(restrictions=lambda p: p["nothing"])), "a restriction failed: KeyError"),
        (lambda: space({"tile": []}), r"tune_params\['tile'\]: expected a list"),
        (lambda: grid_of(tuning_space("k", "x", "n", [], {"a": [1]}), {"a": 1}), "problem_size 'n'"),
        (lambda: launch_of(space({"a": [0]}, grid_div_x=["a"]), {"a": 0}, {}), "division by zero"),
        (lambda: launch_of(tuning_space("k", lambda p: 1 / 0, 1, [], {"a": [0]}), {"a": 0}, {}), "ZeroDivisionError"),
        (lambda: launch_of(tuning_space("k", "none.cu", 1, [], {"a": [0]}), {"a": 0}, {}), "none.cu: no such file"),
        (lambda: launch_of(tuning_space("k", 5, 1, [], {"a": [0]}), {"a": 0}, {}), "kernel_source is a int"),
        (lambda: by_place([object()], Path()), "argument arg0"),
    ],
)
def test_what_cannot_be_worked_out_says_so_in_one_line(make: Any, said: str) -> None:
    with pytest.raises((UsageError, InputFileError), match=said) as caught:
        make()
    assert "\n" not in str(caught.value)
