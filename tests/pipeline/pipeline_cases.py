"""Random small workloads: everything the simulation knows, in small ticks."""

from __future__ import annotations

import random
from dataclasses import replace

from drywarp.pipeline import POLICIES
from drywarp.workload.cost import (
    SYNC_AT_END,
    SYNC_AWAITS,
    SYNC_SIGNALS,
    BlockType,
    CostedNode,
    CostedPath,
    CostedWorkload,
    Item,
    Level,
    Repeat,
    Subsystem,
)


def random_workload(seed: int, in_order: bool = True) -> CostedWorkload:
    r = random.Random(seed)
    issuing = r.randint(1, 3)
    with_levels = r.randint(0, 2)
    subsystems = tuple(
        Subsystem(f"s{i}", r.choice(("sm", "partition")), outstanding=r.choice((0, 0, 0, 1, 2, 3)))
        for i in range(issuing)
    ) + tuple(Subsystem(f"l{i}", r.choice(("sm", "sm", "partition")), False) for i in range(with_levels))
    per_block = r.randint(1, 4)
    barriers = r.random() < 0.4
    paths = tuple(random_path(r, issuing, with_levels, barriers) for _ in range(r.randint(1, 3)))
    kinds = tuple(
        BlockType(tuple(r.randrange(len(paths)) for _ in range(per_block)), r.choice((1.0, 2.0, 0.5)))
        for _ in range(r.randint(1, 2))
    )
    return CostedWorkload(
        paths=paths,
        block_types=kinds,
        subsystems=subsystems,
        partitions=r.randint(1, 3),
        issue_ticks=r.choice((0, 1, 1, 2)),
        policy=r.choice(tuple(POLICIES)),
        in_order=in_order,
        launch_ticks=r.choice((0, 3, 10)),
        blocks=r.randint(1, 12),
        warps_per_block=per_block,
        blocks_per_sm=r.randint(1, 3),
        max_blocks_per_sm=4,
        sm_count=r.randint(1, 3),
        clock_hz=1e9,
        read_window_ticks=r.choice((3, 3, 4)),
        launch_interval_ticks=r.choice((0, 0, 2, 7)),
    )


def reissuing_workload(seed: int, in_order: bool = True) -> CostedWorkload:
    """A random workload with an issue limit, of whose instructions some are dual-issued and some reissued.

    While one of its subsystems is busy, registers are read more slowly.
    """
    r = random.Random(seed)
    work = random_workload(r.randrange(10**9), in_order)

    def issuing(node: CostedNode) -> CostedNode:
        return replace(node, issues=r.choice((0, 1, 1, 2, 3)))

    paths = tuple(replace(path, nodes=tuple(issuing(node) for node in path.nodes)) for path in work.paths)
    rivals = [at for at, one in enumerate(work.subsystems) if one.scope == "partition" and not one.outstanding]
    rival, share = r.choice([-1, *rivals]), r.choice((0.5, 1.0))
    return replace(work, paths=paths, issue_ticks=r.choice((1, 2, 3)), bank_rival=rival, beside_rival=share)


def queueing_workload(seed: int, in_order: bool = True) -> CostedWorkload:
    """A random workload in which transactions also visit subsystems that instructions issue to, some their own."""
    r = random.Random(seed)
    work = random_workload(r.randrange(10**9), in_order)
    unlimited = [n for n, subsystem in enumerate(work.subsystems) if subsystem.upstream and not subsystem.outstanding]

    def visiting(node: CostedNode) -> CostedNode:
        if node.barrier or not unlimited or r.random() < 0.3:
            return node
        visit = Level(r.choice(unlimited), r.randint(0, 5), r.randint(0, 4), r.random() < 0.8)
        made = replace(node, levels=tuple(r.sample((*node.levels, visit), len(node.levels) + 1)))
        return replace(made, lambda_ticks=0) if made.queued else made

    paths = tuple(replace(path, nodes=tuple(visiting(node) for node in path.nodes)) for path in work.paths)
    return replace(work, paths=paths)


