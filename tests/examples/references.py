"""Each example's launch at a size that can be run whole, and what NumPy says it computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drywarp import surface, texture

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """`reference` maps output names to arrays; `ulps` is the distance allowed for floats.

    `data_dependent`: instruction counts differ between blocks inside the grid, so that a sample of the
    blocks estimates the whole grid's and does not give it.
    """

    file: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: Arrays
    reference: Callable[[Arrays], Arrays]
    ulps: int = 0
    defines: dict[str, str] = field(default_factory=dict)
    data_dependent: bool = False


def _random(*shape: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def _between(low: float, high: float, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count).astype(np.float32)


def _integers(high: int, count: int, dtype: type, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, count, dtype)


def _shuffled(count: int, dtype: type, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).permutation(count).astype(dtype)


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


def softmax(arguments: Arrays) -> Arrays:
    x = arguments["in"].astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {"out": (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)}


def histogram(arguments: Arrays) -> Arrays:
    counted = np.bincount(arguments["data"][: 4 * arguments["words"]], minlength=256)
    return {"bins": arguments["bins"] + counted.astype(np.uint32)}


def pointer_chase(arguments: Arrays) -> Arrays:
    mask = arguments["mask"]
    at = np.arange(len(arguments["last"]), dtype=np.uint32) & mask
    for _ in range(arguments["steps"]):
        at = (arguments["next"][at] * np.uint32(1664525) + np.uint32(1013904223)) & mask
    return {"last": at}


def _digits(number: int, base: int) -> list[int]:
    """Digits of a number, the last first; none of zero."""
    digits = []
    while number:
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits


def integer_division(arguments: Arrays) -> Arrays:
    sums, mirrors = arguments["sums"].copy(), arguments["mirrors"].copy()
    base, wide_base = arguments["base"], arguments["wide_base"]
    for i in range(arguments["n"]):
        sums[i] = sum(_digits(i, base))
        mirror = 0
        for digit in _digits(i * 0x9E3779B97F4A7C15 % 2**64, wide_base):
            mirror = mirror * wide_base + digit
        mirrors[i] = mirror % 2**64
    return {"sums": sums, "mirrors": mirrors}


def double_precision(arguments: Arrays) -> Arrays:
    n = arguments["n"]
    place = np.arange(n) / n
    total = np.zeros((n, n), np.longdouble)
    for x, y, z, charge in arguments["charges"].astype(np.longdouble):
        total += charge / np.sqrt((x - place[None, :]) ** 2 + (y - place[:, None]) ** 2 + z**2)
    return {"potential": total.astype(np.float64)}


def polynomial(arguments: Arrays) -> Arrays:
    used = 2 * arguments["pairs"]
    x = arguments["x"][:used].astype(np.float64)
    value = np.full(used, 0.125)
    for k in range(7, -1, -1):
        # Exact in float64, then one rounding to half precision.
        value = (value * x + (0.25 + 0.125 * k)).astype(np.float16).astype(np.float64)
    y = arguments["y"].copy()
    y[:used] = value
    return {"y": y}


def permutation(arguments: Arrays) -> Arrays:
    n = arguments["n"]
    a = arguments["a"].copy()
    a[:n] = arguments["b"][arguments["c"][:n]]
    return {"a": a}


def scattered_permutation(arguments: Arrays) -> Arrays:
    scattered = arguments["c"].astype(np.uint32) * np.uint32(2654435769) & np.uint32(arguments["n"] - 1)
    return permutation({**arguments, "c": scattered})


def vabs(arguments: Arrays) -> Arrays:
    a = arguments["a"].copy()
    a[: arguments["n"]] = np.abs(a[: arguments["n"]])
    return {"a": a}


def shifted_vabs(arguments: Arrays) -> Arrays:
    a, n, shift = arguments["a"].copy(), arguments["n"], np.float32(0.5)
    a[:n] = np.where(a[:n] < shift, shift - a[:n], a[:n])
    return {"a": a}


def black_scholes(arguments: Arrays) -> Arrays:
    price, strike, years = (arguments[name].astype(np.float64) for name in ("price", "strike", "years"))
    rate, volatility = float(np.float32(arguments["rate"])), float(np.float32(arguments["volatility"]))
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    due = strike * np.exp(-rate * years)
    call = price * _normal_cdf(d1) - due * _normal_cdf(d1 - deviation)
    put = due * _normal_cdf(deviation - d1) - price * _normal_cdf(-d1)
    return {"call": call.astype(np.float32), "put": put.astype(np.float32)}


def texture_filter(arguments: Arrays) -> Arrays:
    size, out = arguments["size"], arguments["out"].buffer.array.copy()
    image = arguments["image"].buffer.array.astype(np.float64)
    cosine, sine, centre = (np.float32(v) for v in (arguments["cosine"], arguments["sine"], 0.5 * size))
    step = np.arange(size, dtype=np.float32) + np.float32(0.5) - centre
    dx, dy = np.meshgrid(step, step)
    # Whether the compiler fuses these is its own affair: the arguments make every product exact.
    at_x, at_y = centre + cosine * dx - sine * dy, centre + sine * dx + cosine * dy
    (left, right, across), (top, bottom, down) = (_texels(at, image.shape[0]) for at in (at_x, at_y))
    upper = (1 - across) * image[top, left] + across * image[top, right]
    lower = (1 - across) * image[bottom, left] + across * image[bottom, right]
    value = ((1 - down) * upper + down * lower).astype(np.float32)
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    out[:size, :size] = value * arguments["shade"].buffer.array[(x ^ y) & 255]
    return {"out": out}


def _texels(at: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The texels before and after some coordinates, clamped, and the latter's weight in eight bits."""
    place = at.astype(np.float64) - 0.5
    low = np.floor(place).astype(np.int64)
    weight = np.floor((place - low) * 256 + 0.5) / 256
    return np.clip(low, 0, size - 1), np.clip(low + 1, 0, size - 1), weight


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x])


