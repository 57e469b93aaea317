"""What jumps over steady states and the rate of a few waves save, against simulating every instruction.

    python benchmarks/steady_states.py

The tiled matrix multiplication of the examples on an A100, at 1024³ and 4096³, at every occupancy: the time of the
full simulation over that of the answer, how far the answer is off (0 where a state recurs: it is exact), and what the
whole curve takes at both sizes. Then grids of a thousand and of a million blocks, and a loop of ten million
iterations with the memory that it takes. Last, a long loop before a short one of many instructions. All in one process.
"""

import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from simulation_speed import tiled_matmul

from drywarp.analysis.prepare import prepare_kernel
from drywarp.hardware import load_gpu
from drywarp.models import get_model
from drywarp.pipeline import Share, share_of, simulate
from drywarp.pipeline.extrapolate import CURVE_BUDGET, LAUNCH_BUDGET
from drywarp.workload.abstract import load_workload
from drywarp.workload.cost import CostedWorkload

EXAMPLES = Path(__file__).parents[1] / "examples"
T = TypeVar("T")
UNEVEN = """
format = 1
title = "A long loop of accesses before a short one of arithmetic"
gpu = "papers/volkov-kepler"

[launch]
warps_per_block = 4
occupancy = 64

[classes.add]
kind = "fp"
from = ["add"]

[classes.load]
kind = "memory"
from = ["stream"]

[[program]]
loop = 20000
body = [
    { id = "load", class = "load", previous = ["use"] },
    { loop = 3, body = [{ id = "use", class = "add", needs = ["load"], previous = ["use"] }] },
]

[[program]]
loop = 40
body = [{ loop = 200, body = [{ id = "rest", class = "add", needs = ["use"], previous = ["rest"] }] }]
"""


def timed(run: Callable[[], T], times: int = 1) -> tuple[T, float]:
    """The result, and the quickest of some runs in seconds."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - started)
    return result, best


def matmul(n: int) -> CostedWorkload:
    shapes = dict.fromkeys("ABC", f"f32[{n},{n}]")
    side = n // 16
    return prepare_kernel(EXAMPLES / "tiled_matmul.cu", gpu="a100", grid=(side, side), args={**shapes, "n": n}).costed


def every_occupancy(work: CostedWorkload) -> None:
    print("blocks per SM   full s   answer s   full / answer   off by   how")
    for blocks in range(1, work.max_blocks_per_sm + 1):
        share = share_of(work, blocks)
        budget = LAUNCH_BUDGET if blocks == work.blocks_per_sm else CURVE_BUDGET
        full, long = timed(lambda share=share: simulate(work, share, stalls=False, full=True))
        answer, short = timed(lambda share=share, budget=budget: simulate(work, share, budget, stalls=False), 3)
        off = answer.total_ticks / full.total_ticks - 1
        how = "rate of a few waves" if answer.extrapolated else "jumps" if answer.jumped else "all simulated"
        print(f"{blocks:13} {long:8.2f} {short:10.4f} {long / short:15.0f} {off:+8.3%}   {how}")


def sizes() -> None:
    model = get_model("pipeline")
    seconds = {}
    for n in (1024, 4096):
        work = matmul(n)
        curve = [blocks * work.warps_per_block for blocks in range(1, work.max_blocks_per_sm + 1)]
        _, seconds[n] = timed(lambda work=work, curve=curve: model.predict(work, curve), 3)
        print(f"{n}³, a curve of {len(curve)} occupancies: {seconds[n]:.2f} s")
    print(f"4096³ takes {seconds[4096] / seconds[1024]:.2f} times as long as 1024³, for 64 times the work")


def grids() -> None:
    for name, args in (("saxpy.cu", {}), ("stencil.cu", {}), ("tiled_matmul.cu", {})):
        work = prepare_kernel(EXAMPLES / name, gpu="a100", args=args).costed
        found = {}
        for blocks in (1_000, 1_000_000):
            many = replace(work, blocks=blocks)
            share = share_of(many, many.blocks_per_sm)
            result, found[blocks] = timed(lambda many=many, share=share: simulate(many, share), 3)
            how = "estimated" if result.extrapolated else "exact"
            print(f"{name:16} {blocks:9,} blocks: {found[blocks]:7.3f} s, {how}")
        print(f"{'':16} a million takes {found[1_000_000] / found[1_000]:.1f} times as long as a thousand")


def long_loop() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work = tiled_matmul(4, iterations=10**7)
    for resident in (1, 2, 8):
        share = Share(resident, resident, resident)
        result, seconds = timed(lambda share=share: simulate(work, share, stalls=False))
        how = "estimated" if result.extrapolated else "exact"
        print(f"10⁷ iterations, {resident} blocks: {result.issued:.3g} warp instructions in {seconds:.2f} s, {how}")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory {before / 1024:.0f} MiB before, {after / 1024:.0f} MiB after")


def uneven_loops() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "uneven.toml"
        file.write_text(UNEVEN)
        work = load_workload(str(file), load_gpu("papers/volkov-kepler"), {}, runs=3)
    times = [get_model("pipeline", full_simulation=full).predict(work, (64,)).cycles for full in (False, True)]
    print(f"20,000 iterations before 40: estimated, off by {times[0] / times[1] - 1:+.2%}")


def main() -> None:
    warm = tiled_matmul(4, iterations=2)
    simulate(warm, Share(1, 1, 1))
    work = matmul(4096)
    every_occupancy(work)
    print()
    sizes()
    print()
    grids()
    print()
    long_loop()
    print()
    uneven_loops()


if __name__ == "__main__":
    main()
