"""`drywarp serve`: a local web page for trying out kernels."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options as take
from .options import check_positive


def serve_command(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 picks a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    lane_steps: take.LaneSteps = 2e9,
    analysis_seconds: Annotated[
        float, typer.Option(help="Time limit per analysis, including compilation.", metavar="SECONDS")
    ] = 300.0,
) -> None:
    """Serve a local web page: paste a kernel, vary occupancy, λ and Λ; see time, curve and execution profile."""
    check_positive(lane_steps, "--lane-steps")
    check_positive(analysis_seconds, "--analysis-seconds")
    from ..report.serve import ServeLimits, serve

    def say(url: str) -> None:
        typer.echo(f"drywarp serves {url} to this machine only; press Ctrl-C to stop")

    serve(port, ServeLimits(int(lane_steps), analysis_seconds), browser, say)
