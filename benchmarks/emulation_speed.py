"""Warp instructions a second of the emulator on the tiled matmul, on one core.

    python benchmarks/emulation_speed.py [--arch sm_80] [--repeat 5]

With 32 and with 256 warps in flight, the compiled loop beside plain NumPy in the same process: the ratio between
the two says more than either, for machines differ. A run includes what every emulation does (memory, tables,
recording) but for compiling the kernel; it is the quickest of several, in processor time.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from drywarp.execution.emulator import Limits, emulate
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Launch

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_80", help="architecture (default: sm_80)")
    parser.add_argument("--repeat", type=int, default=5, help="runs, of which the quickest counts (default: 5)")
    given = parser.parse_args()
    kernel = compile_cuda(ROOT / "examples" / "tiled_matmul.cu", arch=given.arch)
    numbers = np.random.default_rng(1).random((SIZE, SIZE), np.float32)
    arguments = {"A": numbers, "B": numbers, "C": np.zeros_like(numbers), "n": SIZE}
    launch = make_launch(kernel, (SIZE // 16, SIZE // 16, 1), (16, 16, 1), arguments)
    speed(kernel, launch, WARPS_PER_BLOCK, True)
    print(f"tiled_matmul on {given.arch}, million warp instructions a second")
    print(f"{'warps':>6} {'instructions':>13} {'compiled':>9} {'NumPy':>7} {'ratio':>6} {'target':>7}")
    for warps, target in TARGETS.items():
        compiled, count = max(speed(kernel, launch, warps, True) for _ in range(given.repeat))
        plain, _ = max(speed(kernel, launch, warps, False) for _ in range(max(1, given.repeat // 2)))
        row = f"{warps:6} {count:13,} {compiled / 1e6:9.2f} {plain / 1e6:7.2f} {compiled / plain:6.1f}"
        print(f"{row} {target / 1e6:7.1f}{'' if compiled >= target else '  missed'}")


if __name__ == "__main__":
    main()
