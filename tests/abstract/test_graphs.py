"""Abstract kernels with several dependence graphs, kinds of thread blocks, and branches: what must hold of each."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.hardware import load_gpu
from drywarp.models import get_model
from drywarp.pipeline import Share, simulate
from drywarp.workload.abstract import load_workload
from drywarp.workload.cost import CostedWorkload

HEAD = """format = 1
title = "t"
[classes.c]
from = "comp"
[classes.m]
kind = "memory"
from = "mem"
"""


def made(text: str, occupancy: int | None = None, runs: int = 1) -> CostedWorkload:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.toml"
        path.write_text(HEAD + text, encoding="utf-8")
        return load_workload(str(path), load_gpu("papers/example"), occupancy=occupancy, runs=runs)


def executions(work: CostedWorkload) -> Counter[str]:
    """How often all warps of one of each kind of block run each instruction."""
    found: Counter[str] = Counter()
    for kind in work.block_types:
        for path in kind.paths:
            for node, count in zip(work.paths[path].nodes, work.paths[path].counts(), strict=True):
                found[work.names[node.instruction]] += count
    return found


def cycles(work: CostedWorkload) -> float:
    blocks = work.blocks_per_sm * work.runs
    return simulate(work, Share(work.blocks_per_sm, blocks, blocks)).cycles


BRANCH = """[[program]]
loop = {iterations}
body = [
    {{ branch = {share}, both = {both}, then = [{{ id = "t", class = "c" }}], else = [{{ id = "e", class = "m" }}] }},
]
"""


@settings(max_examples=60)
@given(st.integers(1, 64), st.integers(1, 12), st.integers(0, 20), st.integers(0, 20))
def test_branches_are_taken_as_often_as_stated(warps: int, iterations: int, share: int, more: int) -> None:
    """Of all executions, the share that takes each side is off by less than one; each runs one side, or both."""
    p, both = share / 20, more / 20 * (1 - share / 20)
    work = made(BRANCH.format(iterations=iterations, share=p, both=both), warps)
    found, total = executions(work), warps * iterations
    assert abs(found["t"] - (p + both) * total) <= 1
    assert abs(found["e"] - (1 - p) * total) <= 0.5 + 1e-9
    assert found["t"] + found["e"] - total == pytest.approx(both * total, abs=1)
    assert work.notes[0].startswith(f"program[0].body[0]: of {total:,} executions drawn, ")
    assert cycles(work) >= max(found["t"] * 1, found["e"] * 2)  # λ 1 and 2
    again = made(BRANCH.format(iterations=iterations, share=p, both=both), warps)
    assert (again.paths, again.block_types) == (work.paths, work.block_types)


@pytest.mark.parametrize(("share", "same"), [(1, "t"), (0, "e")])
@pytest.mark.parametrize("warps", [1, 5])
def test_a_branch_that_all_or_none_take_is_none(share: int, same: str, warps: int) -> None:
    plain = made(f'[[program]]\nloop = 6\nbody = [{{ id = "x", class = "{"c" if same == "t" else "m"}" }}]\n', warps)
    work = made(BRANCH.format(iterations=6, share=share, both=0), warps)
    assert executions(work)[same] == 6 * warps
    assert len(work.paths) == 1
    assert cycles(work) == cycles(plain)


GROUPS = """[launch]
warps_per_block = 2
[graphs.a]
program = [{ id = "x", class = "c" }, { id = "y", class = "c", needs = ["x"] }]
[graphs.b]
program = [{ loop = 3, body = [{ id = "x", class = "m", previous = ["x"] }] }]
"""


def test_divergent_warps_by_hand() -> None:
    """A block of two chains: two dependent computations (8 cycles) beside three dependent accesses (18 cycles)."""
    work = made(GROUPS + '[[groups]]\ngraphs = ["a", "b"]\n', 2)
    assert work.names == ("a.x", "a.y", "b.x")
    assert cycles(work) == 18
    # Two such blocks share the subsystems: each second warp issues λ later.
    assert cycles(made(GROUPS + '[[groups]]\ngraphs = ["a", "b"]\n', 4)) == 18 + 2
    (point,) = get_model("pipeline").predict(work, (2,)).curve
    assert point.cycles_per_run == 18


@settings(max_examples=40)
@given(st.integers(0, 6), st.integers(1, 6), st.integers(1, 32), st.booleans())
def test_kinds_of_blocks_come_in_proportion_to_their_weights(a: int, b: int, blocks: int, drawn: bool) -> None:
    text = GROUPS + f'[[groups]]\ngraphs = ["a"]\nweight = {a}\n[[groups]]\ngraphs = ["b"]\nweight = {b}\n'
    if drawn:  # a branch changes how blocks are made, not how many there are of each kind
        text = text.replace(
            'needs = ["x"] }]', 'needs = ["x"] }, { branch = 0.5, then = [{ id = "z", class = "c" }] }]'
        )
    work = made(text, 2 * blocks)
    first = {kind: work.names[work.paths[kind.paths[0]].nodes[0].instruction] for kind in work.block_types}
    weight = sum(kind.weight for kind in work.block_types if first[kind] == "a.x")
    total = sum(kind.weight for kind in work.block_types)
    assert abs(weight / total - a / (a + b)) <= (1 / blocks if drawn else 1e-9)


def test_one_graph_in_a_table_is_the_program() -> None:
    body = 'program = [{ id = "x", class = "c" }, { id = "y", class = "m", needs = ["x"] }]\n'
    one, other = (
        made(f"[graphs.only]\n{body}", 5),
        made('[[program]]\nid = "x"\nclass = "c"\n[[program]]\nid = "y"\nclass = "m"\nneeds = ["x"]\n', 5),
    )
    assert (one.paths, one.block_types) == (other.paths, other.block_types)
    assert (one.names, other.names) == (("only.x", "only.y"), ("x", "y"))


def test_what_the_side_not_taken_sets_is_not_awaited() -> None:
    text = '[[program]]\nbranch = {}\nthen = [{{ id = "t", class = "m" }}]\n'
    text += '[[program]]\nid = "z"\nclass = "c"\nneeds = ["t"]\n'
    assert cycles(made(text.format(0), 1)) == 4
    assert cycles(made(text.format(1), 1)) == 6 + 4
