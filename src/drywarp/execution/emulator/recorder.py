"""The record of a run: every memory access, and the basic blocks that every warp issued.

Both are rows in growing arrays, written by compiled code and by the NumPy handlers, and sorted by warp once, at the
end. Lane offsets of accesses repeat endlessly, so each access stores the number of its pattern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.profile import (
    ASKED_COLUMNS,
    ASKED_REQUEST,
    ASKED_WARP,
    ASKED_WORD,
    CONSTANT_WARPS,
    CONSTANTS,
    SPACE_GLOBAL,
    SYNC_COLUMNS,
    SYNC_KIND,
    SYNC_SIGNAL,
    SYNC_STEP,
    SYNC_WARP,
    AccessLog,
    WarpPath,
)
from ...support.folders import thread_count
from .bits import FULL, LANES
from .compiled.layout import (
    ACCESS_ROOM,
    ACCESSES,
    AWAITS,
    EVENT,
    FIRST_WARP,
    LANE_STEPS,
    LAST_PASSES,
    LOG_INSTRUCTION,
    PASSES,
    PATTERN_ROOM,
    PATTERNS,
    PLACES,
    SHAPE_BYTES,
    SIGNALS,
    STATE,
    STATE_COLUMNS,
    STEP_ROOM,
    STEPS,
    TABLE_SIZE,
    WARP_STEPS,
    WATCHED,
    WEIGHTS,
    Log,
    count_accesses,
    enter_patterns,
    fill_table,
    note_rows,
    order_by,
    sort_accesses,
)
from .frame import Frame
from .operands import Value
from .sampling import Limits, Reached

_FIRST_ROWS, _FIRST_PATTERNS = 1 << 18, 1 << 8
"""Initial room; untouched parts cost no memory."""
RECORD_OPTION = "--recorded-accesses"
Mark = tuple[int, int, int, dict[int, tuple[int, int]], int]
"""Numbers of steps, accesses and synchronisations, `Recorder.constants`, and how many arrays of words they ask for."""
_STEP_COLUMNS = ("step_block", "step_warp", "step_lanes")
_ACCESS_COLUMNS = ("instruction", "warp", "base", "pattern", "space")
_EACH = {"offsets": LANES, "shapes": SHAPE_BYTES}
"""Elements per row, where they are several."""
_GROWTH = 8
"""Factor by which arrays grow: what is copied costs time, what is never touched costs nothing."""
_PATHS_ADDED = 64
"""Warps whose lanes are added at once."""
_TABLE_FACTOR = 4
"""Places in the table of patterns per pattern for which there is room."""


class Recorder:
    """Collects the record of one launch over all its waves.

    `log` holds the arrays; `state` is the run's state (see `compiled.layout`), which contains their fill levels. If it
    is `watched`, it also holds which warps synchronise when, for `watch`.
    """

    def __init__(self, watched: bool = False) -> None:
        self.state: npt.NDArray[np.int64] = np.zeros(STATE_COLUMNS, np.int64)
        self.state[WATCHED] = watched
        self._places = np.zeros(PLACES, np.int64)
        self.log = Log(
            instruction=np.empty(_FIRST_ROWS, np.int32),
            warp=np.empty(_FIRST_ROWS, np.int32),
            base=np.empty(_FIRST_ROWS, np.int64),
            pattern=np.empty(_FIRST_ROWS, np.int32),
            space=np.empty(_FIRST_ROWS, np.int8),
            step_block=np.empty(_FIRST_ROWS, np.int32),
            step_warp=np.empty(_FIRST_ROWS, np.int32),
            step_lanes=np.empty(_FIRST_ROWS, np.uint8),
            offsets=np.empty(_FIRST_PATTERNS * LANES, np.int64),
            masks=np.empty(_FIRST_PATTERNS, np.uint32),
            shapes=np.empty(_FIRST_PATTERNS * SHAPE_BYTES, np.uint8),
            table=np.zeros(_FIRST_PATTERNS * _TABLE_FACTOR, np.int32),
            weights=WEIGHTS,
        )
        self._syncs: list[list[int]] = []
        self.products: dict[int, Counter[tuple[str, ...]]] = {}
        """Shapes and element types of products whose instructions do not state them, and how often there was each."""
        self.constants: dict[int, tuple[int, int]] = {}
        """Requests of each load of constants at an address in a register, and the addresses that these ask for."""
        # Words that the first warps ask for, in the form of `Profile.constants`, and how many.
        self._asked: list[npt.NDArray[np.int64]] = []
        self._asked_of = np.zeros(CONSTANT_WARPS, np.int64)
        # Records of accesses that others have written, and the numbers here of their patterns.
        self._absorbed: list[tuple[Recorder, npt.NDArray[np.int32]]] = []
        self.locate(self._places)

    def locate(self, places: npt.NDArray[np.int64]) -> None:
        """Store the addresses of the arrays where compiled code looks for them, and their lengths in the state."""
        places[STATE] = self.state.ctypes.data
        for place, name in enumerate(Log._fields, LOG_INSTRUCTION):
            places[place] = getattr(self.log, name).ctypes.data
        rooms = {STEP_ROOM: "step_warp", ACCESS_ROOM: "warp", PATTERN_ROOM: "masks", TABLE_SIZE: "table"}
        for column, name in rooms.items():
            self.state[column] = len(getattr(self.log, name))

    @property
    def logged(self) -> int:
        """Number of accesses in `log`: all but those that others recorded."""
        return int(self.state[ACCESSES])

    @property
    def accesses(self) -> int:
        """Number of recorded accesses."""
        return self.logged + sum(part.accesses for part, _ in self._absorbed)

    @property
    def steps(self) -> int:
        """Number of recorded warp steps."""
        return int(self.state[STEPS])

    @property
    def lane_steps(self) -> int:
        """Lane steps that compiled code has run."""
        return int(self.state[LANE_STEPS])

    @property
    def first_warp(self) -> int:
        """Number of the wave's first warp among all sampled warps."""
        return int(self.state[FIRST_WARP])

    @first_warp.setter
    def first_warp(self, number: int) -> None:
        self.state[FIRST_WARP] = number

    def exceeded(self, limits: Limits) -> Reached | None:
        """The limit on the record's size, if it was exceeded."""
        if self.accesses > limits.accesses:
            return Reached(f"{limits.accesses:,} recorded accesses", RECORD_OPTION)
        if self.state[STEPS] > limits.basic_blocks:
            return Reached(f"{limits.basic_blocks:,} recorded basic blocks", RECORD_OPTION)
        return None

    def mark(self) -> Mark:
        """How much is recorded, to return to with `back_to`."""
        return self.steps, int(self.state[ACCESSES]), len(self._syncs), dict(self.constants), len(self._asked)

    def back_to(self, mark: Mark) -> None:
        """Drop what was recorded since."""
        self.state[STEPS], self.state[ACCESSES], syncs, constants, asked = mark
        del self._syncs[syncs:], self._asked[asked:]
        self.constants = dict(constants)
        self._asked_of = np.bincount(self.asked_constants()[:, ASKED_WARP], minlength=CONSTANT_WARPS)

    def make_room(self, steps: int, accesses: int, patterns: int | None = None) -> None:
        """Make room for this many more steps and accesses, each with its own pattern if their number is not known."""
        log, state = self.log, self.state
        changed = {
            **_grown(log, _STEP_COLUMNS, int(state[STEPS]), steps),
            **_grown(log, _ACCESS_COLUMNS, int(state[ACCESSES]), accesses),
        }
        kinds = accesses if patterns is None else patterns
        grown = _grown(log, ("masks", "offsets", "shapes"), int(state[PATTERNS]), kinds)
        if grown:
            changed |= {**grown, "table": np.zeros(len(grown["masks"]) * _TABLE_FACTOR, np.int32)}
        if changed:
            self.log = log._replace(**changed)
            self.locate(self._places)
        if grown:
            fill_table(self._places)

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """Where the core finds the arrays."""
        return self._places

    def absorb(self, parts: Sequence[Recorder], pool: Executor) -> None:
        """Append the records of waves that ran apart from each other, in their order, as if they had run one by one.

        Their accesses stay where they are: copying them would take as long as writing them did.
        """
        patterns = [int(part.state[PATTERNS]) for part in parts]
        begins = np.cumsum([self.steps, *(part.steps for part in parts)]).tolist()
        self.make_room(begins[-1] - begins[0], 0, sum(patterns))
        for part, count in zip(parts, patterns, strict=True):
            numbers = np.empty(count, np.int32)
            enter_patterns(self._places, part.log.offsets, part.log.masks, count, numbers)
            self._absorbed.append((part, numbers))

        def copy(part: Recorder, begin: int, end: int) -> None:
            for name in _STEP_COLUMNS:
                getattr(self.log, name)[begin:end] = getattr(part.log, name)[: end - begin]

        for _ in pool.map(copy, parts, begins, begins[1:]):
            pass
        for part, begin in zip(parts, begins, strict=False):
            for instruction, found in part.products.items():
                self.products.setdefault(instruction, Counter()).update(found)
            for instruction, (requests, addresses) in part.constants.items():
                self._constant(instruction, requests, addresses)
            self._asked += part._asked
            self._asked_of += part._asked_of
            self._syncs += [[row[0], row[SYNC_STEP] + begin, *row[2:]] for row in part._syncs]
            self.state[[WARP_STEPS, LANE_STEPS]] += part.state[[WARP_STEPS, LANE_STEPS]]
        self.state[STEPS] = begins[-1]

    def block(self, block: int, frame: Frame) -> None:
        """Record that the frame's warps issue a basic block."""
        warps, lanes = frame.record
        self.make_room(len(warps), 0)
        start = int(self.state[STEPS])
        rows = slice(start, start + len(warps))
        self.log.step_block[rows] = block
        self.log.step_warp[rows] = warps + self.first_warp
        self.log.step_lanes[rows] = lanes
        self.state[STEPS] += len(warps)

    def access(self, frame: Frame, instruction: int, addresses: Value, space: int) -> None:
        """Record an access of the frame's executing lanes; `addresses` are bytes, shape (rows, 32).

        A copy from global to shared memory is two accesses; a matrix load is one of 16 bytes by the
        lanes that address its rows.
        """
        addresses = frame.spread(addresses)
        addresses = addresses.view(np.int64) if addresses.dtype.itemsize == 8 else addresses.astype(np.int64)
        self.make_room(0, frame.rows)
        warps, addresses = np.ascontiguousarray(frame.warps), np.ascontiguousarray(addresses)
        note_rows(self._places, warps, addresses, frame.words(), frame.rows, instruction, space)

    def sync(self, warp: int, instruction: int, kind: int, barrier: int, phase: int) -> list[int]:
        """Record that a warp of the wave signals or awaits a phase in the current step; returns the row."""
        row = [self.first_warp + warp, int(self.state[STEPS]), instruction, kind, barrier, phase]
        self._syncs.append(row)
        if self.watched and barrier >= 0:
            event = SIGNALS if kind == SYNC_SIGNAL else AWAITS
            self._event([warp], instruction, event | (barrier << 8 | phase & 0xFF) << 2)
        return row

    def product(self, instruction: int, *stated: str) -> None:
        """Record the shape and the element type of a product, and ``SP`` if its first operand is sparse."""
        self.products.setdefault(instruction, Counter())[stated] += 1

    def constant(self, frame: Frame, instruction: int, words: npt.NDArray[Any]) -> None:
        """Record the words that the frame's warps ask of a load of constants, shape (rows, n), ascending in each row.

        Equal ones of a row are one address.
        """
        first = np.ones(words.shape, np.bool_)
        if words.shape[1] > 1:
            first[:, 1:] = words[:, 1:] != words[:, :-1]
            self._constant(instruction, frame.rows, int(np.count_nonzero(first)))
        if self.first_warp >= CONSTANT_WARPS or self._asked_of.min() >= CONSTANTS:
            return
        warps = np.asarray(frame.warps, np.int64) + self.first_warp
        kept = warps < CONSTANT_WARPS
        kept[kept] = self._asked_of[warps[kept]] < CONSTANTS
        if not kept.any():
            return
        row, column = np.nonzero(first & (kept & frame.lanes().any(axis=1))[:, None])
        rows = np.empty((len(row), ASKED_COLUMNS), np.int64)
        rows[:] = instruction
        rows[:, ASKED_WARP], rows[:, ASKED_WORD] = warps[row], words[row, column]
        rows[:, ASKED_REQUEST] = self._asked_of[warps[row]]
        self._asked.append(rows)
        self._asked_of += np.bincount(warps[row], minlength=CONSTANT_WARPS)

    def _constant(self, instruction: int, requests: int, addresses: int) -> None:
        """Count the addresses that requests ask for, each request's apart."""
        before = self.constants.get(instruction, (0, 0))
        self.constants[instruction] = before[0] + requests, before[1] + addresses

    def constant_addresses(self) -> dict[int, float]:
        """Addresses of a mean request of each load of constants whose lanes do not all ask for the same."""
        return {i: asked / requests for i, (requests, asked) in self.constants.items() if asked > requests}

    def asked_constants(self) -> npt.NDArray[np.int64]:
        """The words that loads of constants ask for, in the form of `Profile.constants`."""
        return np.concatenate([np.zeros((0, ASKED_COLUMNS), np.int64), *self._asked])

    def usual_products(self) -> tuple[dict[int, tuple[str, ...]], tuple[str, ...]]:
        """The most frequent product of each instruction, and what to say where there are others."""
        usual = {instruction: found.most_common(1)[0][0] for instruction, found in self.products.items()}
        if all(len(found) == 1 for found in self.products.values()):
            return usual, ()
        return usual, ("some matrix instructions have several shapes: each is costed as its most frequent one",)

    @property
    def watched(self) -> bool:
        """Whether synchronisations are recorded."""
        return bool(self.state[WATCHED])

    def passed(self, warps: Sequence[int], number: int) -> None:
        """Record that these warps of a block pass one of its barriers together."""
        self._event(warps[:-1], 0, number << 2 | PASSES)
        self._event(warps[-1:], 0, number << 2 | LAST_PASSES)

    def _event(self, warps: Sequence[int], instruction: int, event: int) -> None:
        self.make_room(0, len(warps))
        addresses, words = np.full((len(warps), LANES), event, np.int64), np.full(len(warps), FULL, np.uint32)
        note_rows(self._places, np.array(warps, np.int64), addresses, words, len(warps), instruction, EVENT)

    def rows(self, instruction: int, warp: int, addresses: npt.NDArray[np.int64], lanes: npt.NDArray[np.bool_]) -> None:
        """Record global accesses by one warp's copy, shape (requests, 32): a request is a row of pieces."""
        self.make_room(0, len(addresses))
        warps = np.full(len(addresses), warp, np.int64)
        words = np.packbits(lanes, axis=1, bitorder="little").view(np.uint32)[:, 0]
        addresses, words = np.ascontiguousarray(addresses), np.ascontiguousarray(words)
        note_rows(self._places, warps, addresses, words, len(addresses), instruction, SPACE_GLOBAL)

    def syncs(self, places: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.int64]:
        """All signals and waits in the form of `Profile.syncs`, for the warps in `places` (see `access_log`)."""
        rows = np.array([row for row in self._syncs if row[SYNC_KIND]], np.int64).reshape(-1, SYNC_COLUMNS)
        if not len(rows):
            return rows
        count = int(self.state[STEPS])
        warp = self.log.step_warp[:count]
        order, bounds = _by_warp(warp)
        # A row stores the number of steps of all warps so far; its own step is the warp's latest of these.
        keys = warp[order].astype(np.int64) * (count + 1) + order
        latest = np.searchsorted(keys, rows[:, SYNC_WARP] * (count + 1) + rows[:, SYNC_STEP]) - 1
        rows[:, SYNC_STEP] = latest - bounds[rows[:, SYNC_WARP]]
        if places is not None:
            rows[:, SYNC_WARP] = places[rows[:, SYNC_WARP]]
        return rows[rows[:, SYNC_WARP] >= 0]

    def access_log(self, places: npt.NDArray[np.int32] | None = None) -> AccessLog:
        """All accesses, ordered by warp and, within a warp, by issue.

        `places` gives each warp its new number, or -1 if it is dropped.
        """
        log, patterns = self.log, int(self.state[PATTERNS])
        records: list[tuple[Recorder, npt.NDArray[np.int32] | None]] = [(self, None), *self._absorbed]
        warps = [places] if places is not None else [r.log.warp[: r.state[ACCESSES]] for r, _ in records]
        following = np.zeros(1 + max(int(some.max(initial=-1)) + 1 for some in warps), np.int64)
        for record, _ in records:
            count_accesses(record.places, places, following)
        following = np.cumsum(following)
        types = (np.int32, np.int32, np.int64, np.int32, np.int8)  # as `AccessLog` has them
        columns: list[Any] = [np.empty(following[-1], kind) for kind in types]

        def sort(record: Recorder, numbers: npt.NDArray[np.int32] | None) -> None:
            # Each warp is in one record.
            sort_accesses(record.places, places, numbers, following, *columns)

        if len(records) == 1:
            sort(*records[0])
        else:
            with ThreadPoolExecutor(thread_count()) as pool:
                for _ in pool.map(sort, *zip(*records, strict=True)):
                    pass
        offsets = log.offsets[: patterns * LANES].reshape(-1, LANES).copy()
        instruction, warp, base, pattern, space = columns
        return AccessLog(instruction, warp, base, pattern, space, offsets, log.masks[:patterns].copy())

    def steps_by_warp(self, warps: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The basic blocks of `warps` warps one after the other, in order, and where those of each begin and end."""
        count = int(self.state[STEPS])
        order, bounds = _by_warp(self.log.step_warp[:count], warps)
        return self.log.step_block[:count][order], bounds

    def paths(self, warps: int, places: npt.NDArray[np.int32] | None = None) -> tuple[tuple[WarpPath, ...], list[int]]:
        """Distinct paths, and the path number of each of `warps` warps; `places` as in `access_log`."""
        numbered, kept = _renumbered(self.log.step_warp[: int(self.state[STEPS])], places)
        order, bounds = _by_warp(numbered, warps)
        rows = order if kept is None else kept[order]
        blocks, lanes = self.log.step_block[rows], self.log.step_lanes[rows]
        members: dict[bytes, list[int]] = {}
        for number in range(warps):
            members.setdefault(blocks[bounds[number] : bounds[number + 1]].tobytes(), []).append(number)
        paths, numbers = [], [0] * warps
        for path, of_path in enumerate(members.values()):
            length = bounds[of_path[0] + 1] - bounds[of_path[0]]
            total = np.zeros(length, np.float64)
            for start in range(0, len(of_path), _PATHS_ADDED):
                some = bounds[of_path[start : start + _PATHS_ADDED]]
                total += lanes[some[:, None] + np.arange(length)].sum(axis=0, dtype=np.int64)
            for number in of_path:
                numbers[number] = path
            sequence = blocks[bounds[of_path[0]] : bounds[of_path[0] + 1]]
            paths.append(WarpPath(sequence.copy(), (total / len(of_path)).astype(np.float32)))
        return tuple(paths), numbers

    def lane_counts(self, warps: int, blocks: int) -> npt.NDArray[np.int64]:
        """Active lanes summed over the executions of each basic block, shape (warps, blocks)."""
        log, count = self.log, int(self.state[STEPS])
        place = log.step_warp[:count].astype(np.int64) * blocks + log.step_block[:count]
        flat = np.bincount(place, log.step_lanes[:count], minlength=warps * blocks)
        return flat.astype(np.int64).reshape(warps, blocks)

    def steps_since(self, first: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Warp and basic block of every step from row `first` on, in execution order."""
        rows = slice(first, int(self.state[STEPS]))
        return self.log.step_warp[rows], self.log.step_block[rows]


def _renumbered(
    warps: npt.NDArray[np.int32], places: npt.NDArray[np.int32] | None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64] | None]:
    """New numbers of warps, and which rows are kept (None: all)."""
    if places is None:
        return warps, None
    numbered = places[warps]
    kept = np.flatnonzero(numbered >= 0)
    return (numbered, None) if len(kept) == len(numbered) else (numbered[kept], kept)


def _grown(log: Log, names: tuple[str, ...], used: int, more: int) -> dict[str, npt.NDArray[Any]]:
    """Larger copies of some arrays of the record if `more` rows do not fit; else nothing."""
    size = len(getattr(log, names[0]))
    if used + more <= size:
        return {}
    while size < used + more:
        size *= _GROWTH
    grown = {}
    for name in names:
        old, each = getattr(log, name), _EACH.get(name, 1)
        grown[name] = np.empty(size * each, old.dtype)
        grown[name][: used * each] = old[: used * each]
    return grown


def _by_warp(warp: npt.NDArray[np.int32], warps: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The order by warp, stable within a warp, and where each warp's rows begin in it."""
    kinds = max(warps, int(warp.max()) + 1 if len(warp) else 0)
    bounds, order = np.zeros(kinds + 1, np.int64), np.empty(len(warp), np.int64)
    order_by(np.ascontiguousarray(warp), len(warp), kinds, bounds, np.empty_like(bounds), order)
    return order, bounds
