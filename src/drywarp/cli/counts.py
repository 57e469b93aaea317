"""A profiler's counters: `drywarp counts` predicts them, `drywarp import-ncu` reads measured ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options as take
from .groups import LaunchOptions
from .options import kernel_source, parse_blocks, parse_clock
from .output import print_json, print_text
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
        options = Options(clock_mhz=parse_clock(clock), warm_l2=warm_l2, blocks=parse_blocks(blocks), on_stage=on_stage)
        result = count(kernel_source(kernel), gpu=gpu, **launch.given(), options=options)
    if json:
        print_json(result.to_dict())
    else:
        from ..report.text import render_counts, render_meanings

        print_text(render_meanings(result) if explain else render_counts(result))


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
    from ..frontends.profiles import read_measured, write_measured

    imported = read_measured(Path(report))
    if output is not None:
        write_measured(imported, Path(output))
    from ..report.advice import imported_dict, render_imported

    if json:
        print_json(imported_dict(imported))
    else:
        print_text(render_imported(imported))
        print_text(f"next: drywarp analyze KERNEL --profile {report if output is None else output}")
