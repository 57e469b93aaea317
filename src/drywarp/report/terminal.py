"""The result as text for a terminal: about ten lines, and the rest under headings; and the list of a file's kernels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from ..analysis.result import Analysis, Band, MemoryBounds, Rate, headed, limit_words, unit_words
from ..kernel.profile import Sampling
from ..models.base import CurvePoint, get_model
from ..support.text import (
    bytes_text,
    count_text,
    factor_text,
    percent_text,
    plain,
    range_text,
    rate_text,
    three_digits,
    time_text,
)
from .advice import render_advice, render_comparison_with, render_cycles, render_findings, render_static, render_trace
from .tables import aligned, columns

if TYPE_CHECKING:
    from ..analysis.listing import ListedKernel, Listing  # which loads all readers

UNWRAPPED = 10_000
"""The width for output that is piped, where nothing should break a line."""
_NOTES_SHOWN = 3


def print_analysis(analysis: Analysis, console: Console, *, full: bool = False, curve: bool = False) -> None:
    """Print the result to a console: in about ten lines, or in full; `curve` adds the occupancy curve to the former."""
    shown = render_analysis(analysis, full=full, curve=curve, width=console.width)
    for line in console.render_lines(shown, pad=False):
        while line and not line[-1].text.rstrip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        console.print(Segments([*line, Segment.line()]), end="")


def render_analysis(
    analysis: Analysis, *, full: bool = False, curve: bool = False, width: int = UNWRAPPED
) -> RenderableType:
    """The result as one renderable for a terminal of that width; bars shrink with it."""
    launch = "" if full else _launch(analysis)
    parts: list[RenderableType] = [
        *(Text(doubt[0].upper() + doubt[1:], style="bold red") for doubt in analysis.doubts),
        Text.assemble((time_text(analysis.time_s), "bold green"), f"  predicted {launch}on {analysis.gpu_title}"),
        *([Text(band_text(analysis.band, analysis.clock_hz, short=not full))] if analysis.band else []),
        *([Text(bounds_text(analysis.bounds), style="yellow")] if analysis.bounds else []),
        *([Text(_header(analysis), style="dim")] if full else []),
        Text(""),
        Text(analysis.verdict, style="bold"),
    ]
    if full:
        parts += [Text(""), _facts(analysis), Text(""), *_curve(analysis, width), *_utilisation(analysis, width)]
        parts += [*render_cycles(analysis), *render_findings(analysis), *_other_models(analysis)]
    else:
        parts += [_in_short(analysis), Text("")]
        parts += [*(_curve(analysis, width) if curve else ()), *render_cycles(analysis, short=True)]
        parts += render_findings(analysis, short=True)
    further = [*render_advice(analysis), *render_trace(analysis)]
    further += [Text(render_comparison_with(analysis.measured)), Text("")] if analysis.measured else []
    parts += [Text("")] if further and not full else []
    parts += further
    parts.append(Text(_assumptions(analysis) if full else _closing(analysis), style="dim"))
    parts += render_static(analysis.static, short=not full)
    notes = [note for note in analysis.notes if note not in analysis.doubts]
    shown = notes if full else notes[:_NOTES_SHOWN]
    parts += [Text(f"note: {note}", style="yellow") for note in shown]
    if len(notes) > len(shown):
        parts.append(Text(f"and {len(notes) - len(shown)} more (--full)", style="yellow"))
    return Group(*parts)


# The short form.


def _in_short(analysis: Analysis) -> Table:
    occupancy = analysis.occupancy
    table = columns(head=False)
    if analysis.throughput:
        table.add_row("Throughput", throughput_text(analysis))
    slots = round(occupancy.warps_per_sm / occupancy.fraction) if occupancy.fraction else 0
    table.add_row(
        "Occupancy",
        f"{occupancy.warps_per_sm} of {slots} warps per SM ({occupancy.fraction:.0%}), "
        f"limited by {occupancy.limited_by.replace('_', ' ')}{achieved_text(analysis)}",
    )
    return table


_LEAST_FLOPS, _LEAST_OTHERS = 0.05, 0.3
"""Shares of the peak from which further kinds of FLOP/s, and all rates but those and DRAM's, are shown."""


