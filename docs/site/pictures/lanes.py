"""What a simulation issued when: a lane for each subsystem, or a row for each warp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drywarp.hardware import load_gpu
from drywarp.pipeline.execution import Execution, execution
from drywarp.workload.abstract import load_workload
from drywarp.workload.cost import TICKS_PER_CYCLE, CostedWorkload

from .svg import Drawing

EXAMPLE = "papers/example"
NAMES = ("c1", "c2", "c3", "m1", "c4", "m2")
"""Instructions of the paper's example kernel, in program order."""
_LEFT, _ROW, _TOP = 90, 24, 34


@dataclass(frozen=True)
class Event:
    """An instruction of a warp; times in cycles. `busy` is λ, `waits` the warp's events that it needs."""

    warp: int
    name: str
    lane: int
    issue: float
    busy: float
    end: float
    waits: tuple[int, ...]


def simulated(warps: int) -> tuple[list[Event], CostedWorkload, float]:
    """The events of so many warps of the example kernel, and how long they take together."""
    workload = load_workload(EXAMPLE, load_gpu(EXAMPLE), {}, occupancy=warps)
    run = execution(workload, 1000)
    return list(_events(run)), workload, run.total / TICKS_PER_CYCLE


def _events(run: Execution) -> Iterator[Event]:
    setters: dict[tuple[int, int], int] = {}
    for number in range(len(run.issue)):
        node, warp = run.nodes[int(run.node[number])], int(run.slot[number])
        waits = tuple(setters[warp, slot] for slot in node.waits if (warp, slot) in setters)
        if node.sets >= 0:
            setters[warp, node.sets] = number
        issue, end = int(run.issue[number]) / TICKS_PER_CYCLE, int(run.completion[number]) / TICKS_PER_CYCLE
        busy = node.lambda_ticks / TICKS_PER_CYCLE
        yield Event(warp, NAMES[node.instruction], node.subsystem, issue, busy, end, waits)


def by_subsystem(warps: int, arrows: bool) -> str:
    """Lanes of the subsystems; what is in flight together stands in rows below one another."""
    events, workload, total = simulated(warps)
    rows: list[list[float]] = [[] for _ in workload.subsystems]
    places: list[tuple[int, int]] = []
    for event in events:
        free = rows[event.lane]
        row = next((n for n, until in enumerate(free) if until <= event.issue), len(free))
        free[row : row + 1] = [event.end]
        places.append((event.lane, row))
    first = [sum(len(held) for held in rows[:lane]) for lane in range(len(rows))]
    height = _TOP + _ROW * sum(map(len, rows)) + 14 * len(rows) + 30
    many = "warp" if warps == 1 else "warps"
    drawing, scale = _axis(total, height, f"{warps} {many} of the example kernel, by subsystem: {total:g} cycles")
    tops: list[float] = []
    for lane, subsystem in enumerate(workload.subsystems):
        tops.append(_TOP + _ROW * first[lane] + 14 * lane)
        drawing.text(8, tops[lane] + 16, subsystem.name)
    middle: list[float] = []
    for event, (lane, row) in zip(events, places, strict=True):
        y = tops[lane] + _ROW * row
        middle.append(y + 9)
        _box(drawing, event, scale, y)
    for event, y in zip(events, middle, strict=True):
        for before in event.waits if arrows else ():
            x = _LEFT + event.issue * scale
            from_x = _LEFT + events[before].end * scale
            drawing.line([(from_x, middle[before]), (x - 1, middle[before]), (x - 1, y)], "line pale", 1, "")
    return str(drawing)


def by_warp(warps: int) -> str:
    """A row for each warp: its instructions where they issue, and how long their results take."""
    events, _, total = simulated(warps)
    most = 2  # rows a warp: c1 and c2 are in flight together
    height = _TOP + warps * (_ROW * most + 10) + 30
    drawing, scale = _axis(total, height, f"{warps} warps of the example kernel, by warp: {total:g} cycles")
    until = [[0.0] * most for _ in range(warps)]
    for warp in range(warps):
        drawing.text(8, _TOP + warp * (_ROW * most + 10) + 16, f"warp {warp}")
    for event in events:
        row = next(n for n, end in enumerate(until[event.warp]) if end <= event.issue)
        until[event.warp][row] = event.end
        _box(drawing, event, scale, _TOP + event.warp * (_ROW * most + 10) + _ROW * row)
    return str(drawing)


def _axis(total: float, height: float, title: str) -> tuple[Drawing, float]:
    drawing = Drawing(760, height, title)
    scale = (760 - _LEFT - 20) / total
    step = next(size for size in (1, 2, 5, 10, 20, 50) if total / size <= 16)
    for cycle in range(0, int(total) + 1, step):
        x = _LEFT + cycle * scale
        drawing.line([(x, _TOP - 6), (x, height - 24)], "grid")
        drawing.text(x, height - 8, str(cycle), "middle", "small")
    drawing.text(_LEFT, 18, title, classes="small")
    drawing.text(8, height - 8, "cycle", classes="small")
    return drawing, scale


def _box(drawing: Drawing, event: Event, scale: float, y: float) -> None:
    hint = f"{event.name} of warp {event.warp}: issued at {event.issue:g}, λ {event.busy:g}, result at {event.end:g}"
    x, hue = _LEFT + event.issue * scale, f"h{event.warp % 8}"
    drawing.rectangle(x, y, (event.end - event.issue) * scale, 18, f"{hue} pale", hint)
    drawing.rectangle(x, y, event.busy * scale, 18, hue, hint)
    if scale * (event.end - event.issue) > 30:
        drawing.text(x + event.busy * scale + 3, y + 13, event.name, classes="small")
