"""The result as text for a terminal: the time first, then the reasons; and the list of a file's kernels."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._version import __version__
from ..analysis.listing import ListedKernel, Listing
from ..analysis.result import SCHEMA_VERSION, Analysis, Band, MemoryBounds
from ..kernel.profile import Sampling
from .advice import render_advice, render_comparison_with, render_cycles, render_findings, render_static, render_trace
from .gpus import aligned
from .text import bytes_text, count_text, percent_text, plain, range_text, time_text


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Print the complete result to a console."""
    console.print(render_analysis(analysis))


def render_analysis(analysis: Analysis) -> Group:
    """The result as one renderable: headline, verdict, occupancy, curve, utilisation, memory, notes."""
    parts: list[RenderableType] = [
        *(Text(doubt[0].upper() + doubt[1:], style="bold red") for doubt in analysis.doubts),
        Text.assemble((time_text(analysis.time_s), "bold green"), f"  predicted on {analysis.gpu_title}"),
        *([Text(band_text(analysis.band, analysis.clock_hz))] if analysis.band else []),
        *([Text(bounds_text(analysis.bounds), style="yellow")] if analysis.bounds else []),
        Text(_header(analysis), style="dim"),
        Text(""),
        Text(analysis.verdict, style="bold"),
        Text(""),
        _facts(analysis),
        Text(""),
        Text("Occupancy curve", style="bold"),
        _curve(analysis),
        Text(""),
        Text.assemble(("Utilization of each part of the GPU", "bold"), ", and the time if it were the only limit"),
        _utilisation(analysis),
        Text(""),
        *render_cycles(analysis),
        *render_findings(analysis),
        *render_advice(analysis),
        *render_trace(analysis),
        *([Text(render_comparison_with(analysis.measured)), Text("")] if analysis.measured else []),
        Text(_assumptions(analysis), style="dim"),
    ]
    parts += render_static(analysis.static)
    parts += [Text(f"note: {note}", style="yellow") for note in analysis.notes if note not in analysis.doubts]
    return Group(*parts)


def band_text(band: Band, clock_hz: float) -> str:
    """The uncertainty of the time: the interval, its level, and the largest contributor."""
    inner = range_text(time_text(band.low_at_clock_s), time_text(band.high_at_clock_s))
    whole = range_text(time_text(band.low_s), time_text(band.high_s))
    text = f"{band.level:.0%} interval {inner}"
    if band.clock_hz is not None:
        low, high = (hertz / 1e6 for hertz in band.clock_hz)
        text += "" if whole == inner else f" at {clock_hz / 1e6:.0f} MHz, {whole}"
        text += f" at any clock from {low:.0f} to {high:.0f} MHz"
    return f"{text}; largest contributor: {band.parts[0].name}"


def bounds_text(bounds: MemoryBounds) -> str:
    """The bounds that are known when data sharing between blocks is not."""
    return (
        "the L2 could not be simulated in full: DRAM reads "
        f"{range_text(bytes_text(bounds.least_read_bytes), bytes_text(bounds.most_read_bytes))}, time "
        f"{range_text(time_text(bounds.fastest_s), time_text(bounds.slowest_s))}"
    )


def _header(analysis: Analysis) -> str:
    grid = ", ".join(map(str, analysis.grid))
    block = ", ".join(map(str, analysis.block))
    return f"{analysis.kernel} ({grid})x({block}), {analysis.source_file}, {analysis.arch}"


def _table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _facts(analysis: Analysis) -> Table:
    occupancy, resources, memory = analysis.occupancy, analysis.resources, analysis.memory
    table = _table()
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
    table.add_row("Waves", f"{analysis.waves:.2f} waves of thread blocks")
    top = sorted(analysis.by_class.items(), key=lambda item: -item[1])[:5]
    mix = ", ".join(f"{escape(name)} {value / analysis.warp_instructions:.0%}" for name, value in top)
    table.add_row("Instructions", f"{count_text(analysis.warp_instructions)} warp instructions: {mix}")
    if analysis.sampling:
        table.add_row("", Text(sampling_text(analysis.sampling), style="dim"))
    table.add_row(
        "Memory",
        f"{bytes_text(memory.dram_bytes)} DRAM, {count_text(memory.global_load_sectors)} sectors loaded, "
        f"{count_text(memory.global_store_sectors)} stored",
    )
    degree = memory.shared_conflict_degree
    conflicts = no_conflicts_text(analysis) if degree is None else f"bank conflict degree {degree:.2f}"
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


_BAR_CELLS, _CURVE_CELLS = 32, 28


def _bar(fraction: float, cells: int = _BAR_CELLS) -> str:
    eighths = round(max(0.0, min(1.0, fraction)) * cells * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _curve(analysis: Analysis) -> Table:
    """Warps per cycle over occupancy, as bars, with the other models' values next to the primary model's."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("warps/SM", justify="right", no_wrap=True)
    table.add_column("warps per cycle", width=_CURVE_CELLS, no_wrap=True)
    table.add_column(analysis.model, justify="right", no_wrap=True)
    others = [name for name in analysis.predictions if name != analysis.model]
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    by_model = {
        name: {p.occupancy_warps: p for p in prediction.curve} for name, prediction in analysis.predictions.items()
    }
    points = analysis.prediction.curve
    top = max((p.warps_per_cycle for p in points), default=0.0) or 1.0
    for point in points:
        here = point.occupancy_warps == analysis.occupancy.warps_per_sm
        cells = [f"{'▸' if here else ' '}{point.occupancy_warps:4d}", _bar(point.warps_per_cycle / top, _CURVE_CELLS)]
        cells.append(f"{point.warps_per_cycle:.4g}")
        for name in others:
            other = by_model[name].get(point.occupancy_warps)
            cells.append("" if other is None else f"{other.warps_per_cycle:.4g}")
        table.add_row(*cells, time_text(point.time_s), style="bold" if here else None)
    return table


_PARTS = {"issue": "issue slots", "dram": "DRAM", "l2": "L2", "atomics": "atomics"}


def _utilisation(analysis: Analysis) -> Table:
    prediction = analysis.prediction
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("part", no_wrap=True)
    table.add_column("in use", justify="right", no_wrap=True)
    table.add_column("", width=_BAR_CELLS, no_wrap=True)
    table.add_column("alone", justify="right", no_wrap=True)
    for name, share in sorted(prediction.utilization.items(), key=lambda item: -item[1]):
        if share < 0.0005:
            continue
        alone = prediction.headroom.get(name)
        seconds = "" if alone is None else time_text(alone / analysis.clock_hz)
        table.add_row(_PARTS.get(name, name), f"{share:.1%}", _bar(share), seconds)
    return table


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
        lines += ["", "Placeholders stand for what the file does not state: replace them by values of your own."]
    return "\n".join([*lines, *(f"note: {note}" for note in listing.notes)])


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
    head = {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}}
    named = {"file": listing.file, "gpu": listing.gpu, "arch": listing.arch}
    return {**head, **named, "kernels": rows, "notes": list(listing.notes)}
