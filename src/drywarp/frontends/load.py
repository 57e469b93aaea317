"""Whatever a user hands over, as a kernel: CUDA C++ source, or machine code in any of its containers."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputFileError
from ..kernel.kernel import Kernel
from .binary import is_binary, load_binary
from .comment import LaunchComment, launch_comment
from .cuda import INLINE_NAME, CudaOptions, compile_cuda
from .source import decode


def load_kernel(
    source: str | Path, *, arch: str, entry: str | None = None, options: CudaOptions | None = None
) -> tuple[Kernel, LaunchComment]:
    """One kernel for `arch`, and the launch comment of its file (an empty one for machine code).

    A `Path` is read, and its content decides what it is; a string is CUDA C++ source. What the comment
    says of entry, macros and standard holds where `entry` and `options` are silent.
    """
    data = _read(source) if isinstance(source, Path) else source.encode()
    if isinstance(source, Path) and is_binary(data):
        return load_binary(source, data, arch=arch, entry=entry), LaunchComment()
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    try:
        text = decode(data)
    except UnicodeDecodeError:
        raise InputFileError(f"{origin}: neither text nor CUDA machine code") from None
    comment = launch_comment(text, origin)
    given = options or CudaOptions()
    merged = CudaOptions(
        {**comment.defines, **(given.defines or {})}, given.includes, given.std or comment.std, given.max_registers
    )
    return compile_cuda(source, arch=arch, entry=entry or comment.entry, options=merged), comment


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected CUDA C++ source or machine code)") from None
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder (expected CUDA C++ source or machine code)") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
