"""Compile CUDA C++ to a CUBIN with NVRTC: needs no driver, no nvcc and no C compiler.

NVRTC runs in a separate process (`nvrtc_process.py`), because some sources crash it. The process stays alive for the
next compilation; threads that compile concurrently each have their own.
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

from ...errors import CompileError, InputFileError, ToolError
from ..cache import COMPILER_VARIABLE, compiler_library, packaged_library
from .source import blank_comments, blank_directives, includes

_ERROR = re.compile(r"\berror\b\s*(#[\w-]+\s*)?:|^ptxas (error|fatal)|^nvrtc: error")
"""An error line in a log; warnings and quoted source lines may contain the word as well."""
NAME_MAP = "__nv_name_map"
"""The file name under which the compiler reports errors in requested kernel names."""
_AT_END = "At end of source: "


@dataclass(frozen=True, slots=True)
class Compiled:
    """A CUBIN, the compiler's log, and the symbol of each name expression; `notes` report anything unusual."""

    cubin: bytes
    log: str
    symbols: dict[str, str]
    notes: tuple[str, ...] = ()
    compiler: str = "nvrtc"


def install_headers(folder: Path) -> None:
    """Write NVRTC's bundled headers (fp16, cooperative_groups, cub, …) into `folder`."""
    path = packaged_library()
    try:
        # Missing from NVRTC before 13.3: the packaged NVRTC has it, a user's own may not.
        status = ctypes.CDLL(str(path)).nvrtcInstallBundledHeaders(str(folder).encode(), 0, None)
    except OSError as error:
        raise ToolError(f"NVRTC cannot be loaded from {path}: {error}") from None
    if status:
        raise ToolError(f"NVRTC's headers cannot be written to {folder}")


class _Compiler:
    """A compiler process; it ends when this process ends and closes its end of the pipe."""

    def __init__(self, library: str) -> None:
        self.library = library
        script = str(Path(__file__).with_name("nvrtc_process.py"))
        command = [sys.executable, "-I", "-S", script, library, str(os.getpid())]
        # Its own session: Ctrl-C goes to this process only, which then ends the compiler.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def ask(self, request: tuple[Any, ...]) -> Any:
        """Send a request and return the answer. Raises EOFError if the process has ended."""
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
        """Kill the process."""
        self.process.kill()
        self.process.communicate()


_idle: list[_Compiler] = []
"""Idle processes, waiting for the next compilation."""
# A forked child shares the pipe ends, so it must start its own processes.
os.register_at_fork(after_in_child=_idle.clear)


def _asked(library: str, request: tuple[Any, ...]) -> Any:
    """NVRTC's answer to a request. Raises EOFError, with the reason, if the process ended instead."""
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
        # Interrupted or crashed: a late answer must not be taken for the answer to the next request.
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
    """Compile one program. `expressions` are kernel names; templates include their arguments.

    `headers` maps include names to texts, which take precedence over files of that name. Raises CompileError with
    the compiler's first error, including file and line.
    """
    # File names are relative to the current directory of this process.
    request = os.getcwd(), source, name, list(options), list(expressions), dict(headers or {})
    try:
        answer = _asked(str(compiler_library()), request)
    except EOFError as ended:
        hint = f"set {COMPILER_VARIABLE} to use another NVRTC"
        raise CompileError(f"{name}: NVRTC crashed on this source ({ended}); {hint}") from None
    if isinstance(answer, str):
        raise ToolError(answer)
    status, log, cubin, symbols = answer
    if status:
        raise CompileError(_located(first_error(log), name, source), log)
    return Compiled(cubin, log, symbols)


def _located(message: str, name: str, source: str) -> str:
    """A compiler message with the file that it belongs to, where the compiler leaves that out."""
    if message.startswith("ptxas"):
        return f"{name}: {message}"
    if not message.startswith(_AT_END):
        return message
    reason = message.removeprefix(_AT_END)
    opened = unclosed(source)
    return f"{name}({opened}): {reason}; the brace of this line is never closed" if opened else f"{name}: {reason}"


def unclosed(source: str) -> int:
    """The line of the first brace that the source never closes; 0 if there is none."""
    opened: list[int] = []
    for number, line in enumerate(blank_directives(blank_comments(source)).split("\n"), 1):
        for mark in re.findall("[{}]", line):
            if mark == "{":
                opened.append(number)
            elif opened:
                opened.pop()
    return opened[0] if opened else 0


def first_error(log: str) -> str:
    """The first error in a compiler log on one line, and the number of further errors.

    Errors in the names of kernels follow from others, if there are any.
    """
    lines = [line.strip(" \t\r\0") for line in log.splitlines()]
    errors = [line for line in lines if _ERROR.search(line)]
    if not errors:
        return next((line for line in lines if line), "the compiler failed without a message")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return next((error for error in errors if not error.startswith(NAME_MAP)), errors[0]) + more


# A source with all of the user's files that it includes, directly or not.


@dataclass(frozen=True, slots=True)
class Included:
    """A user file, as an include directive names it."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True)
class Translation:
    """The compiler's input: the source, its origin, and the files it includes."""

    text: str
    origin: str
    folder: Path | None
    included: tuple[Included, ...]

    @property
    def bodies(self) -> tuple[str, ...]:
        """The texts of the included files; they are part of the cache key."""
        return tuple(i.text for i in self.included)


def _text_of(path: Path, origin: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror}; {origin} includes it)") from None


def gather(text: str, origin: str, folder: Path | None, search: Sequence[Path]) -> Translation:
    """Find the user's included files; the compiler finds its own headers.

    A quoted name is searched first in the folder of the including file, as the compiler does. Raises InputFileError for
    a file that cannot be read.
    """
    places = [*([folder] if folder else []), *search]
    found: dict[tuple[str, Path], Included] = {}
    pending = [(text, folder)]
    while pending:
        body, beside = pending.pop()
        for name, quoted in includes(body):
            for place in [*([beside] if beside and quoted else []), *places]:
                path = place / name
                if os.path.isfile(path):
                    key = (name, path.resolve())
                    if key not in found:
                        found[key] = Included(name, path, _text_of(path, origin))
                        pending.append((found[key].text, path.parent))
                    break
    return Translation(text, origin, folder, tuple(found.values()))
