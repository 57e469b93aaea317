"""Warp groups that wait for their products, warps that wait for the copy engine, and tiles that many blocks copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ....kernel.profile import SPACE_GLOBAL
from ....workload.cost import CostedNode, Level, to_ticks
from ..case import Case, Setting, change_nodes
from ..whatif import WhatIf
from .base import Documentation, Suspicion, can_be_hidden, register

# The time of a product, or of a copy, in its units stays; what goes is how long its result takes beyond that.

_PRODUCT, _COPY, _MBARRIER = "wgmma", "bulk_copy", "mbarrier"
_LEAST_STALLS = 0.05


def without_latency(class_: str, name: str) -> WhatIf:
    """Results of a class of instructions as soon as its units, and for copies the memory levels, are done with them."""

    def change(node: CostedNode) -> CostedNode:
        return replace(node, latency_ticks=0) if node.class_ == class_ else node

    def apply(setting: Setting) -> Setting | None:
        some = any(node.class_ == class_ and node.latency_ticks for path in setting.costed.paths for node in path.nodes)
        return setting.then(lambda costed: change_nodes(costed, change)) if some else None

    return WhatIf(name, "code", apply)


def _executed(case: Case, class_: str) -> list[int]:
    return [n for n, i in enumerate(case.setting.instructions) if i.class_ == class_ and case.setting.executions[n]]


def _share(case: Case, instructions: Sequence[int], *reasons: str) -> float:
    waits = sum(case.waiting(n, *reasons) for n in instructions)
    return waits / case.stalled if case.stalled else 0.0


@register
class ProductWaits:
    """Warp groups that wait for their products."""

    name = "product-waits"
    title = "warp groups wait for the products that they have just issued"
    documentation = Documentation(
        what="Finds Hopper kernels whose warp groups wait for their own products (WGMMA) while the tensor cores "
        "have time to spare.",
        why="wgmma.wait_group 0 right after the products leaves a warp group idle until the last one is done, "
        "and the tensor cores idle while it then computes. With few warp groups per SM, nothing fills the gap.",
        evidence="The share of warp time with the stall reason gmma. The gain comes from simulating products whose "
        "results are there as soon as the tensor cores are done with them: a bound, since some latency remains.",
        change="Issue the next tile's products before you use this one's (wgmma.wait_group 1), put the softmax or the "
        "epilogue of one tile between two products, or let two warp groups take turns.",
        before="product(tile); wait_group<0>(); use(result);",
        after="product(next); wait_group<1>(); use(result of the previous tile);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The instructions that wait, longest first."""
        share = case.stall_share("gmma")
        if share < _LEAST_STALLS or not _executed(case, _PRODUCT) or not can_be_hidden(case):
            return None
        waits = [n for n in case.costliest(case.prediction.node_stalls, "gmma") if case.waiting(n, "gmma")]
        return Suspicion(
            without_latency(_PRODUCT, "products without latency"),
            case.setting.places(waits),
            f"{share:.0%} of warp time is spent waiting for products, while the tensor cores are busy"
            f" {case.use('tensor'):.0%} of the time",
            "issue the next products before using these (wgmma.wait_group 1), or let warp groups take turns",
            share / 2,
        )


