"""The detail of an answer: code with costs, source text, every model's curve, and single issue events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import DrywarpError, UsageError
from ..kernel.dataflow import Dataflow
from ..models.base import NotApplicable, Prediction, get_model, model_names
from ..models.gpuperf import benefits_of
from ..models.throughput import ISSUE, demand, share_cycles
from ..pipeline.blocks import awaited, share_of
from ..pipeline.extrapolate import instructions
from ..pipeline.reasons import REASONS
from ..pipeline.simulate import first_issues
from ..workload.cost import TICKS_PER_CYCLE, CostedNode, CostedWorkload
from ..workload.memory_costs import dram_bandwidth
from .build_result import shown_stalls
from .counters import is_integer
from .counters.count import MATRIX, l2_bytes, operations_by_kind
from .prepared import Prepared
from .request import Options
from .result.detail import CodeLine, Curve, Detail, EventNode, Events, Lane, Overlap, Roof, Roofline, SourceText

# Every registered model's curve for one workload.


def all_curves(
    costed: CostedWorkload, occupancies: Sequence[int], known: Mapping[str, Prediction], full: bool
) -> tuple[tuple[Curve, ...], dict[str, str]]:
    """The curves, and why each inapplicable model is missing. Predictions in `known` are reused."""
    curves: list[Curve] = []
    refused: dict[str, str] = {}
    for name in dict.fromkeys([*known, *model_names()]):
        model = get_model(name, full_simulation=full)
        try:
            found = known[name] if name in known else model.predict(costed, occupancies)
        except (NotApplicable, UsageError) as reason:
            refused[name] = str(reason)
            continue
        curves.append(Curve(name, model.summary, found.curve, found.time_s, found.limiter))
    return tuple(curves), refused


# The roofline of a launch: operations per second under the pipes' peak rates and the bandwidths of L2 and DRAM.


def roofline_of(prepared: Prepared, time_s: float) -> Roofline | None:
    """The roofline (Williams et al. 2009) in FLOP/s, or in integer operations/s where no number is floating-point.

    Roofs are the GPU file's: the peak rate of each kind of operation that the kernel executes, and the bandwidths that
    the prediction assumes. None if the kernel has no known operations or takes no time, or for a GPU without memory.
    """
    gpu, costed = prepared.gpu, prepared.costed
    if "memory" not in gpu.sections or not time_s > 0:
        return None
    total, peak, uncounted = operations_by_kind(prepared)
    floating = {kind: count for kind, count in total.items() if not is_integer(kind.removeprefix(MATRIX))}
    shown = floating or total
    done = sum(shown.values())
    if not done:
        return None
    dram, read, written = gpu.memory.dram, prepared.behaviour.dram_read_bytes, prepared.behaviour.dram_write_bytes
    bandwidth = {
        "dram": 1e9 * dram_bandwidth(dram.read_gbs, dram.copy_gbs, dram.write_gbs, read, written),
        "l2": gpu.memory.l2.bytes_per_cycle * costed.clock_hz,
    }
    moved = {"dram": prepared.behaviour.dram_bytes, "l2": l2_bytes(prepared)}
    flat: dict[str, float] = {}
    for kind in shown:
        # Integer classes share few pipes; floating-point ones are better known than theirs.
        name = kind if floating or kind not in gpu.classes else gpu.classes[kind].subsystem
        flat[name] = max(flat.get(name, 0.0), peak[kind] * costed.sm_count * costed.clock_hz)
    roofs = [Roof(name, rate, None) for name, rate in flat.items()]
    roofs += [Roof(name, bandwidth[name] * done / bytes_, done / bytes_) for name, bytes_ in moved.items() if bytes_]
    roofs.sort(key=lambda roof: roof.rate)
    return Roofline("FLOP" if floating else "integer operations", done / time_s, tuple(roofs), shown, uncounted)


# The instruction roofline of a launch, from the time that each part of the GPU alone would take.

_LEAST = 1e-3
"""Parts that alone would take less than this share of the time are omitted: their roofs are out of sight."""


def instruction_roofline_of(prepared: Prepared, primary: Prediction) -> Roofline | None:
    """Rate and roofs in warp instructions per cycle of one SM; None if nothing takes time.

    The roof of a part is the instructions of the SM's share divided by the cycles that the part alone would need for
    them. Bytes are those of the whole grid between L2 and DRAM, and between L1 and L2 (sectors that miss the L1, and
    stores).
    """
    costed = prepared.costed
    share = share_of(costed, costed.blocks_per_sm)
    needs = demand(costed)
    instructions = needs.instructions * share.blocks * costed.warps_per_block
    if not (instructions and primary.cycles):
        return None
    total = sum(prepared.profile.executions().tolist())
    moved = {"dram": prepared.behaviour.dram_bytes, "l2": l2_bytes(prepared)}
    roofs = []
    for name, cycles in share_cycles(costed, needs, share).items():
        if cycles < _LEAST * primary.cycles:
            continue
        bytes_ = moved.get(name, 0.0)
        roofs.append(Roof(name, instructions / cycles, total / bytes_ if bytes_ else None))
    roofs.sort(key=lambda roof: (roof.name != ISSUE, roof.rate))
    return Roofline("warp instructions", instructions / primary.cycles, tuple(roofs))


# The share of time in which several subsystems are busy at once.


def overlap_of(events: Events) -> Overlap | None:
    """Shares of the time from the first to the last issue; None if that time is zero.

    A subsystem is busy for λ from each issue, in whichever partition.
    """
    begin, end = int(events.issue[0]), int(events.issue[-1])
    if end <= begin:
        return None
    lane = np.array([node.lane for node in events.nodes], dtype=np.int64)[events.node]
    cost = np.array([node.lambda_ticks for node in events.nodes], dtype=np.int64)[events.node]
    moments, changes, whose = [], [], []
    for number in range(len(events.lanes)):
        rows = np.flatnonzero((lane == number) & (cost > 0))
        starts = events.issue[rows]
        ends = np.minimum(np.maximum.accumulate(starts + cost[rows]), end)
        first = np.ones(len(rows), dtype=np.bool_)
        first[1:] = starts[1:] > ends[:-1]
        last = np.append(first[1:], True)[: len(rows)]
        for at, up in ((starts[first], 1), (ends[last], -1)):
            moments.append(at)
            changes.append(np.full(len(at), up))
            whose.append(np.full(len(at), number))
    ticks, change, owner = (np.concatenate(parts) for parts in (moments, changes, whose))
    order = np.argsort(ticks, kind="stable")
    ticks, change, owner = ticks[order], change[order], owner[order]
    spans = np.diff(np.append(ticks, end))
    busy = np.zeros((len(events.lanes), len(ticks)), dtype=np.int64)
    busy[owner, np.arange(len(ticks))] = change
    busy = np.cumsum(busy, axis=1)
    count = busy.sum(axis=0)
    length = end - begin
    at_once = np.bincount(count, spans, minlength=1) / length
    at_once[0] = max(0.0, 1.0 - float(at_once[1:].sum()))
    names = [each.name for each in events.lanes]
    return Overlap(
        at_once=tuple(at_once.tolist()),
        busy=dict(zip(names, ((busy > 0) @ spans / length).tolist(), strict=True)),
        alone=dict(zip(names, (((busy > 0) & (count == 1)) @ spans / length).tolist(), strict=True)),
    )


# Machine code with the cost of each instruction.

MOST_CODE = 30_000
"""Most instructions in a detail; of longer code, only the costliest."""


def code_lines(
    prepared: Prepared, node_stalls: Mapping[int, Mapping[str, float]]
) -> tuple[tuple[CodeLine, ...], tuple[str, ...]]:
    """The kernel's instructions in order, and what was left out."""
    kernel = prepared.kernel
    nodes: dict[int, CostedNode] = {}
    for path in prepared.costed.paths:
        for node in path.nodes:
            nodes.setdefault(node.instruction, node)
    stalls = shown_stalls(kernel, node_stalls)
    chosen = list(range(len(kernel.instructions)))
    cut: tuple[str, ...] = ()
    if len(chosen) > MOST_CODE:
        costs = {index: sum(reasons.values()) for index, reasons in stalls.items()}
        chosen = sorted(sorted(chosen, key=lambda index: -costs.get(index, 0.0))[:MOST_CODE])
        cut = (f"machine code: only the {MOST_CODE:,} costliest of {len(kernel.instructions):,} instructions",)
    executions = prepared.profile.executions().tolist()
    lines = []
    for index in chosen:
        instruction, costed = kernel.instructions[index], nodes.get(index)
        place = instruction.source
        lines.append(
            CodeLine(
                index=index,
                pc=instruction.pc,
                text=instruction.text,
                class_=instruction.class_,
                file=place.file if place else "",
                line=place.line if place else 0,
                executions=executions[index],
                stalls=stalls.get(index, {}),
                subsystem=prepared.costed.subsystems[costed.subsystem].name if costed else "",
                lambda_cycles=costed.lambda_ticks / TICKS_PER_CYCLE if costed else 0.0,
                latency_cycles=costed.latency_ticks / TICKS_PER_CYCLE if costed else 0.0,
            )
        )
    return tuple(lines), cut


