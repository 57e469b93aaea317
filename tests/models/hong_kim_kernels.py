"""Workloads in the words of Hong and Kim, and of GPUPerf, as bound workloads."""

from __future__ import annotations

from drywarp.hardware import load_gpu, model_parameters
from drywarp.workload.cost import (
    TICKS_PER_CYCLE,
    BlockType,
    CostedNode,
    CostedPath,
    CostedWorkload,
    Item,
    Repeat,
    Subsystem,
)


def _ticks(cycles: float) -> int:
    return round(cycles * TICKS_PER_CYCLE)


def tiled_matmul() -> CostedWorkload:
    """Figures 12 and 13 on the GPU of Table 2: 3 iterations of 9 computations, two of them barriers, and 2 loads."""
    load = CostedNode(0, "mem_uncoalesced", 1, _ticks(320), _ticks(730), waits=(0,), sets=0, transactions=32)
    other = CostedNode(1, "comp", 0, _ticks(4), _ticks(4), waits=(0,), sets=0)
    barrier = CostedNode(2, "bar", 0, _ticks(4), _ticks(4), waits=(0,), sets=0, barrier=True)
    body: tuple[Item, ...] = (0, 1, 0, 1, 2, 1, 1, 1, 2, 1, 1)
    return _workload(
        "mwp-cwp-example",
        CostedPath((load, other, barrier), (Repeat(3, body),), 1),
        warps_per_block=4,
        blocks=80,
        blocks_per_sm=5,
        issue_cycles=4,
        kinds={"mem_uncoalesced": "memory", "comp": "computation", "bar": "barrier"},
    )


def fma_loads(fmas: int, sfus: int = 0, blocks_per_sm: int = 8, barriers: int = 0) -> CostedWorkload:
    """GPUPerf's C2050: a load, then FMAs and SFU instructions that need it and each other, ten times."""
    nodes = (
        CostedNode(0, "mem", 2, _ticks(20), _ticks(440), waits=(0,), sets=0, transactions=1),
        CostedNode(1, "fp", 0, _ticks(1), _ticks(18), waits=(0,), sets=0),
        CostedNode(2, "sfu", 1, _ticks(8), _ticks(40), waits=(0,), sets=0),
        CostedNode(3, "bar", 0, _ticks(1), _ticks(18), waits=(0,), sets=0, barrier=True),
    )
    body: tuple[Item, ...] = (0, *(1,) * fmas, *(2,) * sfus, *(3,) * barriers)
    return _workload(
        "c2050",
        CostedPath(nodes, (Repeat(10, body),), 1),
        warps_per_block=1,
        blocks=14 * blocks_per_sm,
        blocks_per_sm=blocks_per_sm,
        issue_cycles=1,
        kinds={"mem": "memory", "fp": "fp", "sfu": "sfu"},
    )


def _workload(
    gpu: str,
    path: CostedPath,
    *,
    warps_per_block: int,
    blocks: int,
    blocks_per_sm: int,
    issue_cycles: float,
    kinds: dict[str, str],
) -> CostedWorkload:
    facts = model_parameters(load_gpu(f"papers/{gpu}"))
    names = ("comp", "mem") if gpu == "mwp-cwp-example" else ("fp", "sfu", "mem")
    return CostedWorkload(
        paths=(path,),
        block_types=(BlockType((0,) * warps_per_block, 1.0),),
        subsystems=tuple(Subsystem(name, "sm") for name in names),
        partitions=1,
        issue_ticks=_ticks(issue_cycles),
        policy="loose_round_robin",
        in_order=True,
        launch_ticks=0,
        blocks=blocks,
        warps_per_block=warps_per_block,
        blocks_per_sm=blocks_per_sm,
        max_blocks_per_sm=48,
        sm_count=int(facts["sm_count"]),
        clock_hz=facts["clock_mhz"] * 1e6,
        kinds=kinds,
        parameters=facts,
    )
