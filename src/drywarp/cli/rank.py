"""`drywarp rank`: one kernel on every GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ..errors import UsageError
from . import options as take
from .progress import stages
from .values import check_positive, numbers_by_name, pairs, parse_blocks, read_stdin


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="rank")(command)


def command(
    kernel: take.KernelFile,
    gpu: Annotated[str, typer.Option(help="GPUs: a100,h100 or all.", metavar="NAME[,NAME…]")] = "all",
    by: Annotated[str, typer.Option(help="Sort by time, energy (at TDP) or cost (with --price).")] = "time",
    price: Annotated[
        list[str] | None,
        typer.Option(help="What an hour costs: a100=1.2. drywarp knows no prices.", metavar="GPU=NUMBER"),
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
    warm_l2: take.WarmL2 = False,
    blocks: take.Blocks = None,
    confidence: take.Confidence = None,
    static: take.Static = False,
    full_simulation: take.FullSimulation = False,
    full_emulation: take.FullEmulation = False,
    seconds: take.Seconds = 20.0,
    lane_steps: take.LaneSteps = 2e9,
    json: take.Json = False,
) -> None:
    """Predict a kernel's time on every GPU and sort: compiled and emulated once per architecture."""
    check_positive(seconds, "--seconds")
    check_positive(lane_steps, "--lane-steps")
    if by not in ("time", "energy", "cost"):
        raise UsageError(f"--by {by!r}: expected time, energy or cost")
    prices = numbers_by_name(price, "--price")
    settings: dict[str, Any] = {
        "warm_l2": warm_l2,
        "blocks": parse_blocks(blocks),
        "confidence": confidence,
        "static": static,
        "full_simulation": full_simulation,
        "full_emulation": full_emulation,
    }
    from ..emulator import Limits
    from ..ranking import rank
    from ..ranking.result import Order

    with stages() as on_stage:
        found = rank(
            read_stdin() if kernel == "-" else Path(kernel),
            gpus=gpu,
            by=cast(Order, by),
            prices=prices,
            limits=Limits(seconds=seconds, lane_steps=int(lane_steps)),
            on_gpu=lambda name, done, of: on_stage(f"{done + 1} of {of}: {name}"),
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
        return
    from rich.console import Console

    from ..report.ranking import render_ranking

    Console(highlight=False).print(render_ranking(found), soft_wrap=True)
