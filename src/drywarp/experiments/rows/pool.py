"""Parallel supervised workers: one that crashes, hangs or takes too long only loses its row."""

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

from .kept_answers import Answer
from .worker import Task

_POLL_S = 0.5
"""How often time limits are checked, in seconds."""
TRIES = 3
"""Attempts for a row whose process dies: the system may have killed the first for lack of memory."""
DIED = ("crashed with ", "the process ended with status ")
"""Prefixes of the failure reason of a row whose process died."""
_PACKAGE_PARENT = Path(__file__).parents[3]

Key = TypeVar("Key")


class _Worker(Generic[Key]):
    """One process, and its current row."""

    def __init__(self, task: Task) -> None:
        ours, theirs = Pipe()
        path = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "drywarp.experiments.rows.worker", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=[theirs.fileno()],
            # Its own process group, so the tools it runs end with it.
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
        """The answer; None if the process has ended."""
        try:
            found: Answer | str = self.connection.recv()
            return found
        except (EOFError, OSError):
            return None

    def ended(self) -> str:
        """How the process ended, once its connection is closed."""
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
    """Each row with its answer or failure reason, and its seconds, in order of completion.

    A row whose process dies is tried in up to `tries` processes; `on_death` is called with how one died.
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
                            on_death(f"a row's process failed ({found}); retrying the row")
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
    """Run one row in its own process, which is reused for this thread's next row of the task; returns its seconds too.

    `shared` is the pickled task.
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
