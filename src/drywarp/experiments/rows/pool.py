"""Parallel supervised workers: one that crashes, hangs or takes too long only loses its row."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import wait
from time import perf_counter
from typing import Any, Generic, TypeVar

from ...support.child import Child
from . import Answer
from .worker import Task

_POLL_S = 0.5
"""How often time limits are checked, in seconds."""
TRIES = 3
"""Attempts for a row whose process dies: the system may have killed the first for lack of memory."""
DIED = ("crashed with ", "the process ended with status ")
"""Prefixes of the failure reason of a row whose process died."""

Key = TypeVar("Key")


class _Worker(Generic[Key]):
    """One process, and its current row."""

    def __init__(self, task: Task) -> None:
        self.child = Child.program("drywarp.experiments.rows.worker")
        self.row: Key | None = None
        self.started = 0.0
        self.child.send(task)

    def give(self, row: Key, launch: Mapping[str, Any]) -> None:
        self.row, self.started = row, perf_counter()
        self.child.send(launch)


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
            ready = wait([worker.child.connection for worker in busy], timeout=_POLL_S)
            for worker in busy:
                row, seconds = worker.row, perf_counter() - worker.started
                assert row is not None
                if worker.child.connection in ready:
                    found = worker.child.receive()
                    if found is None:
                        workers.remove(worker)
                        found = worker.child.ended()
                        deaths[row] += 1
                        if deaths[row] < tries:
                            again.append(row)
                            on_death(f"a row's process failed ({found}); retrying the row")
                            continue
                    worker.row = None
                    del given[row]
                    yield row, found, seconds
                elif seconds > time_limit_s:
                    worker.child.stop()
                    workers.remove(worker)
                    del given[row]
                    yield row, f"time limit of {time_limit_s:g} s", seconds
    finally:
        for worker in workers:
            worker.child.stop()


_kept = threading.local()


def alone(shared: bytes, launch: Mapping[str, Any], time_limit_s: float) -> tuple[Answer | str, float]:
    """Run one row in its own process, which is reused for this thread's next row of the task; returns its seconds too.

    `shared` is the pickled task.
    """
    worker: _Worker[int] | None = getattr(_kept, "worker", None)
    if worker is None or _kept.shared != shared:
        if worker is not None:
            worker.child.stop()
        worker = _kept.worker = _Worker[int](pickle.loads(shared))
        _kept.shared = shared
    worker.give(0, launch)
    in_time = worker.child.connection.poll(time_limit_s)
    found = worker.child.receive() if in_time else f"time limit of {time_limit_s:g} s"
    if found is None or not in_time:
        _kept.worker = None
    if not in_time:
        worker.child.stop()
    return found or worker.child.ended(), perf_counter() - worker.started
