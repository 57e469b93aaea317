"""A profiler's counters: `drywarp counts` predicts them, `drywarp import-ncu` reads measured ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options as take
from .groups import LaunchOptions
from .options import parse_blocks, parse_clock, read_stdin
from .progress import stages


def counts_command(
    kernel: take.KernelFile,
    *,
    gpu: take.GpuName = "a100",
    launch: LaunchOptions,
    clock: take.Clock = None,
    warm_l2: take.WarmL2 = False,
    blocks: take.Blocks = None,
    seconds: take.Seconds = None,
    jobs: take.Jobs = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain each metric instead of showing its value.")
    ] = False,
    json: take.Json = False,
) -> None:
    """Compute Nsight Compute's metrics for the whole grid by emulation."""
    from ..analysis.counters.count import count
    from ..analysis.request import Options

    with stages() as on_stage:
        result = count(
            read_stdin() if kernel == "-" else Path(kernel),
            gpu=gpu,
            **launch.given(),
            options=Options(
                clock_mhz=parse_clock(clock), warm_l2=warm_l2, blocks=parse_blocks(blocks), on_stage=on_stage
            ),
        )
    if json:
        from ..report.text import json_text

        sys.stdout.write(json_text(result.to_dict()))
        return
    from rich.console import Console

    from ..report.text import render_counts, render_meanings

    text = render_meanings(result) if explain else render_counts(result)
    Console(highlight=False).print(text, soft_wrap=True, markup=False)


# `drywarp import-ncu`: convert a profiler's export to drywarp's profile format.


def import_ncu_command(
    report: Annotated[str, typer.Argument(help="Nsight Compute's CSV (--csv), or rocprof's.", metavar="REPORT.csv")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Write the profile to this file, for use with --profile.", metavar="FILE.json"
        ),
    ] = None,
    json: take.Json = False,
) -> None:
    """Read a profiler's export: launches, times and metrics in base units."""
    from ..frontends.profiles.measured_file import read_measured, write_measured

    imported = read_measured(Path(report))
    if output is not None:
        write_measured(imported, Path(output))
    if json:
        from ..report.advice import imported_dict
        from ..report.text import json_text

        sys.stdout.write(json_text(imported_dict(imported)))
        return
    from rich.console import Console

    from ..report.advice import render_imported

    console = Console(highlight=False)
    console.print(render_imported(imported), soft_wrap=True, markup=False)
    source = report if output is None else output
    console.print(f"next: drywarp analyze KERNEL --profile {source}", soft_wrap=True, markup=False)
