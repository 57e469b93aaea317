"""The tables that the core's emulator reads: columns and codes of entries; `header` makes the C header of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.library import Function

LANES = 32
FULL = 0xFFFFFFFF
FAR = 1 << 40
"""A PC beyond all code; the same number as in `groups`."""

# An instruction's row. IN and GUARD hold predicate sources, OUT predicate destinations.
OP, SUB, GUARD, DST, DST_UNIFORM, OUT0, OUT1, IN0, IN1, IN2, FLUSH_OUT, IMM, IMM2 = range(13)
# The memory instruction's previous access: the region, and the pattern of offsets of each of its two accesses.
REGION, PATTERN, PATTERN2 = 13, 14, 15
A, B, C, D = 16, 24, 32, 40
COLUMNS = 48
# A source's columns, from A, B, C or D on. KEEP, FLIP and PLUS are its modifiers: ((word & KEEP) ^ FLIP) + PLUS.
KIND, INDEX, VALUE, HIGH, KEEP, FLIP, PLUS, CHANGED = range(8)

CONSTANT, REGISTER, UNIFORM, SPECIAL = range(4)
"""Kinds of a source."""
MODIFIED, FLUSHED = 1, 2
"""Bits of CHANGED: apply the modifiers; flush denormals to zero."""

ALWAYS, NEVER = -1, -2
"""Predicate sources without a register; others are number * 2, plus 1 if negated."""
NOWHERE = -1
"""A destination that discards what is written."""
UNIFORM_PREDICATE = 8
"""Number of the first uniform predicate; before it come the general ones."""

# Opcodes, grouped by the function that runs them.
UNKNOWN, NOTHING = 0, 1
(
    MOVE, ADD, MULTIPLY_ADD, MULTIPLY_ADD_CARRY, LOGIC, SHIFT_LEFT, SHIFT_RIGHT, FUNNEL_LEFT, FUNNEL_RIGHT, SELECT,
    PERMUTE, BIT_MASK, EXTEND, POPULATION, LEADING_ONE, REVERSE, ABSOLUTE, MINIMUM, MAXIMUM_OF_SUM, SHUFFLE, VOTE,
    TO_UNIFORM, PREDICATES_TO_REGISTER,
) = range(10, 33)  # fmt: skip
FIRST_WORDS, LAST_WORDS = 10, 39
ADD_CARRY, MULTIPLY_WIDE, SCALED_ADD, ADD_WIDE, SELECT_WIDE, MOVE_WIDE = range(40, 46)
FIRST_WIDE, LAST_WIDE = 40, 49
(
    FLOAT_ADD, FLOAT_MULTIPLY, FLOAT_FUSED, FLOAT_MINIMUM, RECIPROCAL, RECIPROCAL_ROOT, ROOT, FROM_SIGNED,
    FROM_UNSIGNED, FROM_UNSIGNED_UP, TO_INTEGER, FROM_DOUBLE, ROUND_FLOAT,
) = range(50, 63)  # fmt: skip
FIRST_FLOAT, LAST_FLOAT = 50, 69
(
    DOUBLE_ADD, DOUBLE_MULTIPLY, DOUBLE_FUSED, UPPER_RECIPROCAL, UPPER_RECIPROCAL_ROOT, DOUBLE_FROM_SIGNED,
    DOUBLE_FROM_UNSIGNED, DOUBLE_FROM_FLOAT,
) = range(70, 78)  # fmt: skip
FIRST_DOUBLE, LAST_DOUBLE = 70, 79
(
    COMPARE, COMPARE_WIDE, COMPARE_FLOAT, COMPARE_DOUBLE, PREDICATE_LOGIC, DIVISION_CHECK, REGISTER_TO_PREDICATES,
) = range(80, 87)  # fmt: skip
FIRST_TEST, LAST_TEST = 80, 89
LOAD, STORE, COPY, ATOMIC = range(90, 94)
FIRST_ACCESS, LAST_ACCESS = 90, 99
CONVERGENCE_BEGINS = 100
# Opcodes that end a basic block. UNKNOWN_END is one that the compiled loop does not support.
(
    UNKNOWN_END, BRANCH, EXIT, CONVERGENCE, LEAVE_CONVERGENCE, WARP_SYNC, BLOCK_BARRIER, JUMP, RETURN, YIELD, GO_ON,
) = range(110, 121)  # fmt: skip
FIRST_END = 110

# The operation of an atomic, stored in OPERATION.
(
    ADDS, ADDS_FLOAT, ADDS_DOUBLE, EXCHANGES, SWAPS, MEETS, JOINS, DIFFERS, COUNTS_UP, COUNTS_DOWN, LEAST, LEAST_SIGNED,
    MOST, MOST_SIGNED, ADDS_FLUSHED,
) = range(15)  # fmt: skip
OPERATION = FLUSH_OUT

# Bits of a compare's IMM: it holds if the first source is less, equal or greater, or if one is NaN.
LESS, EQUAL, GREATER, UNORDERED = 1, 2, 4, 8

# The state of a run; the loop reads and writes these.
(
    MODE, PC, AT, MEMBERS, TOTAL, NEXT_OTHER, OTHERS_WAIT, STEP, WARP_STEPS, LANE_STEPS, CLOCK, LIVE_VERSION,
    LANE_LIMIT, PAUSE_AT, ACCESSES, STEPS, PATTERNS, FIRST_WARP, WARPS, PER_BLOCK, UNIFORM_BASE, UNIFORM_FLAGS,
    SPECIAL_BASE, SHARED_BYTES, LOCAL_BYTES, PAUSE_STEP, REDUCES, INSTRUCTIONS, STEP_ROOM, ACCESS_ROOM, PATTERN_ROOM,
    TABLE_SIZE, REGIONS, SLOTS, WAITED, SINCE, LOOK_AFTER, LOOKED, MISSING, TURNED, WATCHED,
) = range(41)  # fmt: skip
STATE_COLUMNS = 41
ENTER, BODY, NEXT, CHOOSE = range(4)
"""Modes: begin the block at PC; resume in it at instruction AT; it ended and PC is next; form a new batch."""

(
    DONE, NEEDS_STEP, NEEDS_END, NEEDS_DECODING, STUCK, OVER_LIMIT, PAUSED, NEEDS_ROOM, NEEDS_SLOTS, NEEDS_RELEASE,
    NEEDS_LOOK, NEEDS_CONTENT,
) = range(12)  # fmt: skip
"""Why the loop returned."""
IRREGULAR, SAME, CONSECUTIVE = range(3)
"""Kinds of patterns: all lanes at one address; consecutive 4-byte words."""
SHAPE_BYTES = 160
"""What the core keeps of a pattern."""
GLOBAL, SHARED, LOCAL, GENERIC = range(4)
"""Memory spaces; the first three are those of a profile."""
EVENT = 4
"""In the place of a space in the record: a warp synchronises with others. Its address is one of the following, and from
bit 2 on the barrier: a participant of a barrier that is passed, the last of them; a signal to a phase, a wait."""
PASSES, LAST_PASSES, SIGNALS, AWAITS = range(4)

# A basic block, by its entry instruction: number of the block, one past its last instruction, whether it may wait for
# other threads, and how many accesses a warp makes in it.
BLOCK_NUMBER, BLOCK_END, BLOCK_SPINS, BLOCK_ACCESSES = range(4)
BLOCK_COLUMNS = 4

REGION_START, REGION_SIZE, REGION_CHUNK, REGION_PENDING = range(4)
"""A buffer: address, bytes, its first chunk among those of all buffers, and whether any chunk is still unfilled."""
REGION_COLUMNS = 4

# Arrays that the compiled code takes, by their addresses.
(
    STATE, CODE, ENTRIES, REGISTER_WORDS, FLAGS, BATCH, ACTIVE, GUARDED, SCRATCH,
    ARENA, REGION_TABLE, PENDING, ORIGIN, SHARED_MEMORY, SHARED_BASE, SHARED_FIRST, LOCAL_MEMORY, ADDRESSES, LANE_SETS,
    GROUP_PC, GROUP_MASK, GROUP_STATE, GROUP_ARGUMENT, GROUP_STAMP, LIVE, BARRIERS, YIELDED, ARRIVED, EARLIER, VOTES,
    GROUP_SLOTS, GUARDS, LOG_INSTRUCTION, LOG_WARP, LOG_BASE, LOG_PATTERN, LOG_SPACE, LOG_STEP_BLOCK, LOG_STEP_WARP,
    LOG_STEP_LANES, LOG_OFFSETS, LOG_MASKS, LOG_SHAPES, LOG_TABLE, LOG_WEIGHTS,
) = range(45)  # fmt: skip
PLACES = 45

# The record of accesses and steps: the core writes it, and the recorder reads it. Lane offsets of accesses repeat
# endlessly, so each access stores the number of its pattern: the offsets from its first lane, and the active lanes.

WEIGHTS = np.random.Generator(np.random.Philox(0x5EED)).integers(0, 1 << 62, LANES, dtype=np.int64) * 2 + 1
"""Factors of the lanes in a pattern's hash."""
note_rows = Function("note_rows", "aaaannn")
fill_table = Function("fill_table", "a")
enter_patterns = Function("enter_patterns", "aaana")
count_accesses = Function("count_accesses", "aaa")
sort_accesses = Function("sort_accesses", "aaaaaaaaa")
order_by = Function("order_by", "annaaa")


class Log(NamedTuple):
    """The arrays of the record; their fill levels and lengths are in the state of the run.

    A row per access: `instruction`, `warp`, `base` (address of the first lane), `pattern`, `space`. A row
    per step of a warp: `step_block`, `step_warp`, `step_lanes`. A row per pattern: `offsets` (flat, 32 of
    each), `masks`, and `shapes`, the core's own; `table` finds a pattern by its hash.
    """

    instruction: Any
    warp: Any
    base: Any
    pattern: Any
    space: Any
    step_block: Any
    step_warp: Any
    step_lanes: Any
    offsets: Any
    masks: Any
    shapes: Any
    table: Any
    weights: Any
