"""Volkov's thesis, "Understanding latency hiding on GPUs" (2016): chapters 3, 4, 6 and 7."""

from __future__ import annotations

from . import rows_volkov_3, rows_volkov_4, rows_volkov_6, rows_volkov_7
from .row import Row


def rows() -> list[Row]:
    """All rows of the thesis, but for those of §7.4 that stand with GPUPerf."""
    return [*rows_volkov_3.rows(), *rows_volkov_4.rows(), *rows_volkov_6.rows(), *rows_volkov_7.rows()]
