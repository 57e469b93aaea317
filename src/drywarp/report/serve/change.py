"""Slider moves: scale the λ and Λ of a workload whose costs are assigned, and build the page.

λ is scaled per subsystem, both for instruction issue and for the memory transactions that visit L2 and DRAM;
``issue`` is a partition's issue limit. Λ is scaled per group, named after the stall reason of a dependent instruction.
The effect on the launch's time is estimated within milliseconds on a small stand-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...analysis.advice.case import change_nodes
from ...errors import UsageError
from ...hardware import gpu_names, load_gpu
from ...models.pipeline import limiter, utilization
from ...pipeline.blocks import share_of
from ...pipeline.extrapolate import StandIn, instructions
from ...pipeline.reasons import REASONS, dependent_reason
from ...workload.cost import TICKS_PER_CYCLE, CostedNode, CostedWorkload
from ..figures.theme import REASON_COLOURS
from ..html import asset, document

ISSUE = "issue"
BARRIER, FIXED = "barrier", "wait"


def group_of(node: CostedNode) -> str:
    """The stall reason of an instruction that depends on this one."""
    return BARRIER if node.barrier or node.sync else dependent_reason(node.class_, node.goes_on)


def lambdas(costed: CostedWorkload) -> dict[str, float]:
    """Busy subsystems with the mean λ in cycles of their instructions and transactions, over one warp of each path."""
    times: dict[str, float] = {}
    counts: dict[str, float] = {}

    def add(name: str, ticks: float, count: float) -> None:
        if ticks > 0:
            times[name] = times.get(name, 0.0) + ticks * count
            counts[name] = counts.get(name, 0.0) + count

    for path in costed.paths:
        for node, count in zip(path.nodes, path.counts(), strict=True):
            add(costed.subsystems[node.subsystem].name, node.lambda_ticks, count)
            for level in node.levels:
                add(costed.subsystems[level.subsystem].name, level.lambda_ticks, count)
            if costed.issue_ticks:
                add(ISSUE, costed.issue_ticks * node.issues, count)
    return {name: times[name] / counts[name] / TICKS_PER_CYCLE for name in times if counts[name]}


def latencies(costed: CostedWorkload) -> dict[str, float]:
    """Groups with the mean Λ of their instructions, in cycles; for fixed latencies, the stall counts in the code."""
    times: dict[str, float] = {}
    counts: dict[str, float] = {}
    for path in costed.paths:
        for node, count in zip(path.nodes, path.counts(), strict=True):
            group = group_of(node)
            ticks = node.stall_ticks if group == FIXED else node.latency_ticks
            # Nothing depends on a store's Λ.
            if ticks > 0 and count and (group in (FIXED, BARRIER) or node.sets >= 0):
                times[group] = times.get(group, 0.0) + ticks * count
                counts[group] = counts.get(group, 0.0) + count
    return {group: times[group] / counts[group] / TICKS_PER_CYCLE for group in times}


def scaled(
    costed: CostedWorkload, lambda_factors: Mapping[str, float], latency_factors: Mapping[str, float]
) -> CostedWorkload:
    """The workload with λ and Λ scaled, in whole ticks. Raises UsageError for an unknown name."""
    _known(lambda_factors, lambdas(costed), "lambda")
    _known(latency_factors, latencies(costed), "latency")
    by_subsystem = [lambda_factors.get(subsystem.name, 1.0) for subsystem in costed.subsystems]
    # Instructions of one warp issue at least one slot apart, whatever the code states.
    slot = costed.issue_ticks or TICKS_PER_CYCLE

    def change(node: CostedNode) -> CostedNode:
        group = group_of(node)
        later = latency_factors.get(group, 1.0)
        stall = node.stall_ticks
        if group == FIXED and later != 1.0:
            stall = stall if stall <= slot else max(slot, _ticks(stall, later))
        return replace(
            node,
            lambda_ticks=_ticks(node.lambda_ticks, by_subsystem[node.subsystem]),
            latency_ticks=_ticks(node.latency_ticks, later),
            stall_ticks=stall,
            held_ticks=_ticks(node.held_ticks, lambda_factors.get(ISSUE, 1.0)),
            levels=tuple(
                replace(
                    level,
                    lambda_ticks=_ticks(level.lambda_ticks, by_subsystem[level.subsystem]),
                    tail_ticks=_ticks(level.tail_ticks, by_subsystem[level.subsystem]),
                )
                for level in node.levels
            ),
        )

    issue = _ticks(costed.issue_ticks, lambda_factors.get(ISSUE, 1.0))
    return replace(change_nodes(costed, change), issue_ticks=issue)


def _ticks(ticks: int, factor: float) -> int:
    """Scale and round; nonzero times remain at least one tick."""
    return ticks if factor == 1.0 or ticks <= 0 else max(1, round(ticks * factor))


def _known(factors: Mapping[str, float], known: Mapping[str, float], what: str) -> None:
    for name in factors:
        if name not in known:
            raise UsageError(f"{what}: this kernel has no {name[:40]!r}; expected {', '.join(known) or 'none'}")


# The stand-in of a launch is the same code with fewer loop iterations and two waves of blocks. Only ratios of its times
# are meaningful.

WAVES = 2
"""Simulated waves of blocks."""
BUDGET = 40_000
"""Target number of warp instructions of the stand-in at the highest occupancy."""
ALIKE = 0.01
"""How far the mix of loops of one shortened run may be from the launch's: a slider may multiply it by 20."""


