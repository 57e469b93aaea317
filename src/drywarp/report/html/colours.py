"""Which of the page's colours a stall reason has: the same as in figures, and a text always stands by."""

from __future__ import annotations

from ...figures.theme import REASON_COLOURS

__all__ = ["REASON_COLOURS"]
