"""Who signals and who awaits which phase, from records of a few warps written down by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from drywarp.kernel.profile import SYNC_SIGNAL, SYNC_WAIT, Profile, WarpPath
from drywarp.workload.build import build_workload
from drywarp.workload.cost import SYNC_AWAITS, SYNC_SIGNALS
from drywarp.workload.scoreboards import find_barrier_phases
from tests.memory.profiles import profile

ARRIVE, SYNC = 0, 1
CODE = (".L_0:", "BAR.ARV 0x1, 0x40", "BAR.SYNC 0x1, 0x40", "@P0 BRA `(.L_0)")
BARRIER, OTHER = ~1, 4096

Row = tuple[int, int, int, int, int, int]
"""Warp of the record, step of its path, instruction, kind, barrier, phase."""


def recorded(*rows: Row, order: Sequence[int] = (0, 1, 2, 0, 1, 2, 3)) -> Profile:
    """Two sampled blocks of two warps, which go twice through a loop: each instruction is a basic block, and a step."""
    made = profile(CODE, (8, 1, 1), lambda block, warp: [], samples=(0, 3), warps=2)
    path = WarpPath(np.array(order, np.int32), np.full(len(order), 32, np.float32))
    return replace(made, paths=(path,), syncs=np.array(rows, np.int64).reshape(-1, 6))


TWO_WARPS: tuple[Row, ...] = (
    # In the first block warp 0 arrives in either iteration, and warp 1 arrives and waits.
    (0, 0, ARRIVE, SYNC_SIGNAL, BARRIER, 0),
    (1, 1, SYNC, SYNC_SIGNAL, BARRIER, 0),
    (1, 1, SYNC, SYNC_WAIT, BARRIER, 0),
    (0, 3, ARRIVE, SYNC_SIGNAL, BARRIER, 1),
    (1, 4, SYNC, SYNC_SIGNAL, BARRIER, 1),
    (1, 4, SYNC, SYNC_WAIT, BARRIER, 1),
    # In the second block warp 0 arrives in the second iteration, twice; warp 1 waits for what was over from the start.
    (2, 3, ARRIVE, SYNC_SIGNAL, BARRIER, 3),
    (2, 3, ARRIVE, SYNC_SIGNAL, OTHER, 0),
    (3, 1, SYNC, SYNC_WAIT, BARRIER, -1),
)


def test_events_of_each_warp_turn_by_turn() -> None:
    found = find_barrier_phases(recorded(*TWO_WARPS))
    assert found.sync == {ARRIVE: SYNC_SIGNALS, SYNC: SYNC_SIGNALS + SYNC_AWAITS}
    # An iteration is an arrival (how many phases, which) and a meeting (how many, which, and the phase awaited).
    assert found.of(0, 0) == ((1, 0, 0, -1, 1, 1, 0, -1), (1, 1))
    assert found.of(0, 1) == ((0, 1, 0, 0, 0, 1, 1, 1), (1, 1))
    # Phases are numbered within a block, by barrier: -2, its phase 3, comes before 4096.
    assert found.of(1, 0) == ((0, 0, -1, 2, 0, 1, 0, -1), (1, 1))
    assert found.of(1, 1) == ((0, 0, -1, 0, 0, -1), (0, 0))
    assert found.of(7, 0) == ((), ())


def test_of_several_waits_the_latest_phase_counts() -> None:
    rows = [(0, 0, ARRIVE, SYNC_SIGNAL, BARRIER, phase) for phase in (4, 6)]
    waits = [(1, 1, SYNC, SYNC_WAIT, BARRIER, phase) for phase in (6, 4)]
    found = find_barrier_phases(recorded(*rows, *waits))
    assert found.of(0, 0)[0][:4] == (2, 0, 1, 0)
    assert found.of(0, 1)[0][:3] == (0, 0, 1)
    assert found.sync == {ARRIVE: SYNC_SIGNALS, SYNC: SYNC_AWAITS}


def test_nobody_meets_without_a_record() -> None:
    found = find_barrier_phases(recorded())
    assert (found.sync, found.of(0, 0)) == ({}, ((), ()))


def test_warps_with_other_events_are_other_paths() -> None:
    workload = build_workload(recorded(*TWO_WARPS))
    # All four warps ran the same code, and no two of them met alike.
    assert len(workload.paths) == 4
    assert [path.signals for path in workload.paths] == [(1, 1)] * 3 + [(0, 0)]
    assert [kind.paths for kind in workload.block_types] == [(0, 1), (2, 3)]
    assert [kind.weight for kind in workload.block_types] == [4, 4]
    for path in workload.paths:
        assert [path.nodes[n].sync for n in range(3)] == [SYNC_SIGNALS, SYNC_SIGNALS + SYNC_AWAITS, 0]
    plain = build_workload(recorded())
    assert len(plain.paths) == 1
    assert {node.sync for node in plain.paths[0].nodes} == {0}
