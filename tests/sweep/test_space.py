"""Space files and their checks, and the configurations that come out."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.errors import DrywarpError
from drywarp.experiments.sweep import count_of
from drywarp.experiments.sweep.row import configurations
from drywarp.experiments.sweep.space import Space, checked, read_space
from drywarp.hardware import load_gpu
from drywarp.support.expressions import evaluate

from .spaces import EXAMPLES, FILE, space

A100 = {"a100": load_gpu("a100")}


def test_the_example_is_a_space() -> None:
    found = read_space(EXAMPLES / "tiled_matmul_sweep.toml")
    assert Path(found.kernel) == EXAMPLES / "tiled_matmul.cu"
    # 12 divides neither size, and a tile of 32 takes no cap: (8, 16) with two caps and 32 with one, twice, on two GPUs.
    assert count_of(EXAMPLES / "tiled_matmul_sweep.toml") == 20


def test_canonical_order() -> None:
    rows = configurations(checked(space(), "t"), {"h100": load_gpu("h100"), **A100}, "t")
    assert [row.number for row in rows] == list(range(1, 13))
    assert [(row.gpu, row.cells["bx"], row.cells["n"]) for row in rows[:3]] == [
        ("h100", "64", "16384"),
        ("h100", "64", "32768"),
        ("h100", "128", "16384"),
    ]
    assert rows[6].gpu == "a100"
    assert len({row.key for row in rows}) == 12


RESTRICTIONS = ["a*b <= 12", "a < b or c == 2", "b != 3", "not (c == 1 and a == 4)", "gpu == 'a100'", "a%2 == 0"]


@given(st.lists(st.sampled_from(RESTRICTIONS), unique=True), st.permutations(["a", "b", "c"]))
@settings(max_examples=60, deadline=None)
def test_restrictions_keep_what_they_say(texts: list[str], names: list[str]) -> None:
    values = {"a": [1, 2, 4], "b": [2, 3, 5], "c": [1, 2]}
    expected = [
        chosen
        for combination in product(*(values[name] for name in names))
        if (chosen := dict(zip(names, combination, strict=True)))
        and all(evaluate(text, {**chosen, "gpu": "a100"}) for text in texts)
    ]
    given_space = checked({"kernel": "k.cu", "parameters": {n: values[n] for n in names}, "restrictions": texts}, "t")
    if expected:
        assert [dict(row.parameters) for row in configurations(given_space, A100, "t")] == expected
    else:
        with pytest.raises(DrywarpError, match="no configuration fulfils"):
            configurations(given_space, A100, "t")


def test_listed_configurations() -> None:
    listed = [{"bx": 64, "w": "float"}, {"bx": 32, "w": "double"}, {"w": "half", "bx": 512}]
    found = checked(Space(kernel="k.cu", configurations=listed, restrictions=["bx > 32"]), "t")
    assert found.names() == ("bx", "w")
    assert [row.cells for row in configurations(found, A100, "t")] == [
        {"bx": "64", "w": "float"},
        {"bx": "512", "w": "half"},
    ]


def test_parameters_named_as_arguments_are_no_macros() -> None:
    found = checked(space(macros=None), "t")
    assert found.macro_names() == ("bx",)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"parameters": {}}, "expected either parameters .* or configurations"),
        ({"configurations": [{"bx": 1}]}, "expected either parameters"),
        ({"parameters": {"b x": [1]}}, "parameters.b x: expected an identifier"),
        ({"parameters": {"gpu": [1]}}, "parameters.gpu: expected an identifier other than 'gpu'"),
        ({"parameters": {"bx": []}}, "parameters.bx: expected distinct values"),
        ({"parameters": {"bx": [1, 1]}}, "parameters.bx: expected distinct values"),
        ({"parameters": {"bx": [[1]]}}, r"Expected `int \| float \| str \| bool`|Expected `bool"),
        ({"parameters": {"bx": ["a\nb"], "n": [1]}}, "expected a non-empty string of one line"),
        ({"parameters": {}, "configurations": [{"bx": 1, "n": 2}, {"bx": 1}]}, "number 2 has no 'n'"),
        (
            {"parameters": {}, "configurations": [{"bx": 1, "n": 2}, {"bx": 2, "n": 2}, {"n": 2, "bx": 1}]},
            "configurations: number 3 repeats number 1, expected distinct ones",
        ),
        ({"models": []}, "models"),
        ({"macros": ["tile"]}, "macros: no parameter 'tile'; there are: bx, n"),
        ({"problem": ["tile"]}, "problem: no parameter 'tile'"),
        ({"restrictions": ["tile > 1"]}, "restrictions: 'tile > 1': unknown name 'tile'; known: bx, gpu, n"),
        ({"restrictions": ["bx >"]}, "restrictions: expected a sum"),
        ({"restrictions": ["__import__('os')"]}, "restrictions"),
        ({"restrictions": ["n // (bx - 64) > 1"]}, "restrictions: .* at bx=64 n=16384: .*has no value"),
        ({"compiler_options": ["-zzz"]}, r"--compiler-option -zzz: unknown"),
        ({"grid": "cdiv(m,bx)"}, r"grid: 'cdiv\(m,bx\)': unknown name 'm'"),
        ({"args": {"x": "f32[m]"}}, "args.x: 'm': unknown name 'm'"),
        ({"entry": "k<{tile}>"}, "entry: unknown name 'tile'"),
        ({"clock": "mhz"}, "clock: 'mhz': unknown name"),
        ({"blocs": 4}, "unknown field `blocs`"),
        ({"gpus": []}, "gpus"),
        ({"gpus": ["a100", "a100"]}, "each once"),
        ({"gpus": ["a1000"]}, "a1000"),
        ({"warm_l2": "yes"}, "Expected `bool`"),
    ],
)
def test_bad_spaces(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(DrywarpError, match=expected):
        count_of(space(**changes))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kernel = x", r"space\.toml: not TOML: .*line 1"),
        ("parameters = { bx = [1] }", r"space\.toml: Object missing required field `kernel`"),
        ("kernel = 3\nparameters = { bx = [1] }", r"space\.toml: kernel is 3, expected the path"),
        (FILE.replace('gpus = ["a100", "h100"]', "gpus = [100]"), r"space\.toml: gpus: 100, expected names"),
        (FILE.replace("block = ", "blocks = "), r"space\.toml: .*blocks"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(DrywarpError, match=expected):
        count_of(path)
    with pytest.raises(DrywarpError, match="no such file"):
        count_of(tmp_path / "none.toml")
