"""The execution profile of an abstract kernel as text, HTML and JSON; lanes that figures of profiles draw as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._version import __version__
from ..analysis.every_model import AbstractProfile
from ..analysis.result import headed
from ..analysis.result.detail import Events
from ..support.text import plain
from .figures.theme import REASON_COLOURS
from .html import asset, document
from .html.payload import packed_events
from .tables import aligned

# Lanes: where each instruction stands, by subsystem or by warp.

_DEEPEST = 8
"""Maximum rows of a lane for instructions in flight; beyond that, the oldest one's light part is cut short."""
LANE_GAP = 0.8

Order = Literal["subsystem", "warp"]


@dataclass(frozen=True, slots=True)
class Box:
    """One instruction: its event index, its row from the top, and issue, end of λ and completion in cycles."""

    event: int
    row: float
    issue: float
    busy_until: float
    done: float


@dataclass(frozen=True, slots=True)
class Row:
    """A lane: its name, top position and number of rows."""

    name: str
    top: float
    rows: int


def lanes_of(events: Events, chosen: npt.NDArray[np.int64]) -> tuple[list[Box], list[Row]]:
    """Boxes in lanes by subsystem and instance; instructions in flight at once are stacked in rows."""
    placed: dict[tuple[int, int], list[tuple[int, int]]] = {}
    ends: dict[tuple[int, int], list[int]] = {}
    for event in chosen.tolist():
        node = events.nodes[int(events.node[event])]
        instance = int(events.warp[event]) % events.lanes[node.lane].instances
        free = ends.setdefault((node.lane, instance), [])
        issue, done = int(events.issue[event]), int(events.completion[event])
        row = next((at for at, end in enumerate(free) if end <= issue), len(free))
        if row == _DEEPEST:
            row = min(range(_DEEPEST), key=lambda at: free[at])
        free[row : row + 1] = [max(done, issue + node.lambda_ticks)]
        placed.setdefault((node.lane, instance), []).append((event, row))
    boxes: list[Box] = []
    rows: list[Row] = []
    top = 0.0
    for lane, instance in sorted(placed):
        name = events.lanes[lane].name
        name = f"{name} {instance}" if events.lanes[lane].instances > 1 else name
        rows.append(Row(name, top, len(ends[lane, instance])))
        boxes += [_box(events, event, top + row) for event, row in placed[lane, instance]]
        top += len(ends[lane, instance]) + LANE_GAP
    return boxes, rows


def warps_of(events: Events, chosen: npt.NDArray[np.int64]) -> tuple[list[Box], list[Row]]:
    """Boxes in one row per warp slot."""
    slots = sorted(set(events.warp[chosen].tolist()))
    place = {slot: at for at, slot in enumerate(slots)}
    boxes = [_box(events, event, place[int(events.warp[event])]) for event in chosen.tolist()]
    return boxes, [Row(f"warp {slot}", float(at), 1) for slot, at in place.items()]


def _box(events: Events, event: int, row: float) -> Box:
    ticks = events.ticks_per_cycle
    issue, done = int(events.issue[event]), int(events.completion[event])
    busy = issue + events.nodes[int(events.node[event])].lambda_ticks
    return Box(event, row, issue / ticks, busy / ticks, max(done, busy) / ticks)


# As text.

_WARPS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS = _WARPS[10:]
_SEVERAL, _FLIGHT, _IDLE = "+", "-", " "
_FEWEST_COLUMNS = 20


def render_profile(result: AbstractProfile, *, by: Order, first: int, width: int) -> str:
    """Head, a table of the subsystems, and the first instructions as lanes of text at most `width` characters wide."""
    events = result.events
    per_cycle = result.warps / result.cycles if result.cycles else 0.0
    at_once = f"{result.occupancy_warps} warps" if result.occupancy_warps > 1 else "1 warp"
    total = "" if result.warps == result.occupancy_warps else f" at a time, {result.warps} in total"
    order = "in program order" if result.in_order else "as operands become ready"
    head = [
        f"{plain(result.workload)} on {result.gpu}: {at_once}{total}, scheduler {result.scheduler}, issue {order}",
        f"{result.cycles:,.6g} cycles, {per_cycle:.4g} warps per cycle, {events.total:,} warp instructions",
    ]
    busy = aligned([["subsystem", "busy"], *([name, f"{share:.1%}"] for name, share in result.busy.items())])
    chosen = np.arange(min(first, len(events.issue)))
    boxes, rows = lanes_of(events, chosen) if by == "subsystem" else warps_of(events, chosen)
    drawn = _lanes_text(result, boxes, rows, width, by)
    notes = [f"note: {note}" for note in result.notes]
    shown = f"The first {len(chosen):,} of {events.total:,} instructions; --first shows more."
    more = [shown] if len(chosen) < events.total else []
    return "\n".join([*head, "", *busy, "", *drawn, *more, *notes])


