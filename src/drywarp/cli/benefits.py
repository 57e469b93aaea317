"""`drywarp benefits`: several kernels in GPUPerf's chart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as take
from .groups import LaunchOptions
from .options import launch_values, parse_clock
from .output import FigureTheme, Plot, check_plot, check_theme, print_json, print_text, write_plot
from .progress import stages


def benefits_command(
    kernels: Annotated[
        list[str],
        typer.Argument(
            help="Files with one kernel each, in order; quotes may add its own launch options: 'k.cu -D TILE=16'.",
            metavar="FILE…",
        ),
    ],
    *,
    gpu: take.GpuName = "a100",
    launch: LaunchOptions,
    clock: take.Clock = None,
    scheduler: take.Scheduler = None,
    warm_l2: take.WarmL2 = False,
    plot: Plot = None,
    bars: Annotated[
        str | None,
        typer.Option(help="Draw speed-ups and benefits over the first kernel as bars.", metavar="FILE.svg|FILE.png"),
    ] = None,
    figure_theme: FigureTheme = None,
    json: take.Json = False,
) -> None:
    """Show GPUPerf's potential benefits of several kernels in one chart, and each one's gain over the previous."""
    check_theme(figure_theme, plot is not None or bars is not None, "--plot FILE or --bars FILE")
    check_plot(plot, None)
    from ..report.figures import check_place, write

    if bars is not None:
        check_place(Path(bars), "--bars")
    given = [_with_launch(text) for text in kernels]
    from ..experiments.benefits import benefits

    with stages() as on_stage:
        found = benefits(
            given,
            gpu,
            warm_l2=warm_l2,
            clock_mhz=parse_clock(clock),
            scheduler=scheduler,
            on_kernel=lambda name, done, of: on_stage(f"{name}, {done + 1} of {of}"),
            **launch.stated,
        )
    write_plot(found, plot, figure_theme)
    if bars is not None:
        write(found.figure("bars", theme=figure_theme or "light"), Path(bars), "--bars")
    if json:
        print_json(found.to_dict())
    else:
        from ..report.benefits import render_benefits

        print_text(render_benefits(found))


def _with_launch(text: str) -> tuple[Path, dict[str, Any]]:
    """A file and the launch options after it, as in a launch comment: `k.cu --grid 64 -D TILE=16`."""
    name, space, rest = text.partition(" -")
    if not space or Path(text).exists():
        return Path(text), {}
    return Path(name.strip()), launch_values(f"-{rest}", text)
