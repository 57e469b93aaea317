"""Large runs within a budget: jump where a steady state recurs, else simulate less of the same and extrapolate.

Jumps are exact (`engine_inorder.py`). If no state recurs soon enough, the answer is an estimate, and says so. With many
waves of blocks, a few waves show the rate of all. If a single wave is long, its loops are shortened: a long loop runs
at a steady rate, and a shorter one soon reaches it too, so two runs of the same blocks with fewer iterations predict
the full one. The extrapolation is linear in the number of warp instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..workload.cost import CostedWorkload
from .blocks import Share, type_order
from .result import Mark, SimulationResult
from .shorten import FEWEST_OF_TWO, along_the_line, apportion, off_alone, roof_ticks, shorten, two_lengths
from .simulate import Program, instructions_per_block, per_instance, run_share, try_share
from .state import Steady

# Extrapolate a large grid from a few simulated waves, if no state recurs.
#
# Warps that drift relative to each other need not return to a state: their issues repeat only on average. So a few
# waves are simulated, with the grid's beginning and its end. The omitted part in between is assumed to run at the rate
# measured between two launches a whole number of waves apart.

MARKS = 50
"""Approximate number of moments of a wave that are recorded."""


def waves_and_rate(
    workload: CostedWorkload,
    share: Share,
    waves: int,
    total: int,
    stalls: bool,
    program: Program | None = None,
    exactly: Callable[[], SimulationResult | None] = lambda: None,
) -> SimulationResult:
    """An estimate of `share`, of `total` warp instructions, from `waves` waves and a partial last one.

    One more wave if the last is not partial. Exact if that is the whole share; the result of `exactly` if a state
    recurs in these waves.
    """
    resident, rest = share.resident, share.blocks % share.resident
    blocks = (max(2, waves) + (rest == 0)) * resident + rest
    if share.blocks <= 1.5 * blocks:
        return run_share(workload, share, stalls=stalls, steady=Steady(), program=program)
    each = max(1, total * resident // share.blocks // MARKS)
    few = run_share(workload, share.shortened(blocks), stalls=stalls, steady=Steady(mark=each), program=program)
    if few.jumped and (exact := exactly()):
        return exact
    between = _window(few, resident)
    if between is None:
        longer = share.shortened(blocks + resident * max(1, waves))
        more = run_share(workload, longer, stalls=stalls, steady=Steady(), program=program)
        return along_the_line(few, more, total, share.blocks)
    return _go_on(workload, few, between, total, share.blocks)


def _window(run: SimulationResult, resident: int) -> tuple[Mark, Mark] | None:
    """Two marks with as many waves in between as after the first; None if there are no such marks."""
    waves = (len(run.block_starts) - 1) // resident
    first = max(1, waves // 3)
    if run.recurrences or waves <= first:
        return None  # a run with jumps has no rows for each block
    starts = run.block_starts[[first * resident, waves * resident]]
    ticks = np.array([mark.tick for mark in run.marks])
    begin, end = np.searchsorted(ticks, starts)
    if end >= len(ticks) or run.marks[end].issued == run.marks[begin].issued:
        return None
    return run.marks[begin], run.marks[end]


def _go_on(
    workload: CostedWorkload, run: SimulationResult, between: tuple[Mark, Mark], total: int, blocks: int
) -> SimulationResult:
    """The run extended to `total` instructions, at the rate between two marks."""
    begin, end = between
    ahead, span = total - run.issued, end.issued - begin.issued

    def more(amount: int) -> int:
        return (amount * ahead + span // 2) // span

    active = _active(run, begin.tick, end.tick)
    warp_ticks = run.warp_ticks + more(active)
    rate = ahead / span
    # A transaction may reach a further level some time after a mark: what is counted between them may exceed their
    # distance, but nothing is busy for longer than that.
    most = end.tick - begin.tick
    busy = zip(run.busy_ticks, per_instance(workload, np.minimum(end.busy - begin.busy, most)), strict=True)
    issuing = min(span * _events_each(workload) * workload.issue_ticks / workload.partitions, most)
    return replace(
        run,
        total_ticks=run.total_ticks + more(end.tick - begin.tick),
        issued=total,
        blocks=blocks,
        busy_ticks=tuple(done + further * rate for done, further in busy),
        issue_busy_ticks=run.issue_busy_ticks + issuing * rate,
        warp_ticks=warp_ticks,
        stall_ticks=apportion(run.stall_ticks + (end.stalls - begin.stalls) * rate, warp_ticks),
        extrapolated=True,
    )


def _events_each(workload: CostedWorkload) -> float:
    """Issue events per warp instruction, over one block of each type."""
    if all(node.issues == 1 for path in workload.paths for node in path.nodes):
        return 1.0
    return sum(workload.issue_events) / max(1, sum(instructions_per_block(workload)))


def _active(run: SimulationResult, begin: int, end: int) -> int:
    """The time of all warps together between two ticks."""
    per_block = len(run.warp_ends) // len(run.block_starts)
    starts: npt.NDArray[np.int64] = np.clip(np.repeat(run.block_starts, per_block), begin, end)
    return int((np.clip(run.warp_ends, begin, end) - starts).sum())


LAUNCH_BUDGET = 12_000_000
"""Warp instructions that an estimate of a launch's own point may simulate: about a second."""

