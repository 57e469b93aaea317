"""The content of a buffer before a launch: counter-based, so any part can be generated independently.

A random buffer is cut into chunks of 64 KiB; each has its own generator, keyed by the seed, the buffer's place among
the arguments and the chunk's number. So the order in which chunks are first touched does not matter, and a huge buffer
costs only what is touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.launch.launch import DTYPES, FILLS, Buffer, Drawn, drawn

CHUNK_BYTES = 1 << 16
_RANDOM_INTEGERS = 100


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type that holds a buffer's elements; bf16, which NumPy lacks, is held as its bits in uint16."""
    return np.dtype("uint16" if name == "bf16" else DTYPES[name][0])


def buffer_content(buffer: Buffer, ordinal: int, seed: int) -> npt.NDArray[Any]:
    """The whole content of a buffer at launch, shaped like it (bf16 as its bits in uint16).

    `ordinal` is the buffer's place among the launch's arguments, `seed` the launch's seed. This is the content of the
    emulator's lazily generated memory, so a reference computed from it can be compared.
    """
    dtype = numpy_dtype(buffer.dtype)
    flat = np.zeros(buffer.count, dtype)
    for chunk in range(-(-buffer.nbytes // CHUNK_BYTES)):
        fill_chunk(flat.view(np.uint8), buffer, ordinal, seed, chunk)
    return flat.reshape(buffer.shape)


def fill_chunk(memory: npt.NDArray[np.uint8], buffer: Buffer, ordinal: int, seed: int, chunk: int) -> None:
    """Write chunk number `chunk` of the buffer's content into `memory`, the buffer's bytes."""
    dtype = numpy_dtype(buffer.dtype)
    start = chunk * CHUNK_BYTES
    stop = min(start + CHUNK_BYTES, buffer.nbytes)
    first, count = start // dtype.itemsize, (stop - start) // dtype.itemsize
    if buffer.fill == "array":
        assert buffer.array is not None
        source = np.ascontiguousarray(buffer.array).reshape(-1).view(np.uint8)
        memory[start:stop] = source[start:stop]
        return
    if buffer.fill == "zeros":
        return
    memory[start:stop].view(dtype)[...] = _elements(buffer, ordinal, seed, chunk, first, count)


def _elements(buffer: Buffer, ordinal: int, seed: int, chunk: int, first: int, count: int) -> npt.NDArray[Any]:
    dtype = numpy_dtype(buffer.dtype)
    name = buffer.dtype
    if buffer.fill == "random":
        key = np.array([seed & 0xFFFFFFFFFFFFFFFF, ordinal], np.uint64)
        counter = np.array([0, 0, chunk, 0], np.uint64)
        generator = np.random.Generator(np.random.Philox(key=key, counter=counter))
        if name in ("f32", "f64"):
            return generator.random(count, dtype=np.float32 if name == "f32" else np.float64)
        if name in ("f16", "bf16"):
            # Multiples of the spacing just below 1 are exact: rounding cannot reach 1.
            steps = 2048 if name == "f16" else 256
            values = generator.integers(0, steps, count).astype(np.float32) / np.float32(steps)
            return values.astype(np.float16) if name == "f16" else _bf16_bits(values)
        return generator.integers(0, _RANDOM_INTEGERS, count).astype(dtype)
    if (fill := drawn(buffer.fill)) is not None:
        return _drawn(fill, buffer, ordinal if fill.seed is None else 0, seed, chunk, first)
    if buffer.fill not in FILLS:
        if dtype.kind in "iu" and name != "bf16":
            return np.full(count, int(buffer.fill), dtype)
        return _as_type(np.full(count, float(buffer.fill)), name)
    values = np.ones(count) if buffer.fill == "ones" else np.arange(first, first + count, dtype=np.float64)
    if name == "bf16":
        return _bf16_bits(values.astype(np.float32))
    if dtype.kind in "iu" and buffer.fill == "iota":
        return np.arange(first, first + count).astype(dtype)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def _as_type(values: npt.NDArray[np.float64], name: str) -> npt.NDArray[Any]:
    """Numbers as elements of a buffer's type; whole numbers for integers, the nearest ones that the type has."""
    if name == "bf16":
        return _bf16_bits(values.astype(np.float32))
    dtype = numpy_dtype(name)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # The largest 64-bit integer is no double.
        highest = float(limits.max) if dtype.itemsize < 8 else np.nextafter(float(limits.max), 0)
        return np.clip(np.floor(values), float(limits.min), highest).astype(dtype)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def _drawn(fill: Drawn, buffer: Buffer, ordinal: int, seed: int, chunk: int, first: int) -> npt.NDArray[Any]:
    dtype = numpy_dtype(buffer.dtype)
    count = min(CHUNK_BYTES, buffer.nbytes - chunk * CHUNK_BYTES) // dtype.itemsize
    chosen = seed if fill.seed is None else fill.seed
    # Another stream than that of plain random buffers.
    key = np.array([chosen & 0xFFFFFFFFFFFFFFFF, ordinal + (1 << 32)], np.uint64)
    if fill.kind == "permutation":
        return _as_type(_permuted(first, count, buffer.count, key).astype(np.float64), buffer.dtype)
    generator = np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, chunk, 0], np.uint64)))
    low, high = fill.numbers
    if fill.kind == "normal":
        values = generator.normal(low, high, count)
        return _as_type(values + 0.5 if dtype.kind in "iu" and buffer.dtype != "bf16" else values, buffer.dtype)
    return _as_type(low + (high - low) * generator.random(count), buffer.dtype)


def _permuted(first: int, count: int, total: int, key: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Where a random permutation of `total` numbers sends those from `first` on: a Feistel network.

    It permutes a power of four; numbers beyond `total` are permuted again until they fall inside.
    """
    half = np.uint64(max(1, -(-(max(total - 1, 1)).bit_length() // 2)))
    mask = np.uint64((1 << int(half)) - 1)
    values = np.arange(first, first + count, dtype=np.uint64)
    outside = np.ones(count, np.bool_)
    while outside.any():
        left, right = values[outside] >> half, values[outside] & mask
        for number in range(4):
            mixed = (right + key[number & 1] + np.uint64(number + 1)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            left, right = right, left ^ (mixed >> np.uint64(32) & mask)
        values[outside] = left << half | right
        outside = values >= np.uint64(total)
    return values


def _bf16_bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The upper halves of float32 numbers, rounded to nearest even."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype(np.uint16)
