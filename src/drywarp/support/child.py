"""Processes that compute for us, watched over a connection: each may crash or be killed at any moment.

A process leads its own group, so that the tools it runs end with it, and it ends when its parent is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import sleep
from typing import Any

_POLL_S = 1.0
_PACKAGE_PARENT = Path(__file__).parents[2]


class Child:
    """One process, and the connection to it."""

    def __init__(self, process: subprocess.Popen[bytes] | BaseProcess, connection: Connection) -> None:
        self.process, self.connection = process, connection

    @classmethod
    def program(cls, module: str) -> Child:
        """Start `python -m MODULE FD`, which calls `serve`: the caller may be a script, a notebook or a shell."""
        ours, theirs = Pipe()
        path = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        return cls(process, ours)

    @classmethod
    def forked(cls, target: Callable[[Any, Connection], None], task: Any) -> Child:
        """Run `target(task, connection)` in a fork of a process that has its module imported: this takes milliseconds.

        For programs of ours only: the server imports the main module. `target` calls `lead_group` first.
        """
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([target.__module__])
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=target, args=(task, theirs), daemon=False)
        process.start()
        theirs.close()
        return cls(process, ours)

    def send(self, message: Any) -> None:
        """Send a message; that the process has ended shows when its answer is read."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Any:
        """The next message; None if the process has ended."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def resident_bytes(self) -> int:
        """Resident memory of the process and those that it started; 0 if the system does not report it."""
        total, pending = 0, [self.process.pid or 0]
        while pending:
            place = Path("/proc", str(pending.pop()))
            try:
                total += int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                pending += [int(child) for child in (place / "task" / place.name / "children").read_text().split()]
            except (OSError, IndexError, ValueError):
                continue
        return total

    def ended(self) -> str:
        """How the process ended, once its connection is closed; stops what is left of its group."""
        if isinstance(self.process, BaseProcess):
            self.process.join(10)
            code = self.process.exitcode
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            code = self.process.returncode
        code = -signal.SIGKILL if code is None else code
        self.stop()
        if code >= 0:
            return f"the process ended with status {code}"
        with contextlib.suppress(ValueError):
            return f"crashed with {signal.Signals(-code).name}"
        return f"crashed with signal {-code}"

    def kill(self) -> None:
        """Kill the process and the tools that it runs; another thread may be reading from its connection."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()  # where it does not lead its group yet

    def stop(self) -> None:
        """Kill the process and the tools that it runs, and close the connection to it."""
        self.kill()
        if isinstance(self.process, BaseProcess):
            self.process.join()
        else:
            self.process.wait()
        self.connection.close()


def serve(work: Callable[[Connection], None]) -> None:
    """Run `work` in a process that `Child.program` has started, until it returns or the parent is gone."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    work(Connection(int(sys.argv[1])))


def lead_group() -> None:
    """Make this process the leader of its own group."""
    os.setpgid(0, 0)


def _end_with(parent: int) -> None:
    """End this process and its tools, even in the middle of a row, if the parent process is gone."""
    while os.getppid() == parent:
        sleep(_POLL_S)
    os.killpg(0, signal.SIGKILL)


def raised_at(error: BaseException) -> str:
    """File and line where an exception was raised, for a bug of ours that is recorded instead of shown."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "place unknown"
