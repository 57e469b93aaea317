"""What drywarp knows, what a file holds, and the cache: `drywarp gpus`, `workloads`, `explain`, `list`, `cache`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import UsageError
from .groups import CompilerFlags
from .output import print_json, show
from .progress import stages

if TYPE_CHECKING:
    from ..analysis.advice.rules import Meaning
    from ..analysis.result.detail import RuleText


def gpus_command(
    name: str | None = None,
    *,
    compare: str | None = None,
    add: str | None = None,
    remove: str | None = None,
    json: bool = False,
) -> None:
    """List the GPUs that drywarp knows, show or compare their numbers with the sources, or add GPUs of your own."""
    given = {"NAME": name, "--compare": compare, "--add": add, "--remove": remove}
    if len(said := [option for option, value in given.items() if value is not None]) > 1:
        raise UsageError(f"{' and '.join(said)}: expected only one of them")
    if add is not None or remove is not None:
        _change_own(add, remove, json)
        return
    if compare is not None:
        _compare(compare, json)
        return
    from ..hardware import gpu_names, load_gpu, own_names
    from ..report.gpus import gpu_dict, gpu_list_dict, render_gpu, render_gpu_list

    if name is not None:
        gpu = load_gpu(name)
        show(json, lambda: gpu_dict(gpu), lambda: render_gpu(gpu))
        return
    gpus, own = [load_gpu(known) for known in gpu_names()], own_names()
    show(json, lambda: gpu_list_dict(gpus, own), lambda: render_gpu_list(gpus, own))


def _compare(names: str, json: bool) -> None:
    """Several GPUs side by side."""
    from ..analysis.several_gpus import chosen_gpus
    from ..report.gpus import gpu_comparison_dict, render_gpu_comparison

    gpus = chosen_gpus(names)
    if len(gpus) < 2:
        raise UsageError(f"--compare {names}: expected two or more GPUs, as in a100,h100")
    show(json, lambda: gpu_comparison_dict(gpus), lambda: render_gpu_comparison(gpus))


def _change_own(add: str | None, remove: str | None, json: bool) -> None:
    """Add or remove one of the user's own GPUs, and report it."""
    from ..hardware import add_gpu, remove_gpu
    from ..report.gpus import gpu_dict, gpu_removed_dict
    from ..support.folders import own_gpu_folder

    if add is not None:
        gpu = add_gpu(add)
        line, told = f"{gpu.name}: {gpu.title}, added to {own_gpu_folder()}; use it as --gpu {gpu.name}", gpu_dict(gpu)
    else:
        path = remove_gpu(str(remove))
        line, told = f"{path.stem}: removed from {path.parent}", gpu_removed_dict(path.stem)
    print_json(told) if json else typer.echo(line)


# `drywarp workloads`: the packaged abstract kernels.


def workloads_command(name: str | None = None, json: bool = False) -> None:
    """List the packaged abstract kernels with their settings, or describe one."""
    from ..report.tables import render_workload, render_workloads, workloads_dict
    from ..workload.abstract import read_workload, workload_names

    files = [read_workload(known) for known in (workload_names() if name is None else [name])]
    show(
        json,
        lambda: workloads_dict(files),
        lambda: render_workloads(files) if name is None else render_workload(files[0]),
    )


# `drywarp explain`: what an advice rule detects, and how to fix it; what a stall reason or a limit means.


def explain_command(name: str | None = None, json: bool = False) -> None:
    """Explain an advice rule, a stall reason or a limiter: what it means, and what to change; or list all of them."""
    from ..analysis.advice.rules import explained, meanings, rule_texts
    from ..report.text import explained_dict, render_explained, render_names

    found: Sequence[RuleText | Meaning] = [*rule_texts(), *meanings()] if name is None else explained(name)
    if json:
        print_json(explained_dict(found))
    else:
        typer.echo(render_names(rule_texts(), meanings()) if name is None else render_explained(found))


# `drywarp list`: the kernels of a file.


def list_command(
    file: str, *, gpu: str = "a100", entry: str | None = None, build: CompilerFlags, json: bool = False
) -> None:
    """List the kernels of a file: signature, registers, shared memory, spills, and a command that analyses each."""
    from ..analysis.listing import list_kernels
    from ..frontends.cuda import CudaOptions
    from ..report.terminal import listing_dict, render_listing

    options = CudaOptions(build.macros, tuple(build.include or ()), build.std, build.max_registers, build.others)
    with stages() as on_stage:
        on_stage(f"reading {file}")
        found = list_kernels(Path(file), gpu=gpu, entry=entry, options=options)
    print_json(listing_dict(found)) if json else typer.echo(render_listing(found))


# `drywarp cache`: results cached between runs.


class Action(StrEnum):
    """An action on the cache."""

    show = "show"
    clear = "clear"


def cache_command(action: Action = Action.show, json: bool = False) -> None:
    """Show or clear the cache: compiled kernels, emulations, results and headers."""
    from ..analysis.result import headed
    from ..frontends import cache
    from ..support.text import bytes_text, json_of

    held = cache.clear() if action is Action.clear else cache.usage()
    if json:
        state = json_of(held, "folder entries bytes writable")
        print_json({**headed(), "action": action.value, **state, "folder": str(held.folder)})
        return
    done = f"{'cleared' if action is Action.clear else 'holds'} {held.entries} kernels"
    print(f"{held.folder}: {done}, {bytes_text(held.bytes)} with emulations, results and headers")
