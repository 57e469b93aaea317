"""Curves over occupancy as a chart of letters."""

from __future__ import annotations

from ..models.comparison import Comparison

HEIGHT, WIDTH = 16, 64
SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SEVERAL = "*"


def sign_of(number: int) -> str:
    """The letter of the model with this number."""
    return SIGNS[number % len(SIGNS)]


def chart(comparison: Comparison) -> str:
    """WPC upwards, occupancy to the right; a letter a model (see the table), `*` where several meet.

    What goes beyond twice the roof is drawn at the upper edge.
    """
    occupancies = comparison.occupancies
    top = highest_shown(comparison)
    if top <= 0 or not occupancies:
        return "(nothing to draw)"
    step = max(2, WIDTH // len(occupancies)) if len(occupancies) < WIDTH // 2 else 2
    columns = [place * step for place in range(len(occupancies))]
    cells = [[" "] * (columns[-1] + 1) for _ in range(HEIGHT)]
    for number, prediction in enumerate(comparison.predictions.values()):
        sign = sign_of(number)
        for point in prediction.curve:
            if point.occupancy_warps not in occupancies or not point.warps_per_cycle >= 0:
                continue
            column = columns[occupancies.index(point.occupancy_warps)]
            row = HEIGHT - 1 - min(HEIGHT - 1, int(point.warps_per_cycle / top * (HEIGHT - 1) + 0.5))
            cells[row][column] = sign if cells[row][column] in (" ", sign) else SEVERAL
    lines = []
    for row, cell in enumerate(cells):
        label = top * (HEIGHT - 1 - row) / (HEIGHT - 1)
        margin = f"{label:>9.3g} ┤" if row % 5 == 0 else f"{'':9} │"
        lines.append((margin + "".join(cell)).rstrip())
    lines.append(f"{'':9} └{'─' * (columns[-1] + 1)}")
    lines.append(f"{'':11}{_axis(occupancies, columns)}")
    return "\n".join(lines)


def highest_shown(comparison: Comparison) -> float:
    """The highest value of the models, no more than twice the roof."""
    values = [
        point.warps_per_cycle
        for prediction in comparison.predictions.values()
        for point in prediction.curve
        if 0 <= point.warps_per_cycle < float("inf")
    ]
    roof = comparison.inputs.roof
    highest = max(values, default=0.0)
    return min(highest, 2 * roof) if 0 < roof < float("inf") else highest


def _axis(occupancies: tuple[int, ...], columns: list[int]) -> str:
    """The occupancies below their columns, as many as there is room for."""
    text = ""
    for warps, column in zip(occupancies, columns, strict=True):
        if column >= len(text) + (1 if text else 0):
            text = text.ljust(column) + str(warps)
    return text
