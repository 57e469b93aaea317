"""Which blocks are emulated where nobody says which, and what they tell of the others.

One block inside the grid shows what a block costs. If they fit into the limits, the stratified sample follows
(see `sampling`): where the blocks of each stratum do the same, that is all; where they change at some place, strata
are cut there (`refine`); where they differ from neighbour to neighbour, blocks are drawn at random until the total is
known closely enough (`sequential`). Where the limits leave room for less, fewer blocks stand for all, down to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .dependence import all_alike
from .refine import Signature, explains, refine
from .sampling import Cuts, boxes, fewest, stratified
from .sequential import Stratum, sample_until
from .session import Emulation, Session

CONFIDENCE = 0.02
"""Half-width of the interval, relative to the total, that is aimed at unless told."""
_MOST_BLOCKS = 64
"""Blocks that are drawn at random unless told: each one's paths are simulated later."""
_PILOT, _SLABS, _MOST_STRATA = 24, 8, 40
"""Blocks of the first random round, parts that the inside of a grid is cut into for it, and strata at most."""
_SHARE, _MOST_SHARE = 0.5, 0.9
"""Part of the limits that a sample may take, and part that the smallest useful one may."""
_NO_CUTS: Cuts = ((), (), ())


class _NoRoomError(Exception):
    """The limits have no room for blocks that a search would have to run."""


def survey(session: Session, confidence: float | None, together: bool = False) -> Emulation:
    """Sample a launch's grid as far as it needs to be, within the session's limits.

    `confidence` as in `emulate`; `together`: no block is run by itself first. Raises what `Session.run` raises,
    EmulationLimitError where not even one block fits.
    """
    grid, total = session.launch.grid, session.launch.blocks
    few = fewest(grid)
    plan = dict(stratified(grid))
    session.run(list(plan) if together else few[:1])
    if not together and len(plan) > session.room(_SHARE):
        return _with_fewer(session, few)
    known = session.signatures(list(plan))
    if len(plan) == total:
        return session.finish(plan, "all", 0.0)

    def probe(linear: Sequence[int]) -> Mapping[int, Signature]:
        if len(linear) > session.room(_SHARE):
            raise _NoRoomError
        return session.signatures(linear)

    cuts: Cuts | None = _NO_CUTS
    try:
        cuts = refine(grid, known, probe)
        if cuts is None:
            return session.finish(plan, _basis(session), 0.0)
        if any(cuts):
            second = dict(stratified(grid, cuts))
            if explains(cuts, grid, probe(list(second))):
                return session.finish(second, "uniform", 0.0)
    except _NoRoomError:
        pass
    return _at_random(session, cuts or _NO_CUTS, plan, confidence)


def _basis(session: Session) -> str:
    return "proven" if all_alike(session.kernel.instructions, session.cfg) else "uniform"


def _with_fewer(session: Session, few: Sequence[int]) -> Emulation:
    """Fewer blocks than a sample should have, for the sake of the limits."""
    total = session.launch.blocks
    if len(few) - 1 > session.room(_MOST_SHARE):
        few = few[:1]
    alike = len(set(session.signatures(few).values())) == 1
    note = (
        f"{len(few)} of {total} blocks stand for all, those at the borders of the grid included: more would have passed"
        " the limits of emulation (--lane-steps)"
    )
    basis, half = ("proven", 0.0) if alike and _basis(session) == "proven" else ("limited", None)
    return session.finish(dict.fromkeys(few, total / len(few)), basis, half, note)


def _at_random(session: Session, cuts: Cuts, plan: Mapping[int, float], confidence: float | None) -> Emulation:
    """Blocks drawn at random, as many as the interval takes; where none can be formed, the sample that there is."""
    grid = session.launch.grid
    target = CONFIDENCE if confidence is None else confidence
    found = boxes(grid, cuts, _SLABS)
    if len(found) > _MOST_STRATA:
        found = boxes(grid, _NO_CUTS, _SLABS)
    taken: set[int] = set()

    def room() -> int:
        fits = session.room(_SHARE)
        return fits if confidence is not None else min(fits, max(_MOST_BLOCKS, len(found) * 3) - len(taken))

    def measure(blocks: Sequence[int]) -> Mapping[int, float]:
        taken.update(blocks)
        return session.steps(blocks)

    varies = len(set(session.steps(list(plan)).values())) > 1
    strata = [Stratum(box, grid, number) for number, box in enumerate(found)]
    outcome = sample_until(strata, measure, target, _PILOT, room, varies)
    if outcome is None:
        note = f"blocks differ, and the limits of emulation left too few of them ({len(plan)}) to say by how much"
        return session.finish(plan, "limited", None, note)
    note = ""
    if not outcome.reached and outcome.interval.relative <= target:
        sampled = len(outcome.weights)
        note = f"blocks differ in ways that the {sampled} sampled ones hardly show; --blocks all looks at each"
    elif not outcome.reached:
        note = (
            f"blocks differ: the number of instructions is known to {outcome.interval.relative:.1%} only"
            f" (95 % confidence, {len(outcome.weights)} blocks); --confidence {target:g} goes on to {target:.0%}"
        )
    return session.finish(outcome.weights, "estimated" if outcome.varied else "uniform", outcome.interval.half, note)
