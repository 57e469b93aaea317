"""`drywarp serve`: a page on this machine to try kernels on."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options as take
from .values import check_positive


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="serve")(command)


def command(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 for a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    lane_steps: take.LaneSteps = 2e9,
    analysis_seconds: Annotated[
        float, typer.Option(help="Time limit of a whole analysis, compiler included.", metavar="SECONDS")
    ] = 300.0,
) -> None:
    """Serve a page on this machine: paste a kernel, move occupancy, λ and Λ, see time, curve and execution profile."""
    check_positive(lane_steps, "--lane-steps")
    check_positive(analysis_seconds, "--analysis-seconds")
    from ..serve import ServeLimits, serve

    def say(url: str) -> None:
        typer.echo(f"drywarp serves {url} to this machine alone; Ctrl-C ends it")

    serve(port, ServeLimits(int(lane_steps), analysis_seconds), browser, say)
