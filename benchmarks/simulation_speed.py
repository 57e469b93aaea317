"""How fast the Pipeline simulation runs: warp instructions per second on one core.

    python benchmarks/simulation_speed.py

The workload is the main loop of a tiled matrix multiplication: per iteration two global loads, two shared
stores, barriers, and 16 steps of two shared loads with four fused multiply-adds; 64 warps per SM. Rates
are those of the processor time of one core. Every instruction is simulated. Beside it an obvious simulation in
plain Python: the one that the tests hold the core against.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from drywarp.workload.cost import (
    TICKS_PER_CYCLE,
    BlockType,
    CostedNode,
    CostedPath,
    CostedWorkload,
    Item,
    Level,
    Repeat,
    Subsystem,
)

FMA, MEM, SHARED, BAR, L2, DRAM = range(6)
SUBSYSTEMS = (
    Subsystem("fma", "partition"),
    Subsystem("lsu", "sm"),
    Subsystem("shared", "sm"),
    Subsystem("bar", "sm"),
    Subsystem("l2", "sm", upstream=False),
    Subsystem("dram", "sm", upstream=False),
)
COLD = """
import os, sys, time
start = time.perf_counter()
import drywarp.models
imported = time.perf_counter() - start
sys.path.insert(0, {folder!r})
from simulation_speed import tiled_matmul
start = time.perf_counter()
drywarp.models.get_model("pipeline").predict(tiled_matmul(4, iterations=1, blocks=1), ())
print(imported, time.perf_counter() - start)
"""


def tiled_matmul(partitions: int, iterations: int = 200, blocks: int = 8, steps: int = 16) -> CostedWorkload:
    """`iterations` of the tile loop by blocks of 8 warps, 8 blocks per SM."""
    cycle = TICKS_PER_CYCLE
    rate = 4 // partitions  # one valve instead of four keeps the machine's throughput
    levels = (Level(L2, 2 * cycle, 2 * cycle), Level(DRAM, 4 * cycle, 2 * cycle))
    nodes: list[CostedNode] = []
    program: list[Item] = []

    def add(name: str, subsystem: int, cost: float, latency: int, **more: object) -> int:
        ticks = int(cost * cycle)
        nodes.append(CostedNode(len(nodes), name, subsystem, ticks, latency * cycle, cycle, **more))  # type: ignore[arg-type]
        return len(nodes) - 1

    program += [
        add("global_load", MEM, 4, 400, sets=0, levels=levels),
        add("global_load", MEM, 4, 400, sets=1, levels=levels),
        add("shared_store", SHARED, 2, 20, waits=(0,)),
        add("shared_store", SHARED, 2, 20, waits=(1,)),
        add("barrier", BAR, 1, 20, barrier=True),
    ]
    step: list[Item] = [
        add("shared_load", SHARED, 1, 23, sets=2),
        add("shared_load", SHARED, 1, 23, sets=3),
        *(add("fp32", FMA, 1 / rate, 4, waits=(2, 3, 4 + k), sets=4 + k) for k in range(4)),
    ]
    program += [Repeat(steps, tuple(step)), add("barrier", BAR, 1, 20, barrier=True)]
    path = CostedPath(tuple(nodes), (Repeat(iterations, tuple(program)),), 8)
    return CostedWorkload(
        paths=(path,),
        block_types=(BlockType((0,) * 8, 1.0),),
        subsystems=SUBSYSTEMS,
        partitions=partitions,
        issue_ticks=cycle // rate,
        policy="greedy_then_oldest",
        in_order=True,
        launch_ticks=200 * cycle,
        blocks=blocks,
        warps_per_block=8,
        blocks_per_sm=8,
        max_blocks_per_sm=8,
        sm_count=1,
        clock_hz=1.4e9,
    )


def coarser(work: CostedWorkload, by: int) -> CostedWorkload:
    """The same in ticks that are so many times as long: the plain simulation looks at every one."""

    def node(one: CostedNode) -> CostedNode:
        levels = tuple(Level(v.subsystem, v.lambda_ticks // by, v.tail_ticks // by) for v in one.levels)
        costs = {name: getattr(one, name) // by for name in ("lambda_ticks", "latency_ticks", "stall_ticks")}
        return replace(one, levels=levels, **costs)

    paths = tuple(replace(path, nodes=tuple(map(node, path.nodes))) for path in work.paths)
    return replace(work, paths=paths, issue_ticks=work.issue_ticks // by, launch_ticks=work.launch_ticks // by)


def main() -> None:
    """Print speed, cold compile time and warm start."""
    from drywarp.pipeline.blocks import Share
    from drywarp.pipeline.simulate import run_share

    quickest = 0.0
    for partitions in (4, 1):
        for policy in ("greedy_then_oldest", "loose_round_robin"):
            workload = replace(tiled_matmul(partitions), policy=policy)
            run_share(workload, Share(1, 1, 1))
            seconds = float("inf")
            for _ in range(3):
                start = time.process_time()
                result = run_share(workload, Share(8, 24, 24), stalls=False)
                seconds = min(seconds, time.process_time() - start)
            print(
                f"p={partitions} {policy:20} {result.issued / seconds / 1e6:6.1f} million warp instructions/s"
                f"  ({result.issued} in {seconds:.2f} s; {result.issued / result.cycles:.2f} IPC)"
            )
            quickest = max(quickest, result.issued / seconds)
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "pipeline"))
    from pipeline_reference import Reference

    small = coarser(tiled_matmul(4, iterations=1, blocks=1, steps=4), TICKS_PER_CYCLE)
    start = time.process_time()
    reference = Reference(small, Share(1, 1, 1))
    reference.run()
    rate = len(reference.rows) / (time.process_time() - start)
    print(f"plain Python: {rate:.0f} warp instructions/s; the core is {quickest / rate:,.0f} times as fast")
    with tempfile.TemporaryDirectory() as cache:
        for label in ("first process", "second process"):
            code = COLD.format(folder=str(Path(__file__).parent))
            environment = {**os.environ, "DRYWARP_CACHE_DIR": cache}
            out = subprocess.run(
                [sys.executable, "-c", code],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            imported, first = map(float, out.stdout.split())
            print(f"{label}: import {imported:.2f} s, first prediction {first:.2f} s")


if __name__ == "__main__":
    main()
