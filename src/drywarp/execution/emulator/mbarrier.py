"""Barriers in shared memory: 64-bit words that count arrivals and bytes, and flip a phase bit.

Compilers write the initial word themselves and extract fields from the state that an arrival returns, so part of the
layout is theirs: with c = 2^20 - count, bits 1 to 20 hold c of the arrivals that each phase expects, bits 43 to 62 c of
those still pending, bit 63 the phase; an arrival adds 1 to c, and the carry of the last one flips the phase. The
pending bytes are stored in bits 21 to 42, which is our own choice.

SYNCS.ARRIVE.TRANS64 spells what it adds: A1, A0 and AR are 1, no and a register's arrivals; T0, TR, TX and T1 no bytes,
a register's more, a register's less, and 1 more; without a word it is A1TR. OPTOUT lowers the expected count as well,
RED returns nothing. PHASECHK is true if the phase bit differs from bit 31 of its operand; with TRYWAIT it may wait
first, and here it waits until the phase completes or nothing else can run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import RZ, Instruction, Predicate, Register
from ...kernel.profile import SYNC_SIGNAL, SYNC_WAIT
from .bits import LANES, arrived, pack
from .convergence import Finish, condition_of, finish, words_of
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .groups import PhaseWait
from .memory_ops import address32
from .operands import Value

if TYPE_CHECKING:
    from .convergence import Scheduling
    from .machine import Machine
    from .recorder import Recorder

_COUNTS = 1 << 20
_COUNT_MASK = _COUNTS - 1
_BYTES_MASK = (1 << 22) - 1
_BYTES_SIGN = 1 << 21
_AMOUNTS = re.compile(r"^A([01R])T([01RX])$")


@dataclass
class Word:
    """The fields of a barrier's word: arrivals expected per phase (`count`) and still missing (`pending`)."""

    count: int
    pending: int
    pending_bytes: int
    phase: int

    @classmethod
    def of(cls, word: int) -> Word:
        """Extract the fields of a word."""
        pending_bytes = word >> 21 & _BYTES_MASK
        if pending_bytes & _BYTES_SIGN:
            pending_bytes -= 1 << 22
        count, pending = (_COUNTS - (word >> low & _COUNT_MASK) for low in (1, 43))
        return cls(count & _COUNT_MASK, pending & _COUNT_MASK, pending_bytes, word >> 63)

    @property
    def word(self) -> int:
        """The fields as a word."""
        count, pending = ((_COUNTS - value) & _COUNT_MASK for value in (self.count, self.pending))
        return count << 1 | (self.pending_bytes & _BYTES_MASK) << 21 | pending << 43 | self.phase << 63

    def add(self, arrivals: int, more_bytes: int, leaves: bool = False) -> bool:
        """Record arrivals and announced or completed bytes; whether that completes the phase."""
        self.pending -= arrivals
        self.count -= arrivals if leaves else 0
        self.pending_bytes += more_bytes
        if self.pending or self.pending_bytes:
            return False
        self.pending, self.phase = self.count, 1 - self.phase
        return True


