"""Waits for all but the last few, against a count of everything that a path issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp import texture
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.workload import scoreboards
from drywarp.workload.build import ASYNC_SLOT, SLOTS, build_workload
from drywarp.workload.cost import Item, Repeat
from drywarp.workload.scoreboards import Dependences, spread_partial_waits
from tests.effort import examples
from tests.emulator.support import run

COPY = Dependences((), ASYNC_SLOT, -1)
COMMIT = Dependences((), 0, -1)
FETCH = Dependences((), 5, -1)
READ = Dependences((), -1, 5)
OTHER = Dependences((2,), 3, 1)
ALL_COPIES = Dependences((0, ASYNC_SLOT), -1, -1)
ALL_FETCHES = Dependences((5, 2), -1, -1)
COPIES = {0: frozenset({ASYNC_SLOT})}


def some(board: int, count: int) -> Dependences:
    return Dependences((4,), -1, -1, (board, count))


NODES = [COPY, COMMIT, FETCH, READ, OTHER, ALL_COPIES, ALL_FETCHES, *(some(b, n) for b in (0, 5) for n in (1, 2, 3))]


def unfold(items: Sequence[Item]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Repeat):
            for _ in range(item.count):
                yield from unfold(item.body)
        else:
            yield item


programs = st.recursive(
    st.lists(st.integers(0, len(NODES) - 1), min_size=1, max_size=5),
    lambda inner: st.lists(
        st.one_of(
            st.integers(0, len(NODES) - 1), st.builds(Repeat, st.integers(1, 9), inner.map(tuple))
        ), min_size=1, max_size=4,
    ),
    max_leaves=4,
)  # fmt: skip


def assert_waits_for(awaited: set[int], older: list[set[int]]) -> None:
    """The newest of the older ones is waited for, which those before it precede, and nothing that may stay is."""
    assert awaited <= set().union(*older)
    assert not older or older[-1] <= awaited


@given(programs)
@settings(max_examples=examples(600, 4), deadline=None)
def test_a_wait_is_for_all_but_the_last_ones(program: list[Item]) -> None:
    spread = spread_partial_waits(NODES, program, SLOTS, COPIES)
    assert spread is not None
    order = list(unfold(spread.program))
    assert [spread.origins[n] for n in order] == list(unfold(program)), "nothing is run in another order"
    writers: dict[int, set[int]] = {}
    fetches: list[int] = []
    copies: list[set[int]] = []
    uncommitted: set[int] = set()
    for moment, (made, origin) in enumerate((spread.nodes[n], NODES[spread.origins[n]]) for n in order):
        assert made.counted is None
        awaited = set().union(*(writers.get(slot, set()) for slot in made.waits if slot >= SLOTS))
        if origin.counted is not None:
            board, stay = origin.counted
            older = [{n} for n in fetches[:-stay]] if board == 5 else copies[:-stay]
            assert_waits_for(awaited, older)
            assert 4 in made.waits
        elif origin is ALL_COPIES:
            assert_waits_for(awaited, copies)
        elif origin is ALL_FETCHES:
            assert awaited == set(fetches)
            assert 2 in made.waits
        elif origin is OTHER:
            assert made == OTHER
        for slot in (made.sets, made.sets_read):
            writers.setdefault(slot, set()).add(moment)
        if origin in (FETCH, READ):
            fetches.append(moment)
        elif origin is COPY:
            uncommitted.add(moment)
        elif origin is COMMIT:
            copies.append(uncommitted | {moment})
            uncommitted = set()


def test_a_program_without_partial_waits_stays_as_it_is() -> None:
    assert spread_partial_waits([COPY, COMMIT, ALL_COPIES], [0, 1, 2], SLOTS, COPIES) is None


def test_loops_stay_short() -> None:
    # Three stages: a copy, its commit, and a wait that lets two stay, a million times.
    nodes = [COPY, COMMIT, some(0, 2)]
    spread = spread_partial_waits(nodes, [0, 1, 0, 1, Repeat(1_000_000, (0, 1, 2))], SLOTS, COPIES)
    assert spread is not None
    assert len(spread.program) < 30
    assert len(list(unfold(spread.program))) == 3_000_004
    # Sixteen fetches an iteration fill a ring of sixteen: nothing has to be written out.
    nodes = [FETCH, some(5, 11)]
    spread = spread_partial_waits(nodes, [Repeat(1000, (*([0] * 16), 1))], SLOTS, {})
    assert spread is not None
    assert spread.program == (Repeat(1000, spread.program[0].body),)  # type: ignore[union-attr]
    assert spread.slots == SLOTS + 16


def test_what_would_be_too_long_is_left() -> None:
    inner: Item = 0
    for iterations in (7, 11, 13, 17):
        inner = Repeat(iterations, (inner, 0, 1))
    nodes = [FETCH, some(5, 60)]
    spread = spread_partial_waits(nodes, [inner], SLOTS, {})
    assert spread is None or len(spread.nodes) <= 20_000


def test_a_long_program_keeps_its_waits() -> None:
    """Blocks that take many tiles, each with as many iterations as its own length asks for."""
    tiles: list[Item] = [item for n in range(2, 30) for item in (*([0, 2] * 400), Repeat(n, (0, 1, 2)))]
    spread = spread_partial_waits([FETCH, some(5, 1), OTHER], [0, *tiles], SLOTS, {})
    assert spread is not None
    assert sum(1 for _ in unfold(spread.program)) == 1 + 28 * 800 + 3 * sum(range(2, 30))
    assert len(spread.nodes) <= 3 * (spread.slots - SLOTS)


@given(programs, st.integers(2, 9))
@settings(max_examples=examples(300, 4), deadline=None)
def test_an_outline_says_how_much_is_written_out(program: list[Item], length: int) -> None:
    for board, collected in ((0, COPIES[0]), (5, frozenset[int]())):
        ring = scoreboards.Ring(board, SLOTS, length, collected)
        writer = scoreboards.Writer(NODES, [ring])
        writer.items(program, ((0, False),))
        assert scoreboards.Outline(NODES, program, ring).written(length) == writer._written


def test_a_pipeline_of_copies_and_a_batch_of_fetches_wait_for_the_old_ones() -> None:
    source = """
