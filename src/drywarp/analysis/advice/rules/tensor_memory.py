"""Products in tensor memory (compute capability 10.x): its room, its readers, and scale factors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ....workload.cost import SYNC_AWAITS, CostedNode, CostedPath, CostedWorkload
from ..case import Case, Setting
from ..whatif import WhatIf, lighter, resident_blocks
from .asynchronous import TENSOR_PRODUCTS
from .base import FULL, WAITING, Suspicion, lone_limit, rule

_COPY = "UTCCP"
_TENSOR, _SHARED = "async_tensor", "async_shared"


def _executed(case: Case, opcodes: Collection[str]) -> list[int]:
    return [n for n in case.setting.indices("tcgen05") if case.setting.instructions[n].opcode in opcodes]


@rule("occupancy-tensor-memory")
def occupancy_tensor_memory(case: Case) -> Suspicion | None:
    """The blocks that would fit with fewer columns, where tensor memory alone limits the occupancy."""
    fits, target = case.setting.fits, lone_limit(case, "tensor_memory")
    if target is None:
        return None
    columns = case.setting.workload.kernel.resources.tensor_columns
    return Suspicion(
        resident_blocks(target),
        case.setting.places(_executed(case, TENSOR_PRODUCTS)),
        f"{columns} columns of tensor memory per block allow {fits.blocks_per_sm} blocks per SM, {target} without "
        "that limit",
        "allocate fewer columns: one set of sums, or narrower tiles",
        case.stall_share(*WAITING) / 2,
    )


# A warp that multiplies awaits phases that only readers of its sums signal: with more sets of sums it need not.


def _events(path: CostedPath) -> Iterator[tuple[CostedNode, int, int]]:
    """Each execution of a node that awaits a phase, the place of that phase among the path's events, and the phase."""
    at = 0
    for number in path.expand():
        node = path.nodes[number]
        if node.sync:
            at += 1 + path.events[at]
        if node.sync & SYNC_AWAITS:
            yield node, at, path.events[at]
            at += 1


def readers_phases(costed: CostedWorkload, products: Collection[int]) -> dict[int, set[int]]:
    """By path that multiplies: phases that warps which read tensor memory signal, and no others of its block."""
    found: dict[int, set[int]] = {}
    for block in costed.block_types:
        read: set[int] = set()
        others: set[int] = set()
        for number in set(block.paths):
            path = costed.paths[number]
            reads = any(node.class_ == "tensor_load" for node in path.nodes)
            (read if reads else others).update(phase for phase, count in enumerate(path.signals) if count)
            if not reads and any(node.instruction in products for node in path.nodes):
                found.setdefault(number, set())
        for number in found.keys() & set(block.paths):
            found[number] |= read - others
    return found


def without_waits(costed: CostedWorkload, products: Collection[int]) -> CostedWorkload:
    """The workload whose products await none of these phases."""
    paths = list(costed.paths)
    for number, phases in readers_phases(costed, products).items():
        events = list(paths[number].events)
        for _, at, awaited in _events(paths[number]):
            events[at] = -1 if awaited in phases else awaited
        paths[number] = replace(paths[number], events=tuple(events))
    return replace(costed, paths=tuple(paths))


def more_sums(products: Collection[int]) -> WhatIf:
    """Products that do not wait until earlier sums have been read, as if there were always a free set of them."""

    def apply(setting: Setting) -> Setting | None:
        changed = setting.then(lambda costed: without_waits(costed, products))
        return changed if changed.costed.paths != setting.costed.paths else None

    return WhatIf("products that need not wait for earlier sums to be read", "code", apply)


@rule("sums-not-overlapped")
def sums_not_overlapped(case: Case) -> Suspicion | None:
    """Products that wait until the sums of the tile before have been read: the waits in the order of the code."""
    products, costed = frozenset(_executed(case, TENSOR_PRODUCTS)), case.setting.costed
    if not products or case.use(_TENSOR) >= FULL:
        return None
    waits: dict[int, int] = {}
    for number, phases in readers_phases(costed, products).items():
        for node, _, awaited in _events(costed.paths[number]):
            if awaited in phases:
                waits[node.instruction] = waits.get(node.instruction, 0) + 1
    if not waits:
        return None
    return Suspicion(
        more_sums(products),
        case.setting.places(sorted(waits)),
        f"the tensor cores are busy {case.use(_TENSOR):.0%} of the time; products wait for warps that read sums "
        f"{sum(waits.values())} times in a block",
        "give the products a second set of columns, and let tiles take turns",
        (1 - case.use(_TENSOR)) / 4,
    )


_LEAST_COPIES = 0.02


@rule("scale-factors")
def scale_factors(case: Case) -> Suspicion | None:
    """Copies of scale factors to tensor memory, if they take a noticeable part of what passes through shared memory."""
    setting, copies = case.setting, frozenset(_executed(case, {_COPY}))
    scaled = {"UTCQMMA", "UTCOMMA"} & {setting.instructions[n].opcode for n in _executed(case, TENSOR_PRODUCTS)}
    names = [subsystem.name for subsystem in setting.costed.subsystems]
    if not copies or not scaled:
        return None
    mine = total = 0.0
    each = {node.instruction: node for path in setting.costed.paths for node in path.nodes}
    for n, node in each.items():
        taken = sum(x.lambda_ticks for x in node.levels if names[x.subsystem] == _SHARED) * setting.executions[n]
        total, mine = total + taken, mine + taken * (n in copies)
    share = case.use(_SHARED) * mine / total if total else 0.0
    if share < _LEAST_COPIES:
        return None
    return Suspicion(
        lighter(copies, 0, "scale factors in tensor memory from the start"),
        setting.places(sorted(copies)),
        f"copies of scale factors keep the data path of shared memory busy {share:.0%} of the time",
        "let more products share a copy of scale factors, or use fewer factors",
        share,
    )
