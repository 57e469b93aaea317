"""Waits that let some work stay outstanding: `DEPBAR.LE SB0, 0x2` goes on when at most two are.

What such a scoreboard counts completes in order, so the wait is one for all but the last few that were
issued before it; and it is enough to wait for the newest of those. A path's order is known: what it issues is
dealt to a ring of slots, more than may stay outstanding, and the wait names the slots of older ones. Where a
turn of a loop issues fewer than the ring has slots, its turns take different slots, and are written out
until they repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .bound import Item, Repeat

_LONGEST = 20_000
"""Items of a program at most; where more would be needed a count above 0 stays no wait."""
_RINGS_TRIED = 12


@dataclass(frozen=True, slots=True)
class Dependences:
    """What a node waits for and sets, as in `workload.Node`; `counted` is a scoreboard and how many may stay."""

    waits: tuple[int, ...]
    sets: int
    sets_read: int
    counted: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Nodes with their counted waits resolved, the node that each came from, their order, and the slots in use."""

    nodes: tuple[Dependences, ...]
    origins: tuple[int, ...]
    program: tuple[Item, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class _Ring:
    """Slots `first` to `first + length` that stand for one scoreboard.

    Work of the slots `collects` that is issued without a scoreboard belongs to the next thing that
    the scoreboard counts: asynchronous copies, and the instruction that commits them.
    """

    board: int
    first: int
    length: int
    collects: frozenset[int]

    def slot(self, count: int) -> int:
        return self.first + count % self.length


_Place = tuple[int, bool]
"""How many a ring has counted, modulo its length, and whether uncommitted work is in the next slot."""


class _TooLongError(Exception):
    pass


def spread_counted_waits(
    nodes: Sequence[Dependences], program: Sequence[Item], slots: int, collects: Mapping[int, frozenset[int]]
) -> Spread | None:
    """Resolve the counted waits of one path; None where there are none, or where the result would be too long.

    `slots` is how many the nodes use. A scoreboard that counts commits `collects` the slots of what they commit.
    """
    most: dict[int, int] = {}
    for node in nodes:
        if node.counted is not None:
            board, count = node.counted
            most[board] = max(most.get(board, 0), count)
    if not most:
        return None
    rings: list[_Ring] = []
    for board, count in sorted(most.items()):
        collected = collects.get(board, frozenset())
        shortest = count + 1 + bool(collected)
        candidates = [_Ring(board, slots, shortest + n, collected) for n in range(_RINGS_TRIED)]
        # The length that leaves the loops as short as they can be.
        best = min(candidates, key=lambda ring: (_Writer(nodes, [ring]).size(program), ring.length))
        rings.append(best)
        slots += best.length
    writer = _Writer(nodes, rings)
    try:
        items, _ = writer.items(program, tuple((0, False) for _ in rings))
    except _TooLongError:
        return None
    return Spread(tuple(writer.nodes), tuple(writer.origins), items, slots)


class _Writer:
    """Writes a program out with slots of rings, making a node for every combination of slots that occurs."""

    def __init__(self, nodes: Sequence[Dependences], rings: Sequence[_Ring]) -> None:
        self._given, self._rings = nodes, rings
        self.nodes: list[Dependences] = []
        self.origins: list[int] = []
        self._numbers: dict[tuple[int, Dependences], int] = {}
        self._written = 0

    def size(self, program: Sequence[Item]) -> int:
        """Items of the result; more than any allowed number where it would be too long."""
        try:
            self.items(program, tuple((0, False) for _ in self._rings))
        except _TooLongError:
            return _LONGEST + 1
        return self._written

    def items(self, program: Sequence[Item], places: tuple[_Place, ...]) -> tuple[tuple[Item, ...], tuple[_Place, ...]]:
        """The items written out, beginning at these places in the rings, and where they end."""
        written: list[Item] = []
        for item in program:
            if isinstance(item, Repeat):
                turns, places = self._loop(item, places)
                written.extend(turns)
            else:
                number, places = self._node(item, places)
                written.append(number)
        return tuple(written), places

    def _loop(self, loop: Repeat, places: tuple[_Place, ...]) -> tuple[list[Item], tuple[_Place, ...]]:
        """Turns until one begins where an earlier one did; from there on they repeat."""
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
        node, moved = self._given[index], []
        for ring, place in zip(self._rings, places, strict=True):
            node, after = _resolved(node, ring, place)
            moved.append(after)
        number = self._numbers.setdefault((index, node), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
            self.origins.append(index)
        return number, tuple(moved)


def _joined(bodies: Sequence[tuple[Item, ...]]) -> list[Item]:
    return [item for body in bodies for item in body]


def _resolved(node: Dependences, ring: _Ring, place: _Place) -> tuple[Dependences, _Place]:
    """A node with the ring's slots for its scoreboard, and the place after it."""
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
