"""Requests, footprints and means of small kernels, each worked out by hand.

Sectors have 32 bytes, lines 128, there are 32 banks of 4 bytes. Unless said otherwise 4 SMs hold 2 blocks each, so that
a wave has 8 blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from drywarp.kernel.launch.launch import Dim3
from drywarp.kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, Profile
from drywarp.memory.averaged import NOTHING_SAID, MemoryAverages, averaged, averages_from
from drywarp.memory.behaviour import AccessBehaviour, MemoryBehaviour, analyse_memory
from drywarp.memory.requests import bursts_of, lane_masks, shared_wavefronts
from drywarp.memory.table import request_table
from tests.listing import control
from tests.memory.profiles import FULL, LANES, Access, access, geometry, profile

MIB = 1 << 20
A, B = 1 * MIB, 64 * MIB
BUFFERS = {"a": (A, 32 * MIB), "b": (B, 32 * MIB)}
WIDTH = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128"}


# One request ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "width", "addresses", "mask", "units", "ideal", "lines", "passes"),
    [
        ("floats", 4, LANES * 4, FULL, 4, 4, 1, 1),
        ("floats from the middle of a line", 4, 64 + LANES * 4, FULL, 4, 4, 2, 1),
        ("floats off by one", 4, 4 + LANES * 4, FULL, 5, 4, 2, 1),
        ("doubles", 8, LANES * 8, FULL, 8, 8, 2, 2),
        ("doubles off by one", 8, 8 + LANES * 8, FULL, 9, 8, 3, 2),
        ("float4", 16, LANES * 16, FULL, 16, 16, 4, 4),
        ("float4 from the middle of a line", 16, 64 + LANES * 16, FULL, 16, 16, 5, 4),
        ("bytes", 1, LANES, FULL, 1, 1, 1, 1),
        ("shorts off by one", 2, 2 + LANES * 2, FULL, 3, 2, 1, 1),
        ("every second float", 4, LANES * 8, FULL, 8, 4, 2, 2),
        ("a float of each sector", 4, LANES * 32, FULL, 32, 4, 8, 8),
        ("a column of floats", 4, LANES * 128, FULL, 32, 4, 32, 32),
        ("a column of floats in padded rows", 4, LANES * 132, FULL, 32, 4, 32, 1),
        ("one float for all", 4, LANES * 0, FULL, 1, 1, 1, 1),
        ("half a warp of floats", 4, LANES * 4, 0xFFFF, 2, 2, 1, 1),
        ("three lanes of a column", 4, LANES * 128, 0b111, 3, 1, 3, 3),
        ("one lane", 16, LANES * 16, 1 << 31, 1, 1, 1, 1),
    ],
)
def test_a_request_to_global_memory(
    what: str, width: int, addresses: np.ndarray, mask: int, units: int, ideal: int, lines: int, passes: int
) -> None:
    """77 lines further on it costs the same."""
    made = profile(
        [f"LDG.E{WIDTH[width]} R4, [R2.64]"] * 2, (1, 1, 1),
        lambda block, warp: [access(0, A + addresses, mask), access(1, A + 128 * 77 + addresses, mask)],
    )  # fmt: skip
    table = request_table(made, geometry())
    found = [column.tolist() for column in (table.units, table.ideal, table.lines, table.passes)]
    assert found == [[units] * 2, [ideal] * 2, [lines] * 2, [passes] * 2]
    assert analyse_memory(made, geometry()).accesses[0].units == units


@pytest.mark.parametrize(
    ("what", "width", "addresses", "mask", "wavefronts", "ideal"),
    [
        ("words", 4, LANES * 4, FULL, 1, 1),
        ("words from the ninth bank on", 4, 36 + LANES * 4, FULL, 1, 1),
        ("every second word", 4, LANES * 8, FULL, 2, 1),
        ("every third word", 4, LANES * 12, FULL, 1, 1),
        ("a column", 4, 8 + LANES * 128, FULL, 32, 1),
        ("a quarter of a column", 4, LANES * 128, 0xFF, 8, 1),
        ("two words of a bank, by half-warps", 4, LANES // 16 * 128, FULL, 2, 1),
        ("doubles", 8, LANES * 8, FULL, 2, 2),
        ("every second double", 8, LANES * 16, FULL, 4, 2),
        ("half a warp of doubles", 8, LANES * 8, 0xFFFF, 1, 1),
        ("float4", 16, LANES * 16, FULL, 4, 4),
        ("every second float4", 16, LANES * 32, FULL, 8, 4),
        ("one word", 4, LANES * 0 + 64, FULL, 1, 1),
    ],
)
def test_a_request_to_shared_memory(
    what: str, width: int, addresses: np.ndarray, mask: int, wavefronts: int, ideal: int
) -> None:
    made = profile(
        [f"LDS{WIDTH[width]} R4, [R2]"], (1, 1, 1), lambda block, warp: [access(0, addresses, mask, SPACE_SHARED)]
    )
    table = request_table(made, geometry())
    assert (table.units.tolist(), table.ideal.tolist()) == ([wavefronts], [ideal])
    assert (table.lines.tolist(), table.passes.tolist()) == ([0], [wavefronts])


def test_the_same_lanes_cost_in_each_space_what_they_do_there() -> None:
    lines = ["LDG.E R4, [R2.64]", "LDS R4, [R2]", "LDL R4, [R1]", "LDS.64 R4, [R2]"]
    spaces = (SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_SHARED)
    made = profile(lines, (1, 1, 1), lambda b, w: [access(n, A + LANES * 8, space=s) for n, s in enumerate(spaces)])
    table = request_table(made, geometry())
    # 256 B: 8 sectors of 2 lines. 2 passes. Local memory: words 2 · 128 B apart, each in a sector of its own.
    assert table.units.tolist() == [8, 2, 32, 2]
    assert table.lines.tolist() == [2, 0, 32, 0]
    assert table.passes.tolist() == [2, 2, 0, 2]
    assert table.space.tolist() == list(spaces)


def test_conflicts_are_weighted_by_the_blocks_that_a_sample_stands_for() -> None:
    # 12 blocks with a conflict of 2, 4 blocks with one of 8: 24 + 32 wavefronts where 16 would do.
    made = profile(
        ["LDS R4, [R2]"],
        (16, 1, 1),
        lambda block, warp: [access(0, LANES * (32 if block[0] else 8), space=SPACE_SHARED)],
        samples=(0, 5),
        weights=(12.0, 4.0),
    )
    found = analyse_memory(made, geometry())
    assert (found.shared_wavefronts, found.shared_conflict_degree) == (56, 3.5)


@pytest.mark.parametrize(
    ("width", "stride", "wavefronts", "ideal"),
    [
        # 64 lanes go in groups whose words fill the 32 banks once: 32 of 4 bytes, 16 of 8, 8 of 16.
        (4, 4, 2, 2),
        (8, 8, 4, 4),
        (16, 16, 8, 8),
        (4, 8, 4, 2),
        (4, 0, 2, 2),
        (4, 128, 64, 2),
        (2, 2, 2, 2),
    ],
)
def test_a_request_of_64_lanes(width: int, stride: int, wavefronts: int, ideal: int) -> None:
    addresses = np.arange(64, dtype=np.int64)[None] * stride
    active = lane_masks(np.array([(1 << 64) - 1], np.uint64))
    total, least = shared_wavefronts(addresses, active, width, 32, 4)
    assert (total.tolist(), least.tolist()) == ([wavefronts], [ideal])
    half = lane_masks(np.array([(1 << 32) - 1], np.uint64))
    total, least = shared_wavefronts(addresses, half, width, 32, 4)
    assert (total.tolist(), least.tolist()) == ([wavefronts // 2], [ideal // 2])


def test_local_memory_of_unequal_lanes() -> None:
    # Lane by lane the words lie 4 B apart, words of the same lane 128 B: lanes 0..15 of word 2, the others of word 3.
    offsets = np.where(LANES < 16, 8, 12)
    made = profile(["LDL R4, [R1]"], (1, 1, 1), lambda block, warp: [access(0, offsets, space=SPACE_LOCAL)])
    table = request_table(made, geometry())
    assert (table.units.tolist(), table.lines.tolist(), table.passes.tolist()) == ([4], [2], [0])


def test_equal_requests_of_a_block_are_one_row() -> None:
    """Warps 0 and 1 of both blocks read the same floats a line apart, and warp 2 every second one."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + 128 * warp + LANES * (8 if warp == 2 else 4)), access(1, A + LANES * 4)]

    made = profile(["LDG.E R4, [R2.64]", "LDG.E R5, [R2.64]"], (2, 1, 1), of, warps=3)
    table = request_table(made, geometry())
    rows = zip(table.sample, table.instruction, table.count, table.units, strict=True)
    found = sorted(tuple(map(int, row)) for row in rows)
    assert found == sorted((n, *row) for n in (0, 1) for row in ((0, 2, 4), (0, 1, 8), (1, 3, 4)))
    assert table.instruction[table.number].tolist() == made.accesses.instruction.tolist()
    assert (table.sample[table.number] * 3 <= made.accesses.warp).all()


