"""`drywarp rank`: one kernel on every GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from ..errors import UsageError
from . import options as take
from .figures import FigureTheme, Plot, check_plot, write_plot
from .groups import LaunchOptions, RunOptions
from .progress import stages
from .spread import spread
from .values import numbers_by_name, read_stdin


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="rank")(spread(command))


def command(
    kernel: take.KernelFile,
    *,
    gpu: Annotated[str, typer.Option(help="GPUs: a100,h100 or all.", metavar="NAME[,NAME…]")] = "all",
    by: Annotated[str, typer.Option(help="Sort by time, energy (at TDP) or cost (with --price).")] = "time",
    price: Annotated[
        list[str] | None,
        typer.Option(help="What an hour costs: a100=1.2. drywarp knows no prices.", metavar="GPU=NUMBER"),
    ] = None,
    launch: LaunchOptions,
    run: RunOptions,
    plot: Plot = None,
    figure_theme: FigureTheme = None,
    json: take.Json = False,
) -> None:
    """Predict a kernel's time on every GPU and sort: compiled and emulated once per architecture."""
    check_plot(plot, figure_theme)
    if by not in ("time", "energy", "cost"):
        raise UsageError(f"--by {by!r}: expected time, energy or cost")
    prices = numbers_by_name(price, "--price")
    from ..ranking import rank
    from ..ranking.result import Order

    with stages() as on_stage:
        found = rank(
            read_stdin() if kernel == "-" else Path(kernel),
            gpus=gpu,
            by=cast(Order, by),
            prices=prices,
            limits=run.limits(),
            on_gpu=lambda name, done, of: on_stage(f"{done + 1} of {of}: {name}"),
            **launch.stated,
            **run.settings(),
        )
    write_plot(found, plot, figure_theme)
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(found.to_dict()))
        return
    from rich.console import Console

    from ..report.ranking import render_ranking

    Console(highlight=False).print(render_ranking(found), soft_wrap=True)
