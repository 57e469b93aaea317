"""Kernels of the papers as bound workloads."""

from __future__ import annotations

from dataclasses import replace

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

COMP, MEM = 0, 1


def node(
    subsystem: int, lambda_: float, latency: float, waits: tuple[int, ...] = (), sets: int = -1, barrier: bool = False
) -> CostedNode:
    return CostedNode(
        0,
        "comp" if subsystem == COMP else "mem",
        subsystem,
        round(lambda_ * TICKS_PER_CYCLE),
        round(latency * TICKS_PER_CYCLE),
        waits=waits,
        sets=sets,
        barrier=barrier,
    )


def workload(
    path: CostedPath,
    warps_per_block: int = 1,
    issue_limit: float = 0.0,
    policy: str = "loose_round_robin",
    in_order: bool = True,
    partitions: int = 1,
    runs: int = 1,
    launch_cycles: int = 0,
) -> CostedWorkload:
    return CostedWorkload(
        paths=(path,),
        block_types=(BlockType((0,) * warps_per_block, 1.0),),
        subsystems=(Subsystem("comp", "partition"), Subsystem("mem", "sm")),
        partitions=partitions,
        issue_ticks=round(TICKS_PER_CYCLE / issue_limit) if issue_limit else 0,
        policy=policy,
        in_order=in_order,
        launch_ticks=launch_cycles * TICKS_PER_CYCLE,
        blocks=1,
        warps_per_block=warps_per_block,
        blocks_per_sm=1,
        max_blocks_per_sm=64,
        sm_count=1,
        clock_hz=1e9,
        runs=runs,
    )


def example(in_order: bool) -> CostedWorkload:
    """Fig. 1 with the parameters of Table 2."""
    nodes = (
        node(COMP, 1, 4, (), 0),
        node(COMP, 1, 4, (), 1),
        node(COMP, 1, 4, (0, 1), 2),
        node(MEM, 2, 6, (2,), 3),
        node(COMP, 1, 4, (3,), 4),
        node(MEM, 2, 6, (4,), 5),
    )
    return workload(CostedPath(nodes, tuple(range(6)), 6), in_order=in_order)


def chain(length: int, lambda_ticks: int, latency_ticks: int) -> CostedPath:
    """`length` instructions, each dependent on the one before."""
    link = replace(node(COMP, 0, 0, (0,), 0), lambda_ticks=lambda_ticks, latency_ticks=latency_ticks)
    return CostedPath((link,), (Repeat(length, (0,)),), 1)


def instruction_mix(beta: int, iterations: int, same_subsystem: bool) -> CostedPath:
    """Fig. 11: β instructions of type 1 (λ 1), then one of type 2 (λ 4), all dependent, repeated."""
    nodes = (node(COMP, 1, 8, (0,), 0), node(COMP if same_subsystem else MEM, 4, 12, (0,), 0))
    body: tuple[Item, ...] = (Repeat(beta, (0,)), 1)
    return CostedPath(nodes, (Repeat(iterations, body),), 1)
