"""Run NVRTC in a separate process that may crash: a script started by `nvrtc.py`, which does not import drywarp.

It answers requests until its input ends. Requests and answers are marshalled, each preceded by its length in eight
bytes. It imports almost nothing, because it starts with every cold compilation.
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
    """A failed NVRTC call, with the reason."""


def load(path: str) -> ctypes.CDLL:
    """Load the library. NVRTC looks up its built-ins by name; loading them first avoids the need for a search path."""
    folder = os.path.dirname(path)
    for name in sorted(os.listdir(folder)):
        if name.startswith("libnvrtc-builtins.so"):
            ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(path)


class Library:
    """NVRTC's functions, with status checks."""

    def __init__(self, path: str) -> None:
        self.functions = load(path)
        self.functions.nvrtcGetErrorString.restype = ctypes.c_char_p

    def checked(self, name: str, *arguments: object) -> None:
        """Call a function; raises FailedError if it reports a failure."""
        if status := getattr(self.functions, name)(*arguments):
            raise FailedError(f"{name} failed: {self.functions.nvrtcGetErrorString(status).decode()}")

    def sized(self, size_of: str, get: str, program: ctypes.c_void_p) -> bytes:
        """The data that function `get` writes into a buffer, with the size that function `size_of` reports."""
        size = ctypes.c_size_t()
        self.checked(size_of, program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.checked(get, program, buffer)
        return buffer.raw

    def compile(
        self, folder: str, source: str, name: str, options: list[str], expressions: list[str], headers: dict[str, str]
    ) -> tuple[int, str, bytes, dict[str, str]]:
        """Compile in `folder`; returns status, log, CUBIN and the symbol of each name expression."""
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
    """Exit as soon as the parent process has ended, even while compiling: nobody needs the result any more."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def main(path: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer each request with the compiler's result, or with an error message."""
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
