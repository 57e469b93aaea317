"""Load any supported input as a kernel. The content decides the format.

NVIDIA GPUs: machine code in any of its containers, PTX, a Python file or Python object with a kernel; anything
else is CUDA C++ source. AMD GPUs: OpenCL C, HIP, CUDA C++ read as HIP, and assembly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ..errors import InputFileError, UsageError
from ..kernel.kernel import Kernel
from ..support.plugins import plugins_of
from .amd.code import is_assembly
from .amd.compile import is_opencl, load_amd
from .binary.containers import is_binary, load_binary
from .cuda.compile import INLINE_NAME, CudaOptions, compile_cuda
from .cuda.source import decode
from .loaded import Deferred, LaunchComment, Loaded, launch_comment
from .ptx.ptx import is_ptx, load_ptx, ptx_tools
from .python.file import is_python, load_python
from .python.objects import load_object

T = TypeVar("T")

GROUP = "drywarp.formats"
"""Entry-point group: formats (`Format`) from other packages, tried before the built-in ones."""
EXPECTED = "CUDA C++ source, PTX, machine code or a Python file"
NVIDIA, AMD = "NVIDIA", "AMD"


@dataclass(frozen=True)
class Source:
    """An input: a path or source text, its content, and its launch comment.

    `text` and `comment` are empty where the content is machine code.
    """

    given: str | Path
    data: bytes
    text: str = ""
    comment: LaunchComment = field(default_factory=LaunchComment)

    @property
    def origin(self) -> str:
        """The name that messages use."""
        return str(self.given) if isinstance(self.given, Path) else INLINE_NAME


@dataclass(frozen=True)
class Format:
    """An input format: how to recognise it, and how to load a kernel from it for an architecture.

    `vendor` names the vendor of the GPUs that it targets; empty means any.
    """

    name: str
    vendor: str
    recognises: Callable[[Source], bool]
    load: Callable[[Source, str, str | None, CudaOptions], Loaded]


def _machine_code(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    assert isinstance(source.given, Path)
    return Loaded(load_binary(source.given, source.data, arch=arch, entry=entry), source.comment)


def _ptx(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    cap = options.max_registers
    kernel = load_ptx(source.text, arch=arch, origin=source.origin, entry=entry, max_registers=cap)
    return Loaded(kernel, source.comment, _inline(source), ptx_tools())


def _python(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    assert isinstance(source.given, Path)
    kernel, text = load_python(source.given, source.text, arch=arch, entry=entry, options=options)
    return Loaded(kernel, source.comment, text, _tools(kernel))


def _amd(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    return Loaded(load_amd(source.given, source.text, arch=arch, entry=entry, options=options), source.comment, "")


def _cuda(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    if arch.startswith("gfx"):
        return _amd(source, arch, entry, options)  # CUDA C++ read as HIP
    kernel = compile_cuda(source.given, arch=arch, entry=entry, options=options)
    return Loaded(kernel, source.comment, _inline(source), compiled=True)


def _inline(source: Source) -> str:
    return "" if isinstance(source.given, Path) else source.text


FORMATS = (
    Format("machine code", NVIDIA, lambda s: isinstance(s.given, Path) and is_binary(s.data), _machine_code),
    Format("PTX", NVIDIA, lambda s: is_ptx(s.text), _ptx),
    Format("Python", NVIDIA, lambda s: isinstance(s.given, Path) and is_python(s.given), _python),
    Format("AMD assembly", AMD, lambda s: is_assembly(s.text), _amd),
    Format("OpenCL C", AMD, lambda s: is_opencl(s.given, s.text), _amd),
    Format("HIP", AMD, lambda s: isinstance(s.given, Path) and s.given.suffix.lower() == ".hip", _amd),
    Format("CUDA C++", "", lambda s: True, _cuda),
)
"""Tried in this order. The last one, CUDA C++, accepts everything."""


def as_source(source: T) -> T | Path:
    """Turn a string into a path unless it contains a line break or a brace (then it is source); keep other objects."""
    return Path(source) if isinstance(source, str) and "\n" not in source and "{" not in source else source


def load(source: object, *, arch: str, entry: str | None = None, options: CudaOptions | None = None) -> Loaded:
    """Load one kernel for `arch`, and the launch comment of its file (empty for machine code and objects).

    A `Path` is read, and its content decides the format. A string is CUDA C++ or PTX source. Any other object
    is a kernel of a Python library. The launch comment supplies the entry, macros and standard that `entry` and
    `options` leave unset. An AMD `arch` begins with ``gfx``.
    """
    given = options or CudaOptions()
    vendor = AMD if arch.startswith("gfx") else NVIDIA
    if not isinstance(source, str | Path):
        if vendor == AMD:
            kind = type(source).__name__
            raise UsageError(f"{kind}: for NVIDIA GPUs, but the GPU runs {arch} (expected OpenCL C, HIP or assembly)")
        kernel, text = load_object(source, arch=arch, entry=entry, options=given)
        return Loaded(kernel, LaunchComment(), text, _tools(kernel))
    read = _read(source)
    found = next(one for one in (*plugins_of(GROUP, Format), *FORMATS) if one.recognises(read))
    if found.vendor not in ("", vendor):
        expected = "one such as --gpu mi210" if found.vendor == AMD else "OpenCL C, HIP or assembly"
        what = "" if found.vendor == NVIDIA else f"{found.name} is "
        raise UsageError(f"{read.origin}: {what}for {found.vendor} GPUs, but the GPU runs {arch} (expected {expected})")
    options = given.over(CudaOptions(read.comment.defines, std=read.comment.std))
    return found.load(read, arch, entry or read.comment.entry, options)


def _read(source: str | Path) -> Source:
    data = read_input(source) if isinstance(source, Path) else source.encode()
    if isinstance(source, Path) and is_binary(data):
        return Source(source, data)
    origin = str(source) if isinstance(source, Path) else INLINE_NAME
    try:
        text = decode(data)
    except UnicodeDecodeError:
        if any(one.recognises(Source(source, data)) for one in plugins_of(GROUP, Format)):
            return Source(source, data)
        raise InputFileError(f"{origin}: neither text nor CUDA machine code") from None
    return Source(source, data, text, launch_comment(text, origin))


def _tools(kernel: Kernel | Deferred) -> dict[str, str]:
    return {} if isinstance(kernel, Kernel) else kernel.tools()


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
    """Read the bytes of a file. Raises InputFileError if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected {EXPECTED})") from None
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder (expected {EXPECTED})") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None
