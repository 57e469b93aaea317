"""The process that predicts rows, one after the other: `python -m drywarp.rows.worker FD`.

It is a program of its own rather than a fork, so that a caller may be a script, a notebook or a shell. It receives
the task and then launches over the connection, and ends when the other side does.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection
from time import sleep
from typing import Any

from ..errors import DrywarpError
from ..hardware import Gpu
from .answer import Answer
from .predict import Settings, predict_row

_POLL_S = 1.0
_COLLECT_EVERY = 16
"""Rows after which what lies in cycles is looked for."""
GPU = "gpu"
"""Where a launch names its GPU."""
KERNEL, WARM_L2 = "kernel", "warm_l2"
"""Where a launch names its own source, and says whether its data lie in the L2 beforehand."""


@dataclass(frozen=True)
class Task:
    """What all rows have in common; `others` are GPUs that a row may name under `GPU` in its launch.

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
    except Exception as error:  # a defect of ours: it belongs in the row, not at the end of the run
        return f"{type(error).__name__}: {error} ({_place(error)})"


def work(connection: Connection) -> None:
    """Receive the task, answer launches, end with the connection."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    # A row makes a hundred thousand small objects, hardly any of them in cycles: looking for those often is in vain.
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


def _end_with(parent: int) -> None:
    """End this process and its tools, in the middle of a row, where the process that gave the row is gone."""
    while os.getppid() == parent:
        sleep(_POLL_S)
    os.killpg(0, signal.SIGKILL)


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "place unknown"


if __name__ == "__main__":
    work(Connection(int(sys.argv[1])))
