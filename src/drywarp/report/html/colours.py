"""Which of the page's colours a stall reason has: like reasons have neighbouring hues, and a text always stands by."""

from __future__ import annotations

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
}
"""The stylesheet's variables by Nsight Compute's names."""
