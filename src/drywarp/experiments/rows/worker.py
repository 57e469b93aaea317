"""The process that predicts rows in sequence: `python -m drywarp.experiments.rows.worker FD`.

It is a separate program rather than a fork, so the caller may be a script, a notebook or a shell. It receives the
task and then launches over the connection, and exits when the other side does.
"""

from __future__ import annotations

import gc
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from ...errors import DrywarpError
from ...hardware import Gpu
from ...support.child import raised_at, serve
from . import Answer, Settings, predict_row
from .recipe import CLOCK

_COLLECT_EVERY = 16
"""Rows between runs of the cyclic garbage collector."""
GPU = "gpu"
"""The key under which a launch names its GPU."""
KERNEL, WARM_L2 = "kernel", "warm_l2"
"""The keys under which a launch names its own source, and states whether its data are in the L2 beforehand."""


@dataclass(frozen=True)
class Task:
    """What all rows share; `others` are GPUs that a row may name under `GPU` in its launch.

    A row may have its own source under `KERNEL`, and its own `warm_l2`.
    """

    kernel: Any
    gpu: Gpu
    settings: Settings
    others: Mapping[str, Gpu] = field(default_factory=dict)


def answer(task: Task, launch: Mapping[str, Any]) -> Answer | str:
    """A row's answer, or the reason why there is none."""
    try:
        gpu = task.others[launch[GPU]] if GPU in launch else task.gpu
        kernel = launch.get(KERNEL, task.kernel)
        settings = replace(task.settings, warm_l2=launch.get(WARM_L2, task.settings.warm_l2))
        launch = {name: value for name, value in launch.items() if name not in (GPU, KERNEL, WARM_L2)}
        return predict_row(kernel, gpu, launch, settings)
    except DrywarpError as error:
        return " ".join(str(error).split())
    except MemoryError:
        return "out of memory"
    except Exception as error:  # our own bug: it is recorded in the row and does not stop the run
        return f"{type(error).__name__}: {error} ({raised_at(error)})"


def command_of(task: Task, launch: Mapping[str, Any]) -> str:
    """The command line that analyses a row by itself; empty if it cannot be typed (source text, arrays, objects)."""
    kernel, settings = launch.get(KERNEL, task.kernel), task.settings
    pairs = {"--arg": launch.get("args") or {}, "--const": launch.get("constants") or {}}
    if not isinstance(kernel, Path) or not all(
        isinstance(value, str | int | float) for values in pairs.values() for value in values.values()
    ):
        return ""
    words = ["drywarp", "analyze", str(kernel), "--gpu", launch.get(GPU, task.gpu.name)]
    for name, option in _OPTIONS.items():
        value = launch.get(name)
        if value is not None and (value or name != "shared"):
            said = ",".join(map(str, value)) if isinstance(value, tuple | list) else value
            words += [option, f"{said:g}" if isinstance(said, float) else str(said)]
    for name, value in (launch.get("defines") or {}).items():
        words += ["-D", f"{name}={value}" if value else name]
    for folder in launch.get("includes") or ():
        words += ["-I", str(folder)]
    words += [
        word
        for option, values in pairs.items()
        for name, value in values.items()
        for word in (option, f"{name}={value}")
    ]
    words += [f"--compiler-option={option}" for option in launch.get("compiler_options") or ()]
    words += ["--warm-l2"] if launch.get(WARM_L2, settings.warm_l2) else []
    words += ["--scheduler", settings.scheduler] if settings.scheduler else []
    if settings.blocks is not None:
        words += [
            "--blocks",
            ",".join(map(str, settings.blocks)) if isinstance(settings.blocks, list) else str(settings.blocks),
        ]
    return shlex.join(words)


_OPTIONS = {
    "entry": "--entry", "grid": "--grid", "block": "--block", "shared": "--shared", "cluster": "--cluster",
    "std": "--std", "max_registers": "--max-registers", "config": "--config", CLOCK: "--clock",
}  # fmt: skip


def work(connection: Connection) -> None:
    """Receive the task, answer launches, and exit when the connection closes."""
    # A row creates a hundred thousand small objects, hardly any in cycles: frequent cyclic collection is wasted.
    gc.freeze()
    gc.set_threshold(50_000)
    try:
        task: Task = connection.recv()
        for row in count(1):
            connection.send(answer(task, connection.recv()))
            if row % _COLLECT_EVERY == 0:
                gc.collect()
    except (EOFError, OSError):
        return


# An order of rows in which every prefix is spread evenly over all rows.

Item = TypeVar("Item")


def spread(rows: Sequence[Item]) -> list[Item]:
    """All rows in an order in which every prefix is spread evenly over the table (bit-reversed indices)."""
    bits = max(1, (len(rows) - 1).bit_length())
    order = (int(f"{index:0{bits}b}"[::-1], 2) for index in range(1 << bits))
    return [rows[index] for index in order if index < len(rows)]


if __name__ == "__main__":
    serve(work)
