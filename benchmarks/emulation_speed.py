"""Warp instructions a second of the emulator on the tiled matmul, on one core.

    python benchmarks/emulation_speed.py [--arch sm_80] [--repeat 5] [--grid]

With 32 and with 256 warps in flight, the compiled loop beside plain NumPy in the same process: the ratio between
the two says more than either, for machines differ. A run includes what every emulation does (memory, tables,
recording) but for compiling the kernel; it is the quickest of several, in processor time. With `--grid` the whole grid
instead, in one thread and on all cores: wall time and processor time of a run each, with a record of all accesses,
which takes some 3 GB, and for the results alone, as `drywarp run` emulates.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from drywarp.execution.emulator import Limits, emulate
from drywarp.execution.emulator.run import run_whole
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Launch
from drywarp.support.folders import thread_count, use_threads

ROOT = Path(__file__).parents[1]
SIZE = 1024
WARPS_PER_BLOCK = 8
TARGETS = {32: 60e6, 256: 80e6}
"""Warp instructions a second that the core is to reach, by warps in flight."""


def speed(kernel: Kernel, launch: Launch, warps: int, compiled: bool) -> tuple[float, int]:
    """Warp instructions a second of one run, and how many there were."""
    blocks = list(range(warps // WARPS_PER_BLOCK))
    started = time.process_time()
    run = emulate(kernel, launch, blocks=blocks, limits=Limits(lane_steps=1 << 50), compiled=compiled)
    return run.profile.steps / (time.process_time() - started), run.profile.steps


def recorded(kernel: Kernel, launch: Launch) -> int:
    """Run all blocks with a record of their accesses; the number of warp instructions."""
    return emulate(kernel, launch, blocks="all", limits=Limits(lane_steps=1 << 50, accesses=1 << 40)).profile.steps


def for_results(kernel: Kernel, launch: Launch) -> int:
    """Run all blocks for what they compute alone."""
    done = run_whole(kernel, launch, 1 << 40)
    assert done is not None
    return done.warp_instructions


def timed(run: Callable[[Kernel, Launch], int], kernel: Kernel, launch: Launch) -> str:
    """What a run of the whole grid takes."""
    wall, processor = time.perf_counter(), time.process_time()
    steps = run(kernel, launch)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return f"{steps:,} warp instructions in {wall:.2f} s, {processor:.2f} s of processor time"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_80", help="architecture (default: sm_80)")
    parser.add_argument("--repeat", type=int, default=5, help="runs, of which the quickest counts (default: 5)")
    parser.add_argument("--grid", action="store_true", help="emulate the whole grid, in one thread and in several")
    given = parser.parse_args()
    kernel = compile_cuda(ROOT / "examples" / "tiled_matmul.cu", arch=given.arch)
    numbers = np.random.default_rng(1).random((SIZE, SIZE), np.float32)
    arguments = {"A": numbers, "B": numbers, "C": np.zeros_like(numbers), "n": SIZE}
    launch = make_launch(kernel, (SIZE // 16, SIZE // 16, 1), (16, 16, 1), arguments)
    speed(kernel, launch, WARPS_PER_BLOCK, True)
    if given.grid:
        for threads in (1, None):
            use_threads(threads)
            print(f"{thread_count()} threads, accesses recorded: {timed(recorded, kernel, launch)}")
            print(f"{thread_count()} threads, results alone: {timed(for_results, kernel, launch)}")
        return
    print(f"tiled_matmul on {given.arch}, million warp instructions a second")
    print(f"{'warps':>6} {'instructions':>13} {'compiled':>9} {'NumPy':>7} {'ratio':>6} {'target':>7}")
    for warps, target in TARGETS.items():
        compiled, count = max(speed(kernel, launch, warps, True) for _ in range(given.repeat))
        plain, _ = max(speed(kernel, launch, warps, False) for _ in range(max(1, given.repeat // 2)))
        row = f"{warps:6} {count:13,} {compiled / 1e6:9.2f} {plain / 1e6:7.2f} {compiled / plain:6.1f}"
        print(f"{row} {target / 1e6:7.1f}{'' if compiled >= target else '  missed'}")


if __name__ == "__main__":
    main()
