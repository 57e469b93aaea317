"""Load any supported input as a kernel. The content decides the format (`formats`).

NVIDIA GPUs: machine code in any of its containers, PTX, a Python file or Python object with a kernel; anything
else is CUDA C++ source. AMD GPUs: OpenCL C, HIP, CUDA C++ read as HIP, and assembly.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..errors import InputFileError, UsageError
from ..hardware import Gpu
from ..kernel.kernel import Kernel
from ..support.by_name import plugins_of
from ..support.folders import read_bytes
from .binary import is_binary
from .cuda import CudaOptions
from .cuda.compile import INLINE_NAME
from .cuda.source import decode
from .formats import AMD, GROUP, NVIDIA, Format, Source, formats
from .loaded import LaunchComment, Loaded, launch_comment

T = TypeVar("T")

EXPECTED = "CUDA C++ source, PTX, machine code, a kept launch or a Python file"


def as_source(source: T) -> T | Path:
    """Turn a string into a path unless it contains a line break or a brace (then it is source); keep other objects."""
    return Path(source) if isinstance(source, str) and "\n" not in source and "{" not in source else source


def load(
    source: object, *, arch: str, entry: str | None = None, options: CudaOptions | None = None, gpu: Gpu | None = None
) -> Loaded:
    """Load one kernel for `arch`, and the launch comment of its file (empty for machine code and objects).

    A `Path` is read, and its content decides the format. A string is CUDA C++ or PTX source. Any other object
    is a kernel of a Python library. The launch comment supplies the entry, macros and standard that `entry` and
    `options` leave unset. An AMD `arch` begins with ``gfx``. A Python file may ask for the
    properties of `gpu`.
    """
    given = options or CudaOptions()
    vendor = AMD if arch.startswith("gfx") else NVIDIA
    if not isinstance(source, str | Path):
        if vendor == AMD:
            kind = type(source).__name__
            raise UsageError(f"{kind}: for NVIDIA GPUs, but the GPU runs {arch} (expected OpenCL C, HIP or assembly)")
        from .python.file import load_object

        kernel, text = load_object(source, arch=arch, entry=entry, options=given, gpu=gpu)
        return Loaded(kernel, LaunchComment(), text, {} if isinstance(kernel, Kernel) else kernel.tools())
    read = replace(read_source(source), gpu=gpu)
    found = next(one for one in formats() if one.recognizes(read))
    if found.vendor not in ("", vendor):
        expected = "one such as --gpu mi210" if found.vendor == AMD else "OpenCL C, HIP or assembly"
        what = "" if found.vendor == NVIDIA else f"{found.name} is "
        raise UsageError(f"{read.origin}: {what}for {found.vendor} GPUs, but the GPU runs {arch} (expected {expected})")
    options = given.over(read.comment.options)
    return _with_options(found.load(read, arch, entry or read.comment.entry, options), options)


def _with_options(loaded: Loaded, given: CudaOptions) -> Loaded:
    """The compiler options that the user gave, told with the answer: they decide the machine code."""
    if not given.compiler_options or not isinstance(loaded.kernel, Kernel):
        return loaded
    options = " ".join(given.compiler_options)
    kernel = replace(loaded.kernel, notes=(*loaded.kernel.notes, f"compiled with {options}"))
    return replace(loaded, kernel=kernel, tools={**loaded.tools, "compiler_options": options})


def read_source(source: str | Path) -> Source:
    """The content of a source and its launch comment. Raises InputFileError if it is neither text nor machine code."""
    data = read_input(source) if isinstance(source, Path) else source.encode()
    if isinstance(source, Path) and is_binary(data):
        return Source(source, data)
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    try:
        text = decode(data)
    except UnicodeDecodeError:
        if any(one.recognizes(Source(source, data)) for one in plugins_of(GROUP, Format)):
            return Source(source, data)
        raise InputFileError(f"{origin}: neither text nor CUDA machine code") from None
    return Source(source, data, text, launch_comment(text, origin))


def load_kernel(
    source: str | Path, *, arch: str, entry: str | None = None, options: CudaOptions | None = None
) -> tuple[Kernel, LaunchComment]:
    """Like `load`, for a source that can be compiled without knowing its arguments."""
    loaded = load(source, arch=arch, entry=entry, options=options)
    if not isinstance(loaded.kernel, Kernel):
        raise UsageError(
            f"{loaded.kernel.origin}: {loaded.kernel.name} cannot be compiled before its arguments are known"
        )
    return loaded.kernel, loaded.comment


def read_input(path: Path) -> bytes:
    """The bytes of an input file. Raises InputFileError if it cannot be read."""
    return read_bytes(path, EXPECTED)