extern "C" __global__ void k(cudaTextureObject_t t, const float* g, float* o, int n) {
  __shared__ float s[4][32];
  int i = threadIdx.x;
  float a = tex1Dfetch<float>(t, i), b = tex1Dfetch<float>(t, i + 1), c = tex1Dfetch<float>(t, i + 2), sum = 0;
  for (int stage = 0; stage < 3; ++stage) {
    __pipeline_memcpy_async(&s[stage][i], g + stage * 32 + i, 4);
    __pipeline_commit();
  }
  for (int turn = 0; turn < n; ++turn) {
    __pipeline_wait_prior(2);
    __syncthreads();
    sum += s[turn & 3][i ^ 1];
    if (turn + 3 < n) __pipeline_memcpy_async(&s[(turn + 3) & 3][i], g + (turn + 3) * 32 + i, 4);
    __pipeline_commit();
  }
  o[i] = sum + a * b + c;
}"""
    kernel = compile_cuda("#include <cuda_pipeline.h>\n" + source, arch="sm_80")
    g, t = np.arange(32 * 50, dtype=np.float32), np.arange(40, dtype=np.float32)
    emulation = run(kernel, 1, 32, texture(t), g, np.zeros(32, np.float32), 50)
    (path,) = build_workload(emulation.profile).paths
    counted = [node for node in path.nodes if kernel.instructions[node.instruction].opcode == "DEPBAR"]
    ring = max(max(node.waits, default=0) for node in path.nodes)
    assert path.slots == ring + 1 > SLOTS
    assert counted
    assert all(node.waits for node in counted)
    copies = {node.sets for node in path.nodes if kernel.instructions[node.instruction].opcode == "LDGSTS"}
    assert len(copies) > 1, "copies of different turns are told apart"
    i = np.arange(32)
    sums = np.zeros(32, np.float32)
    for turn in range(50):
        sums += g[turn * 32 + (i ^ 1)]
    np.testing.assert_array_equal(emulation.buffer("o"), sums + t[i] * t[i + 1] + t[i + 2])
