"""Columns of the integer tables that the core's loops read and change, and the constants they share."""

from __future__ import annotations

NEVER = 1 << 50
"""A tick that is never reached: 10¹² cycles. Shifted by PRIORITY_BITS it still fits into 64 bits."""

PRIORITY_BITS = 12
"""Bits for the priority of a warp among the concurrent ones, of which there are at most 4096."""

# A node's costs. RESOURCE is that of partition 0; the others follow if PER_PARTITION is set.
RESOURCE, LAMBDA, LATENCY, STALL, WAIT_FROM, WAIT_TO, SETS, SETS_READ = range(8)
READ_TICKS, BARRIER, ASYNC, LEVEL_FROM, LEVEL_TO, PER_PARTITION, DEPENDENT_REASON, BUSY_REASON = range(8, 16)
# Its effect on phases (`blocks.py`).
SYNC, AFTER_SLOT, AWAIT_REASON = range(16, 19)
# Its use of the register file's two banks, the window in which it must get that, whether a greedy policy may stay with
# its warp, and for how long it shuts the valve; the resource of partition 0 that takes a part of the banks (-1: none),
# and how much longer the reads take beside it. MISS is the time until a constant operand is there (not in dataflow).
READS_EVEN, READS_ODD, READ_WINDOW, STAYS, ISSUE_TICKS, RIVAL, MORE_EVEN, MORE_ODD, MISS = range(19, 28)
NODE_COLUMNS = 28

# A phase of a block's barriers: missing signals, and the time of the latest signal so far.
MISSING, COMPLETE_AT = range(2)

# For each warp: its next event, and the phase that it awaits (-1: none).
EVENT, AT_PHASE = range(2)
PHASE_STATE_COLUMNS = 2

# The warps of a partition that wait to issue: the core's own. With more than MOST_BITS it looks at all of them.
WAITING_COLUMNS, MOST_BITS = 2, 64

# A loop end: the place at which the next iteration begins, the trip count, nesting, the loop end to check after the
# last iteration, and the level at which its iterations are watched for a steady state (0: none).
LOOP_START, LOOP_COUNT, LOOP_DEPTH, LOOP_OUTER, LOOP_LEVEL = range(5)
LOOP_COLUMNS = 5

# A visit to a level.
LEVEL_RESOURCE, LEVEL_LAMBDA, LEVEL_TAIL, LEVEL_PER_PARTITION, LEVEL_QUEUES = range(5)
LEVEL_COLUMNS = 5

# A block slot: warps that have not ended, warps at the barrier, the tick of the last arrival, the last end of a warp,
# when there is room for another block, and the running block's number on this SM (-1: none).
ALIVE, ARRIVED, LAST_ARRIVAL, ENDS, ROOM, SEQUENCE = range(6)
SLOT_COLUMNS = 6

# The columns of a warp that both loops share; each adds its own. The completion of what has issued, its block's number,
# the barrier at which it waits (else -1), its last issue's row in the table, and for stall accounting the node that
# issued last (-1: none) and the tick up to which time is accounted.
DONE, BLOCK, WAITING, RECORD, BEFORE, COUNTED = range(6)

# Additional columns in order: the place of the next instruction and one past the last, its node, the place in the
# unrolled program, and the tick AFTER until which the next instruction must wait, for REASON. WRITTEN is what has been
# dropped from the notes on a subsystem (`busy_since`).
PLACE, END, NODE, REASON, POSITION, AFTER, WRITTEN = range(6, 13)
IN_ORDER_COLUMNS = 13

# Additional columns in dataflow: where its graph begins, nodes not yet issued, candidates in its list, the tick at
# which the last issue's stall count ends; and for the node that last issued or opened, when each need of its consumers
# is met (NEVER: not now). EARLIEST is a lower bound on when a candidate of the list is ready, ONLY the subsystem to
# which all of them issue (-1: several).
FIRST, LEFT, COUNT, GAP, TOLD, RESULT_AT, READ_AT, ISSUED_AT, WHY, EARLIEST, ONLY = range(6, 17)
DATAFLOW_COLUMNS = 17

# A partition: its next issue (a lower bound where STALE is set) and the warp that makes it, when the valve opens, the
# warp slot that issued last, the warp that a greedy policy favours, in dataflow the node that issues next, when a
# subsystem shared by all partitions last served it, until when the register file's banks are
# busy, the subsystem to which that warp issues, and a lower bound on the next issue to any other.
NEXT, CANDIDATE, STALE, VALVE, LAST, GREEDY, PICKED, SERVED, EVEN_FREE, ODD_FREE, NEEDS, OTHERS = range(12)
PARTITION_COLUMNS = 12

# A busy period of a subsystem: when it began, and the subsystem's total busy time before it.
SPELL_START, SPELL_BEFORE = range(2)
SPELL_COLUMNS = 2

SPELLS = 64
"""Most busy periods of a subsystem noted at once."""

# The progress of a run: instructions issued, the next block's number, blocks that a jump skipped before it, blocks and
# full blocks of the share without those, full ones that have not ended and the last end of one, when there is room for
# a block, the tick, what is watched for and has occurred, used words of the state description, the instruction count at
# which to stop, the warp and the block slot whose progress is watched, and the tick before which no block starts. A
# resumed run finds all of it unchanged.
ISSUED, NEXT_BLOCK, SKIPPED, TOTAL, FULL, FULL_LEFT, FULL_END, NEXT_ROOM, NOW, LEVEL, WORDS, LIMIT = range(12)
LEADER, LEADING, NOT_SOONER = range(12, 15)
CLOCK_COLUMNS = 15

# Why a loop returned: all is done, there is no room to record another block, something was observed, or the limit.
DONE_ALL, NO_ROWS, NOTICED, STOPPED = range(4)

# What is watched for at a level: observations so far, the awaited hash of the description (0: none), observations until
# that is abandoned, the instruction counts before which nothing is observed and before which nothing is reported, how
# many observations ago the hash was met, and for how many words the loop issues at least one instruction between two
# observations.
COUNT_SEEN, AWAITED, PATIENCE, NOT_BEFORE, MUTE, AGO, SPARING = range(7)
WATCH_COLUMNS = 7

# The record of each block: its launch, and the block slot in which it runs.
LAUNCHED, BLOCK_SLOT = range(2)
BLOCK_COLUMNS = 2

# Codes of the REASONS that the loops assign themselves.
SELECTED, NOT_SELECTED, WAIT, AT_BARRIER, DRAIN, CONSTANT_MISS = 0, 1, 5, 8, 9, 13
