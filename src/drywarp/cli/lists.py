"""What drywarp knows, and what a file holds: `drywarp gpus`, `workloads`, `explain` and `list`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options as take
from .progress import stages

if TYPE_CHECKING:
    from ..analysis.advice.rules import Meaning
    from ..analysis.result.finding import RuleText


def gpus_command(
    name: Annotated[str | None, typer.Argument(help="A GPU's name, or a GPU file (.toml).")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """List the GPUs that drywarp knows, or every parameter of one GPU with its source."""
    from ..hardware import gpu_names, load_gpu
    from ..report.gpus import gpu_dict, gpu_list_dict, render_gpu, render_gpu_list
    from ..report.text import json_text

    gpus = [load_gpu(known) for known in gpu_names()] if name is None else [load_gpu(name)]
    if json:
        sys.stdout.write(json_text(gpu_list_dict(gpus) if name is None else gpu_dict(gpus[0])))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(render_gpu_list(gpus) if name is None else render_gpu(gpus[0]), soft_wrap=True)


# `drywarp workloads`: the packaged abstract kernels.


def workloads_command(
    name: Annotated[str | None, typer.Argument(help="A workload's name, or an abstract kernel file (.toml).")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """List the packaged abstract kernels with their settings, or describe one."""
    from ..report.gpus import render_workload, render_workloads, workloads_dict
    from ..report.text import json_text
    from ..workload.abstract import read_workload, workload_names

    files = [read_workload(known) for known in (workload_names() if name is None else [name])]
    if json:
        sys.stdout.write(json_text(workloads_dict(files)))
        return
    from rich.console import Console

    text = render_workloads(files) if name is None else render_workload(files[0])
    Console(highlight=False).print(text, soft_wrap=True)


# `drywarp explain`: what an advice rule detects, and how to fix it; what a stall reason or a limit means.


def explain_command(
    name: Annotated[
        str | None,
        typer.Argument(help="A rule, a stall reason or a limiter named by `drywarp analyze`, or how it begins."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Explain an advice rule, a stall reason or a limiter: what it means, and what to change; or list all of them."""
    from ..analysis.advice.rules import explained, meanings, rule_texts
    from ..report.text import explained_dict, json_text, render_explained, render_names

    found: Sequence[RuleText | Meaning] = [*rule_texts(), *meanings()] if name is None else explained(name)
    if json:
        sys.stdout.write(json_text(explained_dict(found)))
    else:
        typer.echo(render_names(rule_texts(), meanings()) if name is None else render_explained(found))


# `drywarp list`: the kernels of a file.


def list_command(
    file: Annotated[
        str, typer.Argument(help="File with kernels: source, PTX, Python or machine code.", metavar="FILE")
    ],
    *,
    gpu: take.GpuName = "a100",
    entry: Annotated[str | None, typer.Option(help="Show this kernel only, and the instances of a template.")] = None,
    define: take.Defines = None,
    include: take.Includes = None,
    std: take.Std = None,
    json: take.Json = False,
) -> None:
    """List the kernels of a file: signature, registers, shared memory, spills, and a command that analyses each."""
    from ..analysis.listing import list_kernels
    from ..frontends.cuda.options import CudaOptions
    from ..report.terminal import listing_dict, render_listing
    from ..report.text import json_text

    options = CudaOptions(take.pairs(define, "-D", value_needed=False), tuple(include or ()), std)
    with stages() as on_stage:
        on_stage(f"reading {file}")
        found = list_kernels(Path(file), gpu=gpu, entry=entry, options=options)
    typer.echo(render_listing(found)) if not json else sys.stdout.write(json_text(listing_dict(found)))
