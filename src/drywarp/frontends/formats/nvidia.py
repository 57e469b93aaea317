"""Kernels for NVIDIA GPUs in other forms than CUDA C++: machine code, PTX, Python files.

Machine code comes in any of its containers (cubin, fat binary, object file, executable, kept launch). A Python file has
a Triton or Numba kernel, or CUDA C++ in a string. What reads a form is loaded only for it.
"""

from __future__ import annotations

from pathlib import Path

from ...kernel.kernel import Kernel
from ...kernel.launch.structures import with_layouts
from ..binary import is_binary, is_kept
from ..cuda.options import CudaOptions
from ..loaded import Loaded
from ..ptx import is_ptx
from ..python import is_python
from . import NVIDIA, Format, Source


def read_machine_code(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Read the kernel from the container; `options` do not apply."""
    from ..binary.containers import debug_layouts, load_binary
    from ..binary.kept import launch_in, read_kept
    from ..ptx.ptx import ptx_tools

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
    from ..ptx.ptx import load_ptx, ptx_tools

    kernel = load_ptx(source.text, arch=arch, origin=source.origin, entry=entry, options=options)
    return Loaded(kernel, source.comment, source.inline, ptx_tools())


def read_python(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Execute what the kernel needs of the file; a kernel whose arguments decide its code is compiled later."""
    from ..python.file import load_python

    assert isinstance(source.given, Path)
    kernel, text = load_python(source.given, source.text, arch=arch, entry=entry, options=options, gpu=source.gpu)
    return Loaded(kernel, source.comment, text, {} if isinstance(kernel, Kernel) else kernel.tools())


FORMATS = (
    Format("machine code", NVIDIA, lambda s: isinstance(s.given, Path) and is_binary(s.data), read_machine_code),
    Format("PTX", NVIDIA, lambda s: is_ptx(s.text), assemble),
    Format("Python", NVIDIA, lambda s: isinstance(s.given, Path) and is_python(s.given), read_python),
)
