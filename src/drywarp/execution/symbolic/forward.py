"""Loop iterations that need not be walked individually: repetition is detected and recorded once.

A loop is watched while the same lanes of the same warps iterate in it. Suppose three consecutive periods do the same,
every relevant number moves by the same step, and nothing in between is non-affine. Then the iterations up to the next
change of a condition do the same too. Numbers that depend on data are irrelevant: they decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .decide import Decider
from .flow import Flow
from .report import Access, Item, Record, Repetition, accesses, shifts_between
from .state import DATA, ITERATIONS, NON_AFFINE_SHIFT, Batch, Compared, Lanes, State
from .words import Architecture

PERIODS = (1, 2, 3, 4)
"""Largest period of a loop in iterations: rotating buffers make it more than one."""
FAR = 1 << 62
_MOST_PLACES = 64
"""Most words on the stack for which a loop is still watched."""


@dataclass(eq=False)
class Crowd:
    """Lanes of warps `rows` (ascending), shape (rows, lanes), at a block; `stack` holds the return points of calls."""

    block: int
    rows: npt.NDArray[np.int64]
    there: Lanes
    stack: tuple[int, ...] = ()


class Walking(Protocol):
    """The part of a walk that this module reads and changes."""

    flow: Flow
    state: State
    decider: Decider
    architecture: Architecture
    record: Record
    warp_steps: int


@dataclass(slots=True)
class _Visit:
    """The state at the beginning of an iteration."""

    items: int
    compared: int
    registers: list[npt.NDArray[Any]]
    guarded: npt.NDArray[np.int64]
    totals: list[tuple[int, int]]
    warp_steps: int


@dataclass(slots=True)
class _Watch:
    rows: npt.NDArray[np.int64]
    there: Lanes
    period: int = 0
    visits: list[_Visit] = field(default_factory=list)


class Forward:
    """Watches the loops of one walk."""

    def __init__(self, walk: Walking) -> None:
        self.walk = walk
        self._watches: dict[int, _Watch] = {}
        flow = walk.flow
        self._depth: dict[int, int] = {}
        for loop in flow.loops:
            depth, outer = 0, loop.parent
            while outer is not None:
                depth, outer = depth + 1, flow.loops[outer].parent
            self._depth[loop.index] = depth
        self._guarded = {
            loop.index: np.array(
                [
                    n
                    for block in sorted(loop.blocks)
                    for n in range(flow.blocks[block].start, flow.blocks[block].end)
                    if flow.instructions[n].guard is not None
                ],
                np.int64,
            )
            for loop in flow.loops
        }

    def arrive(self, index: int, crowd: Crowd, batch: Batch) -> None:
        """A crowd begins an iteration: record it, and skip ahead as far as the loop is known to repeat."""
        depth = self._depth[index]
        if depth >= len(ITERATIONS) or len(self.walk.state.local) > _MOST_PLACES:
            return
        bit = np.uint16(ITERATIONS[depth])
        walk = self.walk
        iterations = walk.decider.iterations(index, crowd.rows)[crowd.there]
        watch = self._watches.get(index)
        same = watch is not None and np.array_equal(watch.rows, crowd.rows) and np.array_equal(watch.there, crowd.there)
        if watch is None or not same or not iterations[0] or (iterations != iterations[0]).any():
            self._watches[index] = _Watch(crowd.rows, crowd.there)
            return
        state = walk.state
        if not watch.visits:
            state.non_affine &= ~int(bit)
        watch.visits.append(self._visit(index, batch))
        period = PERIODS[watch.period]
        self._mark(watch, index, batch, bit, period)
        if len(watch.visits) > 3 * period:
            if self._go(watch, index, batch, int(iterations[0]), period, int(bit)):
                watch.visits.clear()
                watch.visits.append(self._visit(index, batch))
                state.non_affine &= ~int(bit)
            elif watch.period + 1 < len(PERIODS):
                watch.period += 1
                watch.visits = watch.visits[-1:]
                state.non_affine &= ~int(bit)
            else:
                # No repetition seen so far: start looking again from here, now and then.
                watch.visits = watch.visits[-1:]
                watch.period = 0
                state.non_affine &= ~int(bit)

    def _visit(self, index: int, batch: Batch) -> _Visit:
        walk = self.walk
        registers = [getattr(batch, file)[n].copy() for file, n in walk.architecture.changed(index)[0]]
        registers += [walk.state.local[key][0][batch.warps] for key in sorted(walk.state.local)]
        guarded = walk.architecture.counts[self._guarded[index]]
        totals = [(c.iterations, c.runs) for c in walk.decider.counts.values()]
        return _Visit(len(walk.record.items), len(walk.state.compared), registers, guarded, totals, walk.warp_steps)

    def _mark(self, watch: _Watch, index: int, batch: Batch, bit: np.uint16, period: int) -> None:
        """Flag exactly the registers that differ from those a period ago."""
        now = watch.visits[-1]
        bits = bit | bit << np.uint16(NON_AFFINE_SHIFT)
        before = watch.visits[-1 - period] if len(watch.visits) > period else None
        for number, (file, n) in enumerate(self.walk.architecture.changed(index)[0]):
            flags = batch.flags[file][n]
            if before is None:
                flags &= ~bits
            else:
                moved = now.registers[number] != before.registers[number]
                flags[...] = np.where(moved, flags | bit, flags & ~bits)

    def _go(self, watch: _Watch, index: int, batch: Batch, iterations: int, period: int, bit: int) -> bool:
        """Skip as many periods as are known to repeat the last one; False if there are none."""
        walk = self.walk
        if walk.state.non_affine & bit:
            return False
        visits = watch.visits
        a, b, c, d = (visits[-1 - k * period] for k in (3, 2, 1, 0))
        items = walk.record.items
        first, second, third = items[a.items : b.items], items[b.items : c.items], items[c.items : d.items]
        before, shifts = shifts_between(first, second), shifts_between(second, third)
        if shifts is None or before is None or not all(map(np.array_equal, before, shifts)):
            return False
        if not all(np.isin(access.warps - walk.record.first_warp, watch.rows).all() for access in accesses(third)):
            return False
        steps = self._steps(index, batch, watch, (b, c, d), bit)
        if steps is None:
            return False
        count = min(self._until_flip(b, c, d), self._until_stated(index, iterations, period))
        if count < 1 or count >= FAR:
            return False
        items.append(Repetition(count, tuple(_shifted(third, list(shifts))), shifts))
        self._advance(index, batch, watch, c, d, steps=steps, count=count, period=period, bit=bit)
        return True

    def _steps(
        self, index: int, batch: Batch, watch: _Watch, visits: tuple[_Visit, _Visit, _Visit], bit: int
    ) -> list[npt.NDArray[Any]] | None:
        """How far each register moves in a period; None if one does not move by a constant step."""
        names = self.walk.architecture.changed(index)[0]
        b, c, d = visits
        if not len(b.registers) == len(c.registers) == len(d.registers):
            return None
        steps = []
        for number, (old, mid, new) in enumerate(zip(b.registers, c.registers, d.registers, strict=True)):
            if new.dtype == np.bool_:
                step, uneven = np.zeros(new.shape, np.uint32), (old != mid) | (mid != new)
            else:
                step = new - mid
                uneven = step != mid - old
            if uneven.any():
                if number >= len(names):
                    return None
                file, n = names[number]
                matters = uneven & (batch.flags[file][n] & (DATA | bit << NON_AFFINE_SHIFT) == 0)
                if (matters & (watch.there if matters.shape[1] > 1 else True)).any():
                    return None
            steps.append(step)
        return steps

    def _until_flip(self, b: _Visit, c: _Visit, d: _Visit) -> int:
        """Periods during which every compare gives the same result as in the last one."""
        compared = self.walk.state.compared
        first, second = compared[b.compared : c.compared], compared[c.compared : d.compared]
        if len(first) != len(second):
            return 0
        least = FAR
        for one, two in zip(first, second, strict=True):
            if one.instruction != two.instruction or not np.array_equal(one.rows, two.rows):
                return 0
            least = min(least, periods_alike(two, two.gap - one.gap, one.lanes & two.lanes))
        return least

    def _until_stated(self, index: int, iterations: int, period: int) -> int:
        """Periods until a stated or assumed trip count ends the loop."""
        decider = self.walk.decider
        limit = decider.limits.get(index)
        if limit is None:
            return FAR
        loop = decider.flow.loops[index]
        # The last iteration is walked, because the loop is left there.
        last = loop.at_end or loop.main is None
        return max(limit - last - iterations, 0) // period

    def _advance(
        self, index: int, batch: Batch, watch: _Watch, c: _Visit, d: _Visit,
        *, steps: Sequence[npt.NDArray[Any]], count: int, period: int, bit: int,
    ) -> None:  # fmt: skip
        """Update registers and counts as if `count` more periods had passed."""
        walk = self.walk
        names = walk.architecture.changed(index)[0]
        pairs = dict(walk.architecture.changed(index)[1])
        places = {name: n for n, name in enumerate(names)}
        for number, (file, n) in enumerate(names):
            row = getattr(batch, file)[n]
            if row.dtype == np.bool_:
                continue
            # The values of non-affine numbers are no longer known.
            flags = batch.flags[file][n]
            flags |= np.where(flags & (bit << NON_AFFINE_SHIFT), DATA, 0).astype(np.uint16)
            lanes = watch.there if row.shape[1] > 1 else np.bool_(True)
            high = pairs.get((file, n))
            if high is not None and high in places:
                now = _pair(row, getattr(batch, high[0])[high[1]])
                before = _pair(c.registers[number], c.registers[places[high]])
                after = now + (now - before) * np.uint64(count)
                top = getattr(batch, high[0])[high[1]]
                np.copyto(top, (after >> np.uint64(32)).astype(np.uint32), where=lanes)
                np.copyto(row, after.astype(np.uint32), where=lanes)
            elif (file, n) not in pairs.values():
                np.copyto(row, row + steps[number] * np.uint32(count & 0xFFFFFFFF), where=lanes)
        for number, key in enumerate(sorted(walk.state.local), len(names)):
            walk.state.local[key][0][batch.warps] += steps[number] * np.uint32(count & 0xFFFFFFFF)
        walk.decider.skip(index, batch.warps, watch.there, count * period)
        for counts, old, new in zip(walk.decider.counts.values(), c.totals, d.totals, strict=True):
            counts.iterations += count * (new[0] - old[0])
            counts.runs += count * (new[1] - old[1])
        walk.architecture.counts[self._guarded[index]] += count * (d.guarded - c.guarded)
        walk.warp_steps += count * (d.warp_steps - c.warp_steps)


def _pair(low: npt.NDArray[Any], high: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    joined: npt.NDArray[np.uint64] = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    return joined


def _shifted(items: Sequence[Item], shifts: list[npt.NDArray[np.int64]]) -> list[Item]:
    """Items with their accesses moved; takes the shifts from the front of the list."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Access):
            found.append(Access(item.instruction, item.space, item.warps, item.base + shifts.pop(0), item.patterns))
        elif isinstance(item, Repetition):
            found.append(Repetition(item.count, tuple(_shifted(item.items, shifts)), item.shifts))
        else:
            found.append(item)
    return found


def periods_alike(compared: Compared, step: npt.NDArray[np.int64], lanes: Lanes) -> int:
    """Further periods in which a compare whose gap moves by `step` gives the same result."""
    gap, step = compared.gap[lanes], step[lanes]
    moving = step != 0
    gap, step = gap[moving], step[moving]
    if not len(gap):
        return FAR
    if compared.how in ("EQ", "NE"):
        # Equal in 32 bits: an unsigned counter that counts up to zero wraps around.
        gap = gap.astype(np.int32).astype(np.int64)
        reaches = (gap != 0) & (-gap % np.abs(step) == 0) & (np.sign(gap) != np.sign(step))
        until = np.where(gap == 0, 0, np.where(reaches, np.abs(gap) // np.abs(step) - 1, FAR))
        return int(until.min())
    # LT and GE ask whether the gap is negative, LE and GT whether it is at most 0.
    edge = 0 if compared.how in ("LT", "GE") else 1
    below = gap < edge
    up = np.where(below & (step > 0), (edge - 1 - gap) // np.abs(step), FAR)
    down = np.where(~below & (step < 0), (gap - edge) // np.abs(step), FAR)
    return int(np.minimum(up, down).min())
