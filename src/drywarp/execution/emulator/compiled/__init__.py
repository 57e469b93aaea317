"""The emulator's loop in C: its tables, its rows of numbers, and the arrays of its record of accesses and steps.

Lane offsets of accesses repeat endlessly, so each access stores the number of its pattern: the offsets from its first
lane, and the active lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.library import Function
from .layout import LANES

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
