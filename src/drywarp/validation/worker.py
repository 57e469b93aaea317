"""The process that predicts rows, one after the other: `python -m drywarp.validation.worker FD`.

It is a program of its own rather than a fork, so that a caller may be a script, a notebook or a shell. It receives
the task and then launches over the connection, and ends when the other side does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import sleep
from typing import Any

from ..errors import DrywarpError
from ..hardware import Gpu
from .predict import Answer, Settings, predict_row

_POLL_S = 1.0


@dataclass(frozen=True)
class Task:
    """What all rows have in common."""

    kernel: str | Path
    gpu: Gpu
    settings: Settings


def answer(task: Task, launch: Mapping[str, Any]) -> Answer | str:
    """A row's answer, or the reason why there is none."""
    try:
        return predict_row(task.kernel, task.gpu, launch, task.settings)
    except DrywarpError as error:
        return " ".join(str(error).split())
    except MemoryError:
        return "out of memory"
    except Exception as error:  # a defect of ours: it belongs in the row, not at the end of the run
        return f"{type(error).__name__}: {error} ({_place(error)})"


def work(connection: Connection) -> None:
    """Receive the task, answer launches, end with the connection."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        task: Task = connection.recv()
        while True:
            connection.send(answer(task, connection.recv()))
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
