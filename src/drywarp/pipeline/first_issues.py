"""The beginning of a run, issue by issue: its execution profile up to a number of instructions."""

from __future__ import annotations

import numpy as np

from ..workload.cost import TICKS_PER_CYCLE, BoundWorkload
from .blocks import Share, type_order
from .columns import ISSUED, LIMIT, NO_ROWS, SPELLS
from .result import ExecutionProfile
from .simulate import Program, engine_of, instructions_per_block
from .state import State


def first_issues(workload: BoundWorkload, share: Share, most: int) -> ExecutionProfile:
    """The first `most` warp instructions that issue when `share` runs: the start of a full profile, exact to the tick.

    Nothing after them is simulated. The completion of a barrier that has not opened by then is its issue. If each SM
    has a single block, it is one of the longest type. Raises UsageError if the graph of warps that issue out of order
    is too large.
    """
    program = Program(workload)
    each = instructions_per_block(workload)
    if share.blocks == 1 and len(each) > 1:
        likely = [kind for kind in range(len(each)) if workload.block_types[kind].weight > 0]
        program = program.of_kind(max(likely, key=each.__getitem__))
        workload, each = program.workload, instructions_per_block(program.workload)
    kinds, total = np.zeros(1, dtype=np.int64), share.blocks * each[0]
    if len(each) > 1:
        kinds = type_order([kind.weight for kind in workload.block_types], share.blocks, each)
        total = int(np.bincount(kinds, minlength=len(each)) @ np.array(each, dtype=np.int64))
    rows = min(most, total)
    state = State.fresh(workload, program.tables, share, rows, False, TICKS_PER_CYCLE, SPELLS, None)
    state.clock[LIMIT] = rows
    engine = engine_of(program, kinds, state)
    while engine.run() == NO_ROWS:
        state.make_rows()
    return ExecutionProfile(state.table[: state.clock[ISSUED]], program.tables.paths_nodes)
