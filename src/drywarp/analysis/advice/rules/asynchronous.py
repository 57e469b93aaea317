"""Warp groups that wait for their own products, and warps that wait for the copy engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....workload.cost import CostedNode
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
        what="Finds kernels for Hopper whose warp groups wait for their own products (WGMMA) while the tensor cores "
        "have time to spare.",
        why="wgmma.wait_group 0 right after the products leaves a warp group nothing to do until the last one is done, "
        "and the tensor cores nothing while it then computes. With few warp groups per SM, nothing fills the gap.",
        evidence="The share of warp time with the stall reason gmma. The gain comes from simulating products whose "
        "results are there as soon as the tensor cores are done with them: a bound, since some latency remains.",
        change="Issue the next tile's products before you use this one's (wgmma.wait_group 1), put the softmax or the "
        "epilogue of one tile between two products, or let two warp groups take turns.",
        before="product(tile); wait_group<0>(); use(result);",
        after="product(next); wait_group<1>(); use(result of the tile before);",
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
        what="Finds kernels for Hopper whose warps wait at barriers in shared memory for copies of the copy engine "
        "(TMA), while neither L2 nor DRAM is busy throughout.",
        why="A copy takes a microsecond or so. It is hidden if it is issued that much earlier, into a stage of a ring "
        "that is free by then. With too few stages, the copy starts when its data is already needed.",
        evidence="The share of warp time at waits for barriers in shared memory. The gain comes from simulating copies "
        "that take no longer than the copy engine and the memory levels are busy with them: that of enough stages.",
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
