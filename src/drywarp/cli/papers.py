"""The models of the papers: `drywarp models`, `drywarp profile`, `drywarp cusp` and `drywarp reproduce`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import typer

from ..errors import UsageError
from .groups import ClockOptions, LaunchOptions
from .output import check_plot, check_theme, named_figures, print_json, print_text, show
from .progress import stages
from .values import pairs, parse_blocks, parse_occupancies, parse_trips


def models_command(
    workload: str,
    *,
    gpu: str | None = None,
    occupancy: str | None = None,
    set_: list[str] | None = None,
    runs: int | None = None,
    inputs: bool = False,
    plot: str | None = None,
    figure: list[str] | None = None,
    figure_theme: str | None = None,
    launch: LaunchOptions,
    on: ClockOptions,
    warm_l2: bool = False,
    static: bool = False,
    trip: list[str] | None = None,
    blocks: str | None = None,
    full_simulation: bool = False,
    json: bool = False,
) -> None:
    """Compare all models' occupancy curves for one workload, in one table and one chart."""
    from ..analysis.every_model import compare_models
    from ..analysis.request import Options
    from ..analysis.without_data import always_static
    from ..report import figures

    drawn = named_figures(figure, figures.OF_COMPARISONS)
    check_theme(figure_theme if drawn else None, True, "--figure NAME=FILE")
    check_plot(plot, None if drawn and plot is None else figure_theme)
    if trip and not static and not (gpu and always_static(gpu)):
        raise UsageError("--trip requires --static")
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
        figures.write(figures.models(result, theme=figure_theme or "light"), Path(plot), "--plot")
    for name, path in drawn:
        figures.write(getattr(figures, name)(result, theme=figure_theme or "light"), path, "--figure")
    from ..report.models import comparison_dict, render_comparison

    show(json, lambda: comparison_dict(result), lambda: render_comparison(result, inputs))


# `drywarp profile`: what one SM issues when.

_HTML_EVENTS = 100_000


def profile_command(
    workload: str,
    *,
    gpu: str | None = None,
    warps: int | None = None,
    policy: str | None = None,
    set_: list[str] | None = None,
    runs: int = 1,
    by: str = "subsystem",
    first: int = 200,
    plot: str | None = None,
    figure_theme: str | None = None,
    html: str | None = None,
    json: bool = False,
) -> None:
    """The execution profile of an abstract kernel: when each instruction of each warp issues on one SM."""
    from ..analysis.every_model import profile_abstract
    from ..report.execution_profile import profile_dict, profile_page, render_profile

    check_plot(plot, figure_theme)
    if by not in ("subsystem", "warp"):
        raise UsageError(f"--by {by!r}: expected subsystem or warp")
    if html is not None and (Path(html).is_dir() or not Path(html).parent.is_dir()):
        raise UsageError(f"--html {html}: expected a file in an existing folder")
    with stages() as on_stage:
        on_stage("simulating one SM")
        events = first if html is None else _HTML_EVENTS
        settings = pairs(set_, "--set")
        result = profile_abstract(
            workload, gpu, warps=warps, policy=policy, settings=settings, runs=runs, events=events
        )
    order: Literal["subsystem", "warp"] = "warp" if by == "warp" else "subsystem"
    if plot is not None:
        from ..report.figures import abstract_profile, write

        write(abstract_profile(result, first=first, by=order, theme=figure_theme or "light"), Path(plot), "--plot")
    if html is not None:
        Path(html).write_text(profile_page(result), encoding="utf-8")
    if json:
        print_json(profile_dict(result, first))
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        typer.echo(render_profile(result, by=order, first=first, width=width))


# `drywarp cusp`: the occupancy needed to hide latency, over arithmetic intensity.


def cusp_command(
    gpu: str = "papers/volkov-maxwell",
    with_: str = "memory",
    alpha: str | None = None,
    share: float = 1.0,
    json: bool = False,
) -> None:
    """Needed occupancy over arithmetic intensity, from every model that defines it (Volkov's cusp)."""
    from ..models.cusp import cusp
    from ..report.cusp import cusp_dict, render_cusp

    result = cusp(gpu, partner=with_, alphas=parse_alphas(alpha) if alpha else None, share=share)
    show(json, lambda: cusp_dict(result), lambda: render_cusp(result))


def parse_alphas(text: str) -> list[float]:
    """``1-512`` as a geometric range in steps of √2, both ends included; ``8,16,49`` as given."""
    low, dash, high = text.partition("-")
    try:
        if not dash:
            return [float(part) for part in text.split(",")]
        first, last = float(low), float(high)
    except ValueError:
        raise UsageError(f"--alpha {text!r}: expected a range such as 1-512, or numbers such as 8,16,49") from None
    if not 0 < first <= last < 1e9:
        raise UsageError(f"--alpha {text!r}: expected a range of positive numbers, the smaller first")
    found = [first]
    while found[-1] * 2**0.5 < last * (1 - 1e-9):
        found.append(found[-1] * 2**0.5)
    return found if first == last else [*found, last]


# `drywarp reproduce`: recompute the numbers published in the papers.


def reproduce_command(
    json: bool = False, markdown: bool = False, figure: list[str] | None = None, figure_theme: str | None = None
) -> int:
    """Recompute the numbers published in the papers; exit status 1 if any is not reproduced."""
    from ..experiments.reproduce import left_out, reproduce, totals
    from ..report.models import render_reproduction, reproduction_dict, reproduction_markdown

    if json and markdown:
        raise UsageError("--json and --markdown: expected only one of them")
    check_theme(figure_theme, bool(figure), "--figure NUMBER=FILE")
    if figure:
        if json or markdown:
            raise UsageError("--figure: expected neither --json nor --markdown")
        _draw_figures(figure, figure_theme or "light")
        return 0
    rows = reproduce()
    if json:
        print_json(reproduction_dict(rows, left_out()))
    elif markdown:
        typer.echo(reproduction_markdown(rows, left_out()), nl=False)
    else:
        print_text(render_reproduction(rows))
    return 1 if totals(rows)["failed"] else 0


def _draw_figures(texts: list[str], theme: str) -> None:
    """Draw figures of the papers, all checked before the first is drawn. Raises UsageError."""
    from ..experiments.reproduce.figures import FIGURES, paper_figure
    from ..report.figures import papers_figure, write

    for name, path in named_figures(texts, FIGURES, "NUMBER=FILE"):
        write(papers_figure(paper_figure(name), theme=theme), path, "--figure")