def throughput_text(analysis: Analysis) -> str:
    """The rates achieved, with their share of the GPU's peak: FLOP/s, DRAM, and L2 or integers where they matter."""
    operations = [rate for rate in analysis.throughput if rate.unit != "B"]
    shown = [r for n, r in enumerate(operations) if n == 0 or r.achieved >= _LEAST_FLOPS * r.peak]
    if shown and shown[0].unit != "FLOP":
        shown = [rate for rate in shown[:1] if rate.achieved >= _LEAST_OTHERS * rate.peak]
    shown += [
        rate
        for rate in analysis.throughput
        if rate.name == "dram" or (rate.name == "l2" and rate.achieved >= _LEAST_OTHERS * rate.peak)
    ]
    return ", ".join(_rate_text(rate, first=number == 0) for number, rate in enumerate(shown))


def _rate_text(rate: Rate, first: bool) -> str:
    part = rate.achieved / rate.peak
    share = (f"{part:.0%}" if part >= 0.01 else f"{part:.1%}") + (" of peak" if first else "")
    if rate.unit == "B":
        return f"{rate.name.upper()} {rate_text(rate.achieved, 'B/s')} ({share})"
    return f"{rate_text(rate.achieved, 'FLOP/s' if rate.unit == 'FLOP' else 'OP/s')} {rate.name} ({share})"


def _launch(analysis: Analysis) -> str:
    grid, block = (re.sub(r"(,1)+$", "", ",".join(map(str, part))) for part in (analysis.grid, analysis.block))
    return f"for {plain(analysis.kernel, _WIDEST_NAME)} ({grid})x({block}) "


def _closing(analysis: Analysis) -> str:
    start = f", {time_text(analysis.start_s)} of kernel start included" if analysis.start_s else ""
    return f"{analysis.l2_state.capitalize()} L2{start}. More: --full, drywarp explain NAME"


# The full form.


def band_text(band: Band, clock_hz: float, short: bool = False) -> str:
    """The uncertainty of the time: the interval, its level, and, unless in short, the largest contributor."""
    inner = range_text(time_text(band.low_at_clock_s), time_text(band.high_at_clock_s))
    whole = range_text(time_text(band.low_s), time_text(band.high_s))
    text = f"{band.level:.0%} interval {inner}"
    if band.clock_hz is not None:
        low, high = (hertz / 1e6 for hertz in band.clock_hz)
        text += "" if whole == inner else f" at {clock_hz / 1e6:.0f} MHz, {whole}"
        text += f" at {low:.0f}–{high:.0f} MHz"
    return text if short else f"{text}; largest contributor: {band.parts[0].name}"


def bounds_text(bounds: MemoryBounds) -> str:
    """The bounds that are known when data sharing between blocks is not."""
    reads = range_text(bytes_text(bounds.least_read_bytes), bytes_text(bounds.most_read_bytes))
    fastest, slowest = time_text(bounds.fastest_s), time_text(bounds.slowest_s)
    times = f"time {range_text(fastest, slowest)}" if fastest != slowest else f"which makes no difference to {fastest}"
    return f"the L2 could not be simulated in full: DRAM reads {reads}, {times}"


def _header(analysis: Analysis) -> str:
    grid = ", ".join(map(str, analysis.grid))
    block = ", ".join(map(str, analysis.block))
    clusters = f" in clusters of ({', '.join(map(str, analysis.cluster))})" if analysis.cluster != (1, 1, 1) else ""
    return f"{analysis.kernel} ({grid})x({block}){clusters}, {analysis.source_file}, {analysis.arch}"


def _facts(analysis: Analysis) -> Table:
    occupancy, resources, memory = analysis.occupancy, analysis.resources, analysis.memory
    table = columns(head=False)
    limits = ", ".join(
        f"{name.replace('_', ' ')} {'unlimited' if blocks is None else blocks}"
        for name, blocks in occupancy.limits.items()
    )
    shared = resources.shared_bytes + analysis.dynamic_shared
    spills = "spills unknown" if resources.spill_bytes is None else f"{resources.spill_bytes} B spilled"
    table.add_row(
        "Occupancy",
        f"{occupancy.warps_per_sm} warps per SM ({occupancy.fraction:.0%}), {occupancy.blocks_per_sm} blocks, "
        f"limited by {occupancy.limited_by.replace('_', ' ')}{achieved_text(analysis)}",
    )
    table.add_row("", Text(f"blocks per SM allowed by each: {limits}", style="dim"))
    table.add_row("Resources", f"{resources.registers} registers per thread, {bytes_text(shared)} shared, {spills}")
    table.add_row("Waves", f"{three_digits(analysis.waves)} waves of thread blocks")
    top = sorted(analysis.by_class.items(), key=lambda item: -item[1])[:5]
    mix = ", ".join(f"{escape(name)} {value / analysis.warp_instructions:.0%}" for name, value in top)
    table.add_row("Instructions", f"{count_text(analysis.warp_instructions)} warp instructions: {mix}")
    if analysis.sampling:
        table.add_row("", Text(sampling_text(analysis.sampling), style="dim"))
    if analysis.throughput:
        table.add_row("Throughput", throughput_text(analysis))
    table.add_row(
        "Memory",
        f"{bytes_text(memory.dram_bytes)} DRAM, {count_text(memory.global_load_sectors)} sectors loaded, "
        f"{count_text(memory.global_store_sectors)} stored",
    )
    degree = memory.shared_conflict_degree
    conflicts = no_conflicts_text(analysis) if degree is None else f"bank conflict degree {three_digits(degree)}"
    table.add_row(
        "", f"hit rates: L1 {percent_text(memory.l1_hit_rate)}, L2 {percent_text(memory.l2_hit_rate)}; {conflicts}"
    )
    return table


