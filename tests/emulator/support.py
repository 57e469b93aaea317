"""Compile a kernel, run it in the emulator on NumPy arrays, get the arrays back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drywarp.execution.emulator import Emulation, Limits, emulate
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Argument, Buffer, Dim3, Launch, Scalar, Texture, array_buffer

from .together import Kernels

ARCHES = ("sm_80", "sm_90")
kernels = Kernels()


def scalar(value: Any) -> Scalar:
    """A scalar argument; Python integers are 32-bit, floats single precision."""
    if isinstance(value, int):
        value = np.int32(value)
    elif isinstance(value, float):
        value = np.float32(value)
    return Scalar(value.tobytes(), str(value))


def argument(value: Any) -> Argument:
    if isinstance(value, Buffer | Scalar | Texture):
        return value
    return array_buffer(value) if isinstance(value, np.ndarray) else scalar(value)


def dim3(extent: int | Sequence[int]) -> Dim3:
    extents = [extent] if isinstance(extent, int) else list(extent)
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def run(
    kernel: Kernel | str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    arch: str = "sm_80",
    blocks: Any = "all",
    dynamic_shared: int = 0,
    constants: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    seed: int = 0,
    entry: str | None = None,
    compiled: bool = True,
    cluster: Dim3 | None = None,
) -> Emulation:
    """Compile if given source, and emulate; arrays become buffers, numbers scalars."""
    if isinstance(kernel, str):
        kernel = compile_cuda(kernel, arch=arch, entry=entry) if entry else kernels.kernel(kernel, arch)
    launch = Launch(
        dim3(grid),
        dim3(block),
        tuple(argument(a) for a in arguments),
        dynamic_shared,
        {name: array_buffer(np.asarray(value)) for name, value in (constants or {}).items()},
        seed,
        cluster=kernel.resources.cluster if cluster is None else cluster,
    )
    return emulate(kernel, launch, blocks=blocks, limits=limits or Limits(), compiled=compiled)
