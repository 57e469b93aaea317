"""CUDA C++, and what else AMD GPUs take: HIP, OpenCL C and assembly. CUDA C++ for an AMD GPU is read as HIP."""

from __future__ import annotations

from pathlib import Path

from ..amd.code import is_assembly
from ..amd.compile import is_opencl, load_amd
from ..cuda.compile import compile_cuda
from ..cuda.options import CudaOptions
from ..loaded import Loaded
from . import AMD, Format, Source


def load_for_amd(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Compile with clang, or read assembly."""
    return Loaded(load_amd(source.given, source.text, arch=arch, entry=entry, options=options), source.comment, "")


def load(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Compile for the vendor that `arch` belongs to."""
    if arch.startswith("gfx"):
        return load_for_amd(source, arch, entry, options)
    kernel = compile_cuda(source.given, arch=arch, entry=entry, options=options)
    return Loaded(kernel, source.comment, source.inline, compiled=True)


def is_hip(source: Source) -> bool:
    """By the suffix of the file."""
    return isinstance(source.given, Path) and source.given.suffix.lower() == ".hip"


FORMATS = (
    Format("AMD assembly", AMD, lambda s: is_assembly(s.text), load_for_amd),
    Format("OpenCL C", AMD, lambda s: is_opencl(s.given, s.text), load_for_amd),
    Format("HIP", AMD, is_hip, load_for_amd),
    Format("CUDA C++", "", lambda s: True, load, catches_all=True),
)
