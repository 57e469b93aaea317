"""Which blocks of a grid are sampled, and how many: by default, and until the total is known precisely enough.

Strata are boxes of blocks. Within each, the blocks have a random but fixed order, so a larger sample contains the
smaller one. After each round the total and its confidence interval are estimated. The next round adds as many blocks as
the spread within the strata requires, at most doubling the sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationLimitError
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Dim3, Launch
from .deadlock import all_alike
from .sampling import Blocks, Box, Cuts, Limits, Signature, boxes, explains, fewest, refine, sample_blocks, stratified
from .session import Emulation, Session

# The stratified estimator of a total with the finite population correction, its degrees of freedom by
# Satterthwaite's approximation, and Student's t (Cochran, Sampling Techniques, 3rd edition, §5.4).

_PROBABILITY = 0.95
"""With which an interval should contain the true total."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


_LARGE = 1e6
"""Degrees of freedom above which t is treated as normal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate of a total, and the half-width of its confidence interval."""

    total: float
    half: float

    @property
    def relative(self) -> float:
        """The half-width, relative to the estimate."""
        return self.half / self.total if self.total else 0.0


def estimate(strata: Sequence[tuple[int, Sequence[float]]], confidence: float = _PROBABILITY) -> Interval:
    """The total over all strata, each given by its size and the values of a random sample of its members.

    Every stratum needs two values, or all of them. Raises ValueError where there are fewer.
    """
    total = variance = spread = 0.0
    for size, values in strata:
        count = len(values)
        if count == 0 or (count < 2 and count < size):
            raise ValueError(f"{count} values of a stratum of {size}: expected two, or all")
        total += size * float(np.mean(values))
        if count < size:
            part = size * (size - count) / count * float(np.var(values, ddof=1))
            variance += part
            spread += part * part / (count - 1)
    if variance == 0:
        return Interval(total, 0.0)
    freedom = variance * variance / spread
    return Interval(total, quantile(confidence, freedom) * math.sqrt(variance))


def quantile(confidence: float, freedom: float) -> float:
    """The number below which |t| stays with this probability, for Student's distribution."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: float) -> float:
    """The probability that |t| stays below a number.

    With t = sqrt(freedom) tan(angle) the density is a power of a cosine, which is integrated by Gaussian quadrature.
    """
    if freedom > _LARGE:
        return math.erf(t / math.sqrt(2))
    angle = math.atan(t / math.sqrt(freedom))
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(math.pi)
    # Far from the centre the density is negligible: integrate only as far as the cosine's power is visible.
    end = min(angle, 12 / math.sqrt(freedom + 1))
    points = (_NODES + 1) * end / 2
    values = np.exp((freedom - 1) * np.log(np.cos(points)))
    return float(2 * math.exp(log_scale) * end / 2 * (_WEIGHTS @ values))


Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Measure = Callable[[Sequence[int]], Mapping[int, float]]
"""Values of some members, by number; those already known cost nothing."""

_FEWEST = 2
"""Samples per stratum, if it has that many: fewer do not show its spread."""
_GROWTH, _LEAST_GROWTH, _TRIES = 2.0, 1.25, 20
"""Largest and smallest growth factor from round to round, and sizes tried if there is little room."""
_SEED = 0x5EED
_SHUFFLED = 1 << 12
"""Strata up to this size are shuffled as a whole; members of larger ones are drawn one by one."""


class Stratum:
    """A box of blocks, and the order in which they are sampled."""

    def __init__(self, box: Box, grid: Dim3, number: int) -> None:
        self.box, self.grid = box, grid
        self.size = math.prod(length for _, length in box)
        self._order = self._draw(np.random.Generator(np.random.Philox(key=[_SEED, number])))
        self._drawn: list[int] = []

    def members(self, count: int) -> list[int]:
        """The first `count` blocks of the order, as linear indices."""
        while len(self._drawn) < min(count, self.size):
            self._drawn.append(self._linear(next(self._order)))
        return self._drawn[:count]

    def _draw(self, random: np.random.Generator) -> Iterator[int]:
        if self.size <= _SHUFFLED:
            yield from random.permutation(self.size).tolist()
            return
        seen: set[int] = set()
        while len(seen) < self.size:
            number = int(random.integers(self.size))
            if number not in seen:
                seen.add(number)
                yield number

    def _linear(self, number: int) -> int:
        (x0, nx), (y0, ny), (z0, _) = self.box
        x, y, z = x0 + number % nx, y0 + number // nx % ny, z0 + number // (nx * ny)
        return x + self.grid[0] * (y + self.grid[1] * z)


@dataclass(frozen=True)
class Outcome:
    """The end of a sequence of rounds: the interval, the sampled blocks' weights, and whether it was reached."""

    interval: Interval
    weights: dict[int, float]
    reached: bool
    varied: bool