def test_means_count_the_blocks_that_a_sample_stands_for() -> None:
    # Block 0 stands for 12 blocks and reads 4 sectors of one line; block 5 stands for 4 and reads 32 of 32.
    made = profile(
        ["LDG.E R4, [R2.64]"], (16, 1, 1),
        lambda block, warp: [access(0, A + (LANES * 128 if block[0] == 5 else LANES * 4))],
        samples=(0, 5), weights=(12.0, 4.0),
    )  # fmt: skip
    found = analyse_memory(made, geometry()).accesses[0]
    assert (found.executions, found.units, found.lines) == (16, (12 * 4 + 4 * 32) / 16, (12 + 4 * 32) / 16)
    assert (found.passes, found.requests) == ((12 + 4 * 32) / 16, 1)


def test_a_log_of_a_part_stands_for_all() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + block[0] * 128 + LANES * 4), access(1, LANES * 8, space=SPACE_SHARED)]

    made = profile(["LDG.E R4, [R2.64]", "LDS R5, [R6]"], (16, 1, 1), of, allocations=BUFFERS)
    whole = analyse_memory(made, geometry())
    # A quarter of the loads is in the log, and half of the shared ones: four and two times as much is meant.
    found = analyse_memory(replace(made, logged=np.array([0.25, 0.5, 1.0])), geometry())
    assert found.accesses[0].units == 4 * whole.accesses[0].units == 16
    assert found.accesses[0].lines == 4
    assert found.accesses[1].units == 2 * whole.accesses[1].units == 4
    assert found.dram_read_bytes == 4 * whole.dram_read_bytes == 4 * 16 * 128
    assert found.shared_wavefronts == 2 * whole.shared_wavefronts == 2 * 16 * 2