class SmallLaunch:
    """The stand-in of one kernel."""

    def __init__(self, costed: CostedWorkload) -> None:
        share = share_of(costed, costed.max_blocks_per_sm)
        self._whole = instructions(costed, share.blocks) <= BUDGET  # small enough to be its own stand-in
        total = instructions(costed, min(share.blocks, WAVES * costed.max_blocks_per_sm))
        self._iterations = StandIn(costed, 1.0 if self._whole else BUDGET / max(1, total), ALIKE)
        self._usual = self._cycles(costed)[0]

    def ratio(self, changed: CostedWorkload) -> tuple[float, str]:
        """The time of the changed workload relative to the original kernel, and its limiter."""
        cycles, found = self._cycles(changed)
        return (cycles / self._usual if self._usual else 1.0), found

    def _cycles(self, costed: CostedWorkload) -> tuple[float, str]:
        """Cycles of one SM's whole share, assuming similar waves, and the limiter."""
        whole = share_of(costed, costed.blocks_per_sm)
        share = whole
        if not self._whole and whole.blocks > WAVES * whole.resident:
            share = whole.shortened(WAVES * whole.resident + whole.blocks % whole.resident)
        result = self._iterations.trial(costed).run(share)
        waves = -(-whole.blocks // whole.resident), -(-share.blocks // share.resident)
        return result.cycles * waves[0] / waves[1], limiter(utilization(costed, result))


# The page: one document with inline script and style, restricted by its Content-Security-Policy.

SHARED = ("core.js", "charts.js", "profile_data.js", "profile_draw.js", "profile.js")
"""Scripts shared with the HTML report, for the curve and the execution profile."""


def offered_gpus() -> list[tuple[str, str]]:
    """Names and titles of the GPUs that CUDA C++ can be compiled for."""
    known = [(name, load_gpu(name)) for name in gpu_names()]
    return [(name, gpu.title) for name, gpu in known if not gpu.is_amd and not gpu.abstract_only]


def page() -> tuple[bytes, str]:
    """The document in UTF-8, and its Content-Security-Policy. Raises UsageError if Jinja2 is not installed."""
    script = "".join(asset(f"html/{name}") for name in SHARED) + asset("serve/serve.js")
    none = {"type": "u8", "data": ""}
    columns = dict.fromkeys(("step", "duration", "warp", "block", "node", "reason", "awaited"), none)
    start = {
        "clock": 1.0,
        "model": "modified",
        "mainModels": ["modified", "original"],
        "here": 1,
        "reasons": list(REASONS),
        "reasonColours": REASON_COLOURS,
        "curves": [
            {"model": "modified", "summary": "with the slider settings", "points": []},
            {"model": "original", "summary": "the unmodified kernel", "points": []},
        ],
        "code": {"index": [], "text": [], "line": []},
        "events": {
            "count": 0, "total": 0, "ticks_per_cycle": 1, "partitions": 1, "warps_per_block": 1,
            "lanes": [], "nodes": [], "opcodes": {}, "columns": columns,
        },
    }  # fmt: skip
    html, policy = document(
        "serve/page.html",
        ["html/report.css", "serve/serve.css"],
        script,
        what="drywarp serve",
        data=start,
        served=True,
        gpus=offered_gpus(),
    )
    return html.encode("utf-8"), policy