def achieved_text(analysis: Analysis) -> str:
    """The mean number of active warps of the busiest SM, if simulated."""
    achieved = analysis.prediction.achieved_occupancy_warps
    return "" if achieved is None else f"; achieved {achieved:.1f}"


def no_conflicts_text(analysis: Analysis) -> str:
    """Why no bank conflict degree is shown."""
    some = any(count and name.startswith("shared_") for name, count in analysis.by_class.items())
    return "bank conflicts unknown" if some else "no shared accesses"


def sampling_text(sampling: Sampling) -> str:
    """How accurately the number of instructions is known."""
    some = f"{sampling.blocks} of {sampling.of} blocks"
    if sampling.basis == "estimated" and sampling.low is not None and sampling.high is not None:
        half = (sampling.high - sampling.low) / 2 / sampling.estimate if sampling.estimate else 0.0
        return f"± {half:.1%} ({sampling.confidence:.0%} confidence), from {some} sampled at random"
    return {
        "all": f"exact: all {sampling.of} blocks were emulated",
        "proven": f"exact: no branch depends on the block or on data ({some} emulated)",
        "uniform": f"exact unless other blocks differ: no variation among similar blocks ({some} emulated)",
        "limited": f"from {some}: too few to estimate how much blocks differ",
        "chosen": f"from {some}, as specified",
    }[sampling.basis]


_LONGEST_BAR, _SHORTEST_BAR = 28, 6