# Footprints -----------------------------------------------------------------------------------------------------


def one_load(grid: Dim3, of: object, warps: int = 1, samples: Sequence[int] | None = None) -> Profile:
    return profile(["LDG.E R4, [R2.64]"], grid, of, warps=warps, samples=samples, allocations=BUFFERS)  # type: ignore[arg-type]


def test_neighbours_share_their_halo() -> None:
    """Each block reads the 128 bytes before, at and behind its own 128: a neighbour shares 2 of its 3 lines."""

    def of(block: Dim3, warp: int) -> list[Access]:
        at = A + (block[0] + 1) * 128 + LANES * 4
        return [access(0, at - 128), access(1, at), access(2, at + 128)]

    stencil = profile(["LDG.E R4, [R2.64]"] * 3, (64, 1, 1), of, samples=(0, 1, 20, 63), allocations=BUFFERS)
    found = analyse_memory(stencil, geometry())
    assert found.method == "affine"
    # 64 own lines and one at either end, 4 sectors each, whatever waves they fall into: the L2 holds them.
    assert found.dram_read_bytes == 66 * 128
    assert found.global_load_sectors == 64 * 12
    # In a wave the first instruction brings the 8 lines before, the second one more, the third another one. Of the
    # waves after the first the first two lines are there already.
    fetched = [found.accesses[n].dram_read * 64 for n in range(3)]
    assert fetched == [8 * 4 + 7 * 6 * 4, 4 + 7 * 4, 4 + 7 * 4]
    # An L2 of 4 KiB, less than the 10 lines of a wave and the 10 before it, still holds the two lines that are shared.
    # One of 128 bytes holds the most recent line: each of the 8 waves fetches its 8 lines three times, once for each
    # load, and whenever one follows another that line is there.
    tiny = analyse_memory(stencil, geometry(l2=128))
    assert tiny.dram_read_bytes == 8 * 3 * 8 * 128 - (8 * 3 - 1) * 128


