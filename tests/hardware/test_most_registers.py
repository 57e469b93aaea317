"""A launch that is refused for its registers says how many would do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.hardware import TooManyRegisters, load_gpu, occupancy


@given(
    gpu=st.sampled_from(["a100", "rtx2080ti", "v100", "h100"]),
    registers=st.integers(33, 255),
    threads=st.integers(129, 1024),
)
def test_what_it_says_is_the_most_that_fits(gpu: str, registers: int, threads: int) -> None:
    limits = load_gpu(gpu).occupancy
    most = registers
    try:
        occupancy(limits, registers, 0, threads)
    except TooManyRegisters as error:
        most = error.most
    assert 0 < most <= registers
    assert occupancy(limits, most, 0, threads).blocks_per_sm >= 1
    if most < registers:
        with pytest.raises(TooManyRegisters):
            occupancy(limits, most + 1, 0, threads)


def test_by_hand() -> None:
    # 65,536 registers for 32 warps of 32 threads: 64 each.
    with pytest.raises(TooManyRegisters) as found:
        occupancy(load_gpu("a100").occupancy, 80, 0, 1024)
    assert found.value.most == 64
