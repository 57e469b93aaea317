"""Atomic operations and reductions on shared and global memory, and what stores asynchronously to a cluster's blocks.

Lanes take effect in ascending order. If all addresses differ, one NumPy call suffices; colliding lanes are processed in
rounds of distinct addresses or, for integer sums, by running totals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.draws import IN_TURN, NOTE
from ...kernel.instruction import RZ, Address, Instruction, Operand, Predicate, Register
from .access import Site
from .bits import LANES, arrived
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .half import bf16_to_double, double_to_bf16, f16_to_double, pack_halves
from .mbarrier import BarrierWords, lanes_by_barrier
from .memory_ops import HINTS, address_for, gather_words, in_each_space, scatter_words, word_puts, word_sources
from .operands import Put, Value, double_bits, flush_denormals, single_bits

Flat = npt.NDArray[Any]
Update = Callable[[Flat, Flat, Flat], Flat]
"""New values from old ones, a first and a second operand (used by CAS only)."""
_OPERATIONS = "ADD MIN MAX AND OR XOR EXCH CAS INC DEC CAST POPC SAFEADD ARRIVE"
_TYPES = " S32 U32 S64 U64 64 32 F32 F64 F16 F16x2 BF16_V2 BF16x2 FTZ RN SPIN"
_HALVES = {"F16x2", "BF16_V2", "BF16x2"}


def _increment(old: Flat, limit: Flat, _: Flat) -> Flat:
    return np.asarray(np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)))


def _add(old: Flat, a: Flat, _: Flat) -> Flat:
    total: Flat = old + a
    if total.dtype.kind != "f":
        return total
    return np.asarray((single_bits if total.itemsize == 4 else double_bits)(total)).view(total.dtype)


def _add_flushed(old: Flat, a: Flat, _: Flat) -> Flat:
    return np.asarray(flush_denormals(_add(flush_denormals(old), flush_denormals(a), a)))


def _arrive(old: Flat, _: Flat, __: Flat) -> Flat:
    return arrived(old)


def _decrement(old: Flat, limit: Flat, _: Flat) -> Flat:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


UPDATES: dict[str, Update] = {
    "ADD": _add,
    "MIN": lambda old, a, _: np.minimum(old, a),
    "MAX": lambda old, a, _: np.maximum(old, a),
    "AND": lambda old, a, _: old & a,
    "OR": lambda old, a, _: old | a,
    "XOR": lambda old, a, _: old ^ a,
    "EXCH": lambda old, a, _: a,
    "CAS": lambda old, a, b: np.where(old == a, b, old),
    "INC": _increment,
    "DEC": _decrement,
    "ARRIVE": _arrive,
}
"""What each operation makes of an old value and its operands."""


def _element_type(names: Sequence[str]) -> np.dtype[Any]:
    """The operand type of an atomic."""
    kinds = {"F32": "f4", "F64": "f8", "S32": "i4", "U32": "u4", "S64": "i8", "U64": "u8", "64": "u8"}
    if "S64" in names or ("S32" in names and "64" in names):
        return np.dtype("i8")
    return np.dtype(next((kinds[n] for n in names if n in kinds), "u4"))


def apply(memory: Flat, index: Flat, update: Update, a: Flat, b: Flat, additive: bool) -> Flat:
    """Execute an atomic for flat lanes in order; returns the value that each found. All arrays have shape (lanes,)."""
    order = np.argsort(index, kind="stable")
    places = index[order]
    new_run = np.empty(len(places), np.bool_)
    new_run[:1] = True
    np.not_equal(places[1:], places[:-1], out=new_run[1:])
    if new_run.all():
        old: Flat = memory[index]
        memory[index] = update(old, a, b)
        return old
    starts = np.flatnonzero(new_run)
    if additive and memory.dtype.kind in "iu":
        return _running_sums(memory, places, order, starts, a)
    run_of = np.cumsum(new_run) - 1
    rank = np.arange(len(places)) - starts[run_of]
    old = np.empty(len(index), memory.dtype)
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by_rank], np.arange(rank.max() + 2))
    for low, high in pairwise(bounds.tolist()):
        lanes = order[by_rank[low:high]]
        where = index[lanes]
        found = memory[where]
        old[lanes] = found
        memory[where] = update(found, a[lanes], b[lanes])
    return old


def _running_sums(memory: Flat, places: Flat, order: Flat, starts: Flat, a: Flat) -> Flat:
    """Integer additions to colliding places: every lane finds the sum of those before it."""
    values = a[order]
    totals = np.cumsum(values, dtype=memory.dtype)
    before = totals - values
    lengths = np.diff(np.append(starts, len(places)))
    before -= np.repeat(before[starts], lengths)
    found = memory[places] + before
    last = np.append(starts[1:], len(places)) - 1
    memory[places[last]] = found[last] + values[last]
    old: Flat = np.empty_like(found)
    old[order] = found
    return old


def _operation(names: Sequence[str]) -> str:
    if "POPC" in names:
        return "POPC"
    return next((n for n in names if n in UPDATES), "CAS" if "CAST" in names else "")


@opcode("ATOMS ATOMG ATOM RED REDG REDS", f"{HINTS} {_OPERATIONS} {_TYPES} {IN_TURN}")
def _atomic(d: Decoder, i: Instruction) -> Step:
    names = i.modifiers
    name = _operation(names)
    if not name or "F16" in names:
        raise UnsupportedInstructionError("operation")
    operands = list(i.operands)
    put_success = None
    if isinstance(operands[0], Predicate):
        put_success = d.put_predicate(operands.pop(0))
    destination = operands.pop(0) if isinstance(operands[0], Register) and i.opcode.startswith("ATOM") else None
    address_op = operands.pop(0)
    if not isinstance(address_op, Address):
        raise UnsupportedInstructionError(f"memory operand {address_op}")
    data = [o for o in operands if isinstance(o, Register)]
    kind = _element_type(names)
    if _HALVES & set(names):
        return _packed(d, i, destination, address_op, data, put_success)
    values = [word_sources(d, o, kind.itemsize) for o in data]
    update = UPDATES["ADD" if name == "POPC" else name]
    if name == "ADD" and kind == np.float32 and "FTZ" in names:
        update, name = _add_flushed, "ADD.FTZ"
    # A compiler-generated retry loop only sees whether the attempt succeeded.
    attempts = "CAST" in names
    loses = destination is None or (isinstance(destination, Register) and destination.index == RZ)
    runner = _Runner(d, i, kind, update, name, loses)
    space, addresses = address_for(d, i, address_op)
    puts = word_puts(d, destination, kind.itemsize) if destination is not None and not loses else []

    def run(f: Frame) -> None:
        operands_of = [gather_words(f, source, kind.itemsize).view(kind) for source in values]
        if name in ("POPC", "ARRIVE"):
            operands_of = [np.ones((f.rows, LANES), kind)]
        first = operands_of[0]
        second = operands_of[1] if len(operands_of) > 1 else first

        def access(found: str, local: Value) -> None:
            old = runner(f, found, local, first, second)
            success = old == first
            if attempts:
                old = success.astype(kind)
            if puts:
                scatter_words(f, puts, old.view(np.uint64 if kind.itemsize == 8 else np.uint32), None)
            if put_success is not None:
                put_success(f, success if name == "CAS" else np.bool_(True))

        where = np.array(f.spread(addresses(f)))
        if space == "generic":
            in_each_space(f, where, access)
        else:
            access(space, where)

    return run


class _Runner:
    """Runs one atomic instruction on memory of a given space."""

    def __init__(self, d: Decoder, i: Instruction, kind: np.dtype[Any], update: Update, name: str, loses: bool) -> None:
        self._site = Site(d, i, "atomic", kind.itemsize)
        self._draws = d.memory.draws if IN_TURN in i.modifiers else None
        self._kind, self._update, self._where = kind, update, place(d.kernel, i)
        self._additive = name in ("ADD", "POPC")
        # A sum whose old values nobody reads needs no order; NumPy adds in lane order.
        self._only_adds = self._additive and loses

    def __call__(self, f: Frame, space: str, addresses: Value, a: Value, b: Value) -> Value:
        """Execute for the active lanes; returns old values, shape (rows, 32)."""
        if space in ("shared", "remote"):
            locate = self._site.shared_index if space == "shared" else self._site.remote_index
            index = locate(f, addresses)
            memory = f.machine.shared[self._site.width]
        elif space == "global":
            index = self._site.global_index(f, addresses)
            memory = self._site.memory_view
        else:
            raise EmulationError(f"{self._where}: atomic operation on local memory")
        memory = memory.view(self._kind)
        lanes = f.exec
        flat_index, flat_a, flat_b = (
            (index.ravel(), a.ravel(), b.ravel()) if lanes is None else (index[lanes], a[lanes], b[lanes])
        )
        old = np.zeros((f.rows, LANES), self._kind)
        if self._only_adds:
            np.add.at(memory, flat_index, flat_a)
            return old
        found = apply(memory, flat_index, self._update, flat_a, flat_b, self._additive)
        if self._draws is not None and space == "global":
            rows = np.broadcast_to(np.arange(f.rows)[:, None], (f.rows, LANES))
            warps = f.warps[rows.ravel() if lanes is None else rows[lanes]]
            found = _in_turn(f, self._draws, warps, flat_index, found, flat_a)
        if lanes is None:
            return found.reshape(f.rows, LANES)
        old[lanes] = found
        return old


def _in_turn(f: Frame, counters: dict[int, tuple[int, int]], warps: Flat, index: Flat, found: Flat, a: Flat) -> Flat:
    """What lanes find in counters if all blocks (clusters where there are any) draw in turn; all shapes (lanes,).

    `counters` holds the first content and the step of each. What is added in other steps, or nothing, finds what is
    there.
    """
    machine, launch = f.machine, f.machine.launch
    old, units = found.copy(), launch.blocks // launch.cluster_blocks
    for lane, (warp, at, step) in enumerate(zip(warps.tolist(), index.tolist(), a.tolist(), strict=True)):
        start, usual = counters.setdefault(at, (int(found[lane]), step))
        if step == 0 or step != usual:
            continue
        unit = launch.cluster_of(machine.blocks[warp // machine.warps_per_block])
        drawn = machine.drawn[unit, at]
        machine.drawn[unit, at] += 1
        old[lane] = np.array(start + step * (drawn * units + unit)).astype(found.dtype)
        machine.notes.add(NOTE)
    return old


def _packed(
    d: Decoder,
    i: Instruction,
    destination: Operand | None,
    address_op: Operand,
    data: Sequence[Register],
    put_success: Put | None,
) -> Step:
    """Additions to two halves at once, each half rounded on its own.

    Only global memory supports them: if a generic address lies elsewhere, a predicate reports that nothing was done,
    and the code that follows does it another way.
    """
    if "ADD" not in i.modifiers:
        raise UnsupportedInstructionError("operation on packed halves")
    bf16 = "F16x2" not in i.modifiers

    def update(old: Flat, a: Flat, _: Flat) -> Flat:
        if bf16:
            return np.asarray(pack_halves(double_to_bf16(bf16_to_double(old) + bf16_to_double(a))))
        return np.asarray(pack_halves((f16_to_double(old) + f16_to_double(a)).astype(np.float16)))

    runner = _Runner(d, i, np.dtype("u4"), update, "", False)
    space, addresses = address_for(d, i, address_op)
    source = d.raw(data[0])
    put = d.put(destination) if destination is not None else None

    def run(f: Frame) -> None:
        values = np.array(f.spread(source(f)))

        def access(found: str, local: Value) -> None:
            done = put_success is None or found == "global"
            if put_success is not None:
                put_success(f, np.bool_(done))
            if not done:
                return
            old = runner(f, found, local, values, values)
            if put is not None:
                put(f, old)

        where = np.array(f.spread(addresses(f)))
        if space == "generic":
            in_each_space(f, where, access)
        else:
            access(space, where)

    return run


# Stores and reductions to the shared memory of any block of the cluster, which report their bytes to a barrier there.


@opcode("STAS REDAS", "64 128 S32 ADD MIN MAX AND OR XOR INC DEC")
def _asynchronous(d: Decoder, i: Instruction) -> Step:
    """A register pair holds where the data go, and the barrier that then receives the count of the bytes.

    Both are addresses in the shared memory of the cluster. The data move at once: programs must not rely on when.
    """
    address, source = i.operands[:2]
    if not isinstance(address, Address) or address.base is None or address.offset or not isinstance(source, Register):
        raise UnsupportedInstructionError(f"operands {i.text}")
    reduces = i.opcode == "REDAS"
    kind = _element_type(i.modifiers)
    width = kind.itemsize if reduces else 16 if "128" in i.modifiers else kind.itemsize
    update = UPDATES[_operation(i.modifiers)] if reduces else None
    site, number, where = Site(d, i, "asynchronous store", width), i.pc // 16, place(d.kernel, i)
    to, barrier = d.register(address.base.index), d.register(address.base.index + 1)
    sources = word_sources(d, source, width)

    def run(f: Frame) -> None:
        values = gather_words(f, sources, width)
        index, memory, lanes = site.remote_index(f, to(f)), f.machine.shared[width], f.lanes()
        if update is None:
            memory[index[lanes]] = values[lanes]
        else:
            given = values.view(kind)[lanes]
            apply(memory.view(kind), index[lanes], update, given, given, False)
        words = BarrierWords(f.machine, d.recorder, where)
        barriers = f.spread(barrier(f))
        for row, named in lanes_by_barrier(barriers, lanes):
            for at in named:
                count = int((lanes[row] & (barriers[row] == at)).sum())
                words.add(int(f.warps[row]), at, number, 0, -count * width)

    return run