def sample_until(
    strata: Sequence[Stratum],
    measure: Measure,
    target: float,
    pilot: int,
    room: Callable[[], int],
    varies: bool = False,
) -> Outcome | None:
    """Sample until the half-width is at most `target`, relative to the total, or `room` is used up.

    `pilot` is the approximate size of the first round; `room` gives how many more blocks may be measured. With
    `varies`, a sample that shows no variation is known to be too small. None if there is no room for any.
    """
    sizes: Counts = np.array([s.size for s in strata], np.int64)
    counts: Counts = np.minimum(sizes, np.maximum(_FEWEST, np.rint(pilot * sizes / sizes.sum()).astype(np.int64)))
    known: dict[int, float] = {}
    taken = counts * 0
    while True:
        wanted = [b for s, n in zip(strata, counts.tolist(), strict=True) for b in s.members(n) if b not in known]
        if len(wanted) > room():
            break
        known |= measure(wanted)
        taken = counts
        values = [[known[b] for b in s.members(n)] for s, n in zip(strata, taken.tolist(), strict=True)]
        interval = estimate(list(zip(sizes.tolist(), values, strict=True)))
        close = interval.half <= target * interval.total and (interval.half > 0 or not varies)
        if close or (taken == sizes).all():
            break
        counts = _next(sizes, taken, interval, target, room())
        if (counts == taken).all():
            break
    if not taken.any():
        return None
    weights = {b: s.size / n for s, n in zip(strata, taken.tolist(), strict=True) for b in s.members(n)}
    varied = any(len(set(v)) > 1 for v in values)
    return Outcome(interval, weights, bool(close or (taken == sizes).all()), varied)


def _next(sizes: Counts, taken: Counts, interval: Interval, target: float, room: int) -> Counts:
    """How many blocks of each stratum to sample next, in proportion to its size.

    As many as before if there is no room.

    Neyman's allocation would trust the spread that a few samples show: strata that happen to have shown none would
    never be sampled again, and intervals would be too narrow.
    """
    have = int(taken.sum())
    # The interval narrows with the square root of the sample size.
    ratio = interval.half / (target * interval.total) if interval.half else _GROWTH
    goal = have * min(max(1.1 * ratio * ratio, _LEAST_GROWTH), _GROWTH)
    while (_allotted(sizes, taken, goal) == taken).all():
        goal *= _LEAST_GROWTH
    for total in np.linspace(goal, have, _TRIES):
        counts = _allotted(sizes, taken, float(total))
        if have < counts.sum() <= have + room:
            return counts
    return taken


def _allotted(sizes: Counts, taken: Counts, total: float) -> Counts:
    counts: Counts = np.maximum(taken, np.minimum(sizes, np.floor(total * sizes / sizes.sum()).astype(np.int64)))
    return counts


# Which blocks are emulated by default, and what they reveal about the others.
#
# One block inside the grid shows what a block costs. If the limits permit, the stratified sample follows (see
# `sampling`). If the blocks of each stratum behave alike, that is all; if they change at some place, strata are cut
# there (`refine`); if they differ from neighbour to neighbour, blocks are drawn at random until the total is known
# precisely enough. If the limits leave room for less, fewer blocks represent all, down to one.

