"""The process that predicts rows in sequence: `python -m drywarp.experiments.rows.worker FD`.

It is a separate program rather than a fork, so the caller may be a script, a notebook or a shell. It receives the
task and then launches over the connection, and exits when the other side does.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from ...errors import DrywarpError
from ...hardware import Gpu
from ...support.child import raised_at, serve
from .kept_answers import Answer
from .predict import Settings, predict_row

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
