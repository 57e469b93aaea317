"""All models on one workload, as text and JSON: a chart, a table, and optionally the models' inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from ..analysis.result import headed, limit_words
from ..experiments.reproduce import KINDS, LeftOut, Row, totals
from ..models.base import CurvePoint
from ..models.comparison import Comparison
from ..models.inputs import ModelInputs, Part
from ..models.inputs_parts import in_words
from ..models.terms import Terms
from ..support.text import time_text
from .cusp import chart, sign_of
from .tables import aligned, table_text

# The inputs of the models, as text.

MOST_NODES = 24
"""Maximum number of work-flow graph nodes, and of intervals, shown."""


def render_inputs(inputs: ModelInputs, sources: Mapping[str, str]) -> str:
    """Instructions by kind and class, sources of the inputs, parallelism, latencies, requests, structure, GPU."""
    parts = {
        "computation": inputs.computation,
        "  floating point": inputs.fp,
        "  special functions": inputs.sfu,
        "  shared memory": inputs.shared,
        "memory": inputs.memory,
        "barriers": inputs.barrier,
    }
    rows = [["per warp", "α", "λ", "Λ"]]
    rows += [_row(name, part) for name, part in parts.items() if part.count or name in ("computation", "memory")]
    rows += [_row(f"class {name}", part) for name, part in inputs.by_class.items()]
    origin = "\n".join(["sources of these inputs", *(f"  {source}: {names}" for source, names in in_words(sources))])
    return "\n\n".join(["\n".join(aligned(rows)), origin, "\n".join(aligned(_figures(inputs))), _structure(inputs)])


def _row(name: str, part: Part) -> list[str]:
    return [name, f"{part.count:.6g}", f"{part.lambda_:.4g}", f"{part.latency:.5g}"]


def _figures(inputs: ModelInputs) -> list[list[str]]:
    rate = "none" if inputs.issue_rate is None else f"{inputs.issue_rate:g} instructions per cycle"
    gbs = "unknown" if inputs.memory_gbs is None else f"{inputs.memory_gbs:g} GB/s"
    moved = "unknown" if inputs.data_bytes is None else f"{inputs.data_bytes:g} bytes"
    return [
        ["compute intensity CI", f"{inputs.intensity:.5g}"],
        ["ILP, MLP", f"{inputs.ilp:.4g}, {inputs.mlp:.4g}"],
        ["Λ_app, a single warp", f"{inputs.latency_app:.6g} cycles"],
        ["AMAT, DRAM latency", f"{inputs.amat:.5g}, {inputs.dram_latency:.5g} cycles"],
        ["departure delay", f"{inputs.departure_delay:.5g} cycles"],
        ["transactions per access", f"{inputs.transactions:.4g}"],
        ["coalesced, uncoalesced", f"{inputs.coalesced:.6g}, {inputs.uncoalesced:.6g} accesses"],
        ["computation on one subsystem", f"{inputs.mixed_cycles:.6g} cycles"],
        ["share of accesses served by DRAM", f"{inputs.miss_ratio:.4g}"],
        ["instructions of inactive lanes", f"{inputs.idle:.6g}"],
        ["bank conflicts", f"{inputs.conflict_cycles:.5g} cycles"],
        ["roof", f"{inputs.roof:.5g} warps per cycle, set by {inputs.roof_bound}"],
        ["issue limit", rate],
        ["warps per SM", f"{inputs.warps} in {inputs.blocks_per_sm} blocks of {inputs.warps_per_block}"],
        ["total warps, repetitions", f"{inputs.total_warps}, {inputs.repetitions:.4g}"],
        ["SMs, clock", f"{inputs.active_sms} of {inputs.sm_count}, {inputs.clock_hz / 1e6:g} MHz"],
        ["DRAM bandwidth, data", f"{gbs}, {moved}"],
    ]


def _structure(inputs: ModelInputs) -> str:
    lines = ["work-flow graph (node: kind, instructions, repetitions, λ, Λ, ILP, dependences)"]
    for number, node in enumerate(inputs.graph[:MOST_NODES]):
        needs = ", ".join(map(str, node.needs)) or "–"
        lines.append(
            f"  {number}: {node.kind}, {node.instructions}, {node.times}, {node.lambda_:.4g}, {node.latency:.5g}, "
            f"{node.ilp:.3g}, {needs}"
        )
    lines += [f"  and {len(inputs.graph) - MOST_NODES} more"] if len(inputs.graph) > MOST_NODES else []
    lines.append("intervals (instructions, stall cycles, repetitions)")
    lines += [f"  {i.instructions}, {i.stall:.5g}, {i.times}" for i in inputs.intervals[:MOST_NODES]]
    lines += [f"  and {len(inputs.intervals) - MOST_NODES} more"] if len(inputs.intervals) > MOST_NODES else []
    return "\n".join(lines)


# Terms of the older models that follow from the inputs.


def render_terms(terms: Terms) -> str:
    """MWP and CWP over N with the case, the paths, the work-flow graph's arcs, and Algorithms 1 and 2."""
    parts = []
    if terms.parallelism:
        rows = [["N", "MWP without BW", "MWP peak BW", "MWP", "CWP", "case", "cycles", "CPI"]]
        shown = set(shown_occupancies(terms.occupancies))
        rows += [
            [str(p.n), *(f"{v:.4g}" for v in (p.without_bw, p.peak_bw, p.mwp, p.cwp)), p.case,
             f"{p.exec_cycles:.6g}", f"{p.cpi:.4g}"]
            for p in terms.parallelism if p.n in shown
        ]  # fmt: skip
        parts.append("MWP and CWP over N warps (Hong and Kim, Eqs. 5, 9, 22 to 25)\n" + "\n".join(aligned(rows)))
    if len(terms.paths) > 1:
        rows = [["share of warps", "instructions", "cycles of a run"]]
        rows += [[f"{p.share:.3g}", f"{p.instructions}", f"{p.cycles:.6g}"] for p in terms.paths]
        total = f"a warp whose threads take all of these: {terms.all_paths:.6g} cycles (§6.3)"
        parts.append("paths of warps, each alone\n" + "\n".join([*aligned(rows), total]))
    if terms.arcs:
        parts.append(_arcs(terms))
    if terms.accesses:
        rows = [["instruction", "line", "bytes", "coalesced", "transactions before 1.3", "from 1.3"]]
        rows += [
            [str(a.instruction), str(a.line or "–"), str(a.size), f"{a.coalesced:.0%}", f"{a.before_1_3:.4g}",
             f"{a.from_1_3:.4g} of {a.transaction_bytes} B"]
            for a in terms.accesses[:MOST_NODES]
        ]  # fmt: skip
        parts.append("coalescing by Hong and Kim's Algorithms 1 and 2\n" + "\n".join(aligned(rows)))
    return "\n\n".join(parts)


