"""What drywarp's own prediction in the place of a card has in common: the GPUs that it takes, and noise on times."""

from __future__ import annotations

import hashlib

import numpy as np

from .errors import UsageError
from .hardware import Gpu, load_gpu

NOISE = 0.01
"""Standard deviation of a time, as a part of it."""


def simulated_gpu(name_or_file: str) -> Gpu:
    """The GPU of a name or file. Raises UsageError for one that takes no NVIDIA machine code."""
    gpu = load_gpu(name_or_file)
    if gpu.abstract_only or gpu.is_amd:
        raise UsageError(f"GPU {gpu.name} cannot be simulated here: expected one that takes NVIDIA machine code")
    return gpu


def noisy(value: float, noise: float, count: int, key: str) -> list[float]:
    """`count` values around one, normal with the standard deviation `noise` as a part of it; `key` makes the draw."""
    draw = np.random.default_rng(list(hashlib.sha256(key.encode()).digest())).standard_normal(count)
    return [float(value * (1 + noise * each)) for each in draw]
