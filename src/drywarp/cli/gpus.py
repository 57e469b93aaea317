"""`drywarp gpus`: the hardware that drywarp knows."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="gpus")(command)


def command(
    name: Annotated[str | None, typer.Argument(help="A GPU's name, or a GPU file (.toml).")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """List the GPUs that drywarp knows, or every number of one with its source."""
    from ..hardware import gpu_names, load_gpu
    from ..report.gpus import gpu_dict, gpu_list_dict, render_gpu, render_gpu_list
    from ..report.json_text import json_text

    gpus = [load_gpu(known) for known in gpu_names()] if name is None else [load_gpu(name)]
    if json:
        sys.stdout.write(json_text(gpu_list_dict(gpus) if name is None else gpu_dict(gpus[0])))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(render_gpu_list(gpus) if name is None else render_gpu(gpus[0]), soft_wrap=True)