class BarrierWords:
    """The barriers of one machine's blocks, and how many phases of each have completed.

    A barrier is identified by its block's place in the machine and its address; `where` is for messages.
    """

    def __init__(self, machine: Machine, recorder: Recorder, where: str) -> None:
        self._machine = machine
        self._recorder = recorder
        self._where = where
        self._words = machine.shared[8]

    def index(self, warp: int, address: int) -> int:
        """A barrier's index in the 8-byte view. Raises EmulationError for an address that cannot hold one."""
        return self._index(self._machine.owner(warp, address), address)

    def _index(self, owner: tuple[int, int], address: int) -> int:
        machine, (block, offset) = self._machine, owner
        if block < 0 or offset % 8 or offset + 8 > machine.shared_bytes:
            blocks = f" of one of the cluster's {machine.cluster_blocks} blocks" if machine.cluster_blocks > 1 else ""
            raise EmulationError(
                f"{self._where}: barrier at shared address {address:#x}: expected a multiple of 8 within the block's"
                f" {machine.shared_bytes} bytes{blocks}"
            )
        return (block * machine.shared_stride + offset) >> 3

    def completed(self, warp: int, address: int) -> int:
        """Phases of a barrier that have completed; its parity is the phase bit."""
        return self._machine.phases.get(self._machine.owner(warp, address), 0)

    def begin(self, warp: int, address: int) -> None:
        """Record that a barrier was initialised: its phases count on from an even number."""
        key = self._machine.owner(warp, address)
        known = self._machine.phases.get(key)
        self._machine.phases[key] = 0 if known is None else (known + 2) & ~1

    def add(self, warp: int, address: int, number: int, arrivals: int, more_bytes: int, leaves: bool = False) -> int:
        """Record arrivals and bytes by a warp at instruction `number`; returns the previous word."""
        owner, phases = self._machine.owner(warp, address), self._machine.phases
        index = self._index(owner, address)
        before = int(self._words[index])
        fields = Word.of(before)
        if arrivals > fields.pending:
            raise EmulationError(
                f"{self._where}: {arrivals} arrivals at the barrier at shared address {address:#x}, which expects"
                f" {fields.pending} more in this phase, {self._machine.thread_name(warp, 0)}"
            )
        phase = phases.get(owner, 0)
        self._recorder.sync(warp, number, SYNC_SIGNAL, address, phase)
        if fields.add(arrivals, more_bytes, leaves):
            phases[owner] = phase + 1
            self._machine.phase_completed = True
        self._words[index] = np.uint64(fields.word)
        return before


@opcode("SYNCS", None)
def _shared_barrier(d: Decoder, i: Instruction) -> Step:
    kind = i.modifiers[0] if i.modifiers else ""
    if kind == "EXCH" and i.modifiers[1:] == ("64",):
        return _exchange(d, i)
    if kind == "ARRIVE":
        return _arrive(d, i)
    if kind == "PHASECHK":
        return _check(d, i)
    if kind == "CCTL":
        return lambda f: None  # the barrier is dropped; its bytes keep their content
    raise UnsupportedInstructionError(f"modifier .{kind}")


def _exchange(d: Decoder, i: Instruction) -> Step:
    """Write a whole word to a barrier, which initialises it. Once per warp."""
    put, address, value = d.put_pair(i.operands[0]), address32(d, i.operands[1]), d.pair(i.operands[2])
    where = place(d.kernel, i)

    def exchange(f: Frame) -> None:
        words = BarrierWords(f.machine, d.recorder, where)
        addresses, values = f.spread(address(f)), f.spread(value(f))
        before = np.zeros((f.rows, 1), np.uint64)
        for row, lane in _leaders(f):
            warp, at = int(f.warps[row]), int(addresses[row, lane])
            index = words.index(warp, at)
            before[row] = f.machine.shared[8][index]
            f.machine.shared[8][index] = values[row, lane]
            words.begin(warp, at)
        put(f, before)

    return exchange


def _leaders(f: Frame) -> list[tuple[int, int]]:
    """Row and first executing lane of every warp of the frame that has one."""
    words = f.words()
    leaders = f.leader()
    return [(int(row), int(leaders[row])) for row in np.flatnonzero(words)]


