"""What one row comes to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """What was found out about one row; `notes` are about the machine that it ran on."""

    facts: dict[str, int | float | str]
    times: dict[str, float]
    limiters: dict[str, str]
    notes: tuple[str, ...] = ()
