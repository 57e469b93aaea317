"""`drywarp compare`: what a change of a kernel does, and a gate for CI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from . import options as take
from .figures import FigureTheme, Plot, check_plot, write_plot
from .groups import LaunchOptions, RunOptions
from .progress import stages
from .spread import spread
from .values import check_positive, launch_values, parse_percent, read_stdin


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="compare")(spread(command))


def command(
    old: Annotated[
        str, typer.Argument(help="The kernel as it was, or what `analyze --json` said of it (.json).", metavar="OLD")
    ],
    new: Annotated[
        str | None,
        typer.Argument(help="The kernel as it is, or its .json; left out with --old or --new: OLD.", metavar="[NEW]"),
    ] = None,
    *,
    gpu: Annotated[
        str | None, typer.Option(help="GPUs: a100,h100 or all; a100 unless said.", metavar="NAME[,NAME…]")
    ] = None,
    fail_above: Annotated[
        str | None, typer.Option(help="End with status 1 where it is slower by more on any GPU.", metavar="PERCENT%")
    ] = None,
    old_launch: Annotated[
        str | None,
        typer.Option("--old", help="Launch of the old one alone: '--grid 64 -D TILE=16'.", metavar="LAUNCH"),
    ] = None,
    new_launch: Annotated[
        str | None, typer.Option("--new", help="Launch of the new one alone, likewise.", metavar="LAUNCH")
    ] = None,
    launch: LaunchOptions,
    clock: take.Clock = None,
    scheduler: take.Scheduler = None,
    memory: take.Mapper = None,
    run: RunOptions,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Markdown instead of text, for a comment on a pull request.")
    ] = False,
    plot: Plot = None,
    figure_theme: FigureTheme = None,
    json: take.Json = False,
) -> int:
    """Compare an old and a new kernel: time, limiter, occupancy, counts and lines on each GPU."""
    check_plot(plot, figure_theme)
    check_positive(clock, "--clock")
    limit = parse_percent(fail_above, "--fail-above")
    if json and markdown:
        raise UsageError("--json and --markdown: expected one of them")
    if old == "-" and new == "-":
        raise UsageError("standard input holds one kernel: expected - once")
    own = [launch_values(text, option) for text, option in ((old_launch, "--old"), (new_launch, "--new"))]
    from ..comparison import compare

    with stages() as on_stage:
        found = compare(
            _source(old),
            None if new is None else _source(new),
            gpu=gpu,
            fail_above=limit,
            old_launch=own[0],
            new_launch=own[1],
            limits=run.limits(),
            on_stage=on_stage,
            clock_mhz=clock,
            scheduler=scheduler,
            memory=memory,
            **launch.stated,
            **run.settings(),
        )
    write_plot(found, plot, figure_theme)
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(found.to_dict()))
    elif markdown:
        from ..report.comparison_markdown import comparison_markdown

        sys.stdout.write(comparison_markdown(found))
    else:
        from rich.console import Console

        from ..report.comparison import render_comparison

        Console(highlight=False).print(render_comparison(found), soft_wrap=True)
    return int(found.regressed)


def _source(name: str) -> str | Path:
    return read_stdin() if name == "-" else Path(name)
