"""Kernels in Python files: Triton, Numba-CUDA and CUDA C++ in strings, executing only the code that they need."""

from __future__ import annotations

from pathlib import Path


def is_python(path: Path) -> bool:
    """Whether a file counts as Python: decided by its suffix, as a short text may be valid in several languages."""
    return path.suffix == ".py"
