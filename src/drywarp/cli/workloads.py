"""`drywarp workloads`: the abstract kernels that are packaged."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="workloads")(command)


def command(
    name: Annotated[str | None, typer.Argument(help="One of them, or an abstract kernel file (.toml).")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """List the packaged abstract kernels with their settings, or describe one."""
    from ..report.json_text import json_text
    from ..report.workloads import render_workload, render_workloads, workloads_dict
    from ..workloads import read_workload, workload_names

    files = [read_workload(known) for known in (workload_names() if name is None else [name])]
    if json:
        sys.stdout.write(json_text(workloads_dict(files)))
        return
    from rich.console import Console

    text = render_workloads(files) if name is None else render_workload(files[0])
    Console(highlight=False).print(text, soft_wrap=True)
