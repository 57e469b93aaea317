"""Launch geometry and buffers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.kernel.launch.launch import DTYPES, Buffer, Launch, array_buffer

extents = st.tuples(*[st.integers(1, 9)] * 3)


@given(grid=extents, block=extents)
def test_blocks_are_numbered_with_x_fastest(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    launch = Launch(grid, block)
    order = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    assert [launch.coordinates(i) for i in range(launch.blocks)] == order
    assert launch.blocks == len(order)


@pytest.mark.parametrize(("threads", "warps"), [(1, 1), (32, 1), (33, 2), (1024, 32)])
def test_a_partly_filled_warp_counts_whole(threads: int, warps: int) -> None:
    assert Launch((1, 1, 1), (threads, 1, 1)).warps_per_block == warps


@pytest.mark.parametrize(("dtype", "size"), [(name, size) for name, (_, size) in DTYPES.items()])
def test_bytes_of_a_buffer(dtype: str, size: int) -> None:
    assert Buffer(dtype, (3, 5)).count == 15
    assert Buffer(dtype, (3, 5)).nbytes == 15 * size


def test_arrays_keep_type_and_shape() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3).T
    buffer = array_buffer(array)
    assert (buffer.dtype, buffer.shape, buffer.fill) == ("i16", (3, 2), "array")
    assert buffer.array is not None
    assert buffer.array.tobytes() == array.tobytes()


def test_bool_is_a_byte_and_complex_is_refused() -> None:
    assert array_buffer(np.array([True, False])).dtype == "u8"
    with pytest.raises(TypeError, match="no device type for NumPy elements of type complex64"):
        array_buffer(np.zeros(3, np.complex64))
