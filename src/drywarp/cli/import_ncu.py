"""`drywarp import-ncu`: a profiler's export as a profile of ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options as take


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="import-ncu")(command)


def command(
    report: Annotated[str, typer.Argument(help="Nsight Compute's CSV (--csv), or rocprof's.", metavar="REPORT.csv")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the profile here, for --profile.", metavar="FILE.json")
    ] = None,
    json: take.Json = False,
) -> None:
    """Read a profiler's export: its launches, times and metrics in base units."""
    from ..frontends.measured_file import read_measured, write_measured

    imported = read_measured(Path(report))
    if output is not None:
        write_measured(imported, Path(output))
    if json:
        from ..report.json_text import json_text
        from ..report.measured import imported_dict

        sys.stdout.write(json_text(imported_dict(imported)))
        return
    from rich.console import Console

    from ..report.measured import render_imported

    Console(highlight=False).print(render_imported(imported), soft_wrap=True, markup=False)