def _arcs(terms: Terms) -> str:
    shown = [terms.occupancies.index(warps) for warps in shown_occupancies(terms.occupancies)]
    rows = [["node", "arc", "", *(str(terms.occupancies[at]) for at in shown)]]
    for arc in terms.arcs[:MOST_NODES]:
        for word, values in (("as published", arc.published), ("corrected", arc.corrected)):
            if word == "as published" or values != arc.published:
                rows.append([f"{arc.node}: {arc.kind}", arc.arc, word, *(f"{values[at]:.4g}" for at in shown)])
    more = len(terms.arcs) - MOST_NODES
    lines = [*aligned(rows), *([f"and {more} more arcs"] if more > 0 else [])]
    return "cycles on the work-flow graph's arcs, over occupancy (analysis, Fig. 5)\n" + "\n".join(lines)


MOST_COLUMNS = 10
"""Maximum number of occupancies in the table; beyond that, evenly spaced ones including the first and last."""


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """The documented JSON object (docs/json.md)."""
    return {**headed(), **comparison.to_dict()}


def render_comparison(comparison: Comparison, with_inputs: bool = False) -> Text:
    """Headline, chart, table, inapplicable models, and optionally the inputs."""
    text = Text.assemble((f"{comparison.workload}", "bold green"), f"  on {comparison.gpu_title}\n")
    text.append(f"{comparison.title}\n", style="dim")
    if comparison.settings:
        text.append(", ".join(f"{name} = {value:g}" for name, value in comparison.settings.items()) + "\n", "dim")
    text.append("\nWarps per cycle over occupancy in warps per SM\n", style="bold")
    text.append(chart(comparison) + "\n\n")
    text.append(table_text(_table(comparison)))
    if comparison.not_applicable:
        text.append("\nNot applicable\n", style="bold")
        rows = [[name, reason] for name, reason in comparison.not_applicable.items()]
        text.append("\n".join(aligned(rows)) + "\n")
    if with_inputs:
        text.append("\nInputs of the models\n", style="bold")
        text.append(render_inputs(comparison.inputs, comparison.input_sources) + "\n")
        if comparison.terms and (found := render_terms(comparison.terms)):
            text.append("\nTerms of the models\n", style="bold")
            text.append(found + "\n")
    text.append(f"\n{_assumptions(comparison)}", style="dim")
    for note in comparison.notes:
        text.append(f"\nnote: {note}", style="yellow")
    return text