CURVE_BUDGET = 3_000_000
"""The same for each other point of a curve, and for rows of a sweep."""

WORTH = 8 / 3
"""So many times its budget a share may have and still be simulated in full.

An estimate costs up to 4/3 of the budget, with the attempt to find a steady state. Its error is not worth half of the
time: of rows of a GEMM it is up to 14 % (`benchmarks/row_estimates.py`).
"""

DATAFLOW_BUDGET = 2_000_000
"""The limit for either if warps issue out of order: their graphs are unrolled."""

TOO_SHORT = 20_000
"""Most warp instructions for which looking for a steady state does not pay."""

ESTIMATE = 6
"""The part of a budget, 1 in this many, for an estimate from a few waves; at least two waves."""

ATTEMPT = 3
"""The part of a budget, 1 in this many, that may be spent on finding that no state recurs."""

ATTEMPT_BLOCKS = 4_000_000
"""Most blocks of several types for which that is tried: the type of each is recorded."""

FEWEST_WAVES = 4
"""Waves within a budget from which on their rate represents that of all."""

MOST_KINDS = 8
"""Most types of blocks that are tried if each SM has a single block."""

MOST_IN_ORDER = 100_000
"""Most blocks whose types are counted in launch order; that of more tells no more than their proportion."""


def simulate(
    workload: CostedWorkload,
    share: Share,
    budget: int = LAUNCH_BUDGET,
    profile: bool = False,
    stalls: bool = True,
    *,
    full: bool = False,
    program: Program | None = None,
) -> SimulationResult:
    """Simulate `share`: exactly if a state recurs or if it has at most `WORTH` times `budget` warp instructions.

    With `profile` it is always exact; without `stalls` the warps' time is not divided by reason. With `full` every
    instruction is simulated, however long that takes. `program` is the prepared workload, if available. If every SM has
    a single block, the time is that of the slowest type of block: the longest programs of several types are tried.
    """
    if share.blocks == 1 and len(workload.block_types) > 1:
        program = program or Program(workload)
        lone = [program.of_kind(kind) for kind in _longest_kinds(workload)]
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
    if total <= WORTH * budget:
        steady = Steady() if total > TOO_SHORT else None
        return run_share(workload, share, stalls=stalls, steady=steady, program=program)
    waves = budget // (ESTIMATE * max(1, instructions(workload, share.resident)))

    def attempt() -> SimulationResult | None:
        return _attempt(workload, share, budget // ATTEMPT, stalls, program)

    if workload.in_order and FEWEST_WAVES * instructions(workload, share.resident) <= budget:
        found = waves_and_rate(workload, share, waves, total, stalls, program, attempt)
    else:
        found = attempt() or extrapolate(workload, share, budget, stalls)
    return _no_faster(workload, share, found)


def _longest_kinds(workload: CostedWorkload) -> list[int]:
    """The types of blocks with the most instructions, of those that the grid has."""
    each = instructions_per_block(workload)
    kinds = (k for k in range(len(each)) if workload.block_types[k].weight > 0)
    return sorted(kinds, key=lambda k: -each[k])[:MOST_KINDS]


def _attempt(
    workload: CostedWorkload, share: Share, limit: int, stalls: bool, program: Program
) -> SimulationResult | None:
    """The exact result if jumps make it affordable."""
    if workload.synchronises or not workload.in_order:
        return None
    if len(workload.block_types) > 1 and share.blocks > ATTEMPT_BLOCKS:
        return None
    return try_share(workload, share, stalls=stalls, steady=Steady(limit=limit), program=program)


def extrapolate(workload: CostedWorkload, share: Share, budget: int, stalls: bool = True) -> SimulationResult:
    """An estimate of `share`, which exceeds `budget`, from simulating roughly that many warp instructions."""
    total = instructions(workload, share.blocks)
    if workload.synchronises:  # another warp would wait for the iterations left out of this warp's loop
        return _fewer_blocks(workload, share, budget, stalls)
    if lengths := two_lengths(workload, budget / 3 / total):
        few = _fewer_blocks(lengths[0], share, budget // 3, stalls)
        more = _fewer_blocks(lengths[1], share, 2 * budget // 3, stalls)
        return along_the_line(few, more, total, share.blocks)
    return _fewer_blocks(workload, share, budget, stalls)


def _fewer_blocks(workload: CostedWorkload, share: Share, budget: int, stalls: bool) -> SimulationResult:
    """This many waves and twice as many, within the budget but at least one; the whole share if that is no larger."""
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


def _no_faster(workload: CostedWorkload, share: Share, result: SimulationResult) -> SimulationResult:
    """The result; an estimate takes at least the time that the busiest subsystem needs."""
    if not result.extrapolated:
        return result
    least = roof_ticks(workload, share, _blocks_of_each_type(workload, share.blocks))
    return replace(result, total_ticks=max(result.total_ticks, least))


def instructions(workload: CostedWorkload, blocks: int) -> int:
    """Dynamic warp instructions of `blocks` blocks."""
    each = instructions_per_block(workload)
    if len(each) == 1:
        return each[0] * blocks
    return round(float(_blocks_of_each_type(workload, blocks) @ np.array(each)))


def _blocks_of_each_type(workload: CostedWorkload, blocks: int) -> npt.NDArray[np.float64]:
    """How many of these blocks are of each type."""
    weights = [kind.weight for kind in workload.block_types]
    if len(weights) == 1 or blocks > MOST_IN_ORDER:
        return np.array(weights, dtype=np.float64) * (blocks / sum(weights))
    order = type_order(weights, blocks, instructions_per_block(workload))
    return np.bincount(order, minlength=len(weights)).astype(np.float64)


# A stand-in for a launch, on which changed costs are tried: the same code with fewer iterations. Only the ratio of two
# of its times is meaningful.


@dataclass(frozen=True, slots=True)
class Trial:
    """A stand-in with some costs: `whole` has all iterations, `programs` one length of it or two."""

    whole: CostedWorkload
    programs: tuple[Program, ...]

    def under(self, policy: str) -> Trial:
        """The same with another scheduler policy."""
        return replace(self, programs=tuple(program.under(policy) for program in self.programs))

    def of_kind(self, kind: int) -> Trial:
        """The same for blocks of one type alone."""
        only = replace(self.whole, block_types=(self.whole.block_types[kind],))
        return Trial(only, tuple(program.of_kind(kind) for program in self.programs))

    def run(self, share: Share) -> SimulationResult:
        """The time of all iterations of these blocks: that of the line through two lengths."""
        if share.blocks == 1 and len(self.whole.block_types) > 1:
            kinds = (self.of_kind(kind) for kind in _longest_kinds(self.whole))
            return max((kind.run(share) for kind in kinds), key=lambda result: result.total_ticks)
        runs = [simulate(its.workload, share, stalls=False, program=its) for its in self.programs]
        if len(runs) == 1 or runs[0].issued >= runs[1].issued:
            return runs[-1]
        line = along_the_line(runs[0], runs[1], instructions(self.whole, share.blocks), share.blocks)
        return _no_faster(self.whole, share, line)


FEWEST_OF_ONE = 3
"""Fewest iterations that a loop keeps, if one length stands for the whole."""

ALIKE = 0.2
"""How far the mix of loops of one length may be from that of the whole, so that it stands for it alone.

One length is less sensitive to how warps drift than the difference of two. A trial multiplies what is off.
"""


class StandIn:
    """The iterations that are left of a workload at about `scale`, decided once for all trials.

    One length, if its mix of loops is that of the whole to within `alike`; else two, whose line ends at the whole. All
    iterations stay if two lengths would take as long, or if warps wait for each other in them.
    """

    def __init__(self, workload: CostedWorkload, scale: float, alike: float = ALIKE) -> None:
        small = scale < 1 and not workload.synchronises
        lengths: tuple[CostedWorkload, ...] = ()
        if small and 3 * _mean_block(shorten(workload, scale, FEWEST_OF_TWO)) <= _mean_block(workload):
            one = shorten(workload, scale, FEWEST_OF_ONE)
            lengths = (one,) if off_alone(one, workload) <= alike else two_lengths(workload, scale / 3) or (one,)
        self._loops = [[path.program for path in length.paths] for length in lengths]
        self.instructions = sum(map(_mean_block, lengths or (workload,)))
        """Warp instructions that a trial simulates of a block, on average over the types of blocks."""

    def trial(self, workload: CostedWorkload) -> Trial:
        """The stand-in with the costs of `workload`, which has the loops of the one that the stand-in is made of."""
        lengths = [
            replace(
                workload,
                paths=tuple(replace(path, program=loop) for path, loop in zip(workload.paths, loops, strict=True)),
            )
            for loops in self._loops
        ]
        return Trial(workload, tuple(Program(length) for length in lengths or [workload]))


def _mean_block(workload: CostedWorkload) -> float:
    """Dynamic warp instructions of a block, averaged over the types."""
    weights = [kind.weight for kind in workload.block_types]
    each = instructions_per_block(workload)
    return sum(weight * number for weight, number in zip(weights, each, strict=True)) / sum(weights)
