"""GPUs as text and JSON: the list, and one GPU with every number's source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from .. import __version__
from ..hardware import Gpu
from ..result import SCHEMA_VERSION


def gpu_list_dict(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Name, title, compute capability and file hash of each."""
    rows = [
        {
            "name": g.name,
            "title": g.title,
            "compute_capability": g.compute_capability or None,
            "arch": g.arch or None,
            "file_hash": g.file_hash,
        }
        for g in gpus
    ]
    return {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}, "gpus": rows}


def gpu_dict(gpu: Gpu) -> dict[str, Any]:
    """Everything that the GPU file says, inherited values included."""
    return {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}, **gpu.to_dict()}


def render_gpu_list(gpus: Sequence[Gpu]) -> Text:
    """One row a GPU."""
    rows = [["name", "GPU", "CC", "SMs", "clock", "DRAM"]]
    for gpu in gpus:
        if gpu.abstract_only:
            takes = f"abstract workloads and {gpu.code_arch} code" if gpu.code_arch else "abstract workloads only"
            rows.append([gpu.name, gpu.title, "", "", "", takes])
            continue
        device, dram = gpu.device, gpu.memory.dram
        clock, bandwidth = f"{device.boost_clock_mhz:g} MHz", f"{dram.peak_gbs:g} GB/s"
        rows.append([gpu.name, gpu.title, gpu.compute_capability or gpu.arch, str(device.sm_count), clock, bandwidth])
    return Text("\n".join(aligned(rows)))


def render_gpu(gpu: Gpu) -> Text:
    """Every number of a GPU: value, kind and source, its note below; then the sources in full."""
    capability = f", compute capability {gpu.compute_capability}" if gpu.compute_capability else ""
    facts = list(gpu.facts())
    rows = [["key", "value", "kind", "source"]]
    for key, fact in facts:
        value = ", ".join(map(str, fact.value)) if isinstance(fact.value, tuple) else str(fact.value)
        rows.append([key, f"{value} {fact.unit}".strip(), fact.kind, fact.source])
    lines = aligned(rows)
    text = Text.assemble((f"{gpu.name}: {gpu.title}{capability}", "bold"), "\n\n", (lines[0], "dim"), "\n")
    for line, (_, fact) in zip(lines[1:], facts, strict=True):
        text.append(line + "\n")
        if fact.note:
            text.append(f"    {fact.note}\n", style="dim")
    text.append("\nSources\n", style="bold")
    used = {fact.source for _, fact in facts}
    text.append("\n".join(aligned([[key, full] for key, full in gpu.sources.items() if key in used])))
    return text


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with their columns aligned, two spaces apart; the terminal wraps what is too long."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