def _assumptions(comparison: Comparison) -> str:
    runs = {0: "the grid in waves", 1: "this many warps at once, none replaced"}.get(
        comparison.runs, f"each SM runs {comparison.runs} times its resident warps"
    )
    scheduler = comparison.scheduler.replace("_", " ")
    return f"At {comparison.inputs.clock_hz / 1e6:g} MHz, {scheduler} scheduling; {runs}."


def shown_occupancies(occupancies: tuple[int, ...]) -> list[int]:
    """At most `MOST_COLUMNS` of the occupancies, including the first and the last."""
    if len(occupancies) <= MOST_COLUMNS:
        return list(occupancies)
    last = len(occupancies) - 1
    return [occupancies[round(i * last / (MOST_COLUMNS - 1))] for i in range(MOST_COLUMNS)]


def _table(comparison: Comparison) -> list[list[str]]:
    """One row per model: letter, WPC at each occupancy, limiter, and time at the launch's own occupancy."""
    shown = shown_occupancies(comparison.occupancies)
    rows = [["", "model", *(str(warps) for warps in shown), "bound", f"time at {comparison.inputs.warps}"]]
    for number, (name, prediction) in enumerate(comparison.predictions.items()):
        points = {point.occupancy_warps: point for point in prediction.curve}
        cells = [_cell(points.get(warps)) for warps in shown]
        rows.append([sign_of(number), name, *cells, limit_words(prediction.limiter), _time(prediction.time_s)])
    return rows


def _cell(point: CurvePoint | None) -> str:
    return "–" if point is None else f"{point.warps_per_cycle:.4g}"


def _time(seconds: float) -> str:
    return time_text(seconds) if 0 <= seconds < float("inf") else "–"


# The reproduced numbers of the papers as a table, as JSON, and as the page docs/reproduction.md.

STYLES = {"reproduced": "", "differs": "yellow", "inconsistent_in_source": "yellow", "failed": "bold red"}
WORDS = {
    "reproduced": "reproduced",
    "differs": "differs",
    "inconsistent_in_source": "inconsistent in the source",
    "failed": "failed",
}
KIND_WORDS = {
    "model": "a model or the simulation computed it from the paper's inputs",
    "derived": "likewise, but the paper prints only the equation from which the right answer follows",
    "input": "read back, or a ratio, mean or unit conversion of printed numbers: it says nothing about a model",
}


def reproduction_dict(rows: Sequence[Row], without: Sequence[LeftOut]) -> dict[str, Any]:
    """Every row, the totals, and what has no row, for JSON. `published` is null where the paper prints no number."""
    return {
        **headed(),
        "totals": totals(rows),
        "totals_by_kind": {kind: totals(rows, kind) for kind in KINDS},
        "rows": [
            {**asdict(row), "published": None if row.kind == "derived" else row.published, "expected": row.published}
            for row in rows
        ],
        "left_out": [asdict(each) for each in without],
    }


