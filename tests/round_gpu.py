"""A GPU of round numbers, on which costs can be worked out by hand: the A100's file with other values in it.

1000 MHz, so that a nanosecond is a cycle and 1 GB/s a byte a cycle. 10 SMs.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from drywarp.hardware import Gpu, load_gpu
from drywarp.hardware.gpu import L3Level
from drywarp.workload.cost import TICKS_PER_CYCLE

MIB = 1 << 20


def ticks(cycles: float) -> int:
    """Cycles as the whole ticks nearest to them."""
    return round(cycles * TICKS_PER_CYCLE)


def round_gpu(
    intake: float | None = None, l3: L3Level | None = None, base: str = "a100", shared_rate: float = 128.0
) -> Gpu:
    """λ of a class is 3 and its Λ 12 cycles; the L1 moves 64 bytes and looks up 2 lines a cycle, Λ 30.

    Shared memory moves `shared_rate` bytes a cycle, Λ 20. The L2 moves 100 bytes a cycle, Λ of its halves 100 and 200;
    DRAM reads 100, copies 80 and writes 60 GB/s, Λ 400. One SM takes in `intake` bytes a cycle. A kernel starts in no
    time.
    """
    gpu = load_gpu(base)
    change = msgspec.structs.replace
    memory = gpu.memory
    return replace(
        gpu,
        file_hash=f"round {base} {intake} {l3} {shared_rate}",
        classes={
            name: change(cost, lambda_=3.0, latency=None if cost.latency is None else 12.0, read_latency=None)
            for name, cost in gpu.classes.items()
        },
        sections={
            **gpu.sections,
            "device": change(
                gpu.device,
                sm_count=10,
                base_clock_mhz=500.0,
                boost_clock_mhz=1000.0,
                block_launch_latency=7.0,
                max_clock_mhz=None,
                kernel_start_ns=None,
            ),
            "memory": change(
                memory,
                l1=change(memory.l1, bytes_per_cycle=64.0, latency=30.0, tags_per_cycle=2),
                shared=change(memory.shared, bytes_per_cycle=shared_rate, latency=20.0),
                l2=change(
                    memory.l2,
                    bytes=MIB,
                    bytes_per_cycle=100.0,
                    near_latency_ns=100.0,
                    far_latency_ns=200.0,
                    bytes_per_cycle_per_sm=intake,
                ),
                dram=change(
                    memory.dram, peak_gbs=120.0, read_gbs=100.0, copy_gbs=80.0, write_gbs=60.0, latency_ns=400.0
                ),
                l3=l3,
            ),
        },
    )
