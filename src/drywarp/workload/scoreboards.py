"""Waits that let some work stay outstanding, and barriers that only some of a block's warps take part in.

The operations that such a scoreboard counts complete in order, so the wait is for all but the last few issued before
it, and waiting for the newest of those is enough. A path's order is known: its operations are assigned to a ring of
slots, more than may stay outstanding, and the wait names the slots of older ones. If an iteration of a loop issues
fewer operations than the ring has slots, successive iterations use different slots; they are written out until the
pattern repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..kernel.profile import (
    SYNC_BARRIER,
    SYNC_INSTRUCTION,
    SYNC_KIND,
    SYNC_PHASE,
    SYNC_SIGNAL,
    SYNC_SKIP,
    SYNC_STEP,
    SYNC_WAIT,
    SYNC_WARP,
    Profile,
)
from .cost import SYNC_AWAITS, SYNC_SIGNALS, Item, Repeat

_LONGEST = 200_000
"""Most items of a program; if more were needed, a count above 0 is not treated as a wait."""
_RINGS_TRIED = 12


@dataclass(frozen=True, slots=True)
class Dependences:
    """What a node waits for and sets, as in `workload.Node`; `counted`: a scoreboard and how many may remain."""

    waits: tuple[int, ...]
    sets: int
    sets_read: int
    counted: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Nodes with their counted waits resolved, the original node of each, their order, and the slots in use."""

    nodes: tuple[Dependences, ...]
    origins: tuple[int, ...]
    program: tuple[Item, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class Ring:
    """Slots `first` to `first + length` that represent one scoreboard.

    Work on the slots `collects` that is issued without a scoreboard belongs to the next operation that the scoreboard
    counts: asynchronous copies, and the instruction that commits them.
    """

    board: int
    first: int
    length: int
    collects: frozenset[int]

    def slot(self, count: int) -> int:
        """The slot of the ring's so-many-th member."""
        return self.first + count % self.length


_Place = tuple[int, bool]
"""How many operations a ring has counted, modulo its length, and whether uncommitted work is in the next slot."""


class _TooLongError(Exception):
    pass


def spread_partial_waits(
    nodes: Sequence[Dependences], program: Sequence[Item], slots: int, collects: Mapping[int, frozenset[int]]
) -> Spread | None:
    """Resolve the counted waits of one path; None if there are none, or if the result would be too long.

    `slots` is the number that the nodes use. A scoreboard that counts commits `collects` the slots of what they commit.
    """
    most: dict[int, int] = {}
    for node in nodes:
        if node.counted is not None:
            board, count = node.counted
            most[board] = max(most.get(board, 0), count)
    if not most:
        return None
    rings: list[Ring] = []
    for board, count in sorted(most.items()):
        collected = collects.get(board, frozenset())
        shortest = count + 1 + bool(collected)
        candidates = [Ring(board, slots, shortest + n, collected) for n in range(_RINGS_TRIED)]
        # The length that keeps the loops as short as possible.
        outline = Outline(nodes, program, candidates[0])
        best = min(candidates, key=lambda ring: (min(outline.written(ring.length), _LONGEST + 1), ring.length))
        rings.append(best)
        slots += best.length
    writer = Writer(nodes, rings)
    try:
        items, _ = writer.items(program, tuple((0, False) for _ in rings))
    except _TooLongError:
        return None
    return Spread(tuple(writer.nodes), tuple(writer.origins), items, slots)


class _Run(NamedTuple):
    """Nodes in a row, those that a ring counts, and whether they leave uncommitted work (None: as before them)."""

    nodes: int
    counted: int
    uncommitted: bool | None


class Outline:
    """What of a program determines how often a ring of some length makes one write out its loops."""

    def __init__(self, nodes: Sequence[Dependences], program: Sequence[Item], ring: Ring) -> None:
        self._nodes, self._ring = nodes, ring
        self._numbers: dict[tuple[_Run | tuple[int, int], ...], int] = {}
        self._whole = self._number(program)
        self._parts = [*self._numbers]

    def _number(self, program: Sequence[Item]) -> int:
        """Equal loops have equal numbers."""
        parts: list[_Run | tuple[int, int]] = []
        for alike, items in groupby(program, key=lambda item: isinstance(item, Repeat)):
            if alike:
                parts += [(item.count, self._number(item.body)) for item in items if isinstance(item, Repeat)]
            else:
                parts.append(self._run([self._nodes[item] for item in items if isinstance(item, int)]))
        return self._numbers.setdefault(tuple(parts), len(self._numbers))

    def _run(self, nodes: Sequence[Dependences]) -> _Run:
        counted, uncommitted = 0, None
        for node in nodes:
            if node.sets in self._ring.collects:
                uncommitted = True
            elif self._ring.board in (node.sets, node.sets_read):
                counted, uncommitted = counted + 1, False
        return _Run(len(nodes), counted, uncommitted)

    def written(self, length: int) -> int:
        """Nodes that are written out with a ring of this length."""
        known: dict[tuple[int, _Place], tuple[int, _Place]] = {}

        def write(number: int, place: _Place) -> tuple[int, _Place]:
            if (number, place) in known:
                return known[number, place]
            written, now = 0, place
            for part in self._parts[number]:
                if isinstance(part, _Run):
                    written += part.nodes
                    left = now[1] if part.uncommitted is None else part.uncommitted
                    now = (now[0] + part.counted) % length, left
                    continue
                count, body = part
                begun: list[_Place] = []
                while now not in begun and len(begun) < count:
                    begun.append(now)
                    more, now = write(body, now)
                    written += more
                if len(begun) < count:
                    start = begun.index(now)
                    now = begun[start + (count - start) % (len(begun) - start)]
            known[number, place] = written, now
            return written, now

        return write(self._whole, (0, False))[0]


class Writer:
    """Writes out a program with ring slots, making a node for every combination of slots that occurs."""

    def __init__(self, nodes: Sequence[Dependences], rings: Sequence[Ring]) -> None:
        self._given, self._rings = nodes, rings
        self.nodes: list[Dependences] = []
        self.origins: list[int] = []
        self._numbers: dict[tuple[int, Dependences], int] = {}
        self._made: dict[tuple[int, tuple[_Place, ...]], tuple[int, tuple[_Place, ...]]] = {}
        self._written = 0

    def items(self, program: Sequence[Item], places: tuple[_Place, ...]) -> tuple[tuple[Item, ...], tuple[_Place, ...]]:
        """The items written out, starting at these positions in the rings, and the final positions."""
        written: list[Item] = []
        for item in program:
            if isinstance(item, Repeat):
                iterations, places = self._loop(item, places)
                written.extend(iterations)
            else:
                number, places = self._node(item, places)
                written.append(number)
        return tuple(written), places

    def _loop(self, loop: Repeat, places: tuple[_Place, ...]) -> tuple[list[Item], tuple[_Place, ...]]:
        """Iterations until one starts where an earlier one did; from there on they repeat."""
        begun: list[tuple[_Place, ...]] = []
        bodies: list[tuple[Item, ...]] = []
        while places not in begun and len(bodies) < loop.count:
            begun.append(places)
            body, places = self.items(loop.body, places)
            bodies.append(body)
        if len(bodies) == loop.count:
            return _joined(bodies), places
        start = begun.index(places)
        cycle = bodies[start:]
        times, rest = divmod(loop.count - start, len(cycle))
        after = begun[start + rest]
        repeated: list[Item] = [Repeat(times, tuple(_joined(cycle)))] if times > 1 else _joined(cycle)
        return [*_joined(bodies[:start]), *repeated, *_joined(cycle[:rest])], after

    def _node(self, index: int, places: tuple[_Place, ...]) -> tuple[int, tuple[_Place, ...]]:
        self._written += 1
        if self._written > _LONGEST:
            raise _TooLongError
        if (index, places) in self._made:
            return self._made[index, places]
        node, moved = self._given[index], []
        for ring, place in zip(self._rings, places, strict=True):
            node, after = _resolved(node, ring, place)
            moved.append(after)
        number = self._numbers.setdefault((index, node), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
            self.origins.append(index)
        self._made[index, places] = number, tuple(moved)
        return self._made[index, places]


def _joined(bodies: Sequence[tuple[Item, ...]]) -> list[Item]:
    return [item for body in bodies for item in body]


def _resolved(node: Dependences, ring: Ring, place: _Place) -> tuple[Dependences, _Place]:
    """A node with the ring's slots for its scoreboard, and the next position."""
    count, uncommitted = place
    waits, sets, sets_read = node.waits, node.sets, node.sets_read
    counted = node.counted
    meant = {ring.board, *ring.collects}
    stays = 0 if meant & set(waits) else None
    if counted is not None and counted[0] == ring.board:
        stays, counted = counted[1], None
    if stays is not None:
        newest = {ring.slot(count - 1 - n) for n in range(stays)} | ({ring.slot(count)} if uncommitted else set())
        awaited = (ring.first + n for n in range(ring.length))
        waits = (*(w for w in waits if w not in meant), *(slot for slot in awaited if slot not in newest))
    if sets in ring.collects:
        sets, uncommitted = ring.slot(count), True
    elif ring.board in (sets, sets_read):
        here = ring.slot(count)
        sets, sets_read = (here if s == ring.board else s for s in (sets, sets_read))
        count, uncommitted = (count + 1) % ring.length, False
    return Dependences(waits, sets, sets_read, counted), (count, uncommitted)


# Barriers that only some of a block's warps take part in: who signals and who awaits which phase.
#
# The emulator records this (`Profile.syncs`). Here it becomes, for each warp, a list of events that the simulation
# processes alongside the warp's program (`CostedPath.events`).

Events = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class BarrierPhases:
    """The effect of each instruction on phases, and the events and signals of each warp of each sampled block.

    `receivers` are the sampled blocks that wait for what only others of their cluster send. Barriers go by their places
    in shared memory, whichever block of the cluster they belong to. `skipped` are the barriers of the whole block that
    a warp's guards always let it pass, while others of its block stop there.
    """

    sync: Mapping[int, int] = field(default_factory=dict)
    warps: Mapping[tuple[int, int], Events] = field(default_factory=dict)
    receivers: frozenset[int] = frozenset()
    skipped: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)

    def of(self, block: int, warp: int) -> Events:
        """Events and signals of a warp, as `CostedPath` has them."""
        return self.warps.get((block, warp), ((), ()))


def find_barrier_phases(profile: Profile) -> BarrierPhases:
    """Read the record of a profile; empty if only whole blocks synchronise."""
    skips = profile.syncs[:, SYNC_KIND] == SYNC_SKIP
    rows, skipped = profile.syncs[~skips], _skipped(profile, profile.syncs[skips])
    if not len(rows):
        return BarrierPhases(skipped=skipped)
    profile = replace(profile, syncs=rows)
    receivers = frozenset[int]()
    if profile.launch.cluster_blocks > 1:
        receivers, rows = _receivers(profile), rows[~_sent_later(profile)]
        of_words = rows[:, SYNC_BARRIER] >= 0
        rows[of_words, SYNC_BARRIER] &= _WITHIN_A_BLOCK
    signals = rows[:, SYNC_KIND] == SYNC_SIGNAL
    waits = rows[:, SYNC_KIND] == SYNC_WAIT
    sync = {
        int(i): SYNC_SIGNALS * bool(signals[rows[:, SYNC_INSTRUCTION] == i].any())
        + SYNC_AWAITS * bool(waits[rows[:, SYNC_INSTRUCTION] == i].any())
        for i in np.unique(rows[:, SYNC_INSTRUCTION])
    }
    per_block = profile.launch.warps_per_block
    by_block = {
        index: [i for i in range(block.start, block.end) if i in sync]
        for index, block in enumerate(profile.cfg.blocks)
        if any(i in sync for i in range(block.start, block.end))
    }
    where = np.array(sorted(by_block))
    steps = [np.flatnonzero(np.isin(path.blocks, where)) for path in profile.paths]
    warps: dict[tuple[int, int], Events] = {}
    for block, sample in enumerate(profile.blocks):
        mine = rows[rows[:, SYNC_WARP] // per_block == block]
        numbers = _phase_numbers(mine)
        for warp, path in enumerate(sample.paths):
            told: dict[tuple[int, int], list[list[int]]] = {}
            for row in mine[mine[:, SYNC_WARP] == block * per_block + warp].tolist():
                told.setdefault((row[SYNC_STEP], row[SYNC_INSTRUCTION]), []).append(row)
            events: list[int] = []
            counts = [0] * len(numbers)
            for step in steps[path].tolist():
                for index in by_block[int(profile.paths[path].blocks[step])]:
                    _entry(told.get((step, index), []), sync[index], numbers, events, counts)
            warps[block, warp] = (tuple(events), tuple(counts))
    return BarrierPhases(sync, warps, receivers, skipped)


def _skipped(profile: Profile, rows: npt.NDArray[np.int64]) -> dict[tuple[int, int], frozenset[int]]:
    """By sampled block and warp, the barriers that it passes each time that it comes to them, and not all warps do."""
    per_block = profile.launch.warps_per_block
    within = {i: n for n, block in enumerate(profile.cfg.blocks) for i in range(block.start, block.end)}
    times = Counter(map(tuple, rows[:, [SYNC_WARP, SYNC_INSTRUCTION]].tolist()))
    found: dict[tuple[int, int], frozenset[int]] = {}
    for block in sorted({warp // per_block for warp, _ in times}):
        paths = [profile.paths[path].blocks for path in profile.blocks[block].paths]
        passed = [
            {i for (one, i), count in times.items() if one == warp and count == int((path == within[i]).sum())}
            for warp, path in enumerate(paths, block * per_block)
        ]
        common = set.intersection(*passed)
        found |= {(block, warp): frozenset(some - common) for warp, some in enumerate(passed) if some - common}
    return found


_RANK_SHIFT = 24
_WITHIN_A_BLOCK = (1 << _RANK_SHIFT) - 1
"""An address in the shared memory of a cluster: above these bits stands the rank of the block."""


def _receivers(profile: Profile) -> frozenset[int]:
    """The sampled blocks that await what only others send: no warp of theirs runs some instruction that signals it."""
    rows, launch = profile.syncs, profile.launch
    samples = {sample.linear: number for number, sample in enumerate(profile.blocks)}
    members = [launch.members(launch.cluster_of(sample.linear)) for sample in profile.blocks]
    sent: dict[tuple[int, int, int], set[int]] = {}
    received: dict[tuple[int, int, int], set[int]] = {}
    awaited: set[tuple[int, int, int]] = set()
    for row in rows[rows[:, SYNC_BARRIER] >= 0].tolist():
        block = row[SYNC_WARP] // launch.warps_per_block
        rank, barrier, phase = row[SYNC_BARRIER] >> _RANK_SHIFT, row[SYNC_BARRIER] & _WITHIN_A_BLOCK, row[SYNC_PHASE]
        if row[SYNC_KIND] == SYNC_WAIT:
            awaited.add((block, barrier, phase))
            continue
        sent.setdefault((block, barrier, phase), set()).add(row[SYNC_INSTRUCTION])
        target = samples.get(members[block][rank], -1)
        received.setdefault((target, barrier, phase), set()).add(row[SYNC_INSTRUCTION])
    return frozenset(key[0] for key in awaited if received.get(key, set()) - sent.get(key, set()))


def _sent_later(profile: Profile) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows signal another block's barrier where the warp awaited the same phase of its own block's before.

    Such a signal is an answer, or is passed on: the wait was for what another block sent.
    """
    rows, launch = profile.syncs, profile.launch
    ranks = [launch.members(launch.cluster_of(sample.linear)).index(sample.linear) for sample in profile.blocks]
    awaited: set[tuple[int, int, int]] = set()
    found = np.zeros(len(rows), bool)
    for number in np.flatnonzero(rows[:, SYNC_BARRIER] >= 0).tolist():
        row = rows[number]
        block = int(row[SYNC_WARP]) // launch.warps_per_block
        rank, barrier = divmod(int(row[SYNC_BARRIER]), _WITHIN_A_BLOCK + 1)
        phase = (int(row[SYNC_WARP]), barrier, int(row[SYNC_PHASE]))
        if row[SYNC_KIND] == SYNC_WAIT:
            awaited.add(phase)
        elif rank != ranks[block]:
            found[number] = phase in awaited
    return found


def _phase_numbers(rows: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> dict[tuple[int, int], int]:
    """Numbers for the phases of a block's barriers that any warp signals."""
    signalled = rows[rows[:, SYNC_KIND] == SYNC_SIGNAL][:, [SYNC_BARRIER, SYNC_PHASE]]
    return {(barrier, phase): n for n, (barrier, phase) in enumerate(np.unique(signalled, axis=0).tolist())}


def _entry(
    rows: list[list[int]], sync: int, numbers: dict[tuple[int, int], int], events: list[int], counts: list[int]
) -> None:  # fmt: skip
    """Append the entry of one execution of one instruction; of several waits the latest phase counts."""
    signalled = [numbers[r[SYNC_BARRIER], r[SYNC_PHASE]] for r in rows if r[SYNC_KIND] == SYNC_SIGNAL]
    for number in signalled:
        counts[number] += 1
    events.extend((len(signalled), *signalled))
    if sync & SYNC_AWAITS:
        awaited = [numbers.get((r[SYNC_BARRIER], r[SYNC_PHASE]), -1) for r in rows if r[SYNC_KIND] == SYNC_WAIT]
        events.append(max(awaited, default=-1))
