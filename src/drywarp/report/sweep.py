"""A sweep as text: the best configurations of each GPU and problem, what pruning loses, and why rows failed."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from ..result import limit_words
from ..sweeps.prune import competing, ranked
from ..sweeps.result import SweepResult
from ..sweeps.row import SweepRow
from .gpus import aligned
from .units import time_text
from .untrusted import plain

_REASONS = 5


def render_sweep(found: SweepResult, best: int = 10, prune: float | None = None) -> Text:
    """Counts, the `best` rows of each GPU and problem, what the share `prune` is expected to lose, and failures."""
    predicted = sum(row.ok for row in found.rows)
    rate = (len(found.rows) - found.there) / found.seconds if found.seconds else 0.0
    there = f", {found.there} of them from before" if found.there else ""
    text = Text()
    text.append(f"{plain(found.space)}: {predicted} of {len(found.rows)} configurations predicted{there}", "bold")
    text.append(f"\n{found.seconds:.1f} s, {rate:.2f} configurations per second, model {found.models[0]}\n", "dim")
    names = tuple(name for name in found.parameters if name not in found.problem)
    for group in competing(found.rows, found.problem):
        order = ranked(group)
        if not order:
            continue
        heads = [*names, "time", "to best", "limited by", "warps per SM", "registers", "shared bytes"]
        lines = aligned([heads, *(_cells(row, order[0], names) for row in order[:best])])
        text.append(f"\n{_where(order[0].gpu, {name: order[0].parameters[name] for name in found.problem})}\n", "bold")
        text.append(lines[0] + "\n", "dim")
        text.append("\n".join(lines[1:]) + "\n")
    if prune is not None and predicted:
        pruned = found.prune(prune)
        text.append(f"\nbest {pruned.share:.2%}, to try on hardware\n", "bold")
        for kept in pruned.groups:
            text.append(
                f"{_where(kept.gpu, kept.problem)}: {len(kept.rows)} of {kept.of} configurations; "
                f"the fastest of all is among them at {kept.chance:.0%}, expected regret {kept.regret:.2%}\n"
            )
    for reason, count in list(found.failed.items())[:_REASONS]:
        text.append(f"\nfailed: {count} × {plain(reason, 300)}", "yellow")
    if len(found.failed) > _REASONS:
        text.append(f"\nfailed for {len(found.failed) - _REASONS} further reasons: see the column reason", "yellow")
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
