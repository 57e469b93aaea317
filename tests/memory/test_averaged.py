"""The paper's mapper, with small numbers: every access behaves as the mean one of its space and kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drywarp.kernel.profile import SPACE_GLOBAL
from drywarp.memory.averaged import NOTHING_SAID, MemoryAverages, averaged
from drywarp.memory.behaviour import MemoryBehaviour, analyse_memory

from .profiles import LANES, access, geometry, profile

A = 1 << 20
SECTOR = 32


def made() -> tuple[object, MemoryBehaviour]:
    """Ten blocks of a warp: a load of 4 sectors, one of 8, a copy to shared memory of 4, a store of 4."""
    lines = (
        "LDG.E R4, [R2.64]", "LDG.E.64 R6, [R2.64]", "LDGSTS.E [R8], [R2.64]", "STG.E [R2.64], R4",
    )  # fmt: skip
    found = profile(
        lines,
        (10, 1, 1),
        lambda block, warp: (
            access(0, A + 4096 * block[0] + 4 * LANES),
            access(1, A + 4096 * block[0] + 1024 + 8 * LANES),
            access(2, A + 4096 * block[0] + 2048 + 4 * LANES),
            access(3, A + 4096 * block[0] + 3072 + 4 * LANES),
        ),
        allocations={"a": (A, A)},
    )
    return found, analyse_memory(found, geometry())


def mean(said: MemoryAverages) -> MemoryBehaviour:
    found, behaviour = made()
    return averaged(found, behaviour, SECTOR, said)  # type: ignore[arg-type]


def test_loads_share_their_mean() -> None:
    found = mean(NOTHING_SAID)
    # 10 loads of 4 sectors and 10 of 8 make 6 each; the copy is a kind of its own, as the store is.
    assert [found.accesses[i].units for i in range(4)] == [6, 6, 4, 4]
    assert found.global_load_sectors == 10 * (4 + 8) + 10 * 4
    assert found.global_store_sectors == 40
    # All is read once: what the loads and the copy ask of the L2 comes from DRAM, 160 sectors.
    assert found.dram_read_bytes == 160 * SECTOR
    assert [found.accesses[i].dram_read for i in range(4)] == pytest.approx([6, 6, 4, 0])
    assert [found.accesses[i].l2_hit for i in range(3)] == [0, 0, 0]


def test_what_a_profile_says_goes_before() -> None:
    found = mean(MemoryAverages({(SPACE_GLOBAL, "load"): 240.0}, None, None, 70.0, None))
    # 240 sectors of 20 loads are 12 each; of 240 + 40 sectors asked for 70 come from DRAM, a quarter.
    assert [found.accesses[i].units for i in range(3)] == [12, 12, 4]
    assert [found.accesses[i].dram_read for i in range(3)] == pytest.approx([3, 3, 1])
    assert [found.accesses[i].l2_hit for i in range(3)] == pytest.approx([0.75, 0.75, 0.75])


def test_what_stays_in_the_l1_does_not_miss_the_l2() -> None:
    found = mean(replace(NOTHING_SAID, l1_hit=1.0, dram_read=0.0, dram_write=0.0))
    assert [found.accesses[i].l1_hit for i in range(4)] == [1, 1, 1, 0]
    # Nothing reaches the L2, or all that does is found there: never more than all.
    assert [found.accesses[i].l2_hit for i in range(4)] == [1, 1, 1, 1]
