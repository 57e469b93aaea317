"""Workers side by side, each under watch: one that crashes, hangs or takes too long costs its row and no more."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

from .predict import Answer
from .worker import Task

_POLL_S = 0.5
"""How often time limits are looked after."""
_PACKAGE_PARENT = Path(__file__).parents[2]

Key = TypeVar("Key")


class _Worker(Generic[Key]):
    """One process, and the row that it is at."""

    def __init__(self, task: Task) -> None:
        ours, theirs = Pipe()
        path = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "drywarp.validation.worker", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=[theirs.fileno()],
            # A group of its own, so that tools which it runs end with it.
            start_new_session=True,
        )
        theirs.close()
        self.connection: Connection = ours
        self.row: Key | None = None
        self.started = 0.0
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def give(self, row: Key, launch: Mapping[str, Any]) -> None:
        self.row, self.started = row, perf_counter()
        with contextlib.suppress(OSError):
            self.connection.send(launch)

    def result(self) -> Answer | str | None:
        """What was answered; None where the process has ended instead."""
        try:
            found: Answer | str = self.connection.recv()
            return found
        except (EOFError, OSError):
            return None

    def ended(self) -> str:
        """How the process came to its end, for a process whose connection is gone."""
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        self.stop()
        if code >= 0:
            return f"the process ended with status {code}"
        with contextlib.suppress(ValueError):
            return f"crashed with {signal.Signals(-code).name}"
        return f"crashed with signal {-code}"

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()


def run_rows(
    task: Task, rows: Iterable[tuple[Key, Mapping[str, Any]]], jobs: int, time_limit_s: float
) -> Iterator[tuple[Key, Answer | str, float]]:
    """Each row with its answer or the reason of its failure, and its seconds, in the order in which they are done."""
    pending = iter(rows)
    workers: list[_Worker[Key]] = []
    try:
        while True:
            idle = [worker for worker in workers if worker.row is None]
            while idle or len(workers) < jobs:
                following = next(pending, None)
                if following is None:
                    break
                worker = idle.pop() if idle else _Worker[Key](task)
                if worker not in workers:
                    workers.append(worker)
                worker.give(*following)
            busy = [worker for worker in workers if worker.row is not None]
            if not busy:
                return
            ready = wait([worker.connection for worker in busy], timeout=_POLL_S)
            for worker in busy:
                row, seconds = worker.row, perf_counter() - worker.started
                assert row is not None
                if worker.connection in ready:
                    found = worker.result()
                    if found is None:
                        workers.remove(worker)
                        found = worker.ended()
                    worker.row = None
                    yield row, found, seconds
                elif seconds > time_limit_s:
                    worker.stop()
                    workers.remove(worker)
                    yield row, f"time limit of {time_limit_s:g} s", seconds
    finally:
        for worker in workers:
            worker.stop()
