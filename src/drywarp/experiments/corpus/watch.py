"""Runs modules in supervised worker processes, several in parallel, with time and memory limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from time import perf_counter
from typing import Any

from ...support.child import Child
from .examine import work
from .files import Module, Settings
from .result import COMPILE_FAILED, FAILED, Row, row_of

_POLL_S = 0.05
"""How often limits are checked, in seconds."""

OnRow = Callable[[Row, int, int], None]
"""Called with each finished row, the number done, and the total."""


@dataclass
class Watched:
    """One running worker. `found` is its final message, or why it was ended; None while it runs.

    `analysed` is what it sent before it started to predict times.
    """

    child: Child
    started: float = field(default_factory=perf_counter)
    stage: str = "read"
    peak: int = 0
    found: dict[str, Any] | None = None
    analysed: dict[str, Any] | None = None

    def look(self, settings: Settings) -> bool:
        """Read messages and enforce the limits; true once the worker has finished and exited."""
        ended = self._receive()
        if self.found is None and not ended:
            self.peak = max(self.peak, self.child.resident_bytes())
            seconds = perf_counter() - self.started
            if seconds > settings.time_limit_s:
                self._ended_by(f"time limit of {settings.time_limit_s:g} s", by_time=True)
            elif self.peak > settings.memory_limit:
                self._ended_by(f"memory limit of {settings.memory_limit >> 20} MiB")
            else:
                return False
        elif self.found is None:
            self._ended_by(self.child.ended())
            return True
        self.child.stop()
        return True

    def _receive(self) -> bool:
        """Read all messages; true at the end of the stream."""
        try:
            while self.child.connection.poll():
                kind, value = self.child.connection.recv()
                if kind == "stage":
                    self.stage = value
                elif kind == "analysed":
                    self.analysed = value
                else:
                    self.found = value
                    self.peak = max(self.peak, value.pop("peak_rss_bytes"))
        except (EOFError, OSError):
            return True
        return False

    def _ended_by(self, reason: str, by_time: bool = False) -> None:
        if by_time and self.stage == "predict" and self.analysed:
            # Its analysis is complete; compiled code that predicts a time cannot always be interrupted.
            notes = (*self.analysed["notes"], f"no static times: {reason}")
            self.found = {**self.analysed, "notes": notes}
            return
        # If the compiler exceeds a limit or crashes, the module counts as not compiling.
        status = COMPILE_FAILED if self.stage in ("read", "compile") else FAILED
        self.found = {"status": status, "reason": f"{reason} at stage {self.stage}"}


def run_modules(
    modules: list[Module],
    task_of: Callable[[Module], Any],
    settings: Settings,
    on_row: OnRow,
    target: Callable[[Any, Connection], None] = work,
) -> list[Row]:
    """One row for each module, however its process ends. `target` is what each process runs."""
    pending = list(reversed(modules))
    running: list[tuple[Module, Watched]] = []
    rows: list[Row] = []
    try:
        while pending or running:
            while pending and len(running) < settings.jobs:
                module = pending.pop()
                running.append((module, Watched(Child.forked(target, task_of(module)))))
            wait([watched.child.connection for _, watched in running], timeout=_POLL_S)
            for item in [*running]:
                module, watched = item
                if watched.look(settings):
                    running.remove(item)
                    rows.append(_row(module, watched))
                    on_row(rows[-1], len(rows), len(modules))
    finally:
        for _, watched in running:
            watched.child.stop()
    return sorted(rows, key=lambda row: row.file)


def _row(module: Module, watched: Watched) -> Row:
    found = watched.found or {}
    seconds = perf_counter() - watched.started
    return row_of(
        {"file": module.name, "stage": watched.stage, "seconds": seconds, "peak_rss_bytes": watched.peak, **found}
    )
