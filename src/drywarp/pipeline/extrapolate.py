"""Large runs within a budget: jump where a steady state recurs, else simulate less of the same and continue the line.

Jumps are exact (`recurrence.py`). Where no state recurs soon enough the answer is an estimate, and says so. Where
there are many waves of blocks, a few of them show the rate of all (`going_on.py`). Where one wave alone is long, its
loops are shortened: a long loop goes on at a steady rate, and a shorter one soon does too; so two runs of the
same blocks with fewer turns of the loops tell that with all. The line is drawn through the number of warp instructions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..bound import BoundWorkload, Item, Repeat
from .blocks import Share, type_order
from .going_on import along_the_line, waves_and_rate
from .result import SimulationResult
from .simulate import Program, instructions_per_block, run_share, try_share
from .state import Steady

LAUNCH_BUDGET = 12_000_000
"""Warp instructions that a launch's own point may simulate: about a second."""

CURVE_BUDGET = 3_000_000
"""The same for each further point of a curve."""

DATAFLOW_BUDGET = 2_000_000
"""The most of either where warps issue out of order: their graphs are unrolled."""

TOO_SHORT = 20_000
"""Warp instructions up to which looking for a steady state is not worth it."""

ESTIMATE = 6
"""The part of a budget, one in so many, that an estimate from a few waves takes; two waves at least."""

ATTEMPT = 3
"""The part of a budget, one in so many, that may be spent on finding that no state recurs."""

ATTEMPT_NODES = 2_000_000
"""Most nodes of all concurrent warps together for which that is tried where warps issue out of order."""

ATTEMPT_BLOCKS = 4_000_000
"""Most blocks of several types for which that is tried: each one's type is written down."""

FEWEST_WAVES = 4
"""Waves that fit into a budget where it is their rate that tells that of all."""

MOST_KINDS = 8
"""Most types of blocks that are tried where each SM has a single block."""

FEWEST_TURNS = 16
"""Turns that a shortened loop keeps at least: its first ones fill the pipelines."""

LEAST_SPAN = 0.3
"""Two lengths tell a slope if their difference is at least this part of the longer one."""


