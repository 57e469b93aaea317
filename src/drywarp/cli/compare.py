"""`drywarp compare`: what a change of a kernel does, and a gate for CI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UsageError
from . import options as take
from .progress import stages
from .values import check_positive, launch_values, pairs, parse_blocks, parse_percent, read_stdin


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="compare")(command)


def command(
    old: Annotated[
        str, typer.Argument(help="The kernel as it was, or what `analyze --json` said of it (.json).", metavar="OLD")
    ],
    new: Annotated[
        str | None,
        typer.Argument(help="The kernel as it is, or its .json; left out with --old or --new: OLD.", metavar="[NEW]"),
    ] = None,
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
    entry: take.Entry = None,
    grid: take.Grid = None,
    block: take.Block = None,
    arg: take.Arguments = None,
    const: take.Constants = None,
    shared: take.Shared = None,
    define: take.Defines = None,
    include: take.Includes = None,
    std: take.Std = None,
    max_registers: take.MaxRegisters = None,
    config: take.Config = None,
    clock: take.Clock = None,
    scheduler: take.Scheduler = None,
    warm_l2: take.WarmL2 = False,
    blocks: take.Blocks = None,
    confidence: take.Confidence = None,
    static: take.Static = False,
    memory: take.Mapper = None,
    full_simulation: take.FullSimulation = False,
    full_emulation: take.FullEmulation = False,
    seconds: take.Seconds = 20.0,
    lane_steps: take.LaneSteps = 2e9,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Markdown instead of text, for a comment on a pull request.")
    ] = False,
    json: take.Json = False,
) -> int:
    """Compare an old and a new kernel: time, limiter, occupancy, counts and lines on each GPU."""
    check_positive(clock, "--clock")
    check_positive(seconds, "--seconds")
    check_positive(lane_steps, "--lane-steps")
    limit = parse_percent(fail_above, "--fail-above")
    if json and markdown:
        raise UsageError("--json and --markdown: expected one of them")
    if old == "-" and new == "-":
        raise UsageError("standard input holds one kernel: expected - once")
    own = [launch_values(text, option) for text, option in ((old_launch, "--old"), (new_launch, "--new"))]
    settings: dict[str, Any] = {
        "clock_mhz": clock,
        "scheduler": scheduler,
        "warm_l2": warm_l2,
        "blocks": parse_blocks(blocks),
        "confidence": confidence,
        "static": static,
        "memory": memory,
        "full_simulation": full_simulation,
        "full_emulation": full_emulation,
    }
    from ..comparison import compare
    from ..emulator import Limits

    with stages() as on_stage:
        found = compare(
            _source(old),
            None if new is None else _source(new),
            gpu=gpu,
            fail_above=limit,
            old_launch=own[0],
            new_launch=own[1],
            limits=Limits(seconds=seconds, lane_steps=int(lane_steps)),
            on_stage=on_stage,
            entry=entry,
            grid=grid,
            block=block,
            args=pairs(arg, "--arg") or None,
            constants=pairs(const, "--const") or None,
            shared=shared,
            defines=pairs(define, "-D", value_needed=False) or None,
            includes=include or None,
            std=std,
            max_registers=max_registers,
            config=config,
            **settings,
        )
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
