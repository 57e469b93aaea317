"""Columns of the integer tables that the loops read and change, and the constants they share.

Apart from the loops so that this can be imported without Numba.
"""

from __future__ import annotations

NEVER = 1 << 50
"""A tick that does not come: 10¹² cycles. Shifted by PRIORITY_BITS it still fits into 64 bits."""

PRIORITY_BITS = 12
"""Bits for the priority of a warp among the concurrent ones: there are at most 4096."""

NO_SIGN = (1 << 62) - 1
"""An index taken `& NO_SIGN` is seen not to be negative, which spares the check for indices from the end."""

# A node's costs. RESOURCE is that of partition 0; the others follow where PER_PARTITION is set.
RESOURCE, LAMBDA, LATENCY, STALL, WAIT_FROM, WAIT_TO, SETS, SETS_READ = range(8)
READ_TICKS, BARRIER, ASYNC, LEVEL_FROM, LEVEL_TO, PER_PARTITION, DEPENDENT_REASON, BUSY_REASON = range(8, 16)
NODE_COLUMNS = 16

# A loop end: the place that the next turn begins at, turns, nesting, and the loop end to look at after the last turn.
LOOP_START, LOOP_COUNT, LOOP_DEPTH, LOOP_OUTER = range(4)
LOOP_COLUMNS = 4

# A level's visit.
LEVEL_RESOURCE, LEVEL_LAMBDA, LEVEL_TAIL, LEVEL_PER_PARTITION = range(4)
LEVEL_COLUMNS = 4

# A block slot: warps that have not ended, warps at the barrier, the last one's tick, the last end of a warp,
# when there is room for another block, and the running block's number on this SM (-1: none).
ALIVE, ARRIVED, LAST_ARRIVAL, ENDS, ROOM, SEQUENCE = range(6)
SLOT_COLUMNS = 6

# A partition: its next issue (a lower bound where STALE is set) and the warp that makes it, when the valve opens,
# the warp slot that issued last, the warp that a greedy policy favours, and in dataflow the node that issues next.
NEXT, CANDIDATE, STALE, VALVE, LAST, GREEDY, PICKED = range(7)
PARTITION_COLUMNS = 7

# A busy spell of a subsystem: when it began, and how long the subsystem was busy before it.
SPELL_START, SPELL_BEFORE = range(2)
SPELL_COLUMNS = 2

SPELLS = 64
"""Busy spells that are noted of a subsystem at once."""

# What is written down of each block: its launch, and the block slot that it runs in.
LAUNCHED, BLOCK_SLOT = range(2)
BLOCK_COLUMNS = 2

# Codes of REASONS that the loops give themselves.
SELECTED, NOT_SELECTED, WAIT, AT_BARRIER, DRAIN = 0, 1, 5, 8, 9
