"""Kernels that Volkov's thesis prints, as bound workloads on its GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...hardware import Gpu, load_gpu
from ...pipeline.blocks import Share
from ...pipeline.simulate import run_share
from ...workload.cost import BlockType, CostedNode, CostedPath, CostedWorkload, Item, Repeat, Subsystem, to_ticks

PAPER = "Volkov 2016"
WARP = 32
WARP_BYTES = 128
"""A coalesced access: 32 lanes of 4 bytes."""
VECTOR_ADD_ACCESSES = 3
"""Memory instructions of Listing 3.5."""
GENERATIONS = ("g80", "gt200", "fermi", "kepler", "maxwell")


def volkov_gpu(generation: str) -> Gpu:
    """One of the thesis's five GPUs."""
    return load_gpu(f"papers/volkov-{generation}")


@dataclass(frozen=True, slots=True)
class Line:
    """An assembly line: its class in the GPU file, the register it sets, and the registers it waits for.

    `latency` and `stall` are in cycles; latency None means that of the class. `stall` is the ILP latency to the next
    line. `issues` is 0 for the second of a dual-issued pair, and one more for each reissue.
    """

    class_: str
    sets: str = ""
    waits: str = ""
    latency: float | None = None
    stall: float = 0.0
    barrier: bool = False
    store: bool = False
    issues: int = 1


def path_of(gpu: Gpu, lines: Sequence[Line], program: tuple[Item, ...] | None = None) -> CostedPath:
    """The lines as a warp path, in order unless `program` is given."""
    slots = {name: number for number, name in enumerate(sorted({line.sets for line in lines} - {""}))}
    subsystems = list(gpu.subsystems)

    def node(index: int, line: Line) -> CostedNode:
        cost = gpu.classes[line.class_]
        latency = line.latency if line.latency is not None else cost.latency or 0.0
        return CostedNode(
            instruction=index,
            class_=line.class_,
            subsystem=subsystems.index(cost.subsystem),
            lambda_ticks=to_ticks(cost.lambda_),
            latency_ticks=to_ticks(latency),
            stall_ticks=to_ticks(line.stall),
            waits=tuple(slots[name] for name in line.waits.split() if name in slots),
            sets=slots[line.sets] if line.sets else -1,
            barrier=line.barrier,
            async_result=line.store,
            issues=line.issues,
        )

    nodes = tuple(node(index, line) for index, line in enumerate(lines))
    return CostedPath(nodes, program or tuple(range(len(nodes))), len(slots))


def workload_of(gpu: Gpu, paths: Sequence[CostedPath], launch_cycles: float = 0.0, sms: int = 1) -> CostedWorkload:
    """One block whose warps take these paths, run once, with in-order issue."""
    issue = gpu.scheduler.issue_per_cycle
    warps = len(paths)
    return CostedWorkload(
        paths=tuple(paths),
        block_types=(BlockType(tuple(range(warps)), 1.0),),
        subsystems=tuple(Subsystem(name, part.scope, part.upstream) for name, part in gpu.subsystems.items()),
        partitions=gpu.scheduler.partitions,
        issue_ticks=to_ticks(1 / issue) if issue else 0,
        policy=gpu.scheduler.policy,
        in_order=True,
        launch_ticks=to_ticks(launch_cycles),
        blocks=1,
        warps_per_block=warps,
        blocks_per_sm=1,
        max_blocks_per_sm=64,
        sm_count=sms,
        clock_hz=gpu.parameter("clock_mhz") * 1e6,
        runs=1,
        kinds={"stream": "memory", "random": "memory", "smem": "shared", "smem2": "shared", "add": "fp"},
    )


def chain(gpu: Gpu, classes: Sequence[str]) -> CostedWorkload:
    """Back-to-back dependent instructions."""
    return workload_of(gpu, [path_of(gpu, [Line(name, "R1", "R1") for name in classes])])


def alpha_mix(gpu: Gpu, alpha: int, groups: int = 8) -> CostedWorkload:
    """§4.1: `groups` repetitions of one memory instruction and α dependent adds."""
    lines = [Line("stream", "R1", "R1"), Line("add", "R1", "R1")]
    body: tuple[Item, ...] = (0, Repeat(alpha, (1,))) if alpha else (0,)
    return workload_of(gpu, [path_of(gpu, lines, (Repeat(groups, body),))])


def without_limits(work: CostedWorkload) -> CostedWorkload:
    """The workload without throughput limits: only the latencies given in the lines apply (§3.7)."""
    paths = tuple(
        replace(path, nodes=tuple(replace(node, lambda_ticks=0) for node in path.nodes)) for path in work.paths
    )
    return replace(work, paths=paths, issue_ticks=0)


def issue_cycles(work: CostedWorkload) -> list[list[float]]:
    """Issue cycles of each warp's instructions, with separate hardware for every warp (§3.7)."""
    alone = replace(
        without_limits(work),
        subsystems=tuple(replace(subsystem, scope="partition") for subsystem in work.subsystems),
        partitions=work.warps_per_block,
    )
    profile = run_share(alone, Share(1, 1, 1), profile=True).profile
    assert profile is not None
    warps: list[list[float]] = [[] for _ in range(work.warps_per_block)]
    for warp, ticks in sorted(zip(profile.column("warp"), profile.column("issue"), strict=True)):
        warps[int(warp)].append(float(ticks) / 240)
    return warps


def vector_add(arithmetic: bool = False) -> CostedWorkload:
    """Listing 3.5 with the latencies of Fig. 3.5, on the Kepler GPU: 0 cycles to the second of a dual-issued pair.

    `arithmetic` leaves only the CUDA core instructions, of which the second of a pair counts if the first is none.
    """
    gpu = volkov_gpu("kepler")
    ilp = gpu.parameter("ilp_latency")
    lines: tuple[Line, ...] = (
        Line("add", "R1"),
        Line("add", "R3", stall=ilp, issues=0),
        Line("add", "R0", stall=ilp),
        Line("add", "R2", "R0 R3", stall=ilp),
        Line("add", "R3", "R2"),
        Line("add", "R0", "R2", stall=ilp, issues=0),
        Line("stream", "R3", "R3", stall=ilp),
        Line("stream", "R0", "R0"),
        Line("add", "R2", "R2", stall=ilp, issues=0),
        Line("add", "R3", "R3 R0", stall=ilp),
        Line("stream", "", "R2 R3", latency=0, store=True),
        Line("add", latency=0, issues=0),
    )
    if arithmetic:
        first = [True, *(line.class_ != "add" for line in lines)]
        lines = tuple(
            replace(line, issues=1) if alone else line
            for alone, line in zip(first, lines, strict=False)
            if line.class_ == "add"
        )
    return workload_of(gpu, [path_of(gpu, lines)], gpu.parameter("block_launch_latency"), sms=8)