def _arrive(d: Decoder, i: Instruction) -> Step:
    """Arrivals and announced bytes, lane by lane; lanes of a warp that name one barrier count together."""
    flags = set(i.modifiers[1:]) - {"TRANS64"}
    amounts = next((m for m in (_AMOUNTS.match(name) for name in i.modifiers) if m), None)
    known = {"RED", "OPTOUT", "TMASK", amounts[0] if amounts else ""}
    if "TRANS64" not in i.modifiers or flags - known:
        raise UnsupportedInstructionError(f"modifier .{min(flags - known, default='ARRIVE without TRANS64')}")
    arrival, byte = (amounts[1], amounts[2]) if amounts else ("1", "R")
    put = d.put_pair(i.operands[0])
    address, register = address32(d, i.operands[1]), d.word(i.operands[2])
    unused = isinstance(i.operands[0], Register) and i.operands[0].index == RZ
    leaves, by_mask, number, where = "OPTOUT" in flags, "TMASK" in flags, i.pc // 16, place(d.kernel, i)

    def arrive(f: Frame) -> None:
        words = BarrierWords(f.machine, d.recorder, where)
        addresses, given = f.spread(address(f)), f.spread(register(f)).view(np.int32).astype(np.int64)
        arrivals = given if arrival == "R" else np.full_like(given, int(arrival))
        more = {"0": 0 * given, "1": 0 * given + 1, "R": given, "X": -given}[byte]
        lanes = f.lanes()
        sums, more_sums = ((amount * lanes).sum(axis=1).tolist() for amount in (arrivals, more))
        states = np.zeros((f.rows, LANES), np.uint64)
        for row, barriers in lanes_by_barrier(addresses, lanes):
            warp = int(f.warps[row])
            if unused and len(barriers) == 1:
                words.add(warp, barriers[0], number, sums[row], more_sums[row], leaves)
                continue
            for at in barriers:
                same = lanes[row] & (addresses[row] == at)
                steps = arrivals[row] * same
                before = words.add(warp, at, number, int(steps.sum()), int((more[row] * same).sum()), leaves)
                states[row] = np.where(same, _states(before, steps, same, by_mask), states[row])
        put(f, states)

    return arrive


@opcode("ARRIVES", "LDGSTSBAR 64 TRANSCNT ARVCNT")
def _copies_arrive(d: Decoder, i: Instruction) -> Step:
    """Each lane's earlier copies (LDGSTS) report to a barrier that they are complete, which they already are."""
    address, number, where = address32(d, i.operands[0]), i.pc // 16, place(d.kernel, i)
    by_bytes = "TRANSCNT" in i.modifiers
    older = d.kernel.compute_capability < (9, 0)

    def arrive(f: Frame) -> None:
        words = BarrierWords(f.machine, d.recorder, where)
        addresses, lanes = f.spread(address(f)), f.lanes()
        for row in np.flatnonzero(lanes.any(axis=1)).tolist():
            warp = int(f.warps[row])
            for at, count in zip(*np.unique(addresses[row][lanes[row]], return_counts=True), strict=True):
                if older:
                    index = words.index(warp, int(at))
                    for _ in range(count):
                        f.machine.shared[8][index] = arrived(f.machine.shared[8][index])
                else:
                    words.add(warp, int(at), number, 0 if by_bytes else int(count), -int(count) if by_bytes else 0)

    return arrive


def _states(before: int, arrivals: Value, same: npt.NDArray[np.bool_], by_mask: bool) -> npt.NDArray[np.uint64]:
    """The result of an arrival for each lane: the state before its own, as if the lanes arrived one after the other.

    With TMASK the low half is the mask of lanes that arrived together and the high one the state before all of them;
    the code that follows counts those below its lane.
    """
    high = np.uint64(before) & ~np.uint64(0xFFFFFFFF)
    if by_mask:
        return np.full(LANES, high | np.uint64(int(pack(same[None])[0])))
    earlier = (np.cumsum(arrivals) - arrivals).astype(np.uint64)
    return np.where(same, high + (earlier << np.uint64(43)), high)


