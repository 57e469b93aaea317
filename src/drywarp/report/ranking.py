"""Sweeps, rankings and launch series as text."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from ..analysis.rank import RankedGpu, Ranking
from ..analysis.result import limit_words
from ..analysis.series import LaunchSeries
from ..experiments.sweep.prune import competing, ranked
from ..experiments.sweep.result import SweepResult
from ..experiments.sweep.row import SweepRow
from ..support.text import energy_text, percent_text, plain, time_text
from .benefits import render_study
from .tables import aligned, table_text

_REASONS = 5


def render_sweep(found: SweepResult, best: int = 10, prune: float | None = None) -> Text:
    """Counts, the `best` rows per GPU and problem, the expected loss of pruning to the share `prune`, and failures."""
    predicted = sum(row.ok for row in found.rows)
    rate = (len(found.rows) - found.there) / found.seconds if found.seconds else 0.0
    there = f", {found.there} of them in earlier runs" if found.there else ""
    text = Text()
    text.append(f"{plain(found.space)}: {predicted} of {len(found.rows)} configurations predicted{there}", "bold")
    text.append(f"\n{found.seconds:.1f} s, {rate:.2f} configurations per second, model {found.models[0]}\n", "dim")
    names = tuple(name for name in found.parameters if name not in found.problem)
    for group in competing(found.rows, found.problem):
        order = ranked(group)
        if not order:
            continue
        heads = [*names, "time", "vs best", "limited by", "warps per SM", "registers", "shared bytes"]
        text.append(f"\n{_where(order[0].gpu, {name: order[0].parameters[name] for name in found.problem})}\n", "bold")
        text.append(table_text([heads, *(_cells(row, order[0], names) for row in order[:best])]))
    if prune is not None and predicted:
        pruned = found.prune(prune)
        text.append(f"\nbest {pruned.share:.2%}, to try on hardware\n", "bold")
        for kept in pruned.groups:
            text.append(
                f"{_where(kept.gpu, kept.problem)}: {len(kept.rows)} of {kept.of} configurations; "
                f"{kept.chance:.0%} chance that the fastest is among them, expected regret {kept.regret:.2%}\n"
            )
    for study in found.studies if found.benefits else ():
        text.append(render_study(study))
    for where, why in found.not_compared.items() if found.benefits else ():
        text.append(f"\nno comparison on {plain(where)}: {plain(why, 300)}", "yellow")
    for reason, count in list(found.failed.items())[:_REASONS]:
        text.append(f"\nfailed: {count} × {plain(reason, 300)}", "yellow")
    if len(found.failed) > _REASONS:
        text.append(f"\nfailed for {len(found.failed) - _REASONS} other reasons: see the column reason", "yellow")
    return text


def _where(gpu: str, problem: Mapping[str, object]) -> str:
    return plain(" ".join([gpu, *(f"{name}={value}" for name, value in problem.items())]))


def _cells(row: SweepRow, best: SweepRow, parameters: tuple[str, ...]) -> list[str]:
    facts = row.facts
    share = float(facts.get("occupancy", 0.0))
    return [
        *(plain(str(row.parameters[name])) for name in parameters),
        time_text(row.time_s or 0.0),
        f"{(row.time_s or 0.0) / (best.time_s or 1.0):.2f}",
        limit_words(row.limiter),
        f"{facts.get('warps_per_sm', '–')} ({share:.0%})",
        str(facts.get("registers", "–")),
        str(facts.get("shared_bytes", "–")),
    ]


# A ranking as text: one row per GPU, best first.

_BEST = {"time": "fastest on", "energy": "least energy at TDP on", "cost": "cheapest on"}
_RUNS = 1e6
"""Prices are for this many runs, since a single run costs too little to be readable."""


def render_ranking(ranking: Ranking) -> Text:
    """The best GPU; all GPUs with time, limiter, occupancy and energy; then those that cannot run the kernel."""
    best = ranking.gpus[0]
    head = f"{plain(ranking.kernel)}: {_BEST[ranking.by]} {plain(best.gpu_title)}, {time_text(best.time_s)}"
    text = Text.assemble((head, "bold"))
    text.append(f"\n{plain(ranking.source_file)}, {ranking.l2_state} L2, boost clocks unless noted\n", "dim")
    priced = any(gpu.price_per_hour is not None for gpu in ranking.gpus)
    heads = ["GPU", "time", "uncertainty", "vs best", "limited by", "warps per SM", "TDP", "energy at TDP"]
    rows = [[*heads, "a million runs"] if priced else heads]
    rows += [_row(gpu, ranking, priced) for gpu in ranking.gpus]
    text.append("\n")
    text.append(table_text(rows))
    static = [gpu.gpu for gpu in ranking.gpus if gpu.mode == "static"]
    if static and len(static) < len(ranking.gpus):
        text.append(f"\nnote: analysed statically, with more assumptions: {', '.join(static)}", "yellow")
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


def _notes(ranking: Ranking) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for gpu in ranking.gpus:
        for note in gpu.notes:
            found.setdefault(note, []).append(gpu.gpu)
    return found


# Several launches as text: one row each, and the total time.


def render_series(series: LaunchSeries) -> Text:
    """The total first, then one row per launch, then the notes."""
    first = series.launches[0].analysis
    rows = [["launch", "times", "time each", "share", "occupancy", "limited by"]]
    notes = []
    for launch in series.launches:
        answer = launch.analysis
        share = launch.times * answer.time_s / series.time_s if series.time_s else 0.0
        shares = [percent_text(share), percent_text(answer.occupancy.fraction)]
        rows.append([launch.name, str(launch.times), time_text(answer.time_s), *shares, limit_words(answer.limiter)])
        notes += [f"note: {launch.name}: {note}" for note in answer.notes]
    lines = aligned(rows)
    return Text.assemble(
        (time_text(series.time_s), "bold green"),
        f"  predicted on {first.gpu_title} for all launches\n\n",
        (lines[0], "dim"),
        "\n" + "\n".join(lines[1:]),
        *(("\n" + note, "yellow") for note in notes),
    )