# The source text around the lines that have instructions.

WHOLE_LINES, MOST_LINES = 4_000, 30_000
"""Files up to this many lines are included whole; most lines over all files."""

AROUND, LONGEST = 4, 400
"""Context lines around each relevant line of a larger file; most characters of a line."""


def source_texts(prepared: Prepared, code: Sequence[CodeLine]) -> tuple[tuple[SourceText, ...], tuple[str, ...]]:
    """The source files of the instructions, the kernel's own first, then by cost; and what was left out.

    A file that cannot be read is listed with its line numbers and no text.
    """
    kernel = prepared.kernel
    costs: dict[str, dict[int, float]] = {}
    for line in code:
        if line.file:
            by_line = costs.setdefault(line.file, {})
            by_line[line.line] = by_line.get(line.line, 0.0) + sum(line.stalls.values())
    files = sorted(costs, key=lambda file: (file != kernel.source_file, -sum(costs[file].values()), file))
    found, cut, left = [], [], MOST_LINES
    for file in files:
        text = prepared.source if file == kernel.source_file and prepared.source else _read(file)
        lines = text.splitlines()
        wanted = range(1, len(lines) + 1)
        numbers = list(wanted) if len(lines) <= WHOLE_LINES else _around(costs[file], len(lines))
        numbers = numbers or sorted(costs[file])
        if len(numbers) > left:
            numbers = sorted(sorted(numbers, key=lambda number: -costs[file].get(number, 0.0))[:left])
            cut.append(f"{Path(file).name}: {len(numbers):,} of its {len(lines):,} lines")
        elif 0 < len(numbers) < len(lines):
            cut.append(f"{Path(file).name}: only lines near instructions")
        left -= len(numbers)
        texts = ((n, lines[n - 1][:LONGEST] if n <= len(lines) else "") for n in numbers)
        found.append(SourceText(file, tuple(texts), len(lines)))
    return tuple(found), tuple(cut)