def _phase_bits(f: Frame, words: BarrierWords, addresses: Value, lanes: npt.NDArray[np.bool_]) -> Value:
    """The phase bit of the barrier that each of some lanes names, shape (rows, 32); arbitrary for other lanes."""
    bits = np.zeros((f.rows, LANES), np.uint32)
    for row, barriers in lanes_by_barrier(addresses, lanes):
        for at in barriers:
            bit = int(f.machine.shared[8][words.index(int(f.warps[row]), at)]) >> 63
            if len(barriers) == 1:
                bits[row] = bit
            else:
                bits[row][addresses[row] == at] = bit
    return bits


def lanes_by_barrier(addresses: Value, lanes: npt.NDArray[np.bool_]) -> list[tuple[int, list[int]]]:
    """Rows in which some lanes execute, and the barriers that those name: almost always one."""
    rows = np.flatnonzero(lanes.any(axis=1))
    first = addresses[rows, lanes[rows].argmax(axis=1)]
    alone = ((addresses[rows] == first[:, None]) | ~lanes[rows]).all(axis=1)
    return [
        (row, [at] if one else np.unique(addresses[row][lanes[row]]).tolist())
        for row, at, one in zip(rows.tolist(), first.tolist(), alone.tolist(), strict=True)
    ]


def _check(d: Decoder, i: Instruction) -> Step:
    """Whether a phase has completed, without waiting for it."""
    put, address, wanted = d.put_predicate(i.operands[0]), address32(d, i.operands[1]), d.word(i.operands[2])
    number, where = i.pc // 16, place(d.kernel, i)

    def check(f: Frame) -> None:
        words = BarrierWords(f.machine, d.recorder, where)
        addresses, lanes = f.spread(address(f)), f.lanes()
        done = (_phase_bits(f, words, addresses, lanes) != f.spread(wanted(f)) >> np.uint32(31)) & lanes
        for row, barriers in lanes_by_barrier(addresses, done):
            warp = int(f.warps[row])
            for at in barriers:
                d.recorder.sync(warp, number, SYNC_WAIT, at, words.completed(warp, at) - 1)
        put(f, done)

    return check


@finish("SYNCS", "PHASECHK TRANS64 TRYWAIT")
def _try_wait(d: Decoder, i: Instruction, fall: int) -> Finish:
    """Wait for phases to complete; lanes of a warp wait together."""
    predicate = i.operands[0]
    if not isinstance(predicate, Predicate) or predicate.uniform:
        raise UnsupportedInstructionError(f"destination {predicate}")
    put, address, wanted = d.put_predicate(predicate), address32(d, i.operands[1]), d.word(i.operands[2])
    condition = condition_of(d, i)
    number, where = i.pc // 16, place(d.kernel, i)

    def try_wait(s: Scheduling, f: Frame) -> int:
        words = BarrierWords(f.machine, d.recorder, where)
        lanes = condition(f)
        lanes = f.lanes() if lanes is None else lanes
        addresses = f.spread(address(f))
        phases = f.spread(wanted(f)) >> np.uint32(31)
        ready = (_phase_bits(f, words, addresses, lanes) != phases) | ~lanes
        saved = f.narrow(lanes)
        put(f, np.True_)
        f.restore(saved)
        waits: dict[int, PhaseWait] = {}
        for row, barriers in lanes_by_barrier(addresses, lanes):
            warp = int(f.warps[row])
            for at in barriers:
                late = lanes[row] & ~ready[row] & (addresses[row] == at)
                completed, must_wait = words.completed(warp, at), bool(late.any())
                event = d.recorder.sync(warp, number, SYNC_WAIT, at, completed - (not must_wait))
                if must_wait:
                    wait = waits.setdefault(row, PhaseWait({}, predicate.index, event))
                    wait.barriers[f.machine.owner(warp, at)] = (completed + 1, late)
        if not waits:
            return fall
        stays = np.zeros(f.rows, np.bool_)
        stays[list(waits)] = True
        members = range(f.rows) if f.members is None else f.members.tolist()
        return s.park_for_phases(words_of(f, f.lanes() & stays[:, None]), fall, [waits.get(row) for row in members])

    return try_wait