@pytest.mark.parametrize(("opcode", "times"), [("LDG.E R4, [R2.64]", 3), ("STG.E [R2.64], R4", 3)])
def test_what_a_wave_displaces_it_moves_again(opcode: str, times: int) -> None:
    """Blocks that go through 16 lines of their own several times, 8 blocks a wave: 16 KiB are there at once."""
    loads = 16 * times

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(n, A + (block[0] * 16 + n % 16) * 128 + LANES * 4) for n in range(loads)]

    passes = profile([opcode] * loads, (64, 1, 1), of, samples=(0, 1, 20, 63), allocations=BUFFERS)
    for l2, often in ((1 << 15, 1), (1 << 12, times)):
        found = analyse_memory(passes, geometry(l1=128, l2=l2))
        assert found.method == "affine"
        moved = found.dram_read_bytes if opcode.startswith("LDG") else found.dram_write_bytes
        assert moved == 64 * 16 * 128 * often, (l2, often)


def test_a_sector_takes_the_room_of_its_line() -> None:
    """Rows of 64 lines, of which every pass reads one sector each: an L2 of 64 lines keeps them, one of 32 does not."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + LANES * 128 + block[0] % 2 * 4096 + block[0] // 2 * 4)]

    strided = profile(["LDG.E R4, [R2.64]"], (16, 1, 1), of, allocations=BUFFERS)
    for lines, passes in ((64, 1), (32, 8)):
        found = analyse_memory(strided, geometry(l1=128, l2=lines * 128, sms=1, blocks_per_sm=1))
        assert found.dram_read_bytes == 64 * 32 * passes, lines


def test_what_a_wave_reads_at_once_is_not_displaced() -> None:
    """All blocks go through the same lines in step: however many, each is fetched once."""
    loads = 48

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(n, A + n * 128 + LANES * 4) for n in range(loads)]

    same = profile(["LDG.E R4, [R2.64]"] * loads, (8, 1, 1), of, samples=(0, 1, 5, 7), allocations=BUFFERS)
    assert analyse_memory(same, geometry(l1=128, l2=1 << 12)).dram_read_bytes == loads * 128


def test_what_lies_outside_of_every_buffer_is_left_out() -> None:
    """Blocks at either end do less than the others: what the reference block would ask for there is no data."""

    def of(block: Dim3, warp: int) -> list[Access]:
        at = A + block[0] * 128 + LANES * 4
        return [access(0, at - 128, FULL), access(1, at + 128, FULL)]

    own = {"a": (A, 32 * 128)}
    made = profile(["LDG.E R4, [R2.64]"] * 2, (32, 1, 1), of, samples=(1, 2, 20, 30), allocations=own)
    found = analyse_memory(made, geometry())
    assert found.method == "affine"
    assert found.dram_read_bytes == 32 * 128
    # With 16 bytes less, the last sector is still touched; with 32 less it is not.
    for less, sectors in ((16, 128), (32, 127)):
        shorter = replace(made, allocations={"a": (A, 32 * 128 - less)})
        assert analyse_memory(shorter, geometry()).dram_read_bytes == sectors * 32


def test_a_warm_l2_holds_what_was_used_last_wherever_it_lies() -> None:
    """8 waves: the first and the last read the same 8 lines, which lie before all others. The L2 holds two waves."""

    def of(block: Dim3, warp: int) -> list[Access]:
        wave, place = divmod(block[0], 8)
        return [access(0, A + (wave % 7 * 8 + place) * 128 + LANES * 4)]

    made = one_load((64, 1, 1), of)
    cold, warm = (analyse_memory(made, geometry(l2=16 * 128), warm_l2=state) for state in (False, True))
    # Each wave fetches its 8 lines, but for the first where a run before has left them there.
    assert (cold.dram_read_bytes, warm.dram_read_bytes) == (64 * 128, 56 * 128)


def test_a_row_off_by_one_shares_a_sector_with_the_next() -> None:
    # 32 floats from the second on: 5 sectors, the last of which is the next block's first.
    found = analyse_memory(one_load((16, 1, 1), lambda b, w: [access(0, A + 4 + b[0] * 128 + LANES * 4)]), geometry())
    assert found.global_load_sectors == 16 * 5
    assert found.dram_read_bytes == (16 * 4 + 1) * 32


def test_tiles_of_two_dimensions() -> None:
    """Tiles of 8 x 4 floats in a matrix of 64 columns: a warp reads 4 rows of 32 bytes, a whole sector each."""

    def of(block: Dim3, warp: int) -> list[Access]:
        x, y, _ = block
        row, column = 4 * y + LANES // 8, 8 * x + LANES % 8
        return [access(0, A + (row * 64 + column) * 4)]

    found = analyse_memory(one_load((8, 6, 1), of, samples=(0, 1, 8, 21, 47)), geometry())
    assert found.method == "affine"
    assert (found.accesses[0].units, found.accesses[0].lines) == (4, 4)
    assert found.dram_read_bytes == 64 * 24 * 4  # the matrix, once


def test_overlapping_tiles_of_two_dimensions() -> None:
    """Each block of 8 x 4 results reads 16 x 6 floats, in each of 6 rows 2 sectors, of which its neighbour has one."""

    def of(block: Dim3, warp: int) -> list[Access]:
        x, y, _ = block
        return [access(0, A + ((4 * y + row) * 72 + 8 * x + LANES % 16) * 4, 0xFFFF) for row in range(6)]

    found = analyse_memory(one_load((8, 6, 1), of, samples=(0, 1, 8, 21, 47)), geometry(sms=48, blocks_per_sm=1))
    # 4 · 6 + 2 = 26 rows of 8 · 8 + 8 = 72 floats, 9 sectors, in one wave of 48 blocks.
    assert found.dram_read_bytes == 26 * 9 * 32
    assert found.global_load_sectors == pytest.approx(48 * 6 * 2, rel=1e-12)


def test_a_grid_stride_loop_reads_all_of_its_array() -> None:
    """Each of 16 blocks takes 5 iterations, 16 · 128 bytes apart: what they read is one piece of 80 lines."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + (turn * 16 + block[0]) * 128 + LANES * 4) for turn in range(5)]

    found = analyse_memory(one_load((16, 1, 1), of, samples=(0, 1, 7, 15)), geometry())
    assert found.method == "affine"
    assert found.dram_read_bytes == 80 * 128


