"""AMD machine code: compiled with clang or read from an LLVM object's disassembly.

How its sources are recognized stands here, so that nothing else is loaded for other formats.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..cuda.source import blank_comments

OPENCL = re.compile(r"(?<![\w])(__kernel|kernel\s+(__attribute__\s*\(\(.*?\)\)\s*)?void)\b", re.S)


def is_opencl(source: str | Path, text: str) -> bool:
    """Whether a source is OpenCL C: decided by the suffix of a file, or by the kernels in a string."""
    if isinstance(source, Path):
        return source.suffix.lower() in (".cl", ".ocl", ".clc")
    return OPENCL.search(blank_comments(text)) is not None and "__global__" not in text


def is_assembly(text: str) -> bool:
    """Whether a text is AMD assembly with at least one kernel."""
    return ".amdhsa_kernel" in text
