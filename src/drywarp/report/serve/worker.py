"""The process that compiles, emulates and simulates: it can be killed at any moment.

A compilation cannot be interrupted from within, and a pasted kernel may keep the compiler busy for hours. The server
talks to this process over a pipe and kills it when its time is up; the next request starts another. Its working
folder is empty, so that a quoted `#include` finds none of the user's files there.
"""

from __future__ import annotations

import os
import resource
import tempfile
from multiprocessing.connection import Connection
from threading import Lock

import msgspec

from ...errors import CompileError, DrywarpError
from ...frontends.cache import COMPILER_VARIABLE
from ...frontends.cuda.nvcc import VARIABLE as NVCC
from ...support.child import Child, serve
from .asked import MEMORY_BYTES, MOST_LOG, MOVE_SECONDS, Analyse, Resimulate, ServeLimits

Reply = tuple[int, bytes]
"""An HTTP status and a JSON object."""

BUSY, REFUSED, FAILED, TOO_LONG = 429, 422, 500, 504


def reply_error(status: int, message: str, log: str = "") -> Reply:
    """A one-line error message, with the compiler's log if there is one."""
    told = {"error": " ".join(message.split())}
    if log:
        told["log"] = log[:MOST_LOG]
    return status, msgspec.json.encode(told)


class Worker:
    """One process, started when first needed, that handles one request at a time."""

    def __init__(self, limits: ServeLimits) -> None:
        self.limits = limits
        self._analysing, self._turn = Lock(), Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="drywarp-serve-")
        self._child: Child | None = None
        self._closed = False

    @property
    def analysing(self) -> bool:
        """Whether an analysis is running."""
        return self._analysing.locked()

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self._child is not None

    def ask(self, request: Analyse | Resimulate) -> Reply:
        """Handle a request. A concurrent analysis is refused; a slider move waits for its turn."""
        if isinstance(request, Resimulate):
            if not self._turn.acquire(timeout=0 if self._analysing.locked() else MOVE_SECONDS):
                return reply_error(BUSY, "an analysis is running; sliders become available with its result")
            try:
                return self._asked(request, MOVE_SECONDS)
            finally:
                self._turn.release()
        if not self._analysing.acquire(blocking=False):
            return reply_error(BUSY, "an analysis is already running; one at a time")
        try:
            with self._turn:
                return self._asked(request, self.limits.analysis_seconds)
        finally:
            self._analysing.release()

    def close(self) -> None:
        """Kill the process, even while it handles a request."""
        self._closed = True
        if child := self._child:
            child.kill()
        with self._turn:  # whoever waits for the process learns of its end first: the connection is closed after that
            self._end()
        self._folder.cleanup()

    def start(self) -> None:
        """Start the process, so that it loads its modules before the first request."""
        with self._turn:
            self._connected()

    def _asked(self, request: Analyse | Resimulate, seconds: float) -> Reply:
        try:
            pipe = self._connected()
            pipe.send(request)
            if pipe.poll(seconds):
                status, body = pipe.recv()
                return status, body
        except (EOFError, OSError):
            self._end()
            return reply_error(FAILED, "the analysis process ended unexpectedly (out of memory?)")
        self._end()
        return reply_error(TOO_LONG, f"stopped after {seconds:g} s, the time limit of one request")

    def _connected(self) -> Connection:
        if self._closed:
            raise EOFError
        if self._child is None:
            self._child = Child.program("drywarp.report.serve.worker")
            self._child.send((self.limits, self._folder.name))
            if self._closed:  # while it started
                self._end()
                raise EOFError
        return self._child.connection

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.stop()


def work(pipe: Connection) -> None:
    """The main loop of the process: handle requests until the pipe is closed."""
    limits, folder = pipe.recv()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    if given := os.environ.get(COMPILER_VARIABLE):
        os.environ[COMPILER_VARIABLE] = os.path.abspath(given)
    # nvcc would also pass the pasted text to this machine's C++ compiler.
    os.environ[NVCC] = "off"
    os.chdir(folder)
    from .session import Session

    session = Session(limits)
    while True:
        try:
            request = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            reply: Reply = 200, msgspec.json.encode(session.answer(request))
        except CompileError as error:
            reply = reply_error(REFUSED, str(error), error.log)
        except DrywarpError as error:
            reply = reply_error(REFUSED, str(error))
        except MemoryError:
            reply = reply_error(REFUSED, "exceeds the memory limit of one analysis")
        except Exception as error:  # in any case, the page gets one line and the server continues
            reply = reply_error(FAILED, f"internal error: {type(error).__name__}: {error}")
        pipe.send(reply)


if __name__ == "__main__":
    serve(work)