@pytest.mark.parametrize(("l2_lines", "fetched"), [(1000, 64), (64, 64), (48, 64 + 16), (32, 64 + 32)])
def test_what_two_waves_read_stays_where_it_fits(l2_lines: int, fetched: int) -> None:
    """Two waves of 8 blocks read the same 64 lines, 8 a block: what the L2 holds of them is not fetched again."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + (block[0] % 8 * 8 + turn) * 128 + LANES * 4) for turn in range(8)]

    found = analyse_memory(one_load((16, 1, 1), of), geometry(l2=l2_lines * 128))
    # The first wave fetches 64 lines, the second those that are not among the `l2_lines` that stayed.
    assert found.dram_read_bytes == fetched * 128


def test_stores_go_to_dram_once_for_each_wave_and_stay_in_the_l2_as_dirty_data() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + block[0] * 128 + LANES * 4), access(1, B + block[0] * 64 + LANES // 2 * 4)]

    copy = profile(
        ["LDG.E R2, [R4.64]", "STG.E [R6.64], R2"], (32, 1, 1), of, samples=(0, 1, 9, 31), allocations=BUFFERS
    )
    found = analyse_memory(copy, geometry())
    assert (found.dram_read_bytes, found.dram_write_bytes) == (32 * 128, 32 * 64)
    assert found.dirty_bytes == 32 * 64  # the L2 holds it all
    # An L2 of 40 sectors at a wave of 8 blocks with 4 sectors read and 2 written each: it holds the writes of the last
    # wave, 16 sectors, and 24 of the 32 that it read.
    assert analyse_memory(copy, geometry(l2=40 * 32)).dirty_bytes == 16 * 32
    # One of 60 sectors: the last wave (16 + 32) and 12 of the writes before.
    assert analyse_memory(copy, geometry(l2=60 * 32)).dirty_bytes == 28 * 32
    # No more than a part of it may be dirty.
    assert analyse_memory(copy, replace(geometry(l2=60 * 32), dirty_share=0.25)).dirty_bytes == 15 * 32
    # A run before left as much: nothing stays that did not lie there before.
    assert analyse_memory(copy, geometry(), warm_l2=True).dirty_bytes == 0


def test_a_third_level_lets_through_what_an_l2_of_its_size_would() -> None:
    """Two waves read the same 64 lines; the L2 keeps 16 of them, an L3 48 or all."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + (block[0] % 8 * 8 + turn) * 128 + LANES * 4) for turn in range(8)]

    made = one_load((16, 1, 1), of)
    # Without the L1 all 8 lines of each of 16 blocks reach the L2, which spares 16 of 128, the L3 48.
    small = replace(geometry(l1=0, l2=16 * 128), l3_bytes=48 * 128)
    found = analyse_memory(made, small)
    requested = 16 * 8 * 4
    missed, fetched = (128 - 16) * 4, (128 - 48) * 4
    access_ = found.accesses[0]
    assert access_.l2_hit == pytest.approx(1 - missed / requested)
    assert access_.l3_hit == pytest.approx(1 - fetched / missed)
    assert access_.dram_read * 16 == fetched
    assert found.dram_read_bytes == fetched * 32
    assert found.l2_hit_rate == pytest.approx(1 - missed / requested)
    # One that is no larger than the L2 is none.
    assert analyse_memory(made, replace(small, l3_bytes=16 * 128)).accesses[0].l3_hit == 0


