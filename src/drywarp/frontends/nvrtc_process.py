"""NVRTC in a process of its own, which it may crash: a script that `nvrtc.py` runs, and that imports none of drywarp.

It answers requests until its input ends. Both are marshalled, each behind its length in eight bytes. It imports next to
nothing, for it starts with every cold compilation.
"""

from __future__ import annotations

import _thread
import ctypes
import marshal
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


class FailedError(Exception):
    """A call that says no, and why."""


def load(path: str) -> ctypes.CDLL:
    """The library. The compiler finds its built-ins by name; loaded beforehand they need no search path."""
    folder = os.path.dirname(path)
    for name in sorted(os.listdir(folder)):
        if name.startswith("libnvrtc-builtins.so"):
            ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(path)


class Library:
    """NVRTC's functions, their statuses checked."""

    def __init__(self, path: str) -> None:
        self.functions = load(path)
        self.functions.nvrtcGetErrorString.restype = ctypes.c_char_p

    def checked(self, name: str, *arguments: object) -> None:
        """Call a function; FailedError where it says no."""
        if status := getattr(self.functions, name)(*arguments):
            raise FailedError(f"{name} failed: {self.functions.nvrtcGetErrorString(status).decode()}")

    def sized(self, size_of: str, get: str, program: ctypes.c_void_p) -> bytes:
        """What a function writes into a buffer whose size another one tells."""
        size = ctypes.c_size_t()
        self.checked(size_of, program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.checked(get, program, buffer)
        return buffer.raw

    def compile(
        self, folder: str, source: str, name: str, options: list[str], expressions: list[str], headers: dict[str, str]
    ) -> tuple[int, str, bytes, dict[str, str]]:
        """Status, log, CUBIN and the symbol of each name expression, compiled in `folder`."""
        os.chdir(folder)
        program = ctypes.c_void_p()
        strings = ctypes.c_char_p * len(headers)
        bodies = strings(*(text.encode() for text in headers.values()))
        names = strings(*(header.encode() for header in headers))
        self.checked(
            "nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), len(headers), bodies, names
        )
        try:
            for expression in expressions:
                self.checked("nvrtcAddNameExpression", program, expression.encode())
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = self.functions.nvrtcCompileProgram(program, len(options), array)
            log = self.sized("nvrtcGetProgramLogSize", "nvrtcGetProgramLog", program).rstrip(b"\0")
            if status:
                return status, log.decode("utf-8", "replace"), b"", {}
            symbols = {}
            for expression in expressions:
                lowered = ctypes.c_char_p()
                self.checked("nvrtcGetLoweredName", program, expression.encode(), ctypes.byref(lowered))
                symbols[expression] = (lowered.value or b"").decode()
            cubin = self.sized("nvrtcGetCUBINSize", "nvrtcGetCUBIN", program)
            return 0, log.decode("utf-8", "replace"), cubin, symbols
        finally:
            self.functions.nvrtcDestroyProgram(ctypes.byref(program))


def end_with(parent: int) -> None:
    """End when the process that asks has ended, whatever the compiler is doing: nobody waits for it any more."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def main(path: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer each request with what the compiler said, or the text of a failure."""
    library: Library | None = None
    while head := requests.read(8):
        request = marshal.loads(requests.read(int.from_bytes(head, "little")))
        answer: object
        try:
            library = library or Library(path)
            answer = library.compile(*request)
        except FailedError as error:
            answer = str(error)
        except OSError as error:
            answer = f"NVRTC cannot be run from {path}: {error}"
        data = marshal.dumps(answer)
        answers.write(len(data).to_bytes(8, "little") + data)
        answers.flush()


if __name__ == "__main__":
    _thread.start_new_thread(end_with, (int(sys.argv[2]),))
    main(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
