"""PTX text, assembled with ptxas."""

from __future__ import annotations

from ..cuda.compile import CudaOptions
from ..loaded import Loaded
from ..ptx.ptx import is_ptx, load_ptx, ptx_tools
from . import NVIDIA, Format, Source


def load(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Assemble the text; of `options`, only the register cap applies."""
    cap = options.max_registers
    kernel = load_ptx(source.text, arch=arch, origin=source.origin, entry=entry, max_registers=cap)
    return Loaded(kernel, source.comment, source.inline, ptx_tools())


FORMATS = (Format("PTX", NVIDIA, lambda s: is_ptx(s.text), load),)
