"""One kernel on one GPU: `drywarp analyze`, and `drywarp serve`, the page that does the same."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import UsageError
from .groups import ClockOptions, LaunchOptions, RunOptions, StaticOptions
from .output import OutputFiles, check_theme, named_figures, print_json, show
from .progress import stages
from .values import check_positive, kernel_source, parse_occupancies

if TYPE_CHECKING:
    from ..analysis.request import Options
    from ..analysis.result import Analysis


def analyze_command(
    kernel: str,
    *,
    launch: LaunchOptions,
    on: ClockOptions,
    run: RunOptions,
    assumed: StaticOptions,
    gpu: str = "a100",
    launches: str | None = None,
    occupancy: str | None = None,
    occupancy_trace: bool = False,
    list_loops: bool = False,
    trace: str | None = None,
    advice: bool = False,
    other_gpu: list[str] | None = None,
    compare_to: list[str] | None = None,
    html: str | None = None,
    events: int | None = None,
    figure: list[str] | None = None,
    figure_theme: str | None = None,
    full: bool = False,
    json: bool = False,
) -> None:
    """Predict a kernel's time, occupancy and limiter, and what would make it faster."""
    # Imported here so that --help and usage errors do not wait for NumPy.
    from ..analysis.request import Options
    from ..analysis.stages import analyze
    from ..analysis.without_data import always_static
    from ..report.figures import OF_ANSWERS

    if not run.static and (assumed or list_loops) and not always_static(gpu):
        raise UsageError("--trip, --taken, --access and --list-loops require --static (--list-loops names loops)")
    if other_gpu and not advice:
        raise UsageError("--other-gpu requires --advice")
    if compare_to and (launches or list_loops):
        raise UsageError("--compare-to compares one launch: it cannot be combined with --launches or --list-loops")
    check_theme(figure_theme, bool(figure), "--figure NAME=FILE")
    files = OutputFiles(trace, html, events, named_figures(figure, OF_ANSWERS), figure_theme)
    if files and (launches or list_loops):
        raise UsageError(f"{files} shows one launch: it cannot be combined with --launches or --list-loops")
    chosen = Options(
        occupancies=parse_occupancies(occupancy),
        occupancy_trace=occupancy_trace,
        advice=advice,
        other_gpus=tuple(other_gpu or ()),
        compare_to=tuple(compare_to or ()),
        limits=run.limits(),
        **on.settings(),
        **run.settings(),
        **assumed.settings(),
        **files.settings(),
    )
    source = kernel_source(kernel)
    if list_loops:
        _print_loops(source, gpu, launch, json)
        return
    if launches:
        _print_series(source, launches, gpu, launch, chosen, json)
        return
    with stages() as on_stage:
        result = analyze(source, gpu=gpu, **launch.given(), options=replace(chosen, on_stage=on_stage))
    said = files.write(result)
    if json:
        print_json(result.to_dict())
    else:
        _print(result, said, full, curve=occupancy is not None)


def _print(result: Analysis, said: list[str], full: bool, curve: bool) -> None:
    from rich.console import Console

    from ..report.terminal import UNWRAPPED, print_analysis

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNWRAPPED
    print_analysis(result, console, full=full, curve=curve)
    if result.compared:
        from ..report.comparison import render_beside

        console.print(render_beside(result), soft_wrap=True)
    for line in said:
        console.print(line, markup=False, soft_wrap=True)


def _print_series(
    source: str | Path, launches: str, gpu: str, launch: LaunchOptions, chosen: Options, json: bool
) -> None:
    from ..analysis.request import COMPILER
    from ..analysis.series import analyze_launches

    compiled = ("entry", *COMPILER)
    if any(name not in compiled for name in launch.stated):
        raise UsageError("--launches replaces --grid, --block, --arg, --const, --shared and --config")
    given = {name: value for name, value in launch.given().items() if name in compiled}
    with stages() as on_stage:
        series = analyze_launches(source, launches, gpu=gpu, **given, options=replace(chosen, on_stage=on_stage))
    from ..report.ranking import render_series

    show(json, series.to_dict, lambda: render_series(series))


def _print_loops(source: str | Path, gpu: str, launch: LaunchOptions, json: bool) -> None:
    from ..analysis.request import LaunchRequest
    from ..analysis.without_data import loops_of
    from ..report.advice import loops_dict, render_loops

    compiler = LaunchRequest.of(source, **launch.given()).compiler
    kernel, loops = loops_of(source, gpu=gpu, entry=launch.entry, options=compiler)
    show(json, lambda: loops_dict(kernel, loops), lambda: render_loops(kernel, loops))


# `drywarp serve`: a local web page for trying out kernels.


def serve_command(
    port: int = 0, browser: bool = True, lane_steps: float = 2e9, analysis_seconds: float = 300.0
) -> None:
    """Serve a local web page: paste a kernel, vary occupancy, λ and Λ; see time, curve and execution profile."""
    check_positive(lane_steps, "--lane-steps")
    check_positive(analysis_seconds, "--analysis-seconds")
    from ..report.serve import ServeLimits, serve

    def say(url: str) -> None:
        typer.echo(f"drywarp serves {url} to this machine only; press Ctrl-C to stop")

    serve(port, ServeLimits(int(lane_steps), analysis_seconds), browser, say)