def render_reproduction(rows: Sequence[Row]) -> Text:
    """One line per number; for those not reproduced, the reason below; then the totals, of models alone first."""
    table = [["paper", "place", "quantity", "published", "computed", "kind", "status"]]
    table += [
        [row.paper, row.place, row.quantity, _published(row), _number(row.computed), row.kind, WORDS[row.status]]
        for row in rows
    ]
    lines = aligned(table)
    text = Text.assemble((lines[0], "dim"), "\n")
    for line, row in zip(lines[1:], rows, strict=True):
        text.append(line + "\n", style=STYLES[row.status])
        if row.note and row.status != "reproduced":
            text.append(f"    {row.note}\n", style="dim")
    text.append(f"\n{headline(rows)}\n\n")
    text.append(table_text([["kind", *WORDS.values()], *_totals(rows)]))
    return text.append("(number): not printed by the paper; it follows from the paper's equation", style="dim")


def headline(rows: Sequence[Row]) -> str:
    """The number of rows that a model computed, by status, in one line; the other kinds do not count."""
    count = totals(rows, "model")
    words = [f"{n} {'differ' if status == 'differs' and n != 1 else WORDS[status]}" for status, n in count.items()]
    return f"Of {sum(count.values())} printed numbers that a model computes: {', '.join(words)}."


def _totals(rows: Sequence[Row]) -> list[list[str]]:
    """A line per kind: how many rows have each status."""
    return [[kind, *map(str, totals(rows, kind).values())] for kind in KINDS]


def reproduction_markdown(rows: Sequence[Row], without: Sequence[LeftOut]) -> str:
    """The page docs/reproduction.md: totals, one table per paper, and what has no row."""
    share = 100 * sum(row.kind == "input" for row in rows) / len(rows)
    parts = [
        "# Reproduction",
        "The papers' numbers, next to what drywarp computes from the same inputs. Generated by"
        " `drywarp reproduce --markdown`; `drywarp reproduce` checks it.",
        f"**{headline(rows)}**",
        f"Only these say something about a model. {share:.0f} % of the rows are of kind `input`: they show that we read"
        " the papers' tables correctly and convert units as they do, no more.",
        _markdown_table(
            ["kind", "meaning", *WORDS.values()],
            [[f"`{kind}`", KIND_WORDS[kind], *numbers] for kind, *numbers in _totals(rows)],
        ),
        "A number is reproduced if it agrees within half a unit of its last printed digit; exactly if it is printed"
        ' with one digit; within 2 % where the paper says "about". Where the tolerance differs, the note says why.'
        " A number in parentheses is not printed: it is what the paper's equation gives. `inconsistent in the source`:"
        " the paper's own printed numbers contradict it, and the note shows the arithmetic. `differs`: we obtain"
        " a different number and cannot prove the paper wrong; the note gives what we believe to be the reason."
        " [papers.md](papers.md) states which interpretation drywarp follows.",
    ]
    for paper in dict.fromkeys(row.paper for row in rows):
        own = [
            [row.place, row.quantity, _published(row), _number(row.computed), row.kind, WORDS[row.status], row.note]
            for row in rows
            if row.paper == paper
        ]
        columns = ["place", "quantity", "published", "computed", "kind", "status", "note"]
        parts += [f"## {paper}", _markdown_table(columns, own)]
    parts += ["## Left out", "Printed numbers without a row, and why."]
    parts.append(_markdown_table(["paper", "numbers", "why"], [[each.paper, each.what, each.why] for each in without]))
    return "\n\n".join(parts) + "\n"


def _markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    table = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*table, *(f"| {' | '.join(map(_markdown, line))} |" for line in lines)])


def _published(row: Row) -> str:
    return f"({_number(row.published)})" if row.kind == "derived" else _number(row.published)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _markdown(text: str) -> str:
    return text.replace("|", "\\|")
