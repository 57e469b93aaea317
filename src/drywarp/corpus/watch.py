"""A worker process under watch: its stage, its memory, its time, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import perf_counter
from typing import Any

from .result import COMPILE_FAILED, FAILED
from .settings import Settings


@dataclass
class Watched:
    """One running worker. `found` is what it sent at its end, or what ended it; None while it runs.

    `analysed` is what it sent before it began to predict times.
    """

    process: BaseProcess
    connection: Connection
    started: float = field(default_factory=perf_counter)
    stage: str = "read"
    peak: int = 0
    found: dict[str, Any] | None = None
    analysed: dict[str, Any] | None = None

    def look(self, settings: Settings) -> bool:
        """Take in what came, enforce the limits; true where the worker is done, and gone."""
        ended = self._receive()
        if self.found is None and not ended:
            self.peak = max(self.peak, _resident(self.process.pid or 0))
            seconds = perf_counter() - self.started
            if seconds > settings.time_limit_s:
                self._ended_by(f"time limit of {settings.time_limit_s:g} s", by_time=True)
            elif self.peak > settings.memory_limit:
                self._ended_by(f"memory limit of {settings.memory_limit >> 20} MiB")
            else:
                return False
        elif self.found is None:
            self.process.join()
            code = self.process.exitcode or 0
            self._ended_by(f"crashed with {_signal_name(-code)}" if code < 0 else f"ended with status {code}")
        self._kill()
        self.process.join()
        self.connection.close()
        return True

    def stop(self) -> None:
        """End the worker, done or not."""
        self._kill()
        self.process.join()

    def _receive(self) -> bool:
        """Read all messages; true at the end of the stream."""
        try:
            while self.connection.poll():
                kind, value = self.connection.recv()
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
            # Its analysis is whole; compiled code that predicts a time cannot always be interrupted.
            notes = (*self.analysed["notes"], f"no static times: {reason}")
            self.found = {**self.analysed, "notes": notes}
            return
        # What the compiler cannot do in time and memory, or crashes on, does not compile.
        status = COMPILE_FAILED if self.stage in ("read", "compile") else FAILED
        self.found = {"status": status, "reason": f"{reason} while it was at stage {self.stage}"}

    def _kill(self) -> None:
        pid = self.process.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _resident(pid: int) -> int:
    """Bytes that a process and its children have resident; 0 where the system does not say."""
    total = 0
    pending = [pid]
    while pending:
        process = Path("/proc", str(pending.pop()))
        try:
            total += int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            pending += [int(child) for child in (process / "task" / process.name / "children").read_text().split()]
        except (OSError, IndexError, ValueError):
            continue
    return total
