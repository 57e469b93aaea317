"""`drywarp counts`: what a profiler would count."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options as take
from .groups import LaunchOptions
from .progress import stages
from .spread import spread
from .values import parse_blocks, read_stdin


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="counts")(spread(command))


def command(
    kernel: take.KernelFile,
    *,
    gpu: take.GpuName = "a100",
    launch: LaunchOptions,
    warm_l2: take.WarmL2 = False,
    blocks: take.Blocks = None,
    seconds: take.Seconds = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what each metric means instead of its value.")
    ] = False,
    json: take.Json = False,
) -> None:
    """Nsight Compute's metrics of a kernel, for the whole grid, by emulation."""
    from ..api import Options
    from ..counts_api import count

    with stages() as on_stage:
        result = count(
            read_stdin() if kernel == "-" else Path(kernel),
            gpu=gpu,
            **launch.given(),
            options=Options(warm_l2=warm_l2, blocks=parse_blocks(blocks), on_stage=on_stage),
        )
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(result.to_dict()))
        return
    from rich.console import Console

    from ..report.counts import render_counts, render_meanings

    text = render_meanings(result) if explain else render_counts(result)
    Console(highlight=False).print(text, soft_wrap=True, markup=False)
