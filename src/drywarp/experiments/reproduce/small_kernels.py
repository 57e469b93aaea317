"""The papers' small kernels as bound workloads, on the papers' GPUs or with explicit λ and Λ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...hardware import Gpu, load_gpu
from ...pipeline import LAUNCH_BUDGET, share_of, simulate
from ...workload.cost import BlockType, CostedNode, CostedPath, CostedWorkload, Item, Repeat, Subsystem, to_ticks

CLOCK_HZ = 1e9
"""Only cycles matter here, so any clock will do."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Subsystem, λ and Λ of an instruction, in cycles."""

    subsystem: str
    lambda_: float
    latency: float


@dataclass(frozen=True, slots=True)
class Instruction:
    """A class, the kernel instructions that it waits for, and whether it is a store, for which nothing waits."""

    class_: str
    waits: tuple[int, ...] = ()
    store: bool = False


def costs_of(gpu: str | Gpu) -> dict[str, Cost]:
    """λ and Λ of every class of a GPU file."""
    machine = load_gpu(gpu) if isinstance(gpu, str) else gpu
    return {name: Cost(c.subsystem, c.lambda_, c.latency or 0.0) for name, c in machine.classes.items()}


def issue_limit_of(gpu: str) -> float:
    """IL of a GPU file, 0 if it has none."""
    return load_gpu(gpu).scheduler.issue_per_cycle or 0.0


def kernel(
    costs: Mapping[str, Cost],
    instructions: Sequence[Instruction],
    program: tuple[Item, ...] = (),
    issue_limit: float = 0.0,
    memory: Sequence[str] = (),
) -> CostedWorkload:
    """One warp per block, one block per unit of occupancy; `memory` are the classes of memory accesses.

    Without a `program` every instruction runs once, in order.
    """
    names = list(dict.fromkeys(cost.subsystem for cost in costs.values()))
    nodes = tuple(
        CostedNode(
            instruction=index,
            class_=i.class_,
            subsystem=names.index(costs[i.class_].subsystem),
            lambda_ticks=to_ticks(costs[i.class_].lambda_),
            latency_ticks=to_ticks(costs[i.class_].lambda_ if i.store else costs[i.class_].latency),
            waits=i.waits,
            sets=-1 if i.store else index,
            async_result=i.store,
        )
        for index, i in enumerate(instructions)
    )
    return CostedWorkload(
        paths=(CostedPath(nodes, program or tuple(range(len(nodes))), len(nodes)),),
        block_types=(BlockType((0,), 1.0),),
        subsystems=tuple(Subsystem(name, "sm") for name in names),
        partitions=1,
        issue_ticks=to_ticks(1 / issue_limit) if issue_limit else 0,
        policy="loose_round_robin",
        in_order=False,
        launch_ticks=0,
        blocks=1,
        warps_per_block=1,
        blocks_per_sm=1,
        max_blocks_per_sm=64,
        sm_count=1,
        clock_hz=CLOCK_HZ,
        runs=1,
        kinds={name: "memory" if name in memory else "computation" for name in costs},
    )


def example() -> CostedWorkload:
    """Fig. 1 of the analysis paper on its example GPU: c1 and c2, then c3, m1, c4, m2."""
    line = [
        Instruction("comp"),
        Instruction("comp"),
        Instruction("comp", (0, 1)),
        Instruction("mem", (2,)),
        Instruction("comp", (3,)),
        Instruction("mem", (4,)),
    ]
    return kernel(costs_of("papers/example"), line, memory=("mem",))


def chain(
    costs: Mapping[str, Cost], class_: str, length: int, issue_limit: float = 0.0, memory: Sequence[str] = ()
) -> CostedWorkload:
    """`length` instructions of a class, each waiting for the previous one."""
    return kernel(costs, [Instruction(class_, (0,))], (Repeat(length, (0,)),), issue_limit, memory)


def instruction_mix(
    costs: Mapping[str, Cost], first: str, second: str, beta: int, iterations: int, issue_limit: float = 0.0
) -> CostedWorkload:
    """Fig. 11 of the analysis paper: β instructions of one class, then one of another, all in one chain."""
    if beta == 1:
        pair = [Instruction(first, (1,)), Instruction(second, (0,))]
        return kernel(costs, pair, (Repeat(iterations, (0, 1)),), issue_limit)
    mix = [Instruction(first, (2,)), Instruction(first, (0, 1)), Instruction(second, (1,))]
    body: tuple[Item, ...] = (0, Repeat(beta - 1, (1,)), 2)
    return kernel(costs, mix, (Repeat(iterations, body),), issue_limit)


def simulated_cycles(workload: CostedWorkload, warps: int) -> float:
    """Cycles that the Pipeline simulation takes for ω warps that start together."""
    return simulate(workload, share_of(workload, warps), LAUNCH_BUDGET, stalls=False).cycles


def steady_ipc(shorter: CostedWorkload, longer: CostedWorkload, instructions: int, warps: int) -> float:
    """Steady-state IPC from two lengths of a kernel; `instructions` is the difference in instructions per warp."""
    return warps * instructions / (simulated_cycles(longer, warps) - simulated_cycles(shorter, warps))
