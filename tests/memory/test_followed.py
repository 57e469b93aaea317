"""Blocks in orders that follow no straight line: what they fetch and write is what a run of the whole grid says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from drywarp.analysis.emulation_cache import WholeBlocks
from drywarp.execution.emulator import Limits, emulate
from drywarp.execution.emulator.skim import Skim
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Launch
from drywarp.kernel.profile import SPACE_GLOBAL, Profile
from drywarp.memory.behaviour import MemoryBehaviour, analyse_memory
from drywarp.memory.followed import FollowedBlocks
from tests.effort import in_turn
from tests.emulator.support import argument, dim3

from .orders import (
    CAUSAL,
    IN_GROUPS,
    IN_ROWS,
    INDIRECT,
    PERSISTENT,
    ROTARY,
    SWIZZLED,
    TILE,
    TILES,
    N,
    in_groups,
    product,
    swizzled,
)
from .profiles import geometry

MATRICES = [np.zeros((N, N), np.float32) for _ in range(3)]
SMALL_L2, LARGE_L2 = 16 << 10, 1 << 22
RNG = np.random.default_rng(3)

CASES: dict[str, tuple[str, Any, int, list[Any]]] = {
    "rows": (product(IN_ROWS), TILES * TILES, 256, [*MATRICES, N]),
    "groups": (product(IN_GROUPS), TILES * TILES, 256, [*MATRICES, N]),
    "swizzled": (product(SWIZZLED), TILES * TILES, 256, [*MATRICES, N]),
    "persistent": (product(IN_GROUPS, PERSISTENT), 24, 256, [*MATRICES, N]),
    "rotary": (ROTARY, (24, 8), 64, [np.zeros(24 * 8 * 64, np.float32), np.zeros(24 * 3 * 64, np.float32), 8, 3]),
    "causal": (CAUSAL, (16, 6), 16, [np.zeros(6 * 256, np.float32), np.zeros(6 * 256, np.float32), 256]),
    "indirect": (INDIRECT, 64, 64, [RNG.permutation(4096).astype(np.int32), *(np.zeros(4096, np.float32),) * 2]),
}


def launched(name: str, n: int = N) -> tuple[Kernel, Launch]:
    source, grid, block, arguments = CASES[name]
    if n != N:
        arguments = [*(np.zeros((n, n), np.float32) for _ in range(3)), n]
    kernel = compile_cuda(source, arch="sm_80")
    return kernel, Launch(dim3(grid), dim3(block), tuple(argument(a) for a in arguments))


@cache
def sampled_and_whole(name: str) -> tuple[Profile, Profile]:
    kernel, launch = launched(name)
    return emulate(kernel, launch).profile, emulate(kernel, launch, blocks="all").profile


def judged(profile: Profile, l2: int = LARGE_L2, warm: bool = False) -> MemoryBehaviour:
    further = WholeBlocks(profile, Limits())
    sizes = geometry(l2=l2, sms=4, blocks_per_sm=2)
    return analyse_memory(profile, sizes, warm_l2=warm, emulate_blocks=further, looks=further.briefly())


@pytest.mark.parametrize(("name", "cache"), in_turn([*CASES], [(SMALL_L2, False), (LARGE_L2, True), (SMALL_L2, True)]))
def test_a_sample_tells_what_the_whole_grid_moves(name: str, cache: tuple[int, bool]) -> None:
    l2, warm = cache
    sample, whole = sampled_and_whole(name)
    found, known = judged(sample, l2, warm), judged(whole, l2, warm)
    assert "bounded" not in (known.method, found.method)
    assert found.dram_read_bytes == pytest.approx(known.dram_read_bytes, rel=0.02)
    assert found.dram_write_bytes == pytest.approx(known.dram_write_bytes, rel=0.02)


@pytest.mark.parametrize(("name", "tile"), [("groups", in_groups), ("swizzled", swizzled)])
def test_a_product_reads_what_its_tiles_are_made_of(name: str, tile: Any) -> None:
    """An L2 that holds the last wave alone: each wave of eight blocks reads its rows and columns of tiles."""
    sample, _ = sampled_and_whole(name)
    strip = N * TILE * 4  # bytes of a row of tiles, or of a column
    found = judged(sample, l2=strip)
    assert found.method == "followed"
    waves = [[tile(number) for number in range(begin, begin + 8)] for begin in range(0, TILES * TILES, 8)]
    moved = sum(len({row for row, _ in wave}) + len({column for _, column in wave}) for wave in waves) * strip
    # The last sectors of a wave are still there in the next.
    assert moved - len(waves) * strip <= found.dram_read_bytes <= moved
    assert found.dram_write_bytes == N * N * 4
    assert sorted(tile(number) for number in range(TILES * TILES)) == [
        (r, c) for r in range(TILES) for c in range(TILES)
    ]


def test_blocks_that_do_more_are_a_class_of_their_own() -> None:
    sample, _ = sampled_and_whole("rotary")
    found = judged(sample)
    assert found.method == "followed"
    assert found.dram_read_bytes == 24 * (8 + 3) * 64 * 4
    assert found.dram_write_bytes == 24 * (8 + 3) * 64 * 4


def test_every_block_emulated_leaves_nothing_to_guess() -> None:
    """Where blocks differ, none of them stands for the others if all are at hand."""
    _, whole = sampled_and_whole("rotary")
    found = judged(whole)
    assert found.dram_read_bytes == 24 * (8 + 3) * 64 * 4


@pytest.mark.parametrize("name", CASES)
def test_a_run_for_addresses_alone_reaches_the_same_places(name: str) -> None:
    kernel, launch = launched(name)
    blocks = range(min(12, launch.blocks))
    full = emulate(kernel, launch, blocks=list(blocks)).profile
    short = Skim(kernel, launch, full.cfg, Limits())(blocks)
    assert short is not None
    assert rows(full) == rows(short)


def test_loops_that_are_run_once_move_as_they_do() -> None:
    kernel, launch = launched("groups", n=512)
    full = emulate(kernel, launch, blocks=[0, 9]).profile
    look = Skim(kernel, launch, full.cfg, Limits(), full.cfg.loops)
    short = look([0, 9])
    assert short is not None
    assert look.once
    assert len(rows(short)) < len(rows(full)) / 4
    # What follows a loop that was left early may run for longer.
    assert moves(full) <= moves(short)


def moves(profile: Profile) -> set[tuple[int, int]]:
    """Of each instruction how far its accesses by a warp of the second block lie from those of the first."""
    log, per_block = profile.accesses, profile.launch.warps_per_block
    here = log.space == SPACE_GLOBAL
    first, second = (np.flatnonzero(here & (log.warp // per_block == block)) for block in (0, 1))
    assert np.array_equal(log.instruction[first], log.instruction[second])
    return set(zip(log.instruction[first].tolist(), (log.base[second] - log.base[first]).tolist(), strict=True))


def test_a_limit_is_a_count_and_ends_a_look() -> None:
    kernel, launch = launched("groups")
    cfg = emulate(kernel, launch, blocks=[0]).profile.cfg
    assert Skim(kernel, launch, cfg, Limits(lane_steps=1000))(range(64)) is None


def test_blocks_past_the_limit_are_not_determined() -> None:
    kernel, launch = launched("groups")
    sample, _ = sampled_and_whole("groups")
    found = FollowedBlocks(sample, Skim(kernel, launch, sample.cfg, Limits(lane_steps=1000)), None, geometry())
    assert not found.look([5])
    assert found([5]) is None


def rows(profile: Profile) -> list[tuple[Any, ...]]:
    """Accesses to global memory: who, which instruction, where, with which lanes."""
    log = profile.accesses
    chosen = np.flatnonzero(log.space == SPACE_GLOBAL)
    lanes = [tuple(log.offsets[p][(int(log.masks[p]) >> np.arange(32) & 1) == 1]) for p in log.pattern[chosen]]
    return list(
        zip(log.warp[chosen].tolist(), log.instruction[chosen].tolist(), log.base[chosen].tolist(), lanes, strict=True)
    )


def test_blocks_that_all_differ_are_not_all_looked_at() -> None:
    source = """extern "C" __global__ void k(float* y) {
      for (int i = 0; i <= blockIdx.x; ++i) y[i * 32 + threadIdx.x] = 1;
    }"""
    kernel = compile_cuda(source, arch="sm_80")
    launch = Launch(dim3(300), dim3(32), (argument(np.zeros(300 * 32, np.float32)),))
    sample = emulate(kernel, launch, blocks=[0, 150]).profile
    skim, asked = Skim(kernel, launch, sample.cfg, Limits()), list[int]()

    class Asked:
        once = ()

        def __call__(self, blocks: Sequence[int]) -> Profile | None:
            asked.extend(blocks)
            return skim(blocks)

    assert not FollowedBlocks(sample, Asked(), None, geometry()).look(range(300))
    assert len(asked) < 100


def test_samples_that_differ_end_a_look() -> None:
    """Every block begins its loop in one place, and then moves by a distance of its own."""
    source = """extern "C" __global__ void k(float* y) {
      #pragma unroll 1
      for (int i = 0; i < 3; ++i) y[i * (blockIdx.x + 1) * 32 + threadIdx.x] = 1;
    }"""
    kernel = compile_cuda(source, arch="sm_80")
    launch = Launch(dim3(300), dim3(32), (argument(np.zeros(300 * 64, np.float32)),))
    sample = emulate(kernel, launch, blocks=[0, 150]).profile
    skim, asked = Skim(kernel, launch, sample.cfg, Limits(), sample.cfg.loops), list[int]()
    assert skim.once

    class Asked:
        once = skim.once

        def __call__(self, blocks: Sequence[int]) -> Profile | None:
            asked.extend(blocks)
            return skim(blocks)

    assert not FollowedBlocks(sample, Asked(), None, geometry()).look(range(300))
    assert asked == [0, 150]
