"""The abstract kernels as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from .. import __version__
from ..frontends.abstract import AbstractFile
from ..result import SCHEMA_VERSION
from .gpus import aligned


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
    rows = [["name", "settings", "GPU", "what it is"]]
    for file in files:
        settings = ", ".join(f"{name}={s.default:g}" for name, s in file.kernel.settings.items())
        rows.append([file.name, settings, file.kernel.gpu or "", file.kernel.title])
    lines = aligned(rows)
    return Text.assemble((lines[0], "dim"), "\n" + "\n".join(lines[1:]))


def render_workload(file: AbstractFile) -> Text:
    """Title, source, what it assumes, and every setting with its range."""
    kernel = file.kernel
    text = Text.assemble((f"{file.name}: {kernel.title}", "bold"), "\n")
    text.append(f"{kernel.source}\n", style="dim")
    if kernel.about:
        text.append(f"{kernel.about}\n")
    text.append(f"GPU unless told: {kernel.gpu or 'a100'}\n\n")
    rows = [["setting", "default", "range", "meaning"]]
    for name, setting in kernel.settings.items():
        least, most = (("" if bound is None else f"{bound:g}") for bound in (setting.least, setting.most))
        rows.append([f"--set {name}=", f"{setting.default:g}", f"{least}..{most}", setting.about])
    text.append("\n".join(aligned(rows)) if kernel.settings else "It has no settings.")
    return text