def test_an_instruction_that_reaches_two_spaces_is_of_the_one_it_reaches_most() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, LANES * 4, space=SPACE_SHARED if warp < 3 else SPACE_GLOBAL)]

    made = profile(["LD.E R4, [R2.64]"], (4, 1, 1), of, warps=4)
    assert analyse_memory(made, geometry()).accesses[0].space == SPACE_SHARED
    # A copy reads global memory, though it is logged at its shared side as well.
    both = [access(0, A + LANES * 4), access(0, LANES * 4, space=SPACE_SHARED)]
    copy = profile(["LDGSTS.E [R3], [R4.64]"], (4, 1, 1), lambda block, warp: both, allocations=BUFFERS)
    found = analyse_memory(copy, geometry()).accesses[0]
    assert (found.space, found.units, found.lines, found.passes, found.requests) == (SPACE_GLOBAL, 4, 1, 1, 1)


# The L1 ---------------------------------------------------------------------------------------------------------


def test_warps_of_a_block_find_in_the_l1_what_others_have_loaded() -> None:
    """Four warps load the same line, one after the other: three hit. A second load of each hits as well."""

    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + block[0] * 4096 + LANES * 4), access(1, A + block[0] * 4096 + LANES * 4)]

    made = profile(["LDG.E R4, [R2.64]"] * 2, (8, 1, 1), of, warps=4, allocations=BUFFERS)
    found = analyse_memory(made, geometry())
    assert (found.accesses[0].l1_hit, found.accesses[1].l1_hit) == (0.75, 1.0)
    assert found.l1_hit_rate == 7 / 8
    # The L2 sees what the first warp of each block loads, and has none of it.
    assert (found.l2_hit_rate, found.dram_read_bytes) == (0, 8 * 128)


def test_a_sector_that_the_line_lacks_is_a_miss() -> None:
    # The first load brings 2 of 4 sectors, the second wants all 4: half of them are there.
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(0, A + LANES * 4, 0xFFFF), access(1, A + LANES * 4)]

    found = analyse_memory(profile(["LDG.E R4, [R2.64]"] * 2, (1, 1, 1), of, allocations=BUFFERS), geometry())
    assert (found.accesses[0].l1_hit, found.accesses[1].l1_hit, found.l1_hit_rate) == (0, 0.5, pytest.approx(1 / 3))


def test_local_memory_of_two_sampled_blocks_is_kept_apart() -> None:
    # Two blocks on one SM store a word of each lane and load it again: each finds its own.
    def of(block: Dim3, warp: int) -> list[Access]:
        own = np.full(32, 4 * (block[0] % 2))
        return [access(0, own, space=SPACE_LOCAL), access(1, own, space=SPACE_LOCAL)]

    made = profile(["STL [R1], R4", "LDL R4, [R1]"], (2, 1, 1), of, warps=2, local_bytes=16)
    found = analyse_memory(made, geometry(sms=1, blocks_per_sm=2))
    assert found.accesses[1].l1_hit == 1
    # 4 warps of one line each; with a single line in the cache only the last of each burst would stay.
    none = analyse_memory(made, geometry(sms=1, blocks_per_sm=2, l1=0))
    assert none.accesses[1].l1_hit == 0

    # What warps have there is not what others wrote at the same place.
    def reader(block: Dim3, warp: int) -> list[Access]:
        return [access(0 if warp == 0 else 1, np.full(32, 8), space=SPACE_LOCAL)]

    for stores in (0, 1):
        apart = profile(
            ["STL [R1], R4", "LDL R4, [R1]"],
            (2, 1, 1),
            lambda block, warp, stores=stores: reader(block, warp ^ stores),
            warps=2,
            local_bytes=16,
        )
        assert analyse_memory(apart, geometry(sms=1, blocks_per_sm=2)).accesses[1].l1_hit == 0


