"""The way from a source file to an answer, as boxes and arrows."""

from __future__ import annotations

from .svg import Drawing

_STATIONS = (
    ("frontends", "machine code"),
    ("emulator", "what the code does"),
    ("workload", "what waits for what"),
    ("cost", "what each costs on the GPU"),
    ("pipeline", "when each issues"),
    ("report", "time, limiter, lines"),
)
_SIDE = {1: ("launch", "grid, block, buffers"), 3: ("GPU file", "λ and Λ, with sources")}


def route() -> str:
    """From left to right in two rows; what else comes in stands above or below its station."""
    drawing = Drawing(760, 270, "From a kernel's source to the answer")
    width, gap = 200.0, 46.0
    for number, (name, gives) in enumerate(_STATIONS):
        column, row = number % 3, number // 3
        x, y = 20 + column * (width + gap), 60.0 + row * 110
        if number in _SIDE:
            source, what = _SIDE[number]
            above = row == 0
            tip, tail, label = (y - 2, y - 24, y - 30) if above else (y + 50, y + 72, y + 86)
            drawing.text(x + width / 2, label, f"{source}: {what}", "middle", "small")
            drawing.line([(x + width / 2, tail), (x + width / 2, tip)], "line", 1, "arrow")
        drawing.rectangle(x, y, width, 48, f"h{number} pale")
        drawing.text(x + width / 2, y + 20, name, "middle")
        drawing.text(x + width / 2, y + 38, gives, "middle", "small")
        if column < 2:
            drawing.line([(x + width, y + 24), (x + width + gap - 2, y + 24)], "line", 1.5, "arrow")
        elif row == 0:
            bend = y + 48 + 34
            drawing.line([(x + 150, y + 48), (x + 150, bend), (60, bend), (60, y + 108)], "line", 1.5, "arrow")
    drawing.text(20, 30, "kernel.cu", "start", "small")
    drawing.line([(45, 36), (45, 58)], "line", 1, "arrow")
    return str(drawing)
