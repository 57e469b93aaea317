"""One SM's run as a timeline of every warp slot: which instruction issued when, and what delayed it.

Of a long run, only the first waves are simulated, and of those as much is retained as fits into a number of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import UsageError
from ..workload.cost import CostedNode, CostedWorkload
from .blocks import Share, share_of
from .extrapolate import instructions, simulate
from .result import SimulationResult, Ticks

MOST_SIMULATED = 4_000_000
"""Most warp instructions for which the whole share is simulated for its events; beyond it, whole waves are."""
LARGEST_WAVE = 8_000_000
"""Most warp instructions of one wave that can be traced: their table takes half a gigabyte."""
FEWEST_EVENTS = 1000
"""Fewest events that a trace may be limited to."""


@dataclass(frozen=True)
class Execution:
    """Events of one SM from launch to `end` (ticks); later ones were cut off.

    A row each, in the order of issue: `slot` is the warp slot, `block` and `warp` the block in launch order on the SM
    and the warp within it, `node` indexes `nodes`, `issue` and `completion` are ticks, `left` the tick at which the
    instruction left the issue slot of its partition (without a valve: the subsystem, or the warp's next one issued),
    `waited_from` where the warp's previous one left it (or the warp was launched), `reason` indexes REASONS. A warp
    slot belongs to partition ``slot % partitions``. `issued` rows would have been there without the cut. `launches`
    has a row (slot, block, warp, launch, end) for every warp that was launched before `end`, with its own end even
    where that was cut off. `blocks` of the share's `of` were simulated; `mean_warps` is the achieved occupancy of
    what was simulated, `total` its ticks.
    """

    slot: Ticks
    block: Ticks
    warp: Ticks
    node: Ticks
    issue: Ticks
    left: Ticks
    completion: Ticks
    waited_from: Ticks
    reason: Ticks
    launches: Ticks
    nodes: tuple[CostedNode, ...]
    partitions: int
    issue_ticks: int
    end: int
    total: int
    issued: int
    blocks: int
    of: int
    mean_warps: float


def execution(workload: CostedWorkload, most_events: int) -> Execution:
    """Simulate the launch's share and retain at most `most_events` of its events, apart from utilisation counters.

    Raises UsageError if a single wave is too long for that.
    """
    if most_events < FEWEST_EVENTS:
        raise UsageError(f"a trace of {most_events} events: expected {FEWEST_EVENTS} or more")
    whole = share_of(workload, workload.blocks_per_sm)
    share = _traced(workload, whole)
    result = simulate(workload, share, profile=True, stalls=False)
    assert result.profile is not None
    nodes = tuple(workload.paths[path].nodes[node] for path, node in result.profile.paths_nodes)
    return _events(result, nodes, workload, whole.blocks, most_events)


def _traced(workload: CostedWorkload, share: Share) -> Share:
    if instructions(workload, share.blocks) <= MOST_SIMULATED:
        return share
    resident = min(share.resident, share.blocks)
    wave = instructions(workload, resident)
    if wave > LARGEST_WAVE:
        raise UsageError(
            f"a trace of {wave:,} warp instructions (one wave on one SM) is too large (expected "
            f"{LARGEST_WAVE:,} or fewer: a smaller problem has the same steady state)"
        )
    blocks = min(share.blocks, resident * max(1, MOST_SIMULATED // max(1, wave)))
    return Share(share.resident, blocks, min(share.full, blocks))


def _events(
    result: SimulationResult, nodes: tuple[CostedNode, ...], workload: CostedWorkload, of: int, most: int
) -> Execution:
    assert result.profile is not None
    column = result.profile.column
    slot, block, issue = column("warp"), column("block"), column("issue")
    per_block = workload.warps_per_block
    warp = slot % per_block
    each = [workload.issue_ticks * node.issues if workload.issue_ticks else node.lambda_ticks for node in nodes]
    taken = np.array(each, dtype=np.int64)[column("node")]
    # Warp by warp, each warp's rows in order: a new warp begins where the warp number changes.
    number = block * per_block + warp
    order = np.lexsort((np.arange(len(issue)), number))
    first = np.diff(number[order], prepend=-1) != 0
    last = np.append(first[1:], True)
    left, before = np.empty_like(issue), np.empty_like(issue)
    left[order] = np.minimum(
        (issue + taken)[order], np.where(last, result.warp_ends[number[order]], np.roll(issue[order], -1))
    )
    before[order] = np.where(first, result.block_starts[block[order]], np.roll(left[order], 1))
    keep, end = _cut(issue, before, result, most)
    launched = np.repeat(result.block_starts, per_block)
    warps = np.arange(len(launched))
    launches = np.column_stack(
        [
            result.block_slots[warps // per_block] * per_block + warps % per_block,
            warps // per_block,
            warps % per_block,
            launched,
            result.warp_ends,
        ]
    )
    rows = slice(keep)
    return Execution(
        slot=slot[rows],
        block=block[rows],
        warp=warp[rows],
        node=column("node")[rows],
        issue=issue[rows],
        left=left[rows],
        completion=column("completion")[rows],
        waited_from=before[rows],
        reason=column("reason")[rows],
        launches=launches[launched < end],
        nodes=nodes,
        partitions=workload.partitions,
        issue_ticks=workload.issue_ticks,
        end=end,
        total=result.total_ticks,
        issued=len(issue),
        blocks=result.blocks,
        of=of,
        mean_warps=result.mean_occupancy,
    )


def _cut(issue: Ticks, before: Ticks, result: SimulationResult, most: int) -> tuple[int, int]:
    """How many rows fit, and the tick at which the trace ends: everything issued before it is included."""
    # Events: an instruction and its wait; for each warp its life, its drain, and two changes of two counters.
    warps = np.repeat(np.sort(result.block_starts), len(result.warp_ends) // max(1, len(result.block_starts)))
    events = np.cumsum(1 + (before < issue)) + 6 * np.searchsorted(warps, issue, side="right")
    if not len(events) or events[-1] <= most:
        return len(issue), result.total_ticks
    keep = int(np.searchsorted(events, most, side="right"))
    # Rows of one tick stay together.
    keep = int(np.searchsorted(issue, issue[keep], side="left"))
    return keep, int(issue[keep])
