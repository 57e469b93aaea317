"""The formats that drywarp brings: machine code, PTX and Python files; CUDA C++, HIP, OpenCL C and AMD assembly.

Machine code comes in any of its containers (cubin, fat binary, object file, executable, kept launch). A Python file has
a Triton or Numba kernel, or CUDA C++ in a string. CUDA C++ for an AMD GPU is read as HIP. What reads a form is loaded
only for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...kernel.kernel import Kernel
from ...kernel.launch.layout import Layouts
from ...kernel.launch.structures import with_layouts
from ..amd import is_assembly, is_opencl
from ..binary import is_binary, is_kept
from ..cuda import CudaOptions
from ..cuda.compile import compile_cuda, layouts_of
from ..cuda.nvrtc import gather
from ..loaded import HostLaunch, Loaded
from ..ptx import is_ptx
from ..python import is_python
from . import AMD, NVIDIA, Format, Source


def read_machine_code(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Read the kernel from the container; `options` do not apply."""
    from ..binary.containers import debug_layouts, load_binary
    from ..binary.kept import launch_in, read_kept
    from ..ptx.assembler import ptx_tools

    assert isinstance(source.given, Path)
    options.refuse(source.origin, "machine code, which is not compiled")
    kernel = load_binary(source.given, source.data, arch=arch, entry=entry)
    if is_kept(source.data):
        kept = read_kept(source.data, source.origin)
        kernel, launch = launch_in(kept, source.data, kernel, source.origin)
        return Loaded(kernel, source.comment, tools=ptx_tools() if kernel.arch != kept.arch else {}, launch=launch)
    layouts = debug_layouts(kernel, source.data, source.origin)
    return Loaded(kernel if layouts is None else with_layouts(kernel, layouts), source.comment)


def assemble(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Assemble the text; of `options`, the assembler's apply."""
    from ..ptx.assembler import load_ptx, ptx_tools

    kernel = load_ptx(source.text, arch=arch, origin=source.origin, entry=entry, options=options)
    return Loaded(kernel, source.comment, source.inline, ptx_tools())


def read_python(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Execute what the kernel needs of the file; a kernel whose arguments decide its code is compiled later."""
    from ..python.file import load_python

    assert isinstance(source.given, Path)
    kernel, text = load_python(source.given, source.text, arch=arch, entry=entry, options=options, gpu=source.gpu)
    return Loaded(kernel, source.comment, text, {} if isinstance(kernel, Kernel) else kernel.tools())


# CUDA C++, and what else AMD GPUs take.


def load_for_amd(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Compile with clang, or read assembly."""
    from ..amd.compile import load_amd

    kernel = load_amd(source.given, source.text, arch=arch, entry=entry, options=options)
    return Loaded(kernel, source.comment, "", launches=launches_in(source, options))


def load_cuda(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Compile for the vendor that `arch` belongs to."""
    if arch.startswith("gfx"):
        return load_for_amd(source, arch, entry, options)
    kernel = compile_cuda(source.given, arch=arch, entry=entry, options=options)
    launches, layouts = launches_in(source, options), layouts_for(source, arch, entry, options)
    return Loaded(kernel, source.comment, source.inline, compiled=True, launches=launches, layouts=layouts)


def layouts_for(
    source: Source, arch: str, entry: str | None, options: CudaOptions
) -> Callable[[Kernel, bool], Layouts]:
    """What looks up the layouts of a kernel's structures."""
    return lambda kernel, needed: layouts_of(source.given, arch, entry, options, kernel, needed=needed)


def launches_in(
    source: Source, options: CudaOptions
) -> Callable[[Kernel, Mapping[str, int | float]], Sequence[HostLaunch]] | None:
    """What finds the launches of a kernel in the source's host code; None if it launches nothing."""
    if "<<<" not in source.text and "Launch" not in source.text:
        return None

    def find(kernel: Kernel, given: Mapping[str, int | float]) -> Sequence[HostLaunch]:
        from ..cuda.launches import host_launches

        folder = source.given.parent if isinstance(source.given, Path) else None
        read = gather(source.text, source.origin, folder, [Path(one) for one in options.includes])
        return host_launches(read, kernel, given, options.defines or {})

    return find


def is_hip(source: Source) -> bool:
    """By the suffix of the file."""
    return isinstance(source.given, Path) and source.given.suffix.lower() == ".hip"


FORMATS = (
    Format("AMD assembly", AMD, lambda s: is_assembly(s.text), load_for_amd),
    Format("OpenCL C", AMD, lambda s: is_opencl(s.given, s.text), load_for_amd),
    Format("HIP", AMD, is_hip, load_for_amd),
    Format("machine code", NVIDIA, lambda s: isinstance(s.given, Path) and is_binary(s.data), read_machine_code),
    Format("PTX", NVIDIA, lambda s: is_ptx(s.text), assemble),
    Format("Python", NVIDIA, lambda s: isinstance(s.given, Path) and is_python(s.given), read_python),
    Format("CUDA C++", "", lambda s: True, load_cuda, catches_all=True),
)
