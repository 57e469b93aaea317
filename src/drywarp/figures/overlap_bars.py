"""How much of the time subsystems are busy at once: what hides what."""

from __future__ import annotations

from .answer import Answer, detail_of, missing
from .canvas import COLUMN_IN, SMALL_PT, Drawing, drawing, title_of
from .share_bars import height_of, share_bars

_LEAST = 5e-4


def overlap(answer: Answer, *, theme: str = "light", width: float = COLUMN_IN) -> Drawing:
    """Above: shares of the time in which none, one, two, … subsystems are busy. Below: each one's, and that alone.

    Of the time of the events that the answer's detail holds. Raises UsageError without any.
    """
    detail = detail_of(answer, "overlap")
    found = detail.overlap
    if found is None:
        raise missing("overlap", detail.missing.get("events", "no single issues were followed"))
    at_once = [(_count(k), share) for k, share in enumerate(found.at_once) if k < 2 or share >= _LEAST]
    parts = sorted(((n, s) for n, s in found.busy.items() if s >= _LEAST), key=lambda row: -row[1])
    with drawing(theme, width, height_of(len(at_once) + len(parts), 2)) as figure:
        above, below = figure.subplots(2, 1, height_ratios=[len(at_once) + 0.5, len(parts) + 0.5])
        share_bars(above, at_once, [figure.theme.data[0]] * len(at_once), group="at-once")
        above.set_xlabel("share of the time")
        above.set_title(title_of(answer.kernel, answer.gpu_title, width))
        share_bars(below, parts, [figure.theme.data[5]] * len(parts), group="busy")
        for at, (name, _) in enumerate(parts):
            below.barh(at, found.alone[name], height=0.72, color=figure.theme.data[0], gid=f"alone-{name}")
        below.set_xlabel("share of the time that it is busy (dark: it alone)", fontsize=SMALL_PT + 1)
        figure.align_ylabels()
    return figure


def _count(k: int) -> str:
    return ("none busy", "1 busy")[k] if k < 2 else f"{k} at once"