def _around(lines: dict[int, float], last: int) -> list[int]:
    near = {n for line in lines for n in range(line - AROUND, line + AROUND + 1)}
    return sorted(n for n in near if 1 <= n <= last)


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


# Single issue events of the launch: the execution profile of the analysis paper, with each instruction's stall reason.

MOST_EVENTS = 1_000_000
"""The most events that are ever recorded."""


def issue_events(costed: CostedWorkload, most: int) -> Events | None:
    """The first `most` issues of one SM's share of the grid, exactly as simulated for the launch; None for 0."""
    if most < 1:
        return None
    share = share_of(costed, costed.blocks_per_sm)
    profile = first_issues(costed, share, most)
    if not len(profile.table):
        return None
    kept = [costed.paths[path].nodes[node] for path, node in profile.paths_nodes]
    busy: dict[int, float] = {}
    for number, count in enumerate(np.bincount(profile.column("node"), minlength=len(kept)).tolist()):
        if count:
            node = kept[number]
            instances = costed.partitions if costed.subsystems[node.subsystem].scope == "partition" else 1
            busy[node.subsystem] = busy.get(node.subsystem, 0.0) + count * node.lambda_ticks / instances
    used = sorted(busy, key=lambda subsystem: (-busy[subsystem], subsystem))  # busiest first
    lane_of = {subsystem: lane for lane, subsystem in enumerate(used)}
    lanes = [costed.subsystems[subsystem] for subsystem in used]
    return Events(
        issue=profile.column("issue"),
        completion=profile.column("completion"),
        warp=profile.column("warp"),
        block=profile.column("block"),
        node=profile.column("node"),
        reason=profile.column("reason"),
        awaited=awaited(costed, profile),
        nodes=tuple(EventNode(n.instruction, lane_of.get(n.subsystem, 0), n.lambda_ticks) for n in kept),
        lanes=tuple(Lane(s.name, costed.partitions if s.scope == "partition" else 1) for s in lanes),
        reasons=REASONS,
        partitions=costed.partitions,
        warps_per_block=costed.warps_per_block,
        ticks_per_cycle=TICKS_PER_CYCLE,
        total=max(len(profile.table), instructions(costed, share.blocks)),
    )


# The detail of an answer: code with costs, source text, every model's curve, and single issue events.


def in_detail(
    prepared: Prepared,
    options: Options,
    predictions: Mapping[str, Prediction],
    occupancies: list[int],
) -> Detail:
    """The detail of an answer; its `predictions` are reused. `options.detail` is the number of events to record."""
    options.on_stage("running every model")
    costed = replace(prepared.costed, producers=Dataflow(prepared.kernel.instructions, prepared.profile.cfg).producers)
    primary = predictions[options.models[0]]
    curves, refused = all_curves(costed, occupancies, predictions, options.full_simulation)
    missing: dict[str, str] = {}
    try:
        benefits = benefits_of(costed).cycles()
    except DrywarpError as reason:
        benefits, missing["benefits"] = {}, str(reason)
    code, cut = code_lines(prepared, primary.node_stalls)
    sources, cut_lines = source_texts(prepared, code)
    options.on_stage("recording issue events")
    events = None
    try:
        events = issue_events(prepared.costed, min(MOST_EVENTS, options.detail or 0))
    except DrywarpError as reason:
        missing["events"] = str(reason)
    return Detail(
        code=code,
        sources=sources,
        curves=curves,
        not_applicable=refused,
        roofline=roofline_of(prepared, primary.time_s),
        instruction_roofline=instruction_roofline_of(prepared, primary),
        benefits=benefits,
        events=events,
        overlap=overlap_of(events) if events else None,
        missing=missing,
        cut=(*cut, *cut_lines),
    )


__all__ = ["MOST_EVENTS", "in_detail"]
