"""The process that compiles, emulates and simulates: it can be ended at any moment, whatever it is doing.

A compilation cannot be interrupted from within, and a pasted kernel may take the compiler hours. The server talks to
this process over a pipe and ends it when its time is over; the next request starts another. Its working folder is
empty, so that an `#include` in quotes finds nothing of the user's there.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import tempfile
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

import msgspec

from ..errors import CompileError, DrywarpError
from ..frontends.nvcc import VARIABLE as NVCC
from ..frontends.toolchain import COMPILER_VARIABLE
from .asked import Analyse, Resimulate
from .limits import MEMORY_BYTES, MOST_LOG, MOVE_SECONDS, ServeLimits

Reply = tuple[int, bytes]
"""An HTTP status and a JSON object."""

BUSY, REFUSED, FAILED, TOO_LONG = 429, 422, 500, 504


def reply_error(status: int, message: str, log: str = "") -> Reply:
    """One line that says what is wrong, and the compiler's log where there is one."""
    told = {"error": " ".join(message.split())}
    if log:
        told["log"] = log[:MOST_LOG]
    return status, msgspec.json.encode(told)


class Worker:
    """One process, started when it is first needed, that answers one request at a time."""

    def __init__(self, limits: ServeLimits) -> None:
        self.limits = limits
        self._analysing, self._turn = Lock(), Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="drywarp-serve-")
        self._process: Any = None
        self._pipe: Connection | None = None
        self._closed = False

    @property
    def analysing(self) -> bool:
        """Whether an analysis is under way."""
        return self._analysing.locked()

    @property
    def running(self) -> bool:
        """Whether there is a process at present."""
        return self._process is not None

    def ask(self, request: Analyse | Resimulate) -> Reply:
        """The answer. A second analysis at the same time is refused; a move of a slider waits for its turn."""
        if isinstance(request, Resimulate):
            if not self._turn.acquire(timeout=0 if self._analysing.locked() else MOVE_SECONDS):
                return reply_error(BUSY, "an analysis is running; its sliders come with its answer")
            try:
                return self._asked(request, MOVE_SECONDS)
            finally:
                self._turn.release()
        if not self._analysing.acquire(blocking=False):
            return reply_error(BUSY, "an analysis is running; one at a time")
        try:
            with self._turn:
                return self._asked(request, self.limits.analysis_seconds)
        finally:
            self._analysing.release()

    def close(self) -> None:
        """End the process, even in the middle of an answer."""
        self._closed = True
        self._end()
        self._folder.cleanup()

    def start(self) -> None:
        """Have the process load what it needs before anybody asks."""
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
            return reply_error(FAILED, "the process that analyses ended (out of memory?)")
        self._end()
        return reply_error(TOO_LONG, f"ended after {seconds:g} s, the limit of one request")

    def _connected(self) -> Connection:
        if self._closed:
            raise EOFError
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            arguments = (theirs, self.limits, self._folder.name)
            process = context.Process(target=work, args=arguments, daemon=True, name="drywarp serve")
            process.start()
            theirs.close()
            self._process, self._pipe = process, ours
        return self._pipe

    def _end(self) -> None:
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None:
            process.kill()
            process.join()
        if pipe is not None:
            pipe.close()


def work(pipe: Connection, limits: ServeLimits, folder: str) -> None:
    """What the process does: answer until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the server, which closes the pipe
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    if given := os.environ.get(COMPILER_VARIABLE):
        os.environ[COMPILER_VARIABLE] = os.path.abspath(given)
    # nvcc would hand a pasted text to this machine's C++ compiler as well.
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
            reply = reply_error(REFUSED, "takes more memory than there is for one analysis")
        except Exception as error:  # whatever went wrong, the page gets one line and the server goes on
            reply = reply_error(FAILED, f"internal error: {type(error).__name__}: {error}")
        pipe.send(reply)
