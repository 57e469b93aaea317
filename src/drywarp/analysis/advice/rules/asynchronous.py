"""Warp groups that wait for their products, warps that wait for the copy engine, and tiles that many blocks copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ....kernel.isa.nvidia.registers import matrix_form
from ....kernel.profile import SPACE_GLOBAL
from ....workload.cost import CostedNode, Level, to_ticks
from ..case import Case, Setting
from ..whatif import WhatIf
from .base import Suspicion, can_be_hidden, rule

# The time of a product, or of a copy, in its units stays; what goes is how long its result takes beyond that.

_PRODUCT, _COPY, _MBARRIER = "wgmma", "bulk_copy", "mbarrier"
_LEAST_STALLS = 0.05


def without_latency(class_: str, name: str) -> WhatIf:
    """Results of a class of instructions as soon as its units, and for copies the memory levels, are done with them."""

    def change(node: CostedNode) -> CostedNode:
        return replace(node, latency_ticks=0) if node.class_ == class_ else node

    def waited(node: CostedNode) -> bool:
        return node.class_ == class_ and node.latency_ticks > 0

    return WhatIf(name, "code", lambda setting: setting.changed(change, waited))


def _executed(case: Case, class_: str) -> list[int]:
    return [n for n, i in enumerate(case.setting.instructions) if i.class_ == class_ and case.setting.executions[n]]


def _share(case: Case, instructions: Sequence[int], *reasons: str) -> float:
    waits = sum(case.waiting(n, *reasons) for n in instructions)
    return waits / case.stalled if case.stalled else 0.0


@rule("product-waits")
def product_waits(case: Case) -> Suspicion | None:
    """Warp groups that wait for their products: the instructions that wait, longest first."""
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


@rule("copy-waits")
def copy_waits(case: Case) -> Suspicion | None:
    """Warps that wait for the copy engine: the waits, longest first."""
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

        return setting.changed(change)

    return WhatIf(f"pairs of blocks share {what}", "code", apply)


@rule("multicast")
def multicast(case: Case) -> Suspicion | None:
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

    return WhatIf(f"one block instead of two, with {what} copied once", "code", lambda setting: setting.changed(halved))


@rule("small-tiles")
def small_tiles(case: Case) -> Suspicion | None:
    """The copies of the buffer that is copied most, if two blocks of an SM would fit into one with larger tiles."""
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


# A pair of blocks multiplies with the tensor cores of both SMs; each loads and reads half of the second operand.

TENSOR_PRODUCTS = frozenset({"UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"})


def pairs_of_blocks(products: Collection[int], copies: Collection[int], what: str) -> WhatIf:
    """Products that read half of their second operand from each SM's shared memory, and half of its copies."""
    halved = larger_tiles(copies, what)

    def apply(setting: Setting) -> Setting | None:
        names = [subsystem.name for subsystem in setting.costed.subsystems]

        def change(node: CostedNode) -> CostedNode:
            form = matrix_form(setting.instructions[node.instruction]) if node.instruction in products else None
            if form is None:
                return node
            own = form.rows if "gdesc" in setting.instructions[node.instruction].text.split(",")[0] else 0
            share = (own + form.columns / 2) / (own + form.columns)
            levels = (
                replace(x, lambda_ticks=round(x.lambda_ticks * share), tail_ticks=round(x.tail_ticks * share))
                if names[x.subsystem] == "async_shared"
                else x
                for x in node.levels
            )
            return replace(node, levels=tuple(levels))

        less = halved.apply(setting)
        return less and less.changed(change)

    return WhatIf(f"pairs of blocks, each with half of {what}", "code", apply)


@rule("single-blocks")
def single_blocks(case: Case) -> Suspicion | None:
    """Products of single blocks where pairs would copy and read less: the copies of most, and the products."""
    setting = case.setting
    made = ((n, setting.instructions[n]) for n in setting.indices("tcgen05"))
    products = [n for n, i in made if i.opcode in TENSOR_PRODUCTS and "2CTA" not in i.modifiers]
    words = {"async_shared": "the data path of shared memory", "l2": "L2"}
    busiest, tensor = max(words, key=case.use), case.use("async_tensor")
    forms = [matrix_form(setting.instructions[n]) for n in products]
    wide = all(form is not None and form.rows == 128 and form.columns >= form.rows for form in forms)
    if not products or not wide or setting.costed.blocks < 2 or case.use(busiest) < _LEAST_USE:
        return None
    loads = [n for n in setting.indices("bulk_copy") if setting.instructions[n].opcode == "UTMALDG"]
    most, what = most_copied(setting, loads)
    if not most or case.use(busiest) < tensor:
        return None
    return Suspicion(
        pairs_of_blocks(frozenset(products), frozenset(most), what),
        setting.places([*most, *products]),
        f"{words[busiest]} is busy {case.use(busiest):.0%} of the time, the tensor cores {tensor:.0%};"
        f" every block copies whole {what}",
        f"let pairs of blocks multiply together (cta_group::2), each with half of {what}",
        case.use(busiest) / 4,
    )
