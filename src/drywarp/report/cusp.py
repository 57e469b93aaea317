"""Occupancy curves and needed occupancy as text charts, tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

from rich.text import Text

from ..analysis.result import headed
from ..models.comparison import Comparison
from ..models.cusp import NeededOccupancy
from .tables import table_text

HEIGHT, WIDTH = 16, 64
SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SEVERAL = "*"


def sign_of(number: int) -> str:
    """The letter of the model with this number."""
    return SIGNS[number % len(SIGNS)]


def chart(comparison: Comparison) -> str:
    """WPC over occupancy; one letter per model (see the table), `*` where several coincide.

    Values above twice the roof are drawn at the upper edge.
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
    """The highest value of the models, at most twice the roof."""
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
    """The occupancies below their columns, as many as fit."""
    text = ""
    for warps, column in zip(occupancies, columns, strict=True):
        if column >= len(text) + (1 if text else 0):
            text = text.ljust(column) + str(warps)
    return text


# Needed occupancy over arithmetic intensity: a table, a text chart, and JSON.

_ROWS, _COLUMNS = 14, 64
_MARKS = "ox+*#%@&"


def cusp_dict(result: NeededOccupancy) -> dict[str, Any]:
    """The complete result for JSON; a needed occupancy is null if the model does not define it."""
    mix = result.mix
    return {
        **headed(),
        "gpu": {"name": result.gpu.name, "title": result.gpu.title, "file_hash": result.gpu.file_hash},
        "with": result.partner,
        "share": result.share,
        "inputs": {
            "mem_lat_cycles": mix.mem_lat,
            "mem_thru_ipc": mix.mem_thru,
            "alu_lat_cycles": mix.alu_lat,
            "alu_thru_ipc": mix.alu_thru,
            "issue_thru_ipc": mix.issue_thru,
        },
        "cusp": {"alpha": result.cusp_alpha, "needed_warps": result.cusp_warps},
        "max_warps": result.max_warps,
        "models": {
            name: [
                {"alpha": alpha, "bound": bound, "needed_warps": warps}
                for alpha, bound, warps in zip(result.alphas, result.bounds, needed, strict=True)
            ]
            for name, needed in result.needed.items()
        },
        "notes": list(result.notes),
    }


def render_cusp(result: NeededOccupancy) -> Text:
    """The table, then the chart."""
    gpu, mix = result.gpu, result.mix
    head = (
        f"adds with {result.partner} instructions: Λ {mix.mem_lat:g} and {mix.alu_lat:g} cycles, "
        f"{mix.mem_thru:.4g} and {mix.alu_thru:g} IPC, issue {mix.issue_thru:g} IPC\n"
        f"cusp at α = {result.cusp_alpha:.3g}: {result.cusp_warps:.3g} warps per SM"
        + (f" of {result.max_warps}" if result.max_warps else "")
        + (f", for {result.share:.0%} of the peak" if result.share < 1 else "")
    )
    rows = [["α", "bound", *result.needed]]
    for alpha, bound, *needed in zip(result.alphas, result.bounds, *result.needed.values(), strict=True):
        rows.append([f"{alpha:.3g}", bound, *("–" if warps is None else f"{warps:.1f}" for warps in needed)])
    text = Text.assemble((f"{gpu.name}: {gpu.title}", "bold"), f"\n{head}\n\n", table_text(rows), "\n")
    text.append("\n".join(_chart(result)) + "\n\n")
    return text.append("\n".join(result.notes), style="dim")


def _chart(result: NeededOccupancy) -> list[str]:
    """Needed occupancy over α in powers of two; earlier models' marks are drawn over later ones'."""
    top = _top(result)
    low, high = log2(min(result.alphas)), log2(max(result.alphas))
    grid = [[" "] * (_COLUMNS + 1) for _ in range(_ROWS + 1)]
    for mark, needed in reversed(list(zip(_MARKS, result.needed.values(), strict=False))):
        for alpha, warps in zip(result.alphas, needed, strict=True):
            if warps is not None and warps <= top:
                column = round((log2(alpha) - low) / (high - low) * _COLUMNS) if high > low else 0
                grid[_ROWS - round(warps / top * _ROWS)][column] = mark
    lines = [f"{top * (_ROWS - row) / _ROWS:5.0f} │{''.join(cells).rstrip()}" for row, cells in enumerate(grid)]
    left, right = f"{2**low:.3g}", f"{2**high:.3g}"
    lines.append("      └" + "─" * (_COLUMNS + 1))
    lines.append("       " + left + "α".center(_COLUMNS + 1 - len(left) - len(right)) + right)
    marks = (f"{mark} {name}" for mark, name in zip(_MARKS, result.needed, strict=False))
    return ["warps per SM", *lines, "   ".join(marks)]


def _top(result: NeededOccupancy) -> float:
    """The height of the chart: at most 1.5 times Volkov's cusp, so that steep models do not flatten the rest."""
    shown: Sequence[float | None] = [warps for needed in result.needed.values() for warps in needed]
    highest = max((warps for warps in shown if warps is not None), default=1.0)
    return max(1.0, min(highest, 1.5 * result.cusp_warps))
