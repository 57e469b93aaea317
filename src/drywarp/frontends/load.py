"""Whatever a user hands over, as a kernel. Its content decides what it is.

Machine code in any of its containers, PTX, a Python file or a Python object with a kernel, and else
CUDA C++ source. For an AMD GPU: OpenCL C, HIP, CUDA C++ read as HIP, and assembly.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ..errors import InputFileError, UsageError
from ..kernel.kernel import Kernel
from .amd_compile import is_opencl, load_amd
from .amdgcn import is_assembly
from .binary import is_binary, load_binary
from .comment import LaunchComment, launch_comment
from .cuda import INLINE_NAME, CudaOptions, compile_cuda
from .loaded import Deferred, Loaded
from .ptx import load_ptx, ptx_tools
from .ptx_text import is_ptx
from .python.file import is_python, load_python
from .python.objects import load_object
from .source import decode

T = TypeVar("T")

EXPECTED = "CUDA C++ source, PTX, machine code or a Python file"


def as_source(source: T) -> T | Path:
    """A string with a line break or a brace is source, any other a path; objects stay."""
    return Path(source) if isinstance(source, str) and "\n" not in source and "{" not in source else source


def load(source: object, *, arch: str, entry: str | None = None, options: CudaOptions | None = None) -> Loaded:
    """One kernel for `arch`, and the launch comment of its file (an empty one for machine code and objects).

    A `Path` is read, and its content decides what it is; a string is CUDA C++ or PTX itself; any other
    object a kernel of a Python library. What the comment says of entry, macros and standard holds where
    `entry` and `options` are silent. An AMD `arch` begins with ``gfx``.
    """
    given = options or CudaOptions()
    if not isinstance(source, str | Path):
        if arch.startswith("gfx"):
            kind = type(source).__name__
            raise UsageError(f"{kind}: for NVIDIA GPUs, the GPU takes {arch} (expected OpenCL C, HIP or assembly)")
        kernel, text = load_object(source, arch=arch, entry=entry, options=given)
        return Loaded(kernel, LaunchComment(), text, _tools(kernel))
    amd = arch.startswith("gfx")
    data = read_input(source) if isinstance(source, Path) else source.encode()
    if isinstance(source, Path) and is_binary(data):
        if amd:
            raise UsageError(f"{source}: NVIDIA machine code, the GPU takes {arch} (expected source or assembly)")
        return Loaded(load_binary(source, data, arch=arch, entry=entry), LaunchComment())
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    try:
        text = decode(data)
    except UnicodeDecodeError:
        raise InputFileError(f"{origin}: neither text nor CUDA machine code") from None
    comment = launch_comment(text, origin)
    entry = entry or comment.entry
    given = given.over(CudaOptions(comment.defines, std=comment.std))
    if amd:
        if is_ptx(text) or (isinstance(source, Path) and is_python(source)):
            raise UsageError(f"{origin}: for NVIDIA GPUs, the GPU takes {arch} (expected OpenCL C, HIP or assembly)")
        return Loaded(load_amd(source, text, arch=arch, entry=entry, options=given), comment, "")
    if what := _for_amd(source, text):
        raise UsageError(f"{origin}: {what} is for AMD GPUs, the GPU takes {arch} (expected one such as --gpu mi210)")
    if is_ptx(text):
        kernel = load_ptx(text, arch=arch, origin=origin, entry=entry, max_registers=given.max_registers)
        return Loaded(kernel, comment, "" if isinstance(source, Path) else text, ptx_tools())
    if isinstance(source, Path) and is_python(source):
        kernel, text = load_python(source, text, arch=arch, entry=entry, options=given)
        return Loaded(kernel, comment, text, _tools(kernel))
    kernel = compile_cuda(source, arch=arch, entry=entry, options=given)
    return Loaded(kernel, comment, "" if isinstance(source, Path) else text)


def _tools(kernel: Kernel | Deferred) -> dict[str, str]:
    return {} if isinstance(kernel, Kernel) else kernel.tools()


def load_kernel(
    source: str | Path, *, arch: str, entry: str | None = None, options: CudaOptions | None = None
) -> tuple[Kernel, LaunchComment]:
    """As `load`, for a source whose machine code does not wait for its arguments."""
    loaded = load(source, arch=arch, entry=entry, options=options)
    if not isinstance(loaded.kernel, Kernel):
        raise UsageError(f"{loaded.kernel.origin}: {loaded.kernel.name} is compiled for the arguments of a launch")
    return loaded.kernel, loaded.comment


def _for_amd(source: str | Path, text: str) -> str:
    """What kind of source for AMD GPUs a text is; empty for CUDA C++."""
    if is_assembly(text):
        return "AMD assembly"
    if is_opencl(source, text):
        return "OpenCL C"
    return "HIP" if isinstance(source, Path) and source.suffix.lower() == ".hip" else ""


def read_input(path: Path) -> bytes:
    """The bytes of a file. Raises InputFileError where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected {EXPECTED})") from None
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder (expected {EXPECTED})") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
