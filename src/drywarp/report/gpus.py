"""GPUs and abstract kernels as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from .._version import __version__
from ..analysis.result import SCHEMA_VERSION
from ..hardware import Gpu
from ..workload.abstract.file import AbstractFile

# GPUs as text and JSON: the list, and one GPU with the source of every number.


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
    """Everything in the GPU file, including inherited values."""
    return {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}, **gpu.to_dict()}


def render_gpu_list(gpus: Sequence[Gpu]) -> Text:
    """One row per GPU."""
    rows = [["name", "GPU", "CC", "SMs", "clock", "DRAM"]]
    for gpu in gpus:
        if gpu.abstract_only:
            takes = f"abstract workloads and {gpu.code_arch} code" if gpu.code_arch else "abstract workloads only"
            rows.append([gpu.name, gpu.title, "", "", "", takes])
            continue
        device, dram = gpu.device, gpu.memory.dram
        clock, bandwidth = f"{device.boost_clock_mhz:g} MHz", f"{dram.peak_gbs:g} GB/s"
        rows.append([gpu.name, gpu.title, gpu.compute_capability or gpu.arch, str(device.sm_count), clock, bandwidth])
    return Text("\n".join([*aligned(rows), "", "drywarp gpus NAME shows every number with its source."]))


def render_gpu(gpu: Gpu) -> Text:
    """Every number of a GPU: value, kind and source, with its note below; then the full sources."""
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
    """Rows as lines with aligned columns, two spaces apart; the terminal wraps lines that are too long."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


# Abstract kernels.


def workloads_dict(files: Sequence[AbstractFile]) -> dict[str, Any]:
    """Name, title, source, GPU and settings of each."""
    rows = [
        {
            "name": file.name,
            "title": file.kernel.title,
            "source": file.kernel.source,
            "about": file.kernel.about,
            "gpu": file.kernel.gpu,
            "settings": {
                name: {"default": s.default, "about": s.about, "least": s.least, "most": s.most}
                for name, s in file.kernel.settings.items()
            },
        }
        for file in files
    ]
    return {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}, "workloads": rows}


def render_workloads(files: Sequence[AbstractFile]) -> Text:
    """One row each."""
    rows = [["name", "settings", "GPU", "description"]]
    for file in files:
        settings = ", ".join(f"{name}={s.default:g}" for name, s in file.kernel.settings.items())
        rows.append([file.name, settings, file.kernel.gpu or "", file.kernel.title])
    lines = aligned(rows)
    more = "drywarp workloads NAME describes one; drywarp models NAME runs every model on it."
    return Text.assemble((lines[0], "dim"), "\n" + "\n".join([*lines[1:], "", more]))


def render_workload(file: AbstractFile) -> Text:
    """Title, source, description, and every setting with its range."""
    kernel = file.kernel
    text = Text.assemble((f"{file.name}: {kernel.title}", "bold"), "\n")
    text.append(f"{kernel.source}\n", style="dim")
    if kernel.about:
        text.append(f"{kernel.about}\n")
    text.append(f"Default GPU: {kernel.gpu or 'a100'}\n\n")
    rows = [["setting", "default", "range", "meaning"]]
    for name, setting in kernel.settings.items():
        least, most = (("" if bound is None else f"{bound:g}") for bound in (setting.least, setting.most))
        rows.append([f"--set {name}=", f"{setting.default:g}", f"{least}..{most}", setting.about])
    text.append("\n".join(aligned(rows)) if kernel.settings else "It has no settings.")
    return text
