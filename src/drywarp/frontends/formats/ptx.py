"""PTX text, assembled with ptxas."""

from __future__ import annotations

from ..cuda.options import CudaOptions
from ..loaded import Loaded
from ..ptx.ptx import is_ptx, load_ptx, ptx_tools
from . import NVIDIA, Format, Source


def load(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Assemble the text; of `options`, the assembler's apply."""
    kernel = load_ptx(source.text, arch=arch, origin=source.origin, entry=entry, options=options)
    return Loaded(kernel, source.comment, source.inline, ptx_tools())


FORMATS = (Format("PTX", NVIDIA, lambda s: is_ptx(s.text), load),)
