"""From a profile to L1, L2 and DRAM: hand-made kernels whose traffic can be counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.kernel.launch.launch import Dim3
from drywarp.kernel.profile import SPACE_LOCAL, SPACE_SHARED, Profile
from drywarp.memory.affine import fit_affine
from drywarp.memory.behaviour import analyse_memory
from drywarp.memory.footprint import count, sampled_footprint
from drywarp.memory.moved_footprint import MovedFootprints
from tests.memory.profiles import FULL, LANES, Access, access, geometry, profile, sectors

KIB, MIB = 1 << 10, 1 << 20
A, B, C = 1 * MIB, 64 * MIB, 128 * MIB
BUFFERS = {"a": (A, 32 * MIB), "b": (B, 32 * MIB), "c": (C, 32 * MIB)}
LOAD_STORE = ["LDG.E R2, [R4.64]", "STG.E [R6.64], R2"]
LOAD, STORE = 0, 1


# Streaming: every block loads and stores 128 bytes a warp --------------------------------------------------------


def streaming(grid: int = 64, samples: Sequence[int] | None = (0, 1, 17, 63), warps: int = 2) -> Profile:
    def of(block: Dim3, warp: int) -> list[Access]:
        at = (block[0] * warps + warp) * 128
        return [access(LOAD, A + at + LANES * 4), access(STORE, B + at + LANES * 4)]

    return profile(LOAD_STORE, (grid, 1, 1), of, samples=samples, warps=warps, allocations=BUFFERS)


def test_streaming_moves_every_byte_once() -> None:
    found = analyse_memory(streaming(), geometry())
    assert found.method == "affine"
    assert found.global_load_sectors == found.global_store_sectors == 64 * 2 * 4
    assert found.dram_read_bytes == found.dram_write_bytes == 64 * 2 * 128
    assert (found.l1_hit_rate, found.shared_conflict_degree) == (0, None)
    load, store = found.accesses[LOAD], found.accesses[STORE]
    assert (load.executions, load.units, load.lines, load.dram_read, load.dram_write) == (128, 4, 1, 4, 0)
    assert (store.executions, store.units, store.lines, store.dram_read, store.dram_write) == (128, 4, 1, 0, 4)
    assert (load.l1_hit, load.l2_hit) == (0, 0)


def test_a_warm_l2_saves_the_reads_of_a_stream_that_fits() -> None:
    warm = analyse_memory(streaming(), geometry(), warm_l2=True)
    assert (warm.dram_read_bytes, warm.dram_write_bytes) == (0, 64 * 2 * 128)
    assert warm.accesses[LOAD].l2_hit == 1
    small = analyse_memory(streaming(), geometry(l2=2 * KIB), warm_l2=True)
    assert small.dram_read_bytes == 64 * 2 * 128


@pytest.mark.parametrize("grid", [1, 7, 8, 9, 100])
def test_partial_waves_move_their_own_bytes_only(grid: int) -> None:
    samples = sorted({0, grid // 3, grid // 2, grid - 1})
    found = analyse_memory(streaming(grid, samples), geometry(sms=4, blocks_per_sm=2))
    assert found.dram_read_bytes == pytest.approx(grid * 2 * 128)


# A two-dimensional tile kernel: A by row, B by column of blocks -------------------------------------------------


def tiles(side: int = 8, samples: Sequence[int] | None = (0, 1, 8, 27, 63)) -> Profile:
    """Each block reads a 128-byte strip of A that its row shares, and one of B that its column shares."""

    def of(block: Dim3, warp: int) -> list[Access]:
        x, y, _ = block
        out = C + (y * side + x) * 128
        return [
            access(0, A + y * 128 + LANES * 4),
            access(1, B + x * 128 + LANES * 4),
            access(2, out + LANES * 4),
        ]

    lines = ["LDG.E R2, [R4.64]", "LDG.E R3, [R6.64]", "STG.E [R8.64], R2"]
    return profile(lines, (side, side, 1), of, samples=samples, allocations=BUFFERS)


def test_tiles_share_their_strips() -> None:
    found = analyse_memory(tiles(), geometry(sms=4, blocks_per_sm=2))
    assert found.method == "affine"
    # 8 strips of A and 8 of B come once, 64 results go once.
    assert found.dram_read_bytes == 16 * 128
    assert found.dram_write_bytes == 64 * 128
    assert found.global_load_sectors == 64 * 2 * 4
    assert found.l2_hit_rate is not None
    assert 0 < found.l2_hit_rate < 1


def test_an_l2_that_holds_no_wave_loses_what_waves_share() -> None:
    large = analyse_memory(tiles(), geometry(sms=4, blocks_per_sm=2))
    small = analyse_memory(tiles(), geometry(sms=4, blocks_per_sm=2, l2=8 * 32))
    assert small.dram_read_bytes > large.dram_read_bytes
    # Within a wave (one row of blocks) sharing remains: B whole and one strip of A for each, but few waves follow on.
    assert small.dram_read_bytes <= 8 * 9 * 128


def test_blocks_on_one_sm_share_its_l1() -> None:
    # One SM takes all: of 8 resident blocks in a row the first loads the strip of A, seven find it.
    found = analyse_memory(tiles(), geometry(sms=1, blocks_per_sm=8))
    assert found.accesses[0].l1_hit == pytest.approx(7 / 8)
    assert found.accesses[1].l1_hit == 0
    assert found.l1_hit_rate == pytest.approx(7 / 16)
    none = analyse_memory(tiles(), geometry(sms=1, blocks_per_sm=8, l1=0))
    assert none.l1_hit_rate == 0


# The affine fit -------------------------------------------------------------------------------------------------


@st.composite
def affine_kernels(draw: st.DrawFn) -> tuple[Profile, Profile]:
    """A random affine kernel: sampled, and every block of it."""
    grid = (draw(st.integers(2, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    step = st.integers(-50, 50).map(lambda n: n * 4)
    instructions = []
    for index in range(draw(st.integers(1, 3))):
        coefficient = np.array([draw(step), draw(step), draw(step)])
        stride, mask = draw(st.sampled_from([0, 4, 8, 36])), draw(st.sampled_from([FULL, 0xFFFF, 0x80000001]))
        instructions.append((index, coefficient, stride, mask))

    def of(block: Dim3, warp: int) -> list[Access]:
        return [
            access(index, A + 8 * MIB + warp * 400 + int(coefficient @ np.array(block)) + LANES * stride, mask)
            for index, coefficient, stride, mask in instructions
        ]

    lines = ["LDG.E R2, [R4.64]"] * len(instructions)
    every = profile(lines, grid, of, warps=2, allocations=BUFFERS)
    count = every.launch.blocks
    corners = {0, 1, count - 1, count // 2, grid[0] % count, grid[0] * grid[1] % count, grid[0] * grid[1] - 1}
    return profile(lines, grid, of, samples=sorted(corners), warps=2, allocations=BUFFERS), every


@settings(deadline=None, max_examples=60)
@given(affine_kernels(), st.data())
def test_derived_footprints_are_those_of_the_blocks_themselves(
    kernels: tuple[Profile, Profile], data: st.DataObject
) -> None:
    sampled, every = kernels
    fit = fit_affine(sampled)
    if fit is None:
        # Only where the samples do not determine the steps, or leave none to check them by.
        assert len(sampled.blocks) <= 4
        return
    first = data.draw(st.integers(0, every.launch.blocks - 1))
    part = range(first, data.draw(st.integers(first + 1, every.launch.blocks)))
    derived = MovedFootprints(sampled, fit, geometry())(part)
    emulated = sampled_footprint(every, list(part), geometry())
    assert derived is not None
    assert {i: s.tolist() for i, s in derived.sectors.items()} == {i: s.tolist() for i, s in emulated.sectors.items()}


@settings(deadline=None, max_examples=60)
@given(affine_kernels(), st.booleans())
def test_traffic_is_conserved(kernels: tuple[Profile, Profile], warm: bool) -> None:
    sampled, every = kernels
    # Without the L1, nothing stands between requests and the L2.
    found = analyse_memory(sampled, geometry(l1=0, sms=64), warm_l2=warm, emulate_blocks=lambda part: None)
    requested = found.global_load_sectors
    fetched = found.dram_read_bytes / 32
    assert 0 <= fetched <= requested + 1e-6
    if not warm and found.method == "affine":
        distinct = count(sampled_footprint(every, range(every.launch.blocks), geometry()).union())
        assert fetched == distinct  # one wave


def test_affine_needs_a_block_to_check_the_steps_by() -> None:
    assert fit_affine(streaming(samples=(0, 5))) is None
    fit = fit_affine(streaming(samples=(0, 5, 9)))
    assert fit is not None
    assert (fit.checked, fit.share) == (1, 1)
    assert fit.coefficients.tolist() == [[256, 0, 0]] * 4


def test_affine_needs_every_dimension_of_the_grid() -> None:
    assert fit_affine(tiles(samples=(0, 1, 2, 3))) is None  # only x varies
    assert fit_affine(tiles(samples=(0, 1, 8, 9))) is not None


def test_one_byte_off_is_not_affine() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + block[0] * 128 + 4 * (block[0] == 40) + LANES * 4)]

    crooked = profile(["LDG.E R2, [R4.64]"], (64, 1, 1), of, samples=(0, 1, 17, 40), allocations=BUFFERS)
    assert fit_affine(crooked) is None


def test_a_grid_of_one_block_needs_no_steps() -> None:
    fit = fit_affine(streaming(1, (0,)))
    assert fit is not None
    assert fit.coefficients.tolist() == [[0, 0, 0]] * 4


def test_border_blocks_that_do_a_little_less_do_not_hinder() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        mask = 0xFF if block[0] == 63 else FULL
        return [access(0, A + block[0] * 128 + LANES * 4, mask)]

    cut = profile(
        ["LDG.E R2, [R4.64]"], (64, 1, 1), of, samples=(0, 1, 17, 63), weights=(20, 20, 23, 1), allocations=BUFFERS
    )
    fit = fit_affine(cut)
    assert fit is not None
    assert fit.share == 63 / 64


@pytest.mark.parametrize("idle", [0.3, 0.7])
def test_blocks_that_do_nothing_do_not_stand_for_those_that_work(idle: float) -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + block[0] * 128 + LANES * 4)] if block[0] % 2 else []

    weights = [64 * idle / 3, 64 * (1 - idle) / 3] * 3
    mixed = profile(["LDG.E R2, [R4.64]"], (64, 1, 1), of, samples=range(6), weights=weights, allocations=BUFFERS)
    assert fit_affine(mixed) is None
    found = analyse_memory(mixed, geometry())
    assert found.method == "bounded"
    # Three of the six sampled blocks read 128 bytes each; as many in the same proportion do, if they share nothing.
    assert found.dram_read_range == pytest.approx((3 * 128, 64 * (1 - idle) * 128))


# Gather: addresses that follow no rule --------------------------------------------------------------------------


def gather_of(block: Dim3, warp: int) -> list[Access]:
    rng = np.random.default_rng(block[0])
    return [access(0, A + rng.integers(0, 4096, 32) * 4)]


GATHER = ["LDG.E R2, [R4.64]"]


def gather(samples: Sequence[int] | None) -> Profile:
    return profile(GATHER, (64, 1, 1), gather_of, samples=samples, allocations=BUFFERS)


def test_a_gather_is_emulated_wave_by_wave() -> None:
    asked: list[range] = []

    def emulate(part: range) -> Profile:
        asked.append(part)
        return gather(list(part))

    found = analyse_memory(gather((0, 1, 2, 3)), geometry(sms=4, blocks_per_sm=4), emulate_blocks=emulate)
    assert found.method == "emulated"
    assert asked == [range(16), range(16, 32), range(32, 48), range(48, 64)]
    distinct = set().union(*(sectors(gather_of((n, 0, 0), 0)[0][1]) for n in range(64)))
    assert found.dram_read_bytes == 32 * len(distinct)


def test_sampled_blocks_that_ask_for_less_do_not_limit_what_the_others_fetch() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        rng = np.random.default_rng(block[0])
        return [access(0, A + rng.integers(0, 1 << 20, 32) * 4) for _ in range(1 if block[0] < 4 else 8)]

    def some(samples: Sequence[int]) -> Profile:
        return profile(GATHER, (64, 1, 1), of, samples=samples, allocations=BUFFERS)

    found = analyse_memory(
        some((0, 1, 2, 3)), geometry(sms=4, blocks_per_sm=4), emulate_blocks=lambda part: some(list(part))
    )
    distinct = set().union(*(sectors(one[1]) for n in range(64) for one in of((n, 0, 0), 0)))
    assert found.dram_read_bytes == 32 * len(distinct)


@pytest.mark.parametrize("emulate", [None, lambda part: None])
def test_a_gather_that_cannot_be_emulated_lies_between_its_extremes(emulate: object) -> None:
    found = analyse_memory(gather((0, 1, 2, 3)), geometry(), emulate_blocks=emulate)  # type: ignore[arg-type]
    assert found.method == "bounded"
    each = [sectors(gather_of((n, 0, 0), 0)[0][1]) for n in range(4)]
    least, most = 32 * len(set().union(*each)), 32 * 16 * sum(map(len, each))
    assert found.dram_read_range == pytest.approx((least, most))
    assert found.dram_read_bytes == pytest.approx(math.sqrt(least * most))
    whole = analyse_memory(gather(None), geometry())
    assert least <= whole.dram_read_bytes <= most


def test_a_grid_that_is_followed_in_part_lies_between_what_is_known() -> None:
    """Of four waves of sixteen blocks two are run: the others may find everything in the L2, or no more than these."""

    def emulate(part: range) -> Profile | None:
        return gather(list(part)) if part.stop <= 32 else None

    sizes = geometry(sms=4, blocks_per_sm=4)
    found = analyse_memory(gather((0, 1, 2, 3)), sizes, emulate_blocks=emulate)  # type: ignore[arg-type]
    waves = [set().union(*(sectors(gather_of((n, 0, 0), 0)[0][1]) for n in range(b, b + 16))) for b in (0, 16)]
    known = 32 * len(waves[0] | waves[1])
    assert found.method == "emulated"
    assert found.dram_read_range == pytest.approx((known, known + 2 * 32 * len(waves[0])))
    assert found.dram_read_range is not None
    assert found.dram_read_range[0] <= found.dram_read_bytes <= found.dram_read_range[1]


def test_blocks_that_were_all_sampled_need_no_second_emulation() -> None:
    def never(part: range) -> Profile:
        raise AssertionError("emulated again")

    found = analyse_memory(gather(None), geometry(), emulate_blocks=never)
    assert found.method == "emulated"


def test_a_sampled_block_does_not_find_its_own_data_as_its_neighbours() -> None:
    # Two samples stand for eight resident blocks with nothing in common: nothing hits.
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + (block[0] * 7919 % 4001) * 4096 + LANES * 128)]

    scattered = profile(GATHER, (64, 1, 1), of, samples=(0, 1), allocations=BUFFERS)
    found = analyse_memory(scattered, geometry(sms=1, blocks_per_sm=8))
    assert found.accesses[0].l1_hit == 0


@pytest.mark.parametrize(("l1_blocks", "hit"), [(8, 0.5), (2, 0)])
def test_few_samples_get_their_share_of_the_l1(l1_blocks: int, hit: float) -> None:
    # Each block reads its own 4 KiB twice; eight of them are resident, two were sampled.
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + (block[0] * 7919 % 4001) * 4096 + LANES * 128)] * 2

    twice = profile(GATHER, (64, 1, 1), of, samples=(0, 1), allocations=BUFFERS)
    found = analyse_memory(twice, geometry(sms=1, blocks_per_sm=8, l1=l1_blocks * 4 * KIB))
    assert found.accesses[0].l1_hit == hit


# Other spaces and kinds -----------------------------------------------------------------------------------------


def test_atomics_read_and_write_and_bypass_the_l1() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + LANES * 4), access(1, A + LANES * 4)]

    lines = ["LDG.E R2, [R4.64]", "RED.E.ADD.STRONG.GPU [R4.64], R2"]
    found = analyse_memory(profile(lines, (16, 1, 1), of, allocations=BUFFERS), geometry(sms=1, blocks_per_sm=16))
    assert found.accesses[0].l1_hit == pytest.approx(15 / 16)
    assert found.accesses[1].l1_hit == 0
    assert found.dram_read_bytes == 128
    assert found.dram_write_bytes == 128
    assert (found.global_load_sectors, found.global_store_sectors) == (64, 0)


def test_volatile_loads_go_past_the_l1() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + LANES * 4)] * 2

    for opcode, hit in (("LDG.E", 0.5), ("LDG.E.STRONG.SYS", 0.0), ("LDG.E.STRONG.GPU", 0.0)):
        one = profile([f"{opcode} R2, [R4.64]"], (1, 1, 1), of, allocations=BUFFERS)
        one = replace(one, paths=(replace(one.paths[0], blocks=np.array([0, 0], np.int32)),))
        found = analyse_memory(one, geometry())
        assert found.accesses[0].l1_hit == hit
        assert found.accesses[0].executions == 2


def test_shared_memory_counts_wavefronts_and_no_dram() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, LANES * 128, space=SPACE_SHARED), access(1, LANES * 4, space=SPACE_SHARED)]

    lines = ["STS [R4], R2", "LDS R2, [R4]"]
    found = analyse_memory(profile(lines, (4, 1, 1), of), geometry())
    assert (found.accesses[0].units, found.accesses[1].units) == (32, 1)
    assert found.shared_wavefronts == 4 * 33
    assert found.shared_conflict_degree == 33 / 2
    assert (found.dram_bytes, found.global_load_sectors, found.l1_hit_rate, found.l2_hit_rate) == (0, 0, None, None)


@pytest.mark.parametrize(("width", "units"), [("", 4), (".64", 8), (".128", 16)])
def test_local_memory_moves_all_its_words(width: str, units: int) -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, np.full(32, 16), space=SPACE_LOCAL)]

    written = analyse_memory(profile([f"STL{width} [R1], R2"], (8, 1, 1), of, local_bytes=64), geometry())
    assert (written.accesses[0].units, written.accesses[0].l1_hit) == (units, 0)  # the L1 writes through


def test_local_loads_find_in_the_l1_what_the_warp_stored_while_it_fits() -> None:
    # Each warp stores 16 words and loads them again: 2 KiB a warp. Nothing waits: one comes after the other.
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(n % 16 + 16 * (n // 16), np.full(32, 4 * (n % 16)), space=SPACE_LOCAL) for n in range(32)]

    lines = ["STL [R1], R2"] * 16 + ["LDL R2, [R1]"] * 16
    spilled = profile(lines, (8, 1, 1), of, local_bytes=64)
    for l1, hit in ((4 * KIB, 1), (128, 0)):
        found = analyse_memory(spilled, geometry(blocks_per_sm=2, l1=l1))
        assert {found.accesses[n].l1_hit for n in range(16, 32)} == {hit}
        assert {found.accesses[n].l1_hit for n in range(16)} == {0}


def test_local_memory_that_overflows_the_l2_goes_to_dram() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(n, np.full(32, 4 * (n % 16)), space=SPACE_LOCAL) for n in range(32)]

    lines = ["STL [R1], R2"] * 16 + ["LDL R2, [R1]"] * 16
    spilled = profile(lines, (80, 1, 1), of, local_bytes=64)  # eight resident warps with 64 sectors each
    sectors = 80 * 64
    # What is written: the solutions of m = 1 - exp(-m * footprint / L2).
    for l2_sectors, read, written in ((8 * 64 * 2, 0, 0), (8 * 32, 0.5, 0.796812), (8 * 16, 0.75, 0.980173)):
        found = analyse_memory(spilled, geometry(l1=0, l2=l2_sectors * 32))
        assert found.dram_read_bytes == pytest.approx(sectors * read * 32)
        assert found.dram_write_bytes == pytest.approx(sectors * written * 32)
        assert found.accesses[31].l2_hit == pytest.approx(1 - read)
        assert 0 <= found.dirty_bytes <= found.dram_write_bytes


def test_guarded_off_executions_count_in_the_mean() -> None:
    # Half of the warps have no active lane and leave no row in the log.
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + block[0] * 128 + LANES * 4)] if warp == 0 else []

    found = analyse_memory(profile(["@P0 LDG.E R2, [R4.64]"], (8, 1, 1), of, warps=2, allocations=BUFFERS), geometry())
    assert found.accesses[0].executions == 16
    assert found.accesses[0].units == 2
    assert found.global_load_sectors == 8 * 4


def test_a_kernel_without_memory() -> None:
    found = analyse_memory(profile(["MOV R0, RZ"], (4, 1, 1), lambda block, warp: []), geometry())
    assert (dict(found.accesses), found.dram_bytes, found.l2_hit_rate) == ({}, 0, None)
