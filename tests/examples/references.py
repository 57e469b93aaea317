"""Each example's launch at a size that can be run whole, and what NumPy says it computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """`expected` maps output names to arrays; `ulps` is the distance allowed for floats."""

    file: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: Arrays
    reference: Callable[[Arrays], Arrays]
    ulps: int = 0
    defines: dict[str, str] = field(default_factory=dict)


def _random(*shape: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Fused multiply-add: the float64 product of two floats is exact, and one rounding is left."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def saxpy(arguments: Arrays) -> Arrays:
    n = arguments["n"]
    y = arguments["y"].copy()
    y[:n] = _fma(arguments["x"][:n], np.float32(arguments["a"]), y[:n])
    return {"y": y}


def matmul(arguments: Arrays) -> Arrays:
    a, b = arguments["A"], arguments["B"]
    c = np.zeros_like(arguments["C"])
    for k in range(a.shape[0]):
        c = _fma(a[:, k : k + 1], b[k : k + 1, :], c)
    return {"C": c}


def transpose(arguments: Arrays) -> Arrays:
    return {"out": arguments["in"].T.copy()}


def reduction(arguments: Arrays) -> Arrays:
    data, threads = arguments["in"], 256
    padded = np.zeros(len(arguments["out"]) * 2 * threads, np.float32)
    padded[: arguments["n"]] = data[: arguments["n"]]
    rows = padded.reshape(-1, 2 * threads)
    partial = rows[:, :threads] + rows[:, threads:]
    while partial.shape[1] > 32:
        half = partial.shape[1] // 2
        partial = partial[:, :half] + partial[:, half:]
    for offset in (16, 8, 4, 2, 1):
        # A lane beyond the end reads itself; only lane 0's sum is kept.
        partial = partial[:, :offset] + partial[:, offset : 2 * offset]
    return {"out": partial[:, 0]}


def stencil(arguments: Arrays) -> Arrays:
    before = arguments["in"].astype(np.float64)
    after = before.copy()
    around = before[1:-1, :-2] + before[1:-1, 2:] + before[:-2, 1:-1] + before[2:, 1:-1]
    after[1:-1, 1:-1] = 0.5 * before[1:-1, 1:-1] + 0.125 * around
    return {"out": after.astype(np.float32)}


def collatz(arguments: Arrays) -> Arrays:
    steps = arguments["steps"].copy()
    for i in range(arguments["n"]):
        value, count = i + 1, 0
        while value != 1:
            value = 3 * value + 1 if value & 1 else value // 2
            count += 1
        steps[i] = count
    return {"steps": steps}


EXAMPLES = [
    Example(
        "saxpy.cu", (20, 1, 1), (256, 1, 1),
        {"n": 5000, "a": 2.5, "x": _random(5120), "y": _random(5120, seed=8)}, saxpy,
    ),
    Example(
        "tiled_matmul.cu", (4, 4, 1), (16, 16, 1),
        {"A": _random(64, 64), "B": _random(64, 64, seed=8), "C": np.zeros((64, 64), np.float32), "n": 64}, matmul,
    ),
    Example(
        "tiled_matmul.cu", (2, 2, 1), (32, 32, 1),
        {"A": _random(64, 64), "B": _random(64, 64, seed=8), "C": np.zeros((64, 64), np.float32), "n": 64}, matmul,
        defines={"TILE": "32"},
    ),
    Example(
        "transpose_naive.cu", (4, 16, 1), (32, 8, 1),
        {"in": _random(128, 128), "out": np.zeros((128, 128), np.float32), "n": 128}, transpose,
    ),
    Example(
        "transpose_padded.cu", (4, 4, 1), (32, 8, 1),
        {"in": _random(128, 128), "out": np.zeros((128, 128), np.float32), "n": 128}, transpose,
    ),
    Example(
        "reduction.cu", (9, 1, 1), (256, 1, 1),
        {"in": _random(4608), "out": np.zeros(9, np.float32), "n": 4400}, reduction,
    ),
    Example(
        "stencil.cu", (4, 12, 1), (32, 8, 1),
        {"in": _random(100, 100)[:90, :90].copy(), "out": np.zeros((90, 90), np.float32), "n": 90}, stencil, ulps=2,
    ),
    Example("collatz.cu", (8, 1, 1), (128, 1, 1), {"steps": np.full(1024, -1, np.int32), "n": 1000}, collatz),
]  # fmt: skip
