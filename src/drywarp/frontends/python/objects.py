"""Load a kernel from a Python object of Triton, Numba or CuPy."""

from __future__ import annotations

import inspect
import os
from typing import Any

from ...errors import UsageError
from ...kernel.kernel import Kernel
from ..cuda.compile import CudaOptions, compile_cuda
from ..loaded import Deferred
from .constants import cuda_options
from .isolation import cupy_headers
from .numba_kernel import NumbaKernel
from .triton_kernel import TritonKernel


def load_object(source: Any, *, arch: str, entry: str | None, options: CudaOptions) -> tuple[Kernel | Deferred, str]:
    """The kernel that an object represents, and its source if that is not in a file.

    Supported objects are a `triton.jit` function with its decorators, a `numba.cuda.jit` function, and CuPy's
    RawKernel and RawModule, whose source is recompiled. Raises UsageError for any other object.
    """
    package = type(source).__module__.partition(".")[0]
    if hasattr(source, "py_func") and package in ("numba", "numba_cuda"):
        return NumbaKernel(source, source.py_func.__name__, _file(source.py_func), options.max_registers), ""
    if package == "cupy" and isinstance(getattr(source, "code", None), str):
        return _raw(source, arch, entry, options), str(source.code)
    inner = source
    while hasattr(inner, "fn") and not inspect.isfunction(inner):
        inner = inner.fn
    if inner is not source and inspect.isfunction(inner):
        return TritonKernel(source, inner.__name__, _file(inner), options.max_registers), ""
    raise UsageError(
        f"{type(source).__name__}: expected a path, a source text, a function under @triton.jit or "
        "@numba.cuda.jit, or a CuPy RawKernel"
    )


def _raw(source: Any, arch: str, entry: str | None, options: CudaOptions) -> Kernel:
    own = cuda_options(list(getattr(source, "options", ()) or ()))
    merged = options.over(own).over(CudaOptions(includes=cupy_headers()))
    return compile_cuda(source.code, arch=arch, entry=entry or getattr(source, "name", None), options=merged)


def _file(function: Any) -> str:
    """The file of a function as a user would name it: relative to the current folder if it is inside it."""
    place = str(function.__code__.co_filename)
    here = os.path.relpath(place)
    return here if os.path.isabs(place) and not here.startswith("..") else place
