"""What stands in a buffer before a launch: counter-based, so that any part can be made on its own.

A random buffer is cut into chunks of 64 KiB; each has a generator of its own, keyed by the seed, the
buffer's place among the arguments and the chunk's number. The order in which chunks are first
touched therefore does not matter, and a huge buffer costs only what is touched.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernel.launch import DTYPES, Buffer

CHUNK_BYTES = 1 << 16
_RANDOM_INTEGERS = 100


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type that holds a buffer's elements; bf16, which NumPy lacks, is held as its bits in uint16."""
    return np.dtype("uint16" if name == "bf16" else DTYPES[name][0])


def buffer_content(buffer: Buffer, ordinal: int, seed: int) -> npt.NDArray[Any]:
    """The whole content of a buffer at launch, shaped like it (bf16 as its bits in uint16).

    `ordinal` is the buffer's place among the launch's arguments, `seed` the launch's seed. This is
    what the emulator's lazily made memory holds, so a reference computed from it can be compared.
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
    values = np.ones(count) if buffer.fill == "ones" else np.arange(first, first + count, dtype=np.float64)
    if name == "bf16":
        return _bf16_bits(values.astype(np.float32))
    if dtype.kind in "iu" and buffer.fill == "iota":
        return np.arange(first, first + count).astype(dtype)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def _bf16_bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The upper halves of float32 numbers, rounded to nearest even."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return rounded.astype(np.uint16)


assert sys.byteorder == "little", "device memory is little endian, and is viewed through NumPy types"
