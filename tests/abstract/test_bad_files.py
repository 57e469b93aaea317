"""Abstract kernel files that cannot be used: the file, the key, and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from drywarp.errors import DrywarpError, InputFileError, UsageError
from drywarp.hardware import load_gpu
from drywarp.support.expressions import ExpressionError, evaluate
from drywarp.workload.abstract import load_workload, read_workload

GOOD = """format = 1
title = "t"
settings.n = { default = 2, least = 1, most = 9 }
[launch]
warps_per_block = 2
[classes.c]
from = "comp"
[classes.m]
kind = "memory"
subsystem = "mem"
lambda = 2
latency = "3 * n"
[[program]]
id = "a"
class = "c"
[[program]]
loop = "n"
body = [{ id = "b", class = "m", needs = ["a"], previous = ["b"] }]
"""


def load(tmp_path: Path, text: str, **options: int) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    load_workload(str(path), load_gpu("papers/example"), **options)  # type: ignore[arg-type]


def test_the_good_file_is_good(tmp_path: Path) -> None:
    load(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('class = "c"', 'class = "c"\nneeds = ["b"]', "program[0].needs: dependence cycle"),
        ('id = "a"', 'id = "a"\nneeds = ["a"]', "program[0].needs: dependence cycle: a needs a"),
        ('needs = ["a"]', 'needs = ["z"]', "program[1].body[0].needs: unknown instruction 'z'; known: a, b"),
        ('class = "c"', 'class = "d"', "program[0].class: unknown class 'd'"),
        ('from = "comp"', 'from = "com"', "classes.c.from: GPU papers/example has no class com; expected one of comp"),
        ("lambda = 2", "lambda = -2", "classes.m.lambda: expected 0 or more cycles, got -2"),
        ('latency = "3 * n"', 'latency = "3 * k"', "classes.m.latency: unknown name 'k'; known: n, occupancy"),
        ('latency = "3 * n"', 'latency = "1 - n"', "classes.m.latency: expected 0 or more cycles, got '1 - n' = -1"),
        ('subsystem = "mem"', 'subsystem = "men"', "classes.m.subsystem: unknown subsystem 'men'; did you mean mem?"),
        (
            "warps_per_block = 2",
            "warps_per_block = 2\noccupancy = 3",
            "launch.occupancy: impossible: expected a multiple",
        ),
        (
            "warps_per_block = 2",
            "warps_per_block = 2\noccupancy = 66",
            "launch.occupancy: impossible: expected a multiple of 2 warps (one block) up to 64, got 66",
        ),
        ("warps_per_block = 2", "warps_per_block = 99", "launch.warps_per_block: expected at most 64 warps"),
        ("warps_per_block = 2", "warps_per_block = 1.5", "launch.warps_per_block: expected a whole number"),
        ("warps_per_block", "warps_per_blok", "unknown key 'warps_per_blok'; did you mean warps_per_block?"),
        ('from = "comp"', 'form = "comp"', "unknown key 'form'; did you mean from?"),
        ('id = "a"', 'id = "b"', "program[1].body[0].id: 'b' is used twice"),
        ('loop = "n"', 'loop = "n / 4"', "program[1].loop: expected a whole number of at least 0, got 'n / 4' = 0.5"),
        ('loop = "n"', "loop = true", "program[1].loop: expected"),
        ("format = 1", "format = 2", "format: expected 1, got 2"),
        ("format = 1", "", "the file: expected the key 'format'"),
        ('kind = "memory"', 'kind = "cache"', "classes.m.kind: invalid enum value 'cache'"),
        ('id = "a"', 'id = "a"\nprevious = ["a"]', "program[0].previous: only an instruction in a loop"),
        (
            "lambda = 2",
            "lambda = { occupancy = [1, 1], cycles = [1, 2] }",
            "classes.m.lambda.occupancy: expected increasing",
        ),
        ("lambda = 2", "lambda = { occupancy = [1], cycles = [1, 2] }", "classes.m.lambda: expected as many cycles"),
        ("format = 1", "format = ", "not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    with pytest.raises(InputFileError) as error:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert expected in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "mine.toml"))


def test_a_missing_file_and_an_unknown_name() -> None:
    with pytest.raises(InputFileError, match="no such file"):
        read_workload("nowhere.toml")
    with pytest.raises(UsageError, match="nearest: papers/example"):
        read_workload("papers/exmple")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"m": 1}, "no such setting"),
        ({"n": "x"}, "expected a number"),
        ({"n": "nan"}, "expected a number"),
        ({"n": 10}, "expected at least 1 and at most 9"),
    ],
)
def test_settings_are_checked(tmp_path: Path, settings: dict[str, float | str], expected: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(UsageError, match=expected):
        load_workload(str(path), load_gpu("papers/example"), settings)


@pytest.mark.parametrize("occupancy", [0, 3, 66])
def test_an_impossible_occupancy(tmp_path: Path, occupancy: int) -> None:
    with pytest.raises(UsageError, match="expected a multiple of 2 warps"):
        load(tmp_path, GOOD, occupancy=occupancy)


def test_expressions_compute_and_nothing_else() -> None:
    assert evaluate("2 * n + min(n, 1) // 1 - ceil(0.5)", {"n": 3}) == 6
    assert evaluate("-2 ** 2 % 7 + (n > 2)", {"n": 3}) == 4
    for text in (
        "__import__('os')",
        "n.real",
        "[1]",
        "n if n else 1",
        "'a' * 3",
        "9 ** 9 ** 9",
        "1 / 0",
        "lambda: 1",
        "(" * 99,
        "n" * 201,
        "1e999",
        "True",
        "",
        "min()",
        "(-8) ** 0.5",
    ):
        with pytest.raises(ExpressionError):
            evaluate(text, {"n": 3})


def test_every_error_is_one_of_ours(tmp_path: Path) -> None:
    with pytest.raises(DrywarpError):
        load(tmp_path, "format = 1\ntitle = 't'\nprogram = 3\n[classes.a]\n")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputFileError, match="not TOML"):
        read_workload(str(tmp_path / "binary.toml"))


GRAPHS = """format = 1
title = "t"
settings.p = { default = 0.5, least = 0 }
[launch]
warps_per_block = 4
[classes.c]
from = "comp"
[classes.b]
kind = "barrier"
subsystem = "comp"
lambda = 1
latency = 1
[graphs.x]
program = [{ id = "a", class = "c" }, { branch = "p", both = 0.25, then = [{ id = "d", class = "c" }] }]
[graphs.y]
program = [{ loop = 3, body = [{ branch = 0.5, then = [{ id = "a", class = "c" }] }] }]
[[groups]]
graphs = ["x", "y"]
[[groups]]
graphs = ["y"]
weight = 2
"""


def test_good_graphs_are_good(tmp_path: Path) -> None:
    load(tmp_path, GRAPHS)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('graphs = ["x", "y"]', 'graphs = ["x", "z"]', "groups[0].graphs: unknown graph 'z'; known: x, y"),
        ('graphs = ["x", "y"]', 'graphs = ["x", "y", "y"]', "groups[0].graphs: expected as many as a block has"),
        ('graphs = ["x", "y"]', 'graphs = ["y"]', "graphs.x: no group uses it; expected its name in [[groups]]"),
        ("weight = 2", "weight = -2", "groups[1].weight: expected 0 or more, got -2"),
        ("weight = 2", "wait = 2", "unknown key 'wait'; did you mean weight?"),
        ("[graphs.x]\nprogram", "[graphs.x]\nprogramm", "graphs.x: unknown key 'programm'; did you mean program?"),
        ("default = 0.5", "default = 1.5", "graphs.x.program[1].branch: expected a probability from 0 to 1, got 1.5"),
        ("both = 0.25", "both = 0.75", "graphs.x.program[1].both: expected a share of at most 0.5, as 0.5"),
        ('branch = "p"', 'branch = "q"', "graphs.x.program[1].branch: unknown name 'q'"),
        ('branch = "p", ', "", "graphs.x.program[1]: a branch needs branch (its probability) and then"),
        ('then = [{ id = "d", class = "c" }]', "else = []", "graphs.x.program[1]: a branch needs branch"),
        ('branch = "p"', 'branch = "p", id = "e"', "a branch has no id, class, needs or previous"),
        ('branch = "p"', 'branch = "p", loop = 2', "graphs.x.program[1]: a loop needs loop (its trip count) and body"),
        ('{ id = "a", class = "c" },', '{ id = "a", class = "c", both = 1 },', "both and else belong to a branch"),
        ('id = "d", class = "c"', 'id = "d", class = "b"', "program[1].then[0].class: a barrier in a branch; expected"),
        ("loop = 3", "loop = 99999", "graphs.y.program[0].loop: a branch in it would be drawn"),
        ("[graphs.x]", '[[program]]\nid = "a"\nclass = "c"\n[graphs.x]', "program: expected either"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_graphs_is_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GRAPHS
    with pytest.raises(InputFileError) as error:
        load(tmp_path, GRAPHS.replace(old, new, 1))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_several_graphs_need_groups(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"groups: missing; expected \[\[groups\]\], which say which warps run"):
        load(tmp_path, GRAPHS.partition("[[groups]]")[0])
