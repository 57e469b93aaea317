"""Workers side by side, each under watch: one that crashes, hangs or takes too long costs its row and no more."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

from .answer import Answer
from .worker import Task

_POLL_S = 0.5
"""How often time limits are looked after."""
TRIES = 3
"""Processes that a row is given to where they die: the system may have ended the first for want of memory."""
DIED = ("crashed with ", "the process ended with status ")
"""How the reason of a row begins whose process died."""
_PACKAGE_PARENT = Path(__file__).parents[2]

Key = TypeVar("Key")


class _Worker(Generic[Key]):
    """One process, and the row that it is at."""

    def __init__(self, task: Task) -> None:
        ours, theirs = Pipe()
        path = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "drywarp.rows.worker", str(theirs.fileno())],
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
    task: Task,
    rows: Iterable[tuple[Key, Mapping[str, Any]]],
    jobs: int,
    time_limit_s: float,
    tries: int = 1,
    on_death: Callable[[str], None] = lambda said: None,
) -> Iterator[tuple[Key, Answer | str, float]]:
    """Each row with its answer or the reason of its failure, and its seconds, in the order in which they are done.

    A row whose process dies is given to `tries` processes in all; `on_death` is told how one died.
    """
    pending = iter(rows)
    given: dict[Key, Mapping[str, Any]] = {}
    deaths: Counter[Key] = Counter()
    again: list[Key] = []
    workers: list[_Worker[Key]] = []
    try:
        while True:
            idle = [worker for worker in workers if worker.row is None]
            while idle or len(workers) < jobs:
                following = (again[0], given[again.pop(0)]) if again else next(pending, None)
                if following is None:
                    break
                given[following[0]] = following[1]
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
                        deaths[row] += 1
                        if deaths[row] < tries:
                            again.append(row)
                            on_death(f"a process of a row {found}; the row is tried again")
                            continue
                    worker.row = None
                    del given[row]
                    yield row, found, seconds
                elif seconds > time_limit_s:
                    worker.stop()
                    workers.remove(worker)
                    del given[row]
                    yield row, f"time limit of {time_limit_s:g} s", seconds
    finally:
        for worker in workers:
            worker.stop()


_kept = threading.local()


def alone(shared: bytes, launch: Mapping[str, Any], time_limit_s: float) -> tuple[Answer | str, float]:
    """One row in a process of its own, which stays for this thread's next row of the same task; and its seconds.

    `shared` is the task, pickled.
    """
    worker: _Worker[int] | None = getattr(_kept, "worker", None)
    if worker is None or _kept.shared != shared:
        if worker is not None:
            worker.stop()
        worker = _kept.worker = _Worker[int](pickle.loads(shared))
        _kept.shared = shared
    worker.give(0, launch)
    in_time = worker.connection.poll(time_limit_s)
    found = worker.result() if in_time else f"time limit of {time_limit_s:g} s"
    if found is None or not in_time:
        _kept.worker = None
    if not in_time:
        worker.stop()
    return found or worker.ended(), perf_counter() - worker.started