def _bar(fraction: float, cells: int) -> str:
    eighths = round(max(0.0, min(1.0, fraction)) * cells * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _bar_cells(width: int, others: int) -> int:
    """The length of bars beside columns that take `others` characters."""
    return max(_SHORTEST_BAR, min(_LONGEST_BAR, width - others))


def _curve(analysis: Analysis, width: int) -> list[RenderableType]:
    """Warps per cycle and time over occupancy, as bars; neighbours that read the same are one row."""
    cells = _bar_cells(width, others=34)
    table = columns(">warps/SM", "=", ">per cycle", ">time")
    table.columns[1].width = cells
    top = max((p.warps_per_cycle for p in analysis.prediction.curve), default=0.0) or 1.0
    for points in _alike(analysis.prediction.curve):
        here = any(point.occupancy_warps == analysis.occupancy.warps_per_sm for point in points)
        warps = "–".join(dict.fromkeys(str(point.occupancy_warps) for point in (points[0], points[-1])))
        bar = _bar(points[-1].warps_per_cycle / top, cells)
        table.add_row(f"{'▸ ' if here else ''}{warps}", bar, *_of_point(points[0]), style="bold" if here else None)
    return [Text("Occupancy curve: warps per cycle and SM", style="bold"), table, Text("")]


def _of_point(point: CurvePoint) -> tuple[str, str]:
    return three_digits(point.warps_per_cycle), time_text(point.time_s)


def _alike(curve: tuple[CurvePoint, ...]) -> list[list[CurvePoint]]:
    """Neighbouring points of a curve in groups that read the same."""
    groups: list[list[CurvePoint]] = []
    for point in curve:
        if groups and _of_point(groups[-1][0]) == _of_point(point):
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


def _utilisation(analysis: Analysis, width: int) -> list[RenderableType]:
    prediction = analysis.prediction
    used = sorted(((n, s) for n, s in prediction.utilization.items() if s >= 0.0005), key=lambda item: -item[1])
    names = {name: unit_words(name) if width >= 60 else name for name, _ in used}
    cells = _bar_cells(width, others=24 + max(map(len, names.values()), default=0))
    table = columns("=part", ">in use", "=", ">alone")
    table.columns[2].width = cells
    for name, share in used:
        alone = prediction.headroom.get(name)
        seconds = "" if alone is None else time_text(alone / analysis.clock_hz)
        table.add_row(names[name], f"{share:.1%}", _bar(share, cells), seconds)
    heading = Text.assemble(("Utilization of each part of the GPU", "bold"), ", and the time if it were the only limit")
    return [heading, table, Text("")]


def _other_models(analysis: Analysis) -> list[RenderableType]:
    """The times of other models, each with what it assumes: they are no part of the answer."""
    others = {name: p for name, p in analysis.predictions.items() if name != analysis.model}
    if not others:
        return []
    table = columns(head=False)
    for name, prediction in others.items():
        ratio = factor_text(prediction.time_s / analysis.time_s) if analysis.time_s else ""
        table.add_row(name, time_text(prediction.time_s), ratio, Text(_assumes(name, limit_words(prediction.limiter))))
    return [Text("Other models, each with what it assumes", style="bold"), table, Text("")]


def _assumes(name: str, limit: str) -> str:
    return f"{get_model(name).summary}; limited by {limit}"


def _assumptions(analysis: Analysis) -> str:
    timing = analysis.timing
    start = f", including {time_text(analysis.start_s)} for the kernel start" if analysis.start_s else ""
    done, to_do = ("analysed statically", "analyse") if analysis.static else ("emulated", "emulate")
    return (
        f"Duration as a profiler reports it{start}, at {analysis.clock_hz / 1e6:.0f} MHz, {analysis.l2_state} L2, "
        f"{analysis.scheduler.replace('_', ' ')} scheduling; {analysis.sampled_blocks} blocks {done}. "
        f"Took {timing.compile_s:.2f} s to compile, {timing.emulate_s:.2f} to {to_do}, "
        f"{timing.memory_s:.2f} for memory, {timing.simulate_s:.2f} to simulate."
    )


# The kernels of a file.

_MOST_SHOWN, _WIDEST_NAME = 12, 48


def render_listing(listing: Listing) -> str:
    """A row for each kernel; for few of them also signature and command."""
    count = len(listing.kernels)
    lines = [f"{listing.file}: {count} kernel{'s' if count != 1 else ''} for {listing.gpu} ({listing.arch})", ""]
    rows = [["kernel", "registers", "shared", "spills", "launch"]]
    for kernel in listing.kernels:
        held = kernel.resources
        spills = "" if held is None or held.spill_bytes is None else bytes_text(held.spill_bytes)
        numbers = [str(held.registers), bytes_text(held.shared_bytes), spills] if held else ["–", "–", "–"]
        rows.append([plain(kernel.name, _WIDEST_NAME), *numbers, _launch_text(kernel)])
    lines += aligned(rows)
    for kernel in listing.kernels if count <= _MOST_SHOWN else ():
        reason = [f"    {kernel.reason}"] if kernel.reason else []
        if kernel.command:
            lines += ["", f"{plain(kernel.name)}({kernel.signature})", *reason, f"    {kernel.command}"]
        else:
            lines += ["", plain(kernel.name), *reason]
    if count > _MOST_SHOWN:
        lines += ["", f"drywarp list {listing.file} --entry NAME shows the signature and a command of one of them."]
    if any(kernel.placeholders for kernel in listing.kernels):
        lines += ["", _PLACEHOLDERS]
    return "\n".join([*lines, *(f"note: {note}" for note in listing.notes)])


_PLACEHOLDERS = (
    "Placeholders stand for what the file does not state: replace them with your own values, or leave them out and add "
    "--static, which assumes what is missing."
)


def _launch_text(kernel: ListedKernel) -> str:
    if not kernel.command:
        return "not compiled"
    where = "launch comment" if kernel.launch == "comment" else kernel.launch.rpartition("/")[2]
    stand_ins = f"placeholders: {', '.join(kernel.placeholders)}" if kernel.placeholders else ""
    return "; ".join(part for part in (where, plain(stand_ins, 60)) if part) or "no arguments"


def listing_dict(listing: Listing) -> dict[str, Any]:
    """The documented JSON object of `drywarp list --json`."""
    rows = []
    for kernel in listing.kernels:
        held = kernel.resources
        rows.append(
            {
                "name": kernel.name,
                "signature": kernel.signature or None,
                "registers": held.registers if held else None,
                "shared_bytes": held.shared_bytes if held else None,
                "spill_bytes": held.spill_bytes if held else None,
                "command": kernel.command or None,
                "launch": kernel.launch or None,
                "placeholders": list(kernel.placeholders),
                "reason": kernel.reason or None,
            }
        )
    named = {"file": listing.file, "gpu": listing.gpu, "arch": listing.arch}
    return {**headed(), **named, "kernels": rows, "notes": list(listing.notes)}
