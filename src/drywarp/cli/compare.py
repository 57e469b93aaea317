"""Kernels and GPUs side by side: `drywarp compare` with its gate for CI, `drywarp rank` and `drywarp benefits`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from .groups import LaunchOptions, RunOptions
from .output import check_plot, check_theme, print_json, print_text, show, write_plot
from .progress import stages
from .values import kernel_source, launch_values, numbers_by_name, parse_clock, parse_percent


def compare_command(
    old_kernel: str,
    new_kernel: str | None = None,
    *,
    gpu: str | None = None,
    fail_above: str | None = None,
    old: str | None = None,
    new: str | None = None,
    launch: LaunchOptions,
    clock: str | None = None,
    scheduler: str | None = None,
    memory: str | None = None,
    run: RunOptions,
    markdown: bool = False,
    plot: str | None = None,
    figure_theme: str | None = None,
    json: bool = False,
) -> int:
    """Compare an old and a new kernel: time, limiter, occupancy, counts and source lines on each GPU."""
    check_plot(plot, figure_theme)
    limit = parse_percent(fail_above, "--fail-above")
    if json and markdown:
        raise UsageError("--json and --markdown: expected only one of them")
    if old_kernel == "-" and new_kernel == "-":
        raise UsageError("standard input can hold only one kernel: expected - at most once")
    own = [launch_values(text, option) for text, option in ((old, "--old"), (new, "--new"))]
    from ..analysis.compare import compare

    with stages() as on_stage:
        found = compare(
            kernel_source(old_kernel),
            None if new_kernel is None else kernel_source(new_kernel),
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


def rank_command(
    kernel: str,
    *,
    gpu: str = "all",
    by: str = "time",
    price: list[str] | None = None,
    launch: LaunchOptions,
    run: RunOptions,
    plot: str | None = None,
    figure_theme: str | None = None,
    json: bool = False,
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
    from ..report.ranking import render_ranking

    show(json, found.to_dict, lambda: render_ranking(found))


def benefits_command(
    kernels: list[str],
    *,
    gpu: str = "a100",
    launch: LaunchOptions,
    clock: str | None = None,
    scheduler: str | None = None,
    warm_l2: bool = False,
    plot: str | None = None,
    bars: str | None = None,
    figure_theme: str | None = None,
    json: bool = False,
) -> None:
    """Show GPUPerf's potential benefits of several kernels in one chart, and each one's gain over the previous."""
    check_theme(figure_theme, plot is not None or bars is not None, "--plot FILE or --bars FILE")
    check_plot(plot, None)
    check_plot(bars, None, "--bars")
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
    write_plot(found, bars, figure_theme, "--bars", "bars")
    from ..report.benefits import render_benefits

    show(json, found.to_dict, lambda: render_benefits(found))


def _with_launch(text: str) -> tuple[Path, dict[str, Any]]:
    """A file and the launch options after it, as in a launch comment: `k.cu --grid 64 -D TILE=16`."""
    name, space, rest = text.partition(" -")
    if not space or Path(text).exists():
        return Path(text), {}
    return Path(name.strip()), launch_values(f"-{rest}", text)
