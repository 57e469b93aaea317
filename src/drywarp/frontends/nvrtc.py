"""CUDA C++ to a CUBIN through NVRTC: no driver, no nvcc, no C compiler.

NVRTC runs in a process of its own (`nvrtc_process.py`), because some sources crash it. The process stays for the next
compilation; each thread that compiles meanwhile has another.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CompileError, ToolError
from .toolchain import COMPILER_VARIABLE, compiler_library, packaged_library

_ERROR = re.compile(r"\berror\b\s*(#[\w-]+\s*)?:|^ptxas (error|fatal)|^nvrtc: error")
"""How an error looks in a log; a warning or a quoted source line may hold the word too."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A CUBIN with the compiler's log, and the symbol of each name expression; `notes` say what was special."""

    cubin: bytes
    log: str
    symbols: dict[str, str]
    notes: tuple[str, ...] = ()
    compiler: str = "nvrtc"


def install_headers(folder: Path) -> None:
    """Write the headers that NVRTC bundles (fp16, cooperative_groups, cub, …) into `folder`."""
    path = packaged_library()
    try:
        # Absent from NVRTC before 13.3; the packaged one has it, a user's own may not.
        status = ctypes.CDLL(str(path)).nvrtcInstallBundledHeaders(str(folder).encode(), 0, None)
    except OSError as error:
        raise ToolError(f"NVRTC cannot be loaded from {path}: {error}") from None
    if status:
        raise ToolError(f"NVRTC's headers cannot be written to {folder}")


class _Compiler:
    """A process that compiles; it ends with this one, whose end of the pipe closes then."""

    def __init__(self, library: str) -> None:
        self.library = library
        script = str(Path(__file__).with_name("nvrtc_process.py"))
        command = [sys.executable, "-I", "-S", script, library, str(os.getpid())]
        # A session of its own: a Ctrl-C is for this process, which ends the other one.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def ask(self, request: tuple[Any, ...]) -> Any:
        """What it answers. Raises EOFError where it has ended instead."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        data = marshal.dumps(request)
        try:
            self.process.stdin.write(len(data).to_bytes(8, "little") + data)
            self.process.stdin.flush()
            if not (head := self.process.stdout.read(8)):
                raise EOFError
            return marshal.loads(self.process.stdout.read(int.from_bytes(head, "little")))
        except (BrokenPipeError, EOFError):
            raise EOFError(_how_it_ended(self.process.wait())) from None

    def end(self) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.process.communicate()


_idle: list[_Compiler] = []
"""Processes that wait for the next compilation."""
# A fork has the ends of the same pipes: it is to start processes of its own.
os.register_at_fork(after_in_child=_idle.clear)


def _asked(library: str, request: tuple[Any, ...]) -> Any:
    """What NVRTC answers. Raises EOFError, with the reason, where the process ended instead."""
    try:
        compiler = _idle.pop()
    except IndexError:
        compiler = _Compiler(library)
    if compiler.library != library or compiler.process.poll() is not None:
        compiler.end()
        compiler = _Compiler(library)
    try:
        answer = compiler.ask(request)
    except BaseException:
        # Interrupted, or crashed: what it may still say is no answer to the next request.
        compiler.end()
        raise
    _idle.append(compiler)
    return answer


def _how_it_ended(status: int) -> str:
    return signal.strsignal(-status) or f"signal {-status}" if status < 0 else f"exit status {status}"


def compile_program(
    source: str,
    name: str,
    options: Sequence[str],
    expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Compiled:
    """Compile one program. `expressions` are kernel names, templates with their arguments included.

    `headers` are texts by the name that an include directive gives; they go before files of that name.
    Raises CompileError whose text is the compiler's first error, with file and line.
    """
    # Names of files are relative to where this process is now.
    request = os.getcwd(), source, name, list(options), list(expressions), dict(headers or {})
    try:
        answer = _asked(str(compiler_library()), request)
    except EOFError as ended:
        hint = f"{COMPILER_VARIABLE} names another compiler"
        raise CompileError(f"{name}: NVRTC crashed on this source ({ended}); {hint}") from None
    if isinstance(answer, str):
        raise ToolError(answer)
    status, log, cubin, symbols = answer
    if status:
        message = first_error(log)
        raise CompileError(f"{name}: {message}" if message.startswith("ptxas") else message, log)
    return Compiled(cubin, log, symbols)


def first_error(log: str) -> str:
    """The first error of a compiler log in one line, and how many more there are."""
    lines = [line.strip(" \t\r\0") for line in log.splitlines()]
    errors = [line for line in lines if _ERROR.search(line)]
    if not errors:
        return next((line for line in lines if line), "the compiler failed without a message")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return errors[0] + more