def lasting_workload(seed: int, in_order: bool = True) -> CostedWorkload:
    """A random workload whose loops and blocks go on for long enough to become steady."""
    r = random.Random(seed)
    work = random_workload(r.randrange(10**9), in_order)
    iterations = r.choice((4, 20, 60))

    def longer(program: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(
            Repeat(r.choice((0, 1, 2, 5, iterations)), longer(item.body)) if isinstance(item, Repeat) else item
            for item in program
        )

    paths = tuple(replace(path, program=longer(path.program)) for path in work.paths)
    return replace(work, paths=paths, blocks=r.choice((work.blocks, 40, 150)))


def meeting_workload(seed: int) -> CostedWorkload:
    """A random workload whose warps signal and await phases, each block's in an order in which all can go on."""
    r = random.Random(seed)
    work = random_workload(r.randrange(10**9))
    paths: list[CostedPath] = []
    kinds = []
    made = {path: _with_syncs(r, path) for path in set(work.paths)}
    for kind in work.block_types:
        warps = [made[work.paths[path]] for path in kind.paths]
        kinds.append(replace(kind, paths=tuple(range(len(paths), len(paths) + len(warps)))))
        paths += _met(r, warps)
    return replace(work, paths=tuple(paths), block_types=tuple(kinds))


def _with_syncs(r: random.Random, path: CostedPath) -> CostedPath:
    nodes = []
    for node in path.nodes:
        sync = r.choice((0, 0, SYNC_SIGNALS, SYNC_SIGNALS | SYNC_AT_END, SYNC_AWAITS, SYNC_SIGNALS | SYNC_AWAITS))
        made = replace(node, barrier=False, sync=sync)
        if sync & SYNC_AWAITS:
            made = replace(made, levels=(), async_result=False, class_=r.choice(("mbarrier", "barrier")))
        if sync & SYNC_AT_END:
            made = replace(made, after=r.choice((-1, r.randrange(path.slots))))
        nodes.append(made)
    return replace(path, nodes=tuple(nodes))


def _met(r: random.Random, warps: list[CostedPath]) -> list[CostedPath]:
    """Events for the warps of a block: phases are awaited only after all of their signals."""
    iterations = [[node for node in path.expand() if path.nodes[node].sync] for path in warps]
    order = [w for w, its in enumerate(iterations) for _ in its]
    r.shuffle(order)
    events: list[list[int]] = [[] for _ in warps]
    signals: list[dict[int, int]] = [{} for _ in warps]
    growing, complete, phases = [], [], 0
    for w in order:
        sync = warps[w].nodes[iterations[w].pop(0)].sync
        named = []
        for _ in range(r.choice((0, 1, 1, 2)) if sync & SYNC_SIGNALS else 0):
            if not growing or r.random() < 0.3:
                growing.append(phases)
                phases += 1
            named.append(r.choice(growing))
            signals[w][named[-1]] = signals[w].get(named[-1], 0) + 1
        events[w] += [len(named), *named]
        if sync & SYNC_AWAITS:
            while growing and r.random() < 0.6:
                complete.append(growing.pop(r.randrange(len(growing))))
            events[w].append(r.choice([-1, *complete[-3:]]))
    return [
        replace(path, events=tuple(e), signals=tuple(s.get(phase, 0) for phase in range(phases)))
        for path, e, s in zip(warps, events, signals, strict=True)
    ]


def random_path(r: random.Random, issuing: int, with_levels: int, barriers: bool) -> CostedPath:
    slots = r.randint(1, 4)
    nodes = []
    for index in range(r.randint(1, 6)):
        barrier = barriers and r.random() < 0.3
        levels = tuple(
            Level(issuing + r.randrange(with_levels), r.randint(0, 5), r.randint(0, 4), r.random() < 0.8)
            for _ in range(r.choice((0, 1, 2)) if with_levels and not barrier else 0)
        )
        nodes.append(
            CostedNode(
                instruction=index,
                class_=r.choice(("fp32", "global_load", "shared_load")),
                subsystem=r.randrange(issuing),
                lambda_ticks=r.randint(0, 4),
                latency_ticks=r.randint(0, 9),
                stall_ticks=r.choice((0, 0, 1, 3)),
                waits=tuple(r.sample(range(slots), r.randint(0, slots))),
                sets=r.randint(-1, slots - 1),
                sets_read=r.choice((-1, -1, r.randrange(slots))),
                read_ticks=r.randint(0, 6),
                barrier=barrier,
                async_result=not barrier and r.random() < 0.2,
                levels=levels,
                stays=r.random() < 0.6,
                register_ticks=r.choice(((0, 0), (0, 0), (1, 0), (2, 1), (0, 3), (2, 2))),
                miss_ticks=r.choice((0, 0, 0, 1, 4)),
                held_ticks=r.choice((0, 0, 0, 0, 1, 2)),
            )
        )
    return CostedPath(tuple(nodes), random_program(r, len(nodes), 0), slots)


def random_program(r: random.Random, nodes: int, depth: int) -> tuple[Item, ...]:
    items: list[Item] = []
    for _ in range(r.randint(0 if depth else 1, 4 - depth)):
        if depth < 2 and r.random() < 0.3:
            items.append(Repeat(r.randint(0, 3), random_program(r, nodes, depth + 1)))
        else:
            items.append(r.randrange(nodes))
    return tuple(items)