def _lanes_text(result: AbstractProfile, boxes: Sequence[Box], rows: Sequence[Row], width: int, by: Order) -> list[str]:
    events = result.events
    margin = max(len("cycle"), *(len(row.name) for row in rows)) + 2
    columns = max(_FEWEST_COLUMNS, width - margin)
    origin = min(box.issue for box in boxes)
    span = max(box.done if by == "subsystem" else box.issue + 1 for box in boxes) - origin
    scale = next(size for power in range(16) for step in (1, 2, 5) if span <= columns * (size := step * 10**power))
    lines = {round(row.top, 3) + k: [_IDLE] * columns for row in rows for k in range(row.rows)}
    letters: dict[str, str] = {}
    for box in boxes:
        cells, node = lines[round(box.row, 3)], events.nodes[int(events.node[box.event])]
        name = result.names[node.instruction]
        letter = letters.setdefault(name, _LETTERS[len(letters)] if len(letters) < len(_LETTERS) else "#")
        warp = int(events.warp[box.event])
        mark = letter if by == "warp" else _WARPS[warp] if warp < len(_WARPS) else "#"
        first, busy, done = (int((at - origin) / scale + 1e-9) for at in (box.issue, box.busy_until, box.done))
        for at in range(first, min(columns, max(first + 1, done if by == "subsystem" else first))):
            held = at < max(first + 1, busy) and (by == "subsystem" or at == first)
            if cells[at] in (_IDLE, _FLIGHT):
                cells[at] = mark if held else _FLIGHT
            elif held and cells[at] != mark:
                cells[at] = _SEVERAL
    labels = {round(row.top, 3): row.name for row in rows}
    used = min(columns, int(np.ceil(span / scale)))
    ruler = "".join(f"{origin + at * scale:<10g}"[:10] for at in range(0, used, 10))
    text = [f"{'cycle':<{margin}}{ruler}".rstrip()]
    text += [f"{labels.get(at, ''):<{margin}}{''.join(cells)}".rstrip() for at, cells in sorted(lines.items())]
    if by == "subsystem":
        text += ["", "A digit or letter: that warp's instruction occupies the subsystem (λ); -: in flight until Λ."]
    else:
        text += ["", "Issues of " + ", ".join(f"{letter} {plain(name)}" for name, letter in letters.items()) + "."]
    several = f" {_SEVERAL}: several instructions." if any(_SEVERAL in cells for cells in lines.values()) else ""
    return [*text, f"One column is {scale} cycle{'s' if scale > 1 else ''}.{several}"]


# As JSON.


def profile_dict(result: AbstractProfile, first: int) -> dict[str, Any]:
    """The documented JSON object (docs/json.md), with the `first` instructions; times in cycles."""
    events, told = result.events, asdict(result)
    for left_out in ("events", "names", "costs"):
        del told[left_out]
    ticks = events.ticks_per_cycle
    rows = []
    for at in range(min(first, len(events.issue))):
        node = events.nodes[int(events.node[at])]
        awaited = int(events.awaited[at])
        rows.append(
            {
                "instruction": result.names[node.instruction],
                "warp": int(events.warp[at]),
                "block": int(events.block[at]),
                "subsystem": events.lanes[node.lane].name,
                "issue_cycle": int(events.issue[at]) / ticks,
                "busy_cycles": node.lambda_ticks / ticks,
                "completion_cycle": int(events.completion[at]) / ticks,
                "reason": events.reasons[int(events.reason[at])],
                "awaited": awaited if awaited >= 0 else None,
            }
        )
    head = headed()
    return {**head, **told, "warps_per_cycle": result.warps / result.cycles, "total": events.total, "issues": rows}


# As a page: the execution profile of the HTML report alone, with the instructions' costs.

_SCRIPTS = ("core.js", "profile_data.js", "profile_draw.js", "profile.js")
_SHOW = """const showInstruction = (index) => {
  for (const row of document.querySelectorAll("#source tr")) row.classList.toggle("here", row.id === `i${index}`);
};
"""


def profile_page(result: AbstractProfile) -> str:
    """One HTML document that fetches nothing. Raises UsageError if Jinja2 is not installed."""
    core, *scripts = (asset(f"html/{name}") for name in _SCRIPTS)
    names = [plain(name) for name in result.names]
    data = {
        "clock": result.clock_hz,
        "reasons": list(result.events.reasons),
        "reasonColours": REASON_COLOURS,
        "code": {"index": list(range(len(names))), "text": names},
        "events": packed_events(result.events, dict(enumerate(names))),
    }
    text, _ = document(
        "html/execution_profile.html",
        ["html/report.css"],
        "".join([core, _SHOW, *scripts]),
        what="--html",
        data=data,
        p=result,
        recorded=len(result.events.issue),
        instructions=list(zip(names, result.costs, strict=True)),
        version=__version__,
    )
    return text
