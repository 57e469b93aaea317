"""Kernels and GPUs side by side: `drywarp compare` with its gate for CI, `drywarp rank` and `drywarp benefits`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ..errors import UsageError
from . import options as take
from .groups import LaunchOptions, RunOptions
from .options import kernel_source, launch_values, numbers_by_name, parse_clock, parse_percent
from .output import FigureTheme, Plot, check_plot, check_theme, print_json, print_text, write_plot
from .progress import stages


def compare_command(
    old: Annotated[
        str, typer.Argument(help="The old kernel, or its output of `analyze --json` (.json).", metavar="OLD")
    ],
    new: Annotated[
        str | None,
        typer.Argument(
            help="The new kernel, or its .json. Defaults to OLD if --old or --new is given.", metavar="[NEW]"
        ),
    ] = None,
    *,
    gpu: Annotated[
        str | None, typer.Option(help="GPUs: a100,h100 or all (default: a100).", metavar="NAME[,NAME…]")
    ] = None,
    fail_above: Annotated[
        str | None, typer.Option(help="Exit with status 1 if the slowdown on any GPU exceeds this.", metavar="PERCENT%")
    ] = None,
    old_launch: Annotated[
        str | None,
        typer.Option("--old", help="Launch of the old kernel only: '--grid 64 -D TILE=16'.", metavar="LAUNCH"),
    ] = None,
    new_launch: Annotated[
        str | None, typer.Option("--new", help="Launch of the new kernel only, in the same form.", metavar="LAUNCH")
    ] = None,
    launch: LaunchOptions,
    clock: take.Clock = None,
    scheduler: take.Scheduler = None,
    memory: take.Mapper = None,
    run: RunOptions,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown instead of text, for a pull request comment.")
    ] = False,
    plot: Plot = None,
    figure_theme: FigureTheme = None,
    json: take.Json = False,
) -> int:
    """Compare an old and a new kernel: time, limiter, occupancy, counts and source lines on each GPU."""
    check_plot(plot, figure_theme)
    limit = parse_percent(fail_above, "--fail-above")
    if json and markdown:
        raise UsageError("--json and --markdown: expected only one of them")
    if old == "-" and new == "-":
        raise UsageError("standard input can hold only one kernel: expected - at most once")
    own = [launch_values(text, option) for text, option in ((old_launch, "--old"), (new_launch, "--new"))]
    from ..analysis.compare import compare

    with stages() as on_stage:
        found = compare(
            kernel_source(old),
            None if new is None else kernel_source(new),
            gpu=gpu,
            fail_above=limit,
            old_launch=own[0],
            new_launch=own[1],
            limits=run.limits(),
            on_stage=on_stage,
            clock_mhz=parse_clock(clock),
            scheduler=scheduler,
            memory=memory,
            **launch.stated,
            **run.settings(),
        )
    write_plot(found, plot, figure_theme)
    if json:
        print_json(found.to_dict())
    elif markdown:
        from ..report.comparison_markdown import comparison_markdown

        sys.stdout.write(comparison_markdown(found))
    else:
        from ..report.comparison import render_comparison

        print_text(render_comparison(found))
    return int(found.regressed)


# `drywarp rank`: one kernel on every GPU.


def rank_command(
    kernel: take.KernelFile,
    *,
    gpu: Annotated[str, typer.Option(help="GPUs: a100,h100 or all.", metavar="NAME[,NAME…]")] = "all",
    by: Annotated[str, typer.Option(help="Sort by time, energy (at TDP) or cost (with --price).")] = "time",
    price: Annotated[
        list[str] | None,
        typer.Option(help="Price per hour: a100=1.2. drywarp has no built-in prices.", metavar="GPU=NUMBER"),
    ] = None,
    launch: LaunchOptions,
    run: RunOptions,
    plot: Plot = None,
    figure_theme: FigureTheme = None,
    json: take.Json = False,
) -> None:
    """Predict a kernel's time on every GPU and rank them; compiles and emulates once per architecture."""
    check_plot(plot, figure_theme)
    if by not in ("time", "energy", "cost"):
        raise UsageError(f"--by {by!r}: expected time, energy or cost")
    prices = numbers_by_name(price, "--price")
    from ..analysis.rank import Order, rank

    place = ""
    with stages() as on_stage:

        def on_gpu(name: str, done: int, of: int) -> None:
            nonlocal place
            place = f"{name}, {done + 1} of {of}"

        found = rank(
            kernel_source(kernel),
            gpus=gpu,
            by=cast(Order, by),
            prices=prices,
            limits=run.limits(),
            on_gpu=on_gpu,
            on_stage=lambda stage: on_stage(f"{place}: {stage}"),
            **launch.stated,
            **run.settings(),
        )
    write_plot(found, plot, figure_theme)
    if json:
        print_json(found.to_dict())
    else:
        from ..report.ranking import render_ranking

        print_text(render_ranking(found))


# `drywarp benefits`: several kernels in GPUPerf's chart.


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
