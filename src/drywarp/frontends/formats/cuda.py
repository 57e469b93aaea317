"""CUDA C++, and what else AMD GPUs take: HIP, OpenCL C and assembly. CUDA C++ for an AMD GPU is read as HIP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...kernel.kernel import Kernel
from ...kernel.launch.layout import Layouts
from ..amd import is_assembly, is_opencl
from ..cuda.compile import compile_cuda, layouts_of
from ..cuda.nvrtc import gather
from ..cuda.options import CudaOptions
from ..loaded import HostLaunch, Loaded
from . import AMD, Format, Source


def load_for_amd(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Compile with clang, or read assembly."""
    from ..amd.compile import load_amd

    kernel = load_amd(source.given, source.text, arch=arch, entry=entry, options=options)
    return Loaded(kernel, source.comment, "", launches=launches_in(source, options))


def load(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
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
    Format("CUDA C++", "", lambda s: True, load, catches_all=True),
)
