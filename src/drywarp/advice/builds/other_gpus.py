"""The same kernel on another GPU."""

from __future__ import annotations

from collections.abc import Sequence

from ...hardware import load_gpu
from ...ready import BoundKernel
from .base import Build

USUAL = ("h100", "rtx4090")
"""GPUs that are compared with unless others are named: of a data centre, and of a desktop."""


def other_gpus(ready: BoundKernel, names: Sequence[str]) -> list[Build]:
    """One build for each GPU but the kernel's own."""
    for name in names:
        load_gpu(name)  # a name that nobody knows is an error, not a what-if that is not possible
    if ready.gpu.is_amd:
        return [Build("another GPU", "gpu", reason="only between NVIDIA's GPUs")]
    return [Build(f"on {name}", "gpu", {"gpu": name}) for name in names or USUAL if name != ready.gpu.name]
