"""A ranking as text: a row for each GPU, the best one first."""

from __future__ import annotations

from rich.text import Text

from ..ranking.result import RankedGpu, Ranking
from ..result import limit_words
from .gpus import aligned
from .units import time_text
from .untrusted import plain

_BEST = {"time": "fastest on", "energy": "least energy at TDP on", "cost": "cheapest on"}
_RUNS = 1e6
"""A single run costs too little to read: prices are those of so many."""


def render_ranking(ranking: Ranking) -> Text:
    """The best GPU, all of them with time, limiter, occupancy and energy, then those that the kernel cannot run on."""
    best = ranking.gpus[0]
    text = Text()
    text.append(
        f"{plain(ranking.kernel)}: {_BEST[ranking.by]} {plain(best.gpu_title)}, {time_text(best.time_s)}", "bold"
    )
    text.append(f"\n{plain(ranking.source_file)}, {ranking.l2_state} L2, boost clocks unless said\n", "dim")
    priced = any(gpu.price_per_hour is not None for gpu in ranking.gpus)
    heads = ["GPU", "time", "band", "to best", "limited by", "warps per SM", "TDP", "energy at TDP"]
    rows = [[*heads, "a million runs"] if priced else heads]
    rows += [_row(gpu, ranking, priced) for gpu in ranking.gpus]
    lines = aligned(rows)
    text.append("\n" + lines[0] + "\n", "dim")
    text.append("\n".join(lines[1:]) + "\n")
    static = [gpu.gpu for gpu in ranking.gpus if gpu.mode == "static"]
    if static and len(static) < len(ranking.gpus):
        text.append(f"\nnote: followed without data, which assumes more: {', '.join(static)}", "yellow")
    for note, names in _notes(ranking).items():
        where = "" if len(names) == len(ranking.gpus) else f" ({', '.join(names)})"
        text.append(f"\nnote: {plain(note, 400)}{where}", "yellow")
    for name, reason in ranking.failed.items():
        text.append(f"\nnot on {plain(name)}: {plain(reason, 300)}", "yellow")
    return text


def _row(gpu: RankedGpu, ranking: Ranking, priced: bool) -> list[str]:
    best, own = ranking.gpus[0].by(ranking.by), gpu.by(ranking.by)
    ratio = "–" if not best or own is None else f"{own / best:.2f}"
    cells = [
        plain(gpu.gpu),
        time_text(gpu.time_s),
        "–" if gpu.low_s is None or gpu.high_s is None else f"{time_text(gpu.low_s)} to {time_text(gpu.high_s)}",
        ratio,
        limit_words(gpu.limiter),
        f"{gpu.warps_per_sm} ({gpu.occupancy:.0%})",
        "–" if gpu.tdp_w is None else f"{gpu.tdp_w:g} W",
        "–" if gpu.energy_j is None else energy_text(gpu.energy_j),
    ]
    if priced:
        cells.append("–" if gpu.cost is None else f"{gpu.cost * _RUNS:.4g}")
    return cells


def energy_text(joules: float) -> str:
    """Three significant digits with J, mJ or µJ; whole joules from a thousand on."""
    for scale, unit in ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")):
        rounded = float(f"{joules / scale:.3g}")
        if rounded >= 1:
            return f"{rounded:,.0f} {unit}" if rounded >= 1000 else f"{rounded:g} {unit}"
    return f"{joules / 1e-6:.3g} µJ"


def _notes(ranking: Ranking) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for gpu in ranking.gpus:
        for note in gpu.notes:
            found.setdefault(note, []).append(gpu.gpu)
    return found
