"""One bar of a figure of times; plain data, known without Matplotlib."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A time in seconds with its name; `low_s` and `high_s` bound where the truth lies, `note` stands behind it.

    Bars of the same `group` (the GPU, the side of a comparison) have the same colour, and a key says which.
    """

    name: str
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    note: str = ""
    group: str = ""
