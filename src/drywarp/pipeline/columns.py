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
# What it does to phases (`phases.py`).
SYNC, AFTER_SLOT, AWAIT_REASON = range(16, 19)
# What it takes of the register file's two banks, within what time it has to get that, and whether a greedy policy may
# stay with its warp.
READS_EVEN, READS_ODD, READ_WINDOW, STAYS = range(19, 23)
NODE_COLUMNS = 23

# A phase of a block's barriers: signals that are missing, and when the latest of those so far came.
MISSING, COMPLETE_AT = range(2)

# Of each warp: its next event, and the phase that it awaits (-1: none).
EVENT, AT_PHASE = range(2)
MEETING_COLUMNS = 2

# A loop end: the place that the next turn begins at, turns, nesting, the loop end to look at after the last turn, and
# at which level its turns are watched for a steady state (0: not at all).
LOOP_START, LOOP_COUNT, LOOP_DEPTH, LOOP_OUTER, LOOP_LEVEL = range(5)
LOOP_COLUMNS = 5

# A level's visit.
LEVEL_RESOURCE, LEVEL_LAMBDA, LEVEL_TAIL, LEVEL_PER_PARTITION, LEVEL_QUEUES = range(5)
LEVEL_COLUMNS = 5

# A block slot: warps that have not ended, warps at the barrier, the last one's tick, the last end of a warp,
# when there is room for another block, and the running block's number on this SM (-1: none).
ALIVE, ARRIVED, LAST_ARRIVAL, ENDS, ROOM, SEQUENCE = range(6)
SLOT_COLUMNS = 6

# A warp, as far as both loops know it; each adds columns of its own. The end of what has issued, its block's number,
# the barrier that it stands at (else -1), its last issue's row in the table, and for the accounts the node that issued
# last (-1: none) and the tick that the time is accounted to.
DONE, BLOCK, WAITING, RECORD, BEFORE, COUNTED = range(6)

# Further in order: the place of the next instruction and one past the last, its node, the place in the unrolled
# program, and the tick AFTER that the next instruction has to wait for, for REASON. WRITTEN is what has left the notes
# on a subsystem (`busy_since`).
PLACE, END, NODE, REASON, POSITION, AFTER, WRITTEN = range(6, 13)
IN_ORDER_COLUMNS = 13

# Further in dataflow: where its graph begins, its first node that has not issued (as of the last observation), nodes
# not issued yet, candidates in its list, the tick that the last issue's stall count ends at; and of the node that last
# issued or opened what to tell its consumers: when each need is met (NEVER: not now). EARLIEST is a lower bound on when
# a candidate of the list is ready, ONLY the subsystem that all of them issue to (-1: there are several). NODES is how
# many its graph has.
FIRST, LOW, LEFT, COUNT, GAP, TOLD, RESULT_AT, READ_AT, ISSUED_AT, WHY, EARLIEST, ONLY = range(6, 18)
NODES = 18
DATAFLOW_COLUMNS = 19

# A partition: its next issue (a lower bound where STALE is set) and the warp that makes it, when the valve opens,
# the warp slot that issued last, the warp that a greedy policy favours, and in dataflow the node that issues next, when
# a subsystem of all partitions last served it, and until when the register file's banks are taken.
NEXT, CANDIDATE, STALE, VALVE, LAST, GREEDY, PICKED, SERVED, EVEN_FREE, ODD_FREE = range(10)
PARTITION_COLUMNS = 10

# A busy spell of a subsystem: when it began, and how long the subsystem was busy before it.
SPELL_START, SPELL_BEFORE = range(2)
SPELL_COLUMNS = 2

SPELLS = 64
"""Busy spells that are noted of a subsystem at once."""

# Where a run has got to: instructions issued, the next block's number, blocks that a jump left out before it, blocks
# and full blocks of the share without those, full ones that have not ended and the last end of one, when there is room
# for a block, the tick, what is watched for and has occurred, words in use of the description of the state, after
# how many instructions to stop, and the warp and the block slot whose progress is watched. A run that goes on finds all
# of it as it left it.
ISSUED, NEXT_BLOCK, SKIPPED, TOTAL, FULL, FULL_LEFT, FULL_END, NEXT_ROOM, NOW, LEVEL, WORDS, LIMIT = range(12)
LEADER, LEADING = range(12, 14)
CLOCK_COLUMNS = 14

# Why a loop came back: all is done, there is no room to write down another block, something was noticed, or the limit.
DONE_ALL, NO_ROWS, NOTICED, STOPPED = range(4)

# What is watched for at a level: observations so far, the description's hash that is awaited (0: none), observations
# until that is given up, the issued instructions until which nothing is looked at, and until which nothing is
# reported, how many observations ago the hash was met, and for how many words the loop issues at least one
# instruction between two observations.
COUNT_SEEN, AWAITED, PATIENCE, NOT_BEFORE, MUTE, AGO, SPARING = range(7)
WATCH_COLUMNS = 7

# What is written down of each block: its launch, and the block slot that it runs in.
LAUNCHED, BLOCK_SLOT = range(2)
BLOCK_COLUMNS = 2

# Codes of REASONS that the loops give themselves.
SELECTED, NOT_SELECTED, WAIT, AT_BARRIER, DRAIN = 0, 1, 5, 8, 9