def simulate(
    workload: BoundWorkload,
    share: Share,
    budget: int = LAUNCH_BUDGET,
    profile: bool = False,
    stalls: bool = True,
    *,
    full: bool = False,
    program: Program | None = None,
) -> SimulationResult:
    """Simulate `share`: exactly where a state recurs or it takes no more than `budget` warp instructions.

    With `profile` it is always exact; without `stalls` the warps' time is not divided by reason. With `full`
    every instruction is simulated, however long that takes. `program` is the workload prepared, where it is at
    hand. Where every SM has a single block, the time is that of the slowest type of block: of several types the
    longest programs are tried.
    """
    if share.blocks == 1 and len(workload.block_types) > 1:
        each = instructions_per_block(workload)
        kinds = sorted((k for k in range(len(each)) if workload.block_types[k].weight > 0), key=lambda k: -each[k])
        program = program or Program(workload)
        lone = [program.of_kind(k) for k in kinds[:MOST_KINDS]]
        return max(
            (simulate(one.workload, share, budget, profile, stalls, full=full, program=one) for one in lone),
            key=lambda result: result.total_ticks,
        )
    if full or profile:
        return run_share(workload, share, profile, stalls, program=program)
    if not workload.in_order:
        budget = min(budget, DATAFLOW_BUDGET)
    total = instructions(workload, share.blocks)
    program = program or Program(workload)
    if total <= budget:
        steady = Steady() if total > TOO_SHORT else None
        return run_share(workload, share, stalls=stalls, steady=steady, program=program)
    waves = budget // (ESTIMATE * max(1, instructions(workload, share.resident)))

    def attempt() -> SimulationResult | None:
        return _attempt(workload, share, budget // ATTEMPT, stalls, program)

    if workload.in_order and FEWEST_WAVES * instructions(workload, share.resident) <= budget:
        return waves_and_rate(workload, share, waves, total, stalls, program, attempt)
    return attempt() or extrapolate(workload, share, budget, stalls)


def _attempt(
    workload: BoundWorkload, share: Share, limit: int, stalls: bool, program: Program
) -> SimulationResult | None:
    """The exact result where jumps make it affordable."""
    if workload.synchronises or (len(workload.block_types) > 1 and share.blocks > ATTEMPT_BLOCKS):
        return None
    if not workload.in_order and program.nodes(min(share.resident, share.blocks)) > ATTEMPT_NODES:
        return None
    return try_share(workload, share, stalls=stalls, steady=Steady(limit=limit), program=program)


def extrapolate(workload: BoundWorkload, share: Share, budget: int, stalls: bool = True) -> SimulationResult:
    """An estimate of `share`, of more warp instructions than `budget`, from simulating no more than about that."""
    total = instructions(workload, share.blocks)
    if workload.synchronises:  # turns left out of one warp's loop would be missed by another's
        return _fewer_blocks(workload, share, budget, stalls)
    scale = budget / 3 / total
    short, longer = shorten(workload, scale), shorten(workload, 2 * scale, 2 * FEWEST_TURNS)
    first, second = instructions(short, share.blocks), instructions(longer, share.blocks)
    if second < total and second - first >= LEAST_SPAN * second:
        few, more = (
            _fewer_blocks(short, share, budget // 3, stalls),
            _fewer_blocks(longer, share, 2 * budget // 3, stalls),
        )
        return along_the_line(few, more, total, share.blocks)
    return _fewer_blocks(workload, share, budget, stalls)


def _fewer_blocks(workload: BoundWorkload, share: Share, budget: int, stalls: bool) -> SimulationResult:
    """So many waves and twice as many, within the budget but at least one; all of it where that is no more."""
    total = instructions(workload, share.blocks)
    if workload.in_order and FEWEST_WAVES * instructions(workload, share.resident) <= budget:
        waves = budget // max(1, 2 * instructions(workload, share.resident))
        return waves_and_rate(workload, share, waves, total, stalls)
    rest = share.blocks % share.resident
    waves = max(1, budget // max(1, 3 * instructions(workload, share.resident)))
    if total <= 1.5 * budget or share.blocks - rest <= 2 * waves * share.resident:
        return run_share(workload, share, stalls=stalls, steady=Steady())
    few, more = (
        run_share(workload, share.shortened(many * share.resident + rest), stalls=stalls, steady=Steady())
        for many in (waves, 2 * waves)
    )
    return along_the_line(few, more, total, share.blocks)


def instructions(workload: BoundWorkload, blocks: int) -> int:
    """Dynamic warp instructions of `blocks` blocks."""
    each = instructions_per_block(workload)
    if len(each) == 1:
        return each[0] * blocks
    weights = [kind.weight for kind in workload.block_types]
    if blocks > 100_000:  # the order of the types tells no more than their proportion then
        return round(blocks * sum(w * n for w, n in zip(weights, each, strict=True)) / sum(weights))
    return int(np.bincount(type_order(weights, blocks, each), minlength=len(each)) @ np.array(each, dtype=np.int64))


def shorten(workload: BoundWorkload, scale: float, fewest: int = FEWEST_TURNS) -> BoundWorkload:
    """The workload with its loops' turns scaled down, outer loops first, to no fewer than `fewest`."""
    paths = tuple(replace(path, program=_shorten(path.program, scale, fewest)) for path in workload.paths)
    return replace(workload, paths=paths)


def _shorten(program: tuple[Item, ...], scale: float, fewest: int) -> tuple[Item, ...]:
    return tuple(_shorten_loop(item, scale, fewest) if isinstance(item, Repeat) else item for item in program)


def _shorten_loop(loop: Repeat, scale: float, fewest: int) -> Repeat:
    count = min(loop.count, max(fewest, round(loop.count * scale)))
    inside = min(1.0, scale * loop.count / max(1, count))
    return Repeat(count, _shorten(loop.body, inside, fewest) if inside < 1.0 else loop.body)
