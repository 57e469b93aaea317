"""A Python file with a Triton or Numba kernel, or with CUDA C++ in a string."""

from __future__ import annotations

from pathlib import Path

from ...kernel.kernel import Kernel
from ..cuda.options import CudaOptions
from ..loaded import Loaded
from ..python import is_python
from . import NVIDIA, Format, Source


def load(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Execute what the kernel needs of the file; a kernel whose arguments decide its code is compiled later."""
    from ..python.file import load_python

    assert isinstance(source.given, Path)
    kernel, text = load_python(source.given, source.text, arch=arch, entry=entry, options=options, gpu=source.gpu)
    return Loaded(kernel, source.comment, text, {} if isinstance(kernel, Kernel) else kernel.tools())


FORMATS = (Format("Python", NVIDIA, lambda s: isinstance(s.given, Path) and is_python(s.given), load),)