def test_local_memory_counts_the_blocks_that_a_sample_stands_for() -> None:
    def of(block: Dim3, warp: int) -> list[Access]:
        return [access(n, np.full(32, 4), space=SPACE_LOCAL) for n in (0, 1)]

    lines = ["STL [R1], R4", "LDL R4, [R1]"]
    made = profile(lines, (8, 1, 1), of, samples=(0, 5), weights=(3.0, 5.0), local_bytes=16)
    # 8 blocks of 4 sectors are resident, the L2 holds 16: half of the loads miss it, and most stores go on to DRAM.
    found = analyse_memory(made, geometry(l1=0, l2=16 * 32))
    share = 0.796812  # 1 - exp(-2 * share)
    assert (found.dram_read_bytes, found.dram_write_bytes) == pytest.approx((8 * 4 * 32 / 2, 8 * 4 * 32 * share))
    assert (found.accesses[1].dram_read, found.accesses[1].l2_hit) == (2, 0.5)
    assert found.accesses[0].dram_write == pytest.approx(4 * share)


@pytest.mark.parametrize("board", [0, 2, 5])
def test_a_burst_ends_where_the_code_waits_for_a_load(board: int) -> None:
    waiting = ("FADD R6, R4, R4", control(waits=[board]))
    lines = [("LDG.E R4, [R2.64]", control(write=board)), "LDG.E R5, [R2.64]", waiting, "LDG.E R7, [R2.64]", waiting]
    loads = [access(n, A + n * 128 + LANES * 4) for n in (0, 1, 3)]
    made = profile(lines, (1, 1, 1), lambda block, warp: [*loads, *loads], warps=2)  # type: ignore[arg-type]
    # The first two go out together, the third after the wait; a second wait for the same load is none. Each further
    # iteration is a step back in the code.
    rows = np.arange(len(made.accesses))
    assert bursts_of(made, rows).tolist() == [0, 0, 1, 2, 2, 3] * 2


# Averages -------------------------------------------------------------------------------------------------------

LOADS = ("LDG.E R4, [R2.64]", "LDG.E R5, [R2.64]", "STG.E [R2.64], R4", "RED.E.ADD.STRONG.GPU [R2.64], R5",
         "LDS R5, [R6]", "LDS R5, [R6]")  # fmt: skip


def emulated() -> tuple[Profile, MemoryBehaviour]:
    """Two loads, one in 30 executions and one in 10; stores; reductions; shared loads. Sectors of DRAM are of 32 B."""
    made = profile(LOADS, (1, 1, 1), lambda block, warp: [])
    accesses = {
        0: AccessBehaviour(30, SPACE_GLOBAL, 4, 1, 0.5, 0.5, dram_read=1, passes=1),
        1: AccessBehaviour(10, SPACE_GLOBAL, 8, 2, 0.25, 0.0, dram_read=6, passes=3),
        2: AccessBehaviour(20, SPACE_GLOBAL, 4, 1, 0.0, 0.0, dram_write=4, passes=1),
        3: AccessBehaviour(5, SPACE_GLOBAL, 2, 1, 0.0, 0.5, dram_read=1, dram_write=2, passes=1),
        4: AccessBehaviour(10, SPACE_SHARED, 2, 0, passes=2),
        5: AccessBehaviour(30, SPACE_SHARED, 6, 0, passes=6),
    }
    # 30 + 60 + 5 sectors read, 80 + 10 written; 120 + 80 sectors loaded, 80 stored.
    return made, MemoryBehaviour(accesses, 200, 80, 200, 3.0, 0.4, 0.3, 95 * 32.0, 90 * 32.0, "affine")


