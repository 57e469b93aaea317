"""Predicts rows on a Dask cluster, which schedules them and reassigns a dead worker's rows."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...errors import ToolError, UsageError
from ..rows import Answer
from ..rows.identity import absolute
from ..rows.pool import DIED, TRIES, alone
from ..rows.worker import Task

CONNECT_S = 20
"""Seconds within which a scheduler must respond."""
_AHEAD = 3
"""Rows queued for each thread of the cluster, besides its current one."""


def run_on_dask(
    task: Task,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    address: str,
    time_limit_s: float,
    on_death: Callable[[str], None],
) -> Iterator[tuple[int, Answer | str, float]]:
    """Each row with its answer or failure reason, and its seconds, in order of completion.

    `address` is the scheduler's, such as ``tcp://host:8786``. Each row runs in its own process beside the worker, so a
    crash only loses the row, not the worker; `on_death` is called for each lost worker. Raises ToolError if Dask is not
    installed, the scheduler does not respond or is lost, and UsageError if a worker has another version of drywarp.
    """
    if find_spec("distributed") is None:
        raise ToolError("--scheduler needs Dask: pip install 'drywarp[dask]'")
    dask = import_module("distributed")
    try:
        client = dask.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise ToolError(f"--scheduler {address}: no Dask scheduler answers ({said})") from None
    with client, _silent("distributed.client"):
        _check_versions(client, address)
        kernel = task.kernel.resolve() if isinstance(task.kernel, Path) else task.kernel
        shared = pickle.dumps(replace(task, kernel=kernel))
        left = iter(rows)
        keys: dict[Any, int] = {}
        workers: set[str] = set()
        running = dask.as_completed(loop=client.loop)

        def more() -> None:
            nonlocal workers
            threads = client.nthreads()
            for gone in sorted(workers - threads.keys()):
                on_death(f"Dask worker {gone} was lost; its rows are reassigned")
            workers = set(threads)
            width = (1 + _AHEAD) * max(1, sum(threads.values()))
            while len(keys) < width and (row := next(left, None)) is not None:
                launch = with_absolute_paths(row[1])
                future = client.submit(predict_there, shared, launch, time_limit_s, pure=False)
                keys[future] = row[0]
                running.add(future)

        try:
            more()
            for future in running:
                key = keys.pop(future)
                if future.status == "cancelled":
                    raise ToolError(f"--scheduler {address}: connection lost; finished rows are saved")
                failure = future.exception()
                yield (key, *(future.result() if failure is None else (_reason(failure), 0.0)))
                more()
        except OSError as error:
            raise ToolError(f"--scheduler {address}: connection lost ({error}); finished rows are saved") from None


def predict_there(shared: bytes, launch: Mapping[str, Any], time_limit_s: float) -> tuple[Answer | str, float]:
    """Run one row on a worker of the cluster; if the row's process dies, retry it in another."""
    for _ in range(TRIES - 1):
        found, seconds = alone(shared, launch, time_limit_s)
        if not (isinstance(found, str) and found.startswith(DIED)):
            return found, seconds
    return alone(shared, launch, time_limit_s)


def with_absolute_paths(launch: Mapping[str, Any]) -> dict[str, Any]:
    """A launch with absolute paths of headers and array files, because workers run in their own folders."""
    arrays = {name: absolute(launch[name]) for name in ("args", "constants") if launch.get(name)}
    return {**launch, **arrays, "includes": tuple(str(Path(i).resolve()) for i in launch.get("includes", ()))}


def version_there() -> str:
    """The worker's version of drywarp."""
    return __version__


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Suppress a library's own tracebacks of errors that are reported here in one line."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _check_versions(client: Any, address: str) -> None:
    try:
        versions = client.run(version_there)
    except Exception as error:  # whatever the worker's import raises comes back as it is
        raise ToolError(f"--scheduler {address}: a worker cannot load drywarp ({error})") from None
    if not versions:
        raise ToolError(f"--scheduler {address}: the cluster has no workers")
    for worker, version in versions.items():
        if version != __version__:
            raise UsageError(f"--scheduler {address}: {worker} has drywarp {version}, this is {__version__}")


def _reason(error: BaseException) -> str:
    if isinstance(error, import_module("distributed").KilledWorker):
        return "every Dask worker that ran it died"
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
