"""A comparison as terminal text: the times on every GPU first, then the changes on the GPU with the worst ratio."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from ..analysis.compare.result import Comparison, CountChange, GpuComparison, LineChange, Side
from ..analysis.result import Analysis, GpuBeside, limit_words
from ..support.text import factor_text, plain, range_text, time_text
from .tables import table_text

MOST_LINES = 10
SMALLEST_LINE = 1e-3
"""Lines are shown if their change is at least this fraction of the old time."""
SHOWN_COUNTS = {
    "resources.registers": "registers per thread",
    "resources.shared_bytes": "shared memory per block, bytes",
    "resources.spill_bytes": "spilled per thread, bytes",
    "instructions.warp_instructions": "warp instructions",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": "",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": "",
    "l1tex__t_sector_hit_rate.pct": "",
    "lts__t_sectors_op_read.sum": "",
    "lts__t_sectors_op_write.sum": "",
    "lts__t_sector_hit_rate.pct": "",
    "dram__sectors_read.sum": "",
    "dram__sectors_write.sum": "",
}
"""Counts that a report shows if they changed, with their labels (empty: the metric's own name)."""
SHOWN_WITHOUT_METRICS = {
    "memory.global_load_sectors": "global load sectors",
    "memory.global_store_sectors": "global store sectors",
    "memory.shared_wavefronts": "shared memory wavefronts",
    "memory.dram_read_bytes": "bytes read from DRAM",
    "memory.dram_write_bytes": "bytes written to DRAM",
}


def render_comparison(comparison: Comparison) -> Text:
    """Old and new, one row per GPU, the verdict of the gate, then lines and counts on the worst GPU."""
    first, worst = comparison.gpus[0], max(comparison.gpus, key=lambda gpu: gpu.ratio)
    text = Text()
    text.append(headline(comparison), "bold red" if comparison.regressed else "bold")
    text.append(f"\nold: {_named(first.old)}\nnew: {_named(first.new)}\n", "dim")
    _table(text, [HEADS, *(row(gpu) for gpu in comparison.gpus)])
    _lines(text, worst, several=len(comparison.gpus) > 1)
    _counts(text, worst)
    for note in notes(comparison):
        text.append(f"\nnote: {plain(note, 400)}", "yellow")
    return text


def headline(comparison: Comparison) -> str:
    """The worst GPU's change in one sentence, and whether the gate passes."""
    worst = max(comparison.gpus, key=lambda gpu: gpu.ratio)
    kernel, gpus = plain(worst.new.kernel), comparison.gpus
    if worst.ratio == 1:
        said = f"{kernel} takes the same time" + (
            f" on {plain(worst.gpu)}" if len(gpus) == 1 else " or less on every GPU"
        )
    else:
        where = plain(worst.gpu) + (" (the worst GPU)" if len(gpus) > 1 else "")
        said = f"{kernel} is {speed_text(worst)} on {where}"
    if comparison.fail_above is None:
        return said
    limit = f"{comparison.fail_above * 100:g}%"
    failed = [plain(gpu.gpu) for gpu in gpus if gpu.regressed]
    if failed:
        where = f", on {', '.join(failed)}" if len(gpus) > 1 else ""
        return f"{said}: more than the {limit} allowed{where}"
    return f"{said}: within the {limit} allowed"


_SMALL_CHANGE = 1.1
"""Below this factor a change is reported in percent."""


def speed_text(gpu: GpuComparison) -> str:
    """How much faster or slower, in words: `16.4× faster`, `2.0% slower`."""
    factor = max(gpu.ratio, 1 / gpu.ratio) if gpu.ratio else math.inf
    size = size_text(gpu.change) if factor < _SMALL_CHANGE else factor_text(factor)
    return f"{size} {'slower' if gpu.ratio > 1 else 'faster'}"


HEADS = ["GPU", "old", "new", "change", "speed-up", "limited by", "warps per SM"]


def row(gpu: GpuComparison) -> list[str]:
    """The table row of one GPU."""
    old, new = gpu.old, gpu.new
    return [
        gpu.gpu,
        time_text(old.time_s),
        time_text(new.time_s),
        change_text(gpu.change) + (" !" if gpu.regressed else ""),
        factor_text(1 / gpu.ratio) if gpu.ratio else "–",
        _arrow(limit_words(old.prediction.limiter), limit_words(new.prediction.limiter)),
        _arrow(_occupancy(old), _occupancy(new)),
    ]


def change_text(change: float | None) -> str:
    """A signed percentage: 0% only if nothing changed; a dash for none."""
    if change is None:
        return "–"
    sign = "+" if change > 0 else "-" if change < 0 else ""
    return sign + size_text(change)


def size_text(change: float) -> str:
    """The magnitude of a change as a percentage."""
    size = abs(change)
    if size == 0:
        return "0%"
    return "<0.01%" if size < 1e-4 else f"{size:.2%}" if size < 9.995e-3 else f"{size:.1%}"


def number_text(value: float | None) -> str:
    """All digits of whole numbers, otherwise two decimals; a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def count_change(count: CountChange) -> str:
    """The relative change of a count; for percentages, the change in percentage points."""
    if count.name.endswith(".pct") and count.old is not None and count.new is not None:
        return f"{count.new - count.old:+.1f} points"
    return change_text(count.change)


def signed_time(seconds: float) -> str:
    """A time with its sign."""
    return ("+" if seconds > 0 else "-") + time_text(abs(seconds))


def place(line: LineChange) -> str:
    """The line number; old and new if they differ."""
    old, new = line.old.line if line.old else None, line.new.line if line.new else None
    if old is None or new is None or old == new:
        return str(new if old is None else old)
    return f"{old} → {new}"


def changed_lines(gpu: GpuComparison, most: int) -> tuple[list[LineChange], int]:
    """The lines to show, and how many others changed in cost."""
    shown = [line for line in gpu.lines if abs(line.change_s) >= SMALLEST_LINE * gpu.old.time_s][:most]
    return shown, len(gpu.lines) - len(shown)


def changed_counts(gpu: GpuComparison) -> list[tuple[str, CountChange]]:
    """The counts to show, with their labels: those of `SHOWN_COUNTS` that changed."""
    shown = SHOWN_COUNTS if gpu.old.counts and gpu.new.counts else {**SHOWN_COUNTS, **SHOWN_WITHOUT_METRICS}
    by_name = {count.name: count for count in gpu.counts}
    return [
        (words or name, by_name[name])
        for name, words in shown.items()
        if name in by_name and by_name[name].old != by_name[name].new
    ]


def notes(comparison: Comparison) -> list[str]:
    """Every note once: what limits the comparability, then the notes of both results."""
    found: dict[str, None] = dict.fromkeys(f"not on {gpu}: {reason}" for gpu, reason in comparison.left_out.items())
    for gpu in comparison.gpus:
        found |= dict.fromkeys(gpu.notes)
        for name, side in (("old", gpu.old), ("new", gpu.new)):
            other = gpu.new if name == "old" else gpu.old
            found |= dict.fromkeys(n if n in other.notes else f"{name}: {n}" for n in side.notes)
    return list(found)


def _named(side: Side) -> str:
    grid, block = (",".join(map(str, extents)) for extents in (side.launch.grid, side.launch.block))
    return f"{plain(side.kernel)}, {plain(side.source_file)}, grid {grid}, block {block}"


def _arrow(old: str, new: str) -> str:
    return old if old == new else f"{old} → {new}"


def _occupancy(side: Side) -> str:
    return f"{side.occupancy.warps_per_sm} ({side.occupancy.fraction:.0%})"


def _table(text: Text, rows: Sequence[Sequence[str]]) -> None:
    text.append("\n")
    text.append(table_text([[plain(cell) for cell in cells] for cells in rows]))


def _lines(text: Text, gpu: GpuComparison, several: bool) -> None:
    shown, rest = changed_lines(gpu, MOST_LINES)
    if not gpu.lines:
        text.append("\nNo line changed in cost.\n")
        return
    text.append(f"\nLines whose cost changed on {plain(gpu.gpu)}, by contribution to the kernel's time\n", "bold")
    _table(text, [["change", "", "line", ""], *_line_rows(shown)])
    if rest:
        text.append(f"and {rest} more with smaller changes (--json)\n", "dim")
    if several:
        text.append("lines on the other GPUs: --json, --markdown\n", "dim")


def _line_rows(lines: Sequence[LineChange]) -> Iterator[list[str]]:
    for line in lines:
        shown = line.new or line.old
        assert shown is not None
        yield [signed_time(line.change_s), line.match, place(line), plain(shown.text, 90)]
        if line.match == "edited" and line.old is not None:
            yield ["", "", "was", plain(line.old.text, 90)]


def _counts(text: Text, gpu: GpuComparison) -> None:
    changed = changed_counts(gpu)
    if not changed:
        return
    text.append(f"\nCounts that changed on {plain(gpu.gpu)}\n", "bold")
    rows = [[words, number_text(c.old), number_text(c.new), count_change(c)] for words, c in changed]
    widths = [max(len(r[column]) for r in [["", "old", "new", "change"], *rows]) for column in range(4)]
    heads = ["", *(name.rjust(width) for name, width in zip(("old", "new", "change"), widths[1:], strict=True))]
    _table(text, [heads, *([r[0], *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))] for r in rows)])


# The same launch on other GPUs, below an analysis.


def render_beside(analysis: Analysis) -> Text:
    """One row per GPU, the analysed one first: time, its ratio, what limits it and the occupancy there."""
    fits, band = analysis.occupancy, analysis.band
    here = GpuBeside(
        analysis.gpu, analysis.gpu_title, analysis.gpu_hash, analysis.arch, analysis.clock_hz, analysis.time_s,
        band.low_s if band else None, band.high_s if band else None, 1.0, analysis.limiter, fits.warps_per_sm,
        fits.fraction, (),
    )  # fmt: skip
    text = Text("\nThe same launch on other GPUs\n", "bold")
    heads = ["GPU", "time", "ratio", "interval", "SM clock", "limited by", "warps per SM"]
    _table(text, [heads, *map(_beside_row, (here, *analysis.compared))])
    for found in analysis.compared:
        text.append(
            "".join(f"note: {found.gpu}: {plain(n, 400)}\n" for n in found.notes if n not in analysis.notes), "yellow"
        )
    names = ",".join([analysis.gpu, *(found.gpu for found in analysis.compared)])
    text.append(f"All GPUs in order: drywarp rank FILE --gpu {names}, or --gpu all\n", "dim")
    return text


def _beside_row(found: GpuBeside) -> list[str]:
    low, high = found.low_s, found.high_s
    return [
        plain(found.gpu),
        time_text(found.time_s),
        f"{found.ratio:.2f}",
        "–" if low is None or high is None else range_text(time_text(low), time_text(high)),
        f"{found.clock_hz / 1e6:.0f} MHz",
        limit_words(found.limiter),
        f"{found.warps_per_sm} ({found.occupancy:.0%})",
    ]