CONFIDENCE = 0.02
"""Default target half-width of the interval, relative to the total."""
_MOST_BLOCKS = 64
"""Default number of randomly drawn blocks: each one's paths are simulated later."""
_PILOT, _SLABS, _MOST_STRATA = 24, 8, 40
"""Blocks of the first random round, parts into which the inside of a grid is cut for it, and most strata."""
_SHARE, _MOST_SHARE = 0.5, 0.9
"""Fraction of the limits that a sample may take, and that the smallest useful one may."""
_NO_CUTS: Cuts = ((), (), ())


class _NoRoomError(Exception):
    """The limits leave no room for the blocks that a search would have to run."""


class _Units:
    """What a sample is drawn from: the clusters of a session's launch by linear index; its blocks where it has none."""

    def __init__(self, session: Session) -> None:
        self.of = session
        launch = session.launch
        self.grid = (launch.starts, 1, 1) if launch.starts else launch.clusters
        self.total = math.prod(self.grid)
        self.name = "blocks" if session.launch.cluster_blocks == 1 else "clusters"

    def _members(self, units: Iterable[int]) -> dict[int, list[int]]:
        return {unit: self.of.launch.members(unit) for unit in units}

    def run(self, units: Sequence[int]) -> None:
        """As `Session.run`."""
        self.of.run([block for blocks in self._members(units).values() for block in blocks])

    def steps(self, units: Sequence[int]) -> dict[int, float]:
        """Warp instructions of each."""
        self.run(units)
        return {unit: sum(self.of.steps(blocks).values()) for unit, blocks in self._members(units).items()}

    def signatures(self, units: Sequence[int]) -> dict[int, Signature]:
        """The behaviour of each."""
        members = self._members(units)
        found = self.of.signatures([block for blocks in members.values() for block in blocks])
        return {unit: tuple(path for block in blocks for path in found[block]) for unit, blocks in members.items()}

    def room(self, share: float) -> int:
        """As `Session.room`."""
        return self.of.room(share) // self.of.launch.cluster_blocks

    @property
    def completed(self) -> list[int]:
        """Those that have run to their ends, in that order."""
        return list(dict.fromkeys(map(self.of.launch.cluster_of, self.of.completed)))

    def finish(self, weights: Mapping[int, float], *rest: Any, **more: Any) -> Emulation:
        """As `Session.finish`."""
        members = self._members(weights)
        return self.of.finish({b: weights[unit] for unit, blocks in members.items() for b in blocks}, *rest, **more)


def survey(given: Session, confidence: float | None, together: bool = False) -> Emulation:
    """Sample a launch's grid as far as necessary, within the session's limits.

    `confidence` as in `emulate`; `together`: no block is run on its own first. Past a limit, the blocks that have ended
    represent all, unless `confidence` is given or the limits are strict. Raises what `Session.run` raises,
    EmulationLimitError if not even one block fits.
    """
    session = _Units(given)
    try:
        return _surveyed(session, confidence, together)
    except EmulationLimitError as stopped:
        if session.completed and confidence is None and not session.of.limits.strict:
            return _with_completed(session, stopped)
        raise


def _surveyed(session: _Units, confidence: float | None, together: bool) -> Emulation:
    grid, total = session.grid, session.total
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
        cuts = refine(grid, known, probe, session.steps)
        if cuts is None:
            return session.finish(plan, _basis(session), 0.0)
        if any(cuts):
            second = dict(stratified(grid, cuts))
            if explains(cuts, grid, probe(list(second))):
                return session.finish(second, "uniform", 0.0)
    except _NoRoomError:
        pass
    return _at_random(session, cuts or _NO_CUTS, plan, confidence)


def _basis(session: _Units) -> str:
    return "proven" if all_alike(session.of.kernel.instructions, session.of.cfg) else "uniform"


