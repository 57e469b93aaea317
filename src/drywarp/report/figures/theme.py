"""Colours for light and dark figures, and the bars that callers draw: whatever is used where Matplotlib is absent.

The colours are those of the HTML report, after Okabe and Ito.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import UsageError


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of background, text, secondary text and grid, and ten colour-blind-safe data colours."""

    name: str
    background: str
    text: str
    soft: str
    grid: str
    data: tuple[str, ...]

    def of_reason(self, reason: str) -> str:
        """The colour of a stall reason (Nsight Compute's name)."""
        return self.data[int(REASON_COLOURS.get(reason, "c9")[1:])]


LIGHT = Theme(
    "light", "#ffffff", "#1c2024", "#596068", "#dcdfe3",
    ("#0072b2", "#d55e00", "#009e73", "#b8669b", "#c29200", "#56a8d8", "#6b5b95", "#7a6a55", "#3f7f5f", "#8c8c8c"),
)  # fmt: skip
DARK = Theme(
    "dark", "#14171a", "#e4e7ea", "#a0a8b0", "#343a40",
    ("#4aa3df", "#e8823a", "#2fbf93", "#d58fbd", "#e0b83c", "#8ccbf0", "#a392d4", "#b8a58c", "#7dbb98", "#9a9a9a"),
)  # fmt: skip
DASHES: tuple[tuple[float, tuple[float, ...]], ...] = ((0, ()), (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))
"""Dash patterns of successive lines in a plot, so that they are distinguishable in greyscale."""
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}

REASON_COLOURS = {
    "selected": "c2",
    "not_selected": "c8",
    "wait": "c9",
    "long_scoreboard": "c0",
    "short_scoreboard": "c5",
    "barrier": "c6",
    "math_pipe_throttle": "c1",
    "lg_throttle": "c4",
    "mio_throttle": "c3",
    "tex_throttle": "c7",
    "drain": "c7",
    "membar": "c6",
    "gmma": "c3",
    "imc_miss": "c4",
}
"""The data colour of each stall reason (Nsight Compute's names); related reasons have similar hues."""


def theme_named(name: str) -> Theme:
    """Raises UsageError for a name that is neither ``light`` nor ``dark``."""
    if name not in THEMES:
        raise UsageError(f"theme {name!r}: expected {' or '.join(THEMES)}")
    return THEMES[name]


@dataclass(frozen=True, slots=True)
class Bar:
    """A time in seconds with its name; `low_s` and `high_s` give its interval, `note` is printed after it.

    Bars of the same `group` (the GPU, the side of a comparison) share a colour, shown in the legend.
    """

    name: str
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    note: str = ""
    group: str = ""