@register
class CopyWaits:
    """Warps that wait for the copy engine."""

    name = "copy-waits"
    title = "warps wait for tiles that the copy engine has not delivered yet"
    documentation = Documentation(
        what="Finds Hopper kernels whose warps wait at barriers in shared memory for copies of the copy engine "
        "(TMA), while neither L2 nor DRAM is saturated.",
        why="A copy takes a microsecond or so. It is hidden if it is issued that much earlier, into a stage of a ring "
        "that is free by then. With too few stages, the copy starts when its data is already needed.",
        evidence="The share of warp time at waits for barriers in shared memory. The gain comes from simulating copies "
        "that take only as long as they keep the copy engine and the memory levels busy: the effect of enough stages.",
        change="Use more stages, or smaller ones; release a stage as soon as its last reader is done; let one warp "
        "issue all copies. If bandwidth is short, stages do not help: larger tiles, or clusters with multicast.",
        before="constexpr int STAGES = 1;",
        after="constexpr int STAGES = 4;",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The waits, longest first."""
        waits = [n for n in _executed(case, _MBARRIER) if "PHASECHK" in case.setting.instructions[n].modifiers]
        share = _share(case, waits, "short_scoreboard")
        if share < _LEAST_STALLS or not _executed(case, _COPY) or not can_be_hidden(case):
            return None
        return Suspicion(
            without_latency(_COPY, "copies without latency"),
            case.setting.places(case.costliest(waits, "short_scoreboard")),
            f"{share:.0%} of warp time is spent at barriers in shared memory",
            "use more stages, so that copies are issued earlier",
            share / 2,
        )


# A cluster's blocks may share a tile: each copies a part of it from L2, for all of them.

_LEAST_USE, _LEAST_HITS = 0.75, 0.5


def shared_by_pairs(copies: Collection[int], what: str) -> WhatIf:
    """These copies read half as much from L2, but each SM still takes in whole tiles, and its shared memory too."""

    def apply(setting: Setting) -> Setting | None:
        memory, names = setting.gpu.memory, [subsystem.name for subsystem in setting.costed.subsystems]
        intake = memory.l2.bytes_per_cycle_per_sm or memory.l1.bytes_per_cycle

        def halved(node: CostedNode, level: Level) -> Level:
            if names[level.subsystem] != "l2":
                return level
            least = to_ticks(setting.behaviour.accesses[node.instruction].units * memory.sector_bytes / intake)
            taken, tail = (max(ticks // 2, min(ticks, least)) for ticks in (level.lambda_ticks, level.tail_ticks))
            return replace(level, lambda_ticks=taken, tail_ticks=tail)

        def change(node: CostedNode) -> CostedNode:
            if node.instruction not in copies:
                return node
            return replace(node, levels=tuple(halved(node, level) for level in node.levels))

        return setting.then(lambda costed: change_nodes(costed, change))

    return WhatIf(f"pairs of blocks share {what}", "code", apply)


@register
class Multicast:
    """Tiles that several blocks each copy from L2."""

    name = "multicast"
    title = "several blocks copy the same tiles from L2"
    documentation = Documentation(
        what="Finds kernels for Hopper and later whose copies by the copy engine (TMA) keep L2 busy, while the same "
        "tiles go to several blocks.",
        why="Blocks in one row of the result need the same tile of A, those in one column the same tile of B. Each "
        "copy reads it from L2 again, and L2 serves all SMs.",
        evidence="How busy L2 is, and the share of the copies that L2 serves because another block has fetched the "
        "same bytes. The gain comes from simulating pairs of blocks that share the tiles of the buffer that is copied "
        "most: half of its bytes leave L2, while every SM still receives whole tiles.",
        change="Launch clusters of two blocks that need the same tile. Each copies half of it with multicast into the "
        "shared memory of both; a stage is free when both blocks have released it. Larger tiles help in the same way.",
        before="tma_load(tile of B);  // in every block",
        after="__cluster_dims__(2, 1, 1): tma_load_multicast(my half of the tile of B, both blocks);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The copies of the buffer that is copied most, if L2 is busy with what other blocks have fetched."""
        setting, use = case.setting, case.use("l2")
        if use < _LEAST_USE:
            return None
        most, what = most_copied(setting, [n for n in _executed(case, _COPY) if _several_times(setting, n)])
        if not most:
            return None
        hits = sum(share * setting.behaviour.accesses[n].l2_hit for n, share in most.items()) / sum(most.values())
        return Suspicion(
            shared_by_pairs(frozenset(most), what),
            setting.places(most),
            f"L2 is busy {use:.0%} of the time; {hits:.0%} of the bytes copied as {what} are in L2 because "
            "another block has copied them too",
            f"let clusters of two blocks share {what} by multicast",
            use / 4,
        )


def most_copied(setting: Setting, copies: Iterable[int]) -> tuple[dict[int, float], str]:
    """The copies of the buffer that these copy most, with their sectors, and what they copy in words."""
    sectors: dict[str, dict[int, float]] = {}
    for n in copies:
        if behaviour := setting.behaviour.accesses.get(n):
            sectors.setdefault(_buffer(setting, n), {})[n] = behaviour.executions * behaviour.units
    name = max(sectors, key=lambda name: sum(sectors[name].values()), default="")
    return sectors.get(name, {}), f"tiles of {name}" if name else "tiles"


def _several_times(setting: Setting, index: int) -> bool:
    """Whether a copy reads, mostly, what another block has brought into the L2, and sends it to one block only."""
    instruction, behaviour = setting.instructions[index], setting.behaviour.accesses.get(index)
    several = behaviour is not None and behaviour.units > 0 and behaviour.l2_hit >= _LEAST_HITS
    return _loads(setting, index) and several and "MULTICAST" not in instruction.modifiers and setting.costed.blocks > 1


def _buffer(setting: Setting, index: int) -> str:
    """The parameter whose buffer an access reads, by its first row in the log; empty if there is none."""
    log = setting.profile.accesses
    rows = np.flatnonzero((log.instruction == index) & (log.space == SPACE_GLOBAL))
    if not len(rows):
        return ""
    base, buffers = int(log.base[rows[0]]), setting.profile.allocations.items()
    return next((name for name, (start, length) in buffers if start <= base < start + length), "")


# Two blocks of an SM as one: what both copy, each for itself, is copied once.

_BUSY_COPIES, _BUSY_PRODUCTS = 0.6, 0.9
_TENSOR = ("tensor", "async_tensor")


def larger_tiles(copies: Collection[int], what: str) -> WhatIf:
    """Half as many of these copies, which serve twice as many products each."""

    def halved(node: CostedNode) -> CostedNode:
        if node.instruction not in copies:
            return node
        levels = (replace(x, lambda_ticks=x.lambda_ticks // 2, tail_ticks=x.tail_ticks // 2) for x in node.levels)
        return replace(node, lambda_ticks=node.lambda_ticks // 2, levels=tuple(levels))

    def apply(setting: Setting) -> Setting | None:
        return setting.then(lambda costed: change_nodes(costed, halved))

    return WhatIf(f"one block instead of two, with {what} copied once", "code", apply)


@register
class SmallTiles:
    """Several blocks on an SM, each with its own tiles, where one with larger tiles would copy less."""

    name = "small-tiles"
    title = "tiles are smaller than an SM has room for, so that copies outweigh the products"
    documentation = Documentation(
        what="Finds matrix products for Hopper and later whose copies keep L2, DRAM or shared memory busier than the "
        "tensor cores, while several blocks share an SM.",
        why="A block that computes M x N results copies M + N rows for M · N products. Two blocks of an SM side by "
        "side copy 2 (M + N), a block of twice the size M + 2 N with the same registers and shared memory.",
        evidence="How busy the tensor cores are, and what is busiest of L2, DRAM and the data path of shared memory. "
        "The gain comes from simulating half of the copies of the buffer that is copied most.",
        change="Make the tile twice as large along the shorter side, with twice the warp groups in a block; then half "
        "as many blocks fit on an SM.",
        before="TILE 64 x 128, two blocks of 256 threads on an SM",
        after="TILE 128 x 128, one block of 384 threads: one warp group copies, two multiply",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The copies of the buffer that is copied most, if two blocks of an SM would fit into one."""
        setting, limits = case.setting, case.setting.gpu.occupancy
        words = {"l2": "L2", "dram": "DRAM", "async_shared": "the data path of shared memory"}
        busiest = max(words, key=case.use)
        use, products, fits = case.use(busiest), max(map(case.use, _TENSOR)), setting.fits
        made = _executed(case, _PRODUCT) or _executed(case, "tcgen05")
        together = 2 * setting.workload.launch.threads_per_block <= limits.max_threads_per_block
        room = 2 * fits.shared_bytes_per_block <= limits.shared_bytes_per_block_optin + limits.shared_reserved_per_block
        several = fits.blocks_per_sm > 1 and setting.costed.blocks >= 2 * setting.costed.sm_count and together and room
        if use < max(_BUSY_COPIES, products) or products >= _BUSY_PRODUCTS or not several or not made:
            return None
        loads = [n for n in _executed(case, _COPY) if _loads(setting, n)]
        most, what = most_copied(setting, loads)
        if not most:
            return None
        return Suspicion(
            larger_tiles(frozenset(most), what),
            setting.places(most),
            f"the tensor cores are busy {products:.0%} of the time, {words[busiest]} {use:.0%};"
            f" {fits.blocks_per_sm} blocks on an SM copy their own {what}",
            f"use tiles that are twice as large, with {what} copied once for both halves",
            use / 4,
        )


def _loads(setting: Setting, index: int) -> bool:
    memory = setting.instructions[index].memory
    return memory is not None and memory.kind == "bulk_load"