def _with_fewer(session: _Units, few: Sequence[int]) -> Emulation:
    """Fewer blocks than a sample should have, to stay within the limits."""
    total = session.total
    if len(few) - 1 > session.room(_MOST_SHARE):
        few = few[:1]
    alike = len(set(session.signatures(few).values())) == 1
    text = (
        f"{len(few):,} of {total:,} {session.name} represent all, those at the edges of the grid included: more would"
        f" have exceeded the emulation limits ({session.of.scarce()} raises them)"
    )
    weights = dict.fromkeys(few, total / len(few))
    if alike and _basis(session) == "proven":
        return session.finish(weights, "proven", 0.0, text)
    if alike and len(few) > 1:
        return session.finish(weights, "limited", note=text)
    return session.finish(weights, "limited", doubt=text)


def _with_completed(session: _Units, stopped: EmulationLimitError) -> Emulation:
    """The blocks that had ended when the emulation was stopped represent all."""
    total, ended = session.total, session.completed
    unfinished = session.of.abandon()
    doubt = (
        f"{len(ended)} of {total} {session.name} represent all: the others had not ended when the emulation stopped"
        f" after {stopped.limit} ({stopped.option} raises the limit)"
    )
    return session.finish(dict.fromkeys(ended, total / len(ended)), "limited", doubt=doubt, unfinished=unfinished)


def _at_random(session: _Units, cuts: Cuts, plan: Mapping[int, float], confidence: float | None) -> Emulation:
    """Blocks drawn at random, as many as the interval requires; if no interval can be formed, the existing sample."""
    grid = session.grid
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
        doubt = (
            f"{session.name} differ, and the emulation limits allowed too few of them ({len(plan)}) to estimate by how"
            f" much ({session.of.scarce()} raises them)"
        )
        return session.finish(plan, "limited", doubt=doubt)
    note = ""
    half = max(outcome.interval.half, _unseen(session, plan, outcome.weights))
    if not outcome.reached and outcome.interval.relative <= target:
        sampled = len(outcome.weights)
        shown = f"the {sampled} sampled ones barely show; --blocks all emulates every one"
        note = f"{session.name} differ in ways that {shown}"
    elif not outcome.reached:
        note = (
            f"{session.name} differ: the instruction count is known only to within {outcome.interval.relative:.1%}"
            f" (95 % confidence, {len(outcome.weights)} {session.name}); --confidence {target:g} samples more blocks,"
            f" until it is known to within {target:.0%}"
        )
    return session.finish(outcome.weights, "estimated" if outcome.varied or half else "uniform", half, note)


def _unseen(session: _Units, plan: Mapping[int, float], drawn: Mapping[int, float]) -> float:
    """Warp instructions that blocks may add or lack if their kind was seen at first but not drawn since.

    A kind that none of n draws showed makes up at most 3/n, with 95 % confidence (the rule of three).
    """
    steps, known = session.steps(list(drawn)).values(), session.steps(list(plan)).values()
    beyond = max(max(known) - max(steps), min(steps) - min(known), 0.0)
    return 3 / len(drawn) * session.total * beyond


def chosen(session: Session, blocks: Blocks) -> Emulation:
    """Exactly the blocks that the caller requests, and the others of their clusters."""
    launch = session.launch
    weights = dict(sample_blocks(launch.starting, blocks))
    if launch.cluster_blocks > 1:
        clusters = dict.fromkeys(map(launch.cluster_of, weights))
        members = [block for cluster in clusters for block in launch.members(cluster)]
        weights = dict.fromkeys(members, launch.blocks / len(members))
    session.run(list(weights))
    if len(weights) == launch.blocks:
        return session.finish(weights, "all", 0.0)
    return session.finish(weights, "chosen")


def whole_grid(kernel: Kernel, launch: Launch, limits: Limits, compiled: bool) -> Emulation:
    """All blocks concurrently, for those that wait for each other."""
    session = Session(kernel, launch, limits, compiled)
    weights = dict(sample_blocks(launch.starting, "all"))
    session.run(list(weights), whole=True)
    return session.finish(weights, "all", 0.0)
