"""`drywarp models`: every model on one workload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import options as take
from .figures import FigureTheme, Plot, check_plot
from .groups import ClockOptions, LaunchOptions
from .progress import stages
from .spread import spread
from .values import pairs, parse_blocks, parse_occupancies, parse_trips

if TYPE_CHECKING:
    from ..models.comparison import Comparison


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="models")(spread(command))


def command(
    workload: Annotated[
        str,
        typer.Argument(help="A name of `drywarp workloads`, an abstract kernel (.toml), or a kernel's file."),
    ],
    *,
    gpu: Annotated[
        str | None, typer.Option(help="A GPU, or a GPU file (.toml); the abstract kernel's own, else a100.")
    ] = None,
    occupancy: take.Occupancies = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of an abstract kernel.", metavar="NAME=VALUE")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Abstract kernels: run so many times the warps, replacing those that end.", min=1)
    ] = None,
    inputs: Annotated[bool, typer.Option("--inputs", help="Show what the models were given.")] = False,
    plot: Plot = None,
    figure_theme: FigureTheme = None,
    launch: LaunchOptions,
    on: ClockOptions,
    warm_l2: take.WarmL2 = False,
    static: take.Static = False,
    trip: take.Trips = None,
    blocks: take.Blocks = None,
    full_simulation: take.FullSimulation = False,
    json: take.Json = False,
) -> None:
    """All models' curves over occupancy for one workload, in one table and one chart."""
    from ..api import Options
    from ..models_api import compare_models
    from ..static_api import always_static

    check_plot(plot, figure_theme)
    if trip and not static and not (gpu and always_static(gpu)):
        raise UsageError("--trip is for --static")
    wanted = parse_occupancies(occupancy)
    with stages() as on_stage:
        options = Options(
            warm_l2=warm_l2,
            blocks=parse_blocks(blocks),
            on_stage=on_stage,
            static=static,
            trips=parse_trips(trip),
            full_simulation=full_simulation,
            **on.settings(),
        )
        result = compare_models(
            workload,
            gpu,
            occupancies=wanted,
            settings=pairs(set_, "--set"),
            runs=runs,
            options=options,
            **launch.given(),
        )
    if plot is not None:
        from ..figures import models, write

        write(models(result, theme=figure_theme or "light"), Path(plot), "--plot")
    _print(result, json, inputs)


def _print(result: Comparison, json: bool, inputs: bool) -> None:
    if json:
        from ..report.json_text import json_text
        from ..report.models import comparison_dict

        sys.stdout.write(json_text(comparison_dict(result)))
        return
    from rich.console import Console

    from ..report.models import render_comparison

    Console(highlight=False).print(render_comparison(result, inputs), soft_wrap=True)