def test_every_access_behaves_as_the_mean_one_of_its_space_and_kind() -> None:
    found = averaged(*emulated(), 32, NOTHING_SAID)
    # 200 sectors of 40 loads are 5 each; 50 lines 1.25; 60 passes 1.5. Of the sectors 60 + 20 hit the L1: 0.4.
    # 90 sectors are read for loads: 2.25 each, of the 3 that miss the L1; 0.25 hit the L2.
    for index in (0, 1):
        load = found.accesses[index]
        assert (load.units, load.lines, load.passes) == (5, 1.25, 1.5)
        assert (load.l1_hit, load.dram_read, load.dram_write) == (pytest.approx(0.4), 2.25, 0)
        assert load.l2_hit == pytest.approx(0.25)
    # All that stores write goes to DRAM: 80 sectors of 20.
    store = found.accesses[2]
    assert (store.units, store.dram_write, store.dram_read, store.l1_hit, store.l2_hit) == (4, 4, 0, 0, 0)
    # Reductions keep theirs. 1 of 2 sectors is read.
    atomic = found.accesses[3]
    assert (atomic.dram_read, atomic.dram_write, atomic.l2_hit) == (1, 2, 0.5)
    # Shared: 20 + 180 wavefronts in 40.
    assert [found.accesses[n].units for n in (4, 5)] == [5, 5]
    assert (found.shared_wavefronts, found.global_load_sectors, found.global_store_sectors) == (200, 200, 80)
    assert (found.dram_read_bytes, found.dram_write_bytes, found.method) == (95 * 32, 90 * 32, "averaged")
    assert (found.l1_hit_rate, found.l2_hit_rate) == (0.4, 0.3)


def test_what_a_profile_says_goes_before_it() -> None:
    said = MemoryAverages(
        units={(SPACE_GLOBAL, "load"): 400.0, (SPACE_SHARED, "load"): 80.0},
        l1_hit=0.75, l2_hit=0.9, dram_read=55.0, dram_write=50.0,
    )  # fmt: skip
    found = averaged(*emulated(), 32, said)
    assert [found.accesses[n].l1_hit for n in range(6)] == [0.75, 0.75, 0, 0, 0, 0]
    # Twice the sectors: twice of everything. 55 - 5 sectors for 400: an eighth. A quarter misses the L1, half of it L2.
    load = found.accesses[1]
    assert (load.units, load.lines, load.passes, load.l1_hit) == (10, 2.5, 3, 0.75)
    assert (load.dram_read, load.l2_hit) == (pytest.approx(1.25), pytest.approx(0.5))
    # 50 - 10 sectors written for 80 stored: half of them.
    assert (found.accesses[2].dram_write, found.accesses[2].l2_hit) == (2, 0.5)
    assert found.accesses[4].units == 2
    assert (found.global_load_sectors, found.shared_wavefronts) == (400, 80)
    assert (found.l1_hit_rate, found.l2_hit_rate) == (0.75, 0.9)
    assert (found.dram_read_bytes, found.dram_write_bytes) == (55 * 32, 50 * 32)


def test_metrics_of_a_profile_are_fractions_and_sectors() -> None:
    said = averages_from(
        {
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 10.0,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 20.0,
            "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 30.0,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 40.0,
            "l1tex__t_sector_hit_rate.pct": 25.0,
            "lts__t_sector_hit_rate.pct": 120.0,
            "dram__bytes_read.sum": 6400.0,
            "dram__sectors_write.sum": 7.0,
            "dram__bytes_write.sum": 6400.0,
        },
        32,
    )
    assert said.units == {
        (SPACE_GLOBAL, "load"): 10, (SPACE_GLOBAL, "store"): 20, (SPACE_LOCAL, "store"): 30, (SPACE_SHARED, "load"): 40,
    }  # fmt: skip
    assert (said.l1_hit, said.l2_hit, said.dram_read, said.dram_write) == (0.25, 1.0, 200, 7)
    assert said.said == (
        "global loads", "global stores", "local stores", "shared loads", "L1 hit rate", "L2 hit rate", "DRAM reads",
    )  # fmt: skip
    assert averages_from({"l1tex__t_sector_hit_rate.pct": -3.0}, 32) == MemoryAverages({}, 0.0, None, None, None)