_SIGNED = _random(5120) - np.float32(0.5)

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
        "tiled_matmul.cu", (4, 4, 1), (32, 32, 1),
        {"A": _random(128, 128), "B": _random(128, 128, seed=8), "C": np.zeros((128, 128), np.float32), "n": 128},
        matmul, defines={"TILE": "32"},
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
        "stencil.cu", (4, 13, 1), (32, 8, 1),
        {"in": _random(100, 100), "out": np.zeros((100, 100), np.float32), "n": 100}, stencil, ulps=2,
    ),
    Example(
        "collatz.cu", (32, 1, 1), (32, 1, 1), {"steps": np.full(1024, -1, np.int32), "n": 1000}, collatz,
        data_dependent=True,
    ),
    # Roundings of x - largest, expf, the sum, 1 / sum and the product.
    Example(
        "softmax.cu", (9, 1, 1), (128, 1, 1),
        {"in": 8 * _random(9, 300) - 4, "out": np.zeros((9, 300), np.float32), "columns": 300}, softmax, ulps=4,
    ),
    # Every block has five words a thread, the last one 100 fewer in all.
    Example(
        "histogram.cu", (9, 1, 1), (128, 1, 1),
        {"data": _integers(256, 23000, np.uint8), "bins": np.arange(256, dtype=np.uint32), "words": 5660}, histogram,
    ),
    Example(
        "pointer_chase.cu", (14, 1, 1), (32, 1, 1),
        {"next": _shuffled(4096, np.uint32), "last": np.zeros(448, np.uint32), "mask": 4095, "steps": 50},
        pointer_chase,
    ),
    Example(
        "integer_division.cu", (36, 1, 1), (32, 1, 1),
        {"sums": np.full(1152, 9, np.uint32), "mirrors": np.full(1152, 9, np.uint64), "base": 10, "wide_base": 7,
         "n": 1100}, integer_division, data_dependent=True,
    ),
    # A divisor that needs 32 bits, and one that needs more.
    Example(
        "integer_division.cu", (36, 1, 1), (32, 1, 1),
        {"sums": np.full(1152, 9, np.uint32), "mirrors": np.full(1152, 9, np.uint64), "base": 3_000_000_019,
         "wide_base": 10_000_000_019, "n": 1100}, integer_division, data_dependent=True,
    ),
    Example(
        "double_precision.cu", (3, 12, 1), (32, 8, 1),
        {"charges": _random(16, 4).astype(np.float64), "potential": np.zeros((90, 90)), "count": 16, "n": 90},
        double_precision, ulps=4,
    ),
    Example(
        "half2.cu", (9, 1, 1), (256, 1, 1),
        {"x": (4 * _random(4608) - 2).astype(np.float16), "y": np.zeros(4608, np.float16), "pairs": 2200}, polynomial,
    ),
    Example(
        "permutation.cu", (16, 1, 1), (256, 1, 1),
        {"a": np.zeros(4096, np.int32), "b": _integers(2**31, 4096, np.int32), "c": _shuffled(4096, np.int32),
         "n": 4096}, permutation,
    ),
    Example(
        "permutation.cu", (16, 1, 1), (256, 1, 1),
        {"a": np.zeros(4096, np.int32), "b": _integers(2**31, 4096, np.int32), "c": np.arange(4096, dtype=np.int32),
         "n": 4096}, scattered_permutation, defines={"MULTIPLIER": "2654435769u"},
    ),
    Example("vabs.cu", (20, 1, 1), (256, 1, 1), {"a": _SIGNED, "n": 5000}, vabs, data_dependent=True),
    Example(
        "vabs.cu", (20, 1, 1), (256, 1, 1), {"a": _random(5120), "n": 5000}, shifted_vabs,
        defines={"SHIFT": "0.5f"}, data_dependent=True,
    ),
    # A price is the difference of two terms, each up to some ten times as large and a few ulps off.
    Example(
        "black_scholes.cu", (9, 1, 1), (128, 1, 1),
        {"call": np.zeros(1152, np.float32), "put": np.zeros(1152, np.float32), "price": _between(20, 30, 1152, 1),
         "strike": _between(20, 30, 1152, 2), "years": _between(0.5, 2, 1152, 3), "rate": 0.02, "volatility": 0.3,
         "n": 1152}, black_scholes, ulps=64,
    ),
    Example(
        "texture_filter.cu", (4, 13, 1), (32, 8, 1),
        {"image": texture(_random(100, 100), filter="linear", address="clamp"), "shade": texture(_random(256)),
         "out": surface(_random(100, 100, seed=9)), "size": 100, "cosine": 0.75, "sine": 0.625}, texture_filter,
        ulps=2,
    ),
]  # fmt: skip
