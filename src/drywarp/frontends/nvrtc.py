"""CUDA C++ to a CUBIN through NVRTC, called by ctypes: no driver, no nvcc, no C compiler."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import CompileError, ToolError
from .toolchain import compiler_library, packaged_library

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


@cache
def _library(path: Path | None = None) -> ctypes.CDLL:
    path = path or compiler_library()
    try:
        # The compiler finds its built-ins by name; loaded beforehand they need no search path.
        for part in sorted(path.parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(part), ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolError(f"NVRTC cannot be loaded from {path}: {error}") from None


def _call(name: str, *arguments: object) -> int:
    status: int = getattr(_library(), name)(*arguments)
    return status


def _checked(name: str, *arguments: object) -> None:
    if status := _call(name, *arguments):
        text = _library().nvrtcGetErrorString
        text.restype = ctypes.c_char_p
        raise ToolError(f"{name} failed: {text(status).decode()}")


def _sized(size_of: str, get: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _checked(size_of, program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    _checked(get, program, buffer)
    return buffer.raw


def install_headers(folder: Path) -> None:
    """Write the headers that NVRTC bundles (fp16, cooperative_groups, cub, …) into `folder`."""
    # Absent from NVRTC before 13.3; the packaged one has it, a user's own may not.
    if _library(packaged_library()).nvrtcInstallBundledHeaders(str(folder).encode(), 0, None):
        raise ToolError(f"NVRTC's headers cannot be written to {folder}")


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
    program = ctypes.c_void_p()
    texts = headers or {}
    strings = ctypes.c_char_p * len(texts)
    bodies = strings(*(text.encode() for text in texts.values()))
    names = strings(*(header.encode() for header in texts))
    _checked("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), len(texts), bodies, names)
    try:
        for expression in expressions:
            _checked("nvrtcAddNameExpression", program, expression.encode())
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = _call("nvrtcCompileProgram", program, len(options), array)
        log = _sized("nvrtcGetProgramLogSize", "nvrtcGetProgramLog", program).rstrip(b"\0").decode("utf-8", "replace")
        if status:
            message = first_error(log)
            raise CompileError(f"{name}: {message}" if message.startswith("ptxas") else message, log)
        symbols = {}
        for expression in expressions:
            lowered = ctypes.c_char_p()
            _checked("nvrtcGetLoweredName", program, expression.encode(), ctypes.byref(lowered))
            symbols[expression] = (lowered.value or b"").decode()
        return Compiled(_sized("nvrtcGetCUBINSize", "nvrtcGetCUBIN", program), log, symbols)
    finally:
        _call("nvrtcDestroyProgram", ctypes.byref(program))


def first_error(log: str) -> str:
    """The first error of a compiler log in one line, and how many more there are."""
    lines = [line.strip(" \t\r\0") for line in log.splitlines()]
    errors = [line for line in lines if _ERROR.search(line)]
    if not errors:
        return next((line for line in lines if line), "the compiler failed without a message")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return errors[0] + more
