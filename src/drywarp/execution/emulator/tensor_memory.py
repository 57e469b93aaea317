"""Tensor memory of compute capability 10.x: allocation, copies from shared memory, shifts, commits to a barrier.

UTCATOMSWS works on the bits of allocated units of 32 columns: FIND_AND_SET takes as many aligned ones as its operand
says, AND keeps those in its mask. Compilers write the loop that waits for room, and keep books in the reserved shared
memory. Blocks that allocate as a pair (2CTA) tell each other the place by a barrier there, which is never initialised
by code: the first block of the pair finds it with phase 1, the second with phase 0, both for one arrival.

Copies (UTCCP) take rows of 16 or 32 bytes to lanes, which for scale factors are repeated in other quarters.
Asynchronous operations complete when they issue, so that a commit (UTCBAR) arrives at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import Address, Instruction, Predicate, Register
from .bits import LANES
from .bulk_copy import Site
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .machine import TENSOR_LANES, Machine
from .mbarrier import BarrierWords, Word
from .tcgen05_form import TensorAddress, acting, blocks_of, tensor_address
from .tensor_operands import Ints, descriptor_words, matrix_bytes

_WORD = 4
_PAIR_BARRIER = 0x48
"""Where ptxas keeps the barrier of a pair that allocates, in the reserved part of shared memory."""


@opcode("UTCATOMSWS", "FIND_AND_SET ALIGN AND 2CTA")
def _allocate(d: Decoder, i: Instruction) -> Step:
    operands, where = list(i.operands), place(d.kernel, i)
    if "AND" in i.modifiers:
        kept = d.word(operands[-1])

        def free(f: Frame) -> None:
            masks = np.broadcast_to(kept(f), (f.rows, 1))
            for row in acting(f):
                f.machine.tensor.used[f.machine.block_of(int(f.warps[row]))] &= int(masks[row, 0])

        return free
    if "ALIGN" not in i.modifiers or len(operands) != 3 or not isinstance(operands[0], Predicate):
        raise UnsupportedInstructionError(f"operands {i.text}")
    put_found, put, units = d.put_predicate(operands[0]), d.put(operands[1]), d.word(operands[2])
    paired = "2CTA" in i.modifiers

    def allocate(f: Frame) -> None:
        counts = np.broadcast_to(units(f), (f.rows, 1))
        firsts = np.zeros((f.rows, 1), np.int64)
        for row in acting(f):
            warp = int(f.warps[row])
            blocks = blocks_of(f.machine, warp, paired, where)
            if paired:
                _begin_pair(f.machine, *blocks)
            firsts[row] = f.machine.tensor.allocate(blocks, int(counts[row, 0]))
        put_found(f, firsts >= 0)
        put(f, np.maximum(firsts, 0).astype(np.uint32))

    return allocate


def _begin_pair(machine: Machine, first: int, second: int) -> None:
    """The state in which the blocks of a pair find the barrier by which they allocate."""
    for block, phase in ((first, 1), (second, 0)):
        index = (block * machine.shared_stride + _PAIR_BARRIER) >> 3
        if not machine.shared[8][index]:
            machine.shared[8][index] = np.uint64(Word(1, 1, 0, phase).word)
            machine.phases[block, _PAIR_BARRIER] = phase


@opcode("UTCSHIFT", "DOWN 2CTA")
def _shift(d: Decoder, i: Instruction) -> Step:
    """Within 32 lanes, each but the last takes the 32 bytes of the lane that follows it."""
    address, where, paired = tensor_address(d, i, i.operands[0]), place(d.kernel, i), "2CTA" in i.modifiers
    count = 8

    def shift(f: Frame) -> None:
        places = address.of(f)
        for row in acting(f):
            warp, (lane, column) = int(f.warps[row]), places[row]
            if lane % LANES:
                raise EmulationError(f"{where}: a shift from lane {lane} on: expected a multiple of {LANES}")
            for block in blocks_of(f.machine, warp, paired, where):
                address.check(f.machine, block, column, count, "shifts")
                held = f.machine.tensor.words[block, column : column + count, lane : lane + LANES]
                held[:, :-1] = held[:, 1:].copy()

    return shift


@opcode("UTCBAR", "MULTICAST 2CTA")
def _commit(d: Decoder, i: Instruction) -> Step:
    """An arrival at a barrier once all earlier operations of the thread are complete, which they already are."""
    target = i.operands[0]
    if not isinstance(target, Address) or target.uniform is None:
        raise UnsupportedInstructionError(f"operands {i.text}")
    site, base, offset = Site(d, i), d.register(target.uniform.index, True), target.offset
    masks = d.word(i.operands[2]) if "MULTICAST" in i.modifiers else None

    def commit(f: Frame) -> None:
        words = BarrierWords(f.machine, d.recorder, site.where)
        addresses = np.broadcast_to(base(f), (f.rows, 1))
        chosen = None if masks is None else np.broadcast_to(masks(f), (f.rows, 1))
        for row in acting(f):
            further = (0,) if chosen is None else site.receivers(f, row, int(chosen[row, 0]) & 0xFFFF)
            for more in further:
                words.add(int(f.warps[row]), int(addresses[row, 0]) + offset + more, site.number, 1, 0)

    return commit


_COPIES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "": (128, 32, (0,)),
    "128dp128bit": (128, 16, (0,)),
    "4dp256bit": (4, 32, (0,)),
    "2x64dp128bit_lw02_lw13": (64, 16, (0, 64)),
    "2x64dp128bit_lw01_lw23": (64, 16, (0, 32)),
    "4x32dp128bit": (32, 16, (0, 32, 64, 96)),
}
"""Rows, bytes of a row, and the lanes at which the copies of the rows begin, by shape."""


@opcode("UTCCP", f"T S 2CTA {' '.join(filter(None, _COPIES))}")
def _copy(d: Decoder, i: Instruction) -> Step:
    shape = next((m for m in i.modifiers if m in _COPIES), "")
    rows, size, begins = _COPIES[shape]
    lanes: Any = np.arange(rows)
    if shape == "4dp256bit":
        lanes = LANES * lanes  # a row for each quarter
    elif shape.endswith("lw01_lw23"):
        lanes = lanes % LANES + 2 * LANES * (lanes // LANES)
    address, where = tensor_address(d, i, i.operands[0]), place(d.kernel, i)
    words, paired = descriptor_words(d, i.operands[1]), "2CTA" in i.modifiers

    def copy(f: Frame) -> None:
        described_by, places = words(f), address.of(f)
        for row in acting(f):
            warp, (lane, column) = int(f.warps[row]), places[row]
            for block in blocks_of(f.machine, warp, paired, where):
                address.check(f.machine, block, column, size // _WORD, "copies to")
                found = matrix_bytes(f, block, int(described_by[row]), rows, size, where)
                held = f.machine.tensor.words[block]
                for begin in begins:
                    at = (lane + lanes + begin) % TENSOR_LANES
                    held[column : column + size // _WORD, at] = found.view(np.uint32).T

    return copy


# Loads and stores of tensor memory: LDTM and STTM move 32 lanes a warp, its own quarter, or 16 of them.
#
# Register r of thread t is a lane and a column; where they are packed (or expanded), the low halves of two columns.
# Source: PTX ISA, "Data movement shape", and the layouts by which CUTLASS describes these accesses.

_THREAD = np.arange(LANES, dtype=np.int64)[None, :]


@dataclass(frozen=True)
class Fragment:
    """Which lane and column each register of each thread is, shape (registers, 32); columns are pairs if `packed`.

    `threads` are those that take part. `rows` is 32, or 16 where a warp moves half of its lanes.
    """

    lanes: Ints
    columns: Ints
    threads: npt.NDArray[np.bool_]
    rows: int
    packed: bool

    @property
    def width(self) -> int:
        """Columns that it spans."""
        return (int(self.columns.max()) + 1) * (2 if self.packed else 1)


_FORMS: dict[str, tuple[int, Callable[[Ints], tuple[Ints, Ints]]]] = {
    "": (1, lambda r: (_THREAD + 0 * r, r + 0 * _THREAD)),
    "16dp64bit": (1, lambda r: (_THREAD // 4 + 8 * (_THREAD % 2) + 0 * r, 2 * r + _THREAD // 2 % 2)),
    "16dp128bit": (2, lambda r: (_THREAD // 4 + 8 * (r % 2), _THREAD % 4 + 4 * (r // 2))),
    "16dp256bit": (4, lambda r: (_THREAD // 4 + 8 * (r // 2 % 2), 2 * (_THREAD % 4) + r % 2 + 8 * (r // 4))),
    "16dp32bit_t0_t15": (1, lambda r: (_THREAD % 16 + 0 * r, r + 0 * _THREAD)),
    "16dp32bit_t16_t31": (1, lambda r: (_THREAD % 16 + 0 * r, r + 0 * _THREAD)),
}
"""Registers of .x1, and lane and column of register r of each thread, by shape (none: 32 lanes of 32 bits)."""


@lru_cache(maxsize=64)
def fragment(modifiers: tuple[str, ...]) -> Fragment:
    """The fragment that the modifiers of a load or store describe. Raises UnsupportedInstructionError for others."""
    shape = next((m for m in modifiers if m.startswith("16dp")), "")
    packed = bool({"PACK16BIT", "EXPAND16BIT"} & set(modifiers))
    repeats = next((int(m[1:]) for m in modifiers if re.fullmatch(r"x\d+", m)), 1)
    if shape not in _FORMS or set(modifiers) - {shape, "PACK16BIT", "EXPAND16BIT", f"x{repeats}"}:
        raise UnsupportedInstructionError(f"modifiers {'.'.join(modifiers)}")
    each, place_of = _FORMS[shape]
    lanes, columns = place_of(np.arange(each * repeats, dtype=np.int64)[:, None])
    half = {"16dp32bit_t0_t15": _THREAD[0] < 16, "16dp32bit_t16_t31": _THREAD[0] >= 16}
    threads = half.get(shape, np.ones(LANES, np.bool_))
    return Fragment(lanes, columns, threads, 16 if shape else LANES, packed)


def _start(
    address: TensorAddress, f: Frame, row: int, at: tuple[int, int], form: Fragment, what: str
) -> tuple[int, int]:
    """The block of a warp, and the lane at which an access begins: in the warp's own quarter of tensor memory.

    An address in the first quarter stands for every warp's own. PTX asks for the warp's lanes; DeepGEMM's kernels
    (sm100_bf16_gemm.cuh) leave them out, since the hardware ignores these bits.
    """
    machine, warp, (lane, column) = f.machine, int(f.warps[row]), at
    quarter = warp % machine.warps_per_block % 4
    if lane // LANES not in (0, quarter) or lane % form.rows:
        whole = f"lane {LANES * quarter}" + ("" if form.rows == LANES else f" or {LANES * quarter + form.rows}")
        raise EmulationError(
            f"{address.where}: {what} tensor memory from lane {lane} on, {machine.thread_name(warp, 0)}: expected"
            f" {whole}, since warp {warp % machine.warps_per_block} of its block reaches lanes {LANES * quarter} to"
            f" {LANES * quarter + LANES - 1}"
        )
    block = machine.block_of(warp)
    address.check(machine, block, column, form.width, what)
    return block, lane % LANES + LANES * quarter


@opcode("LDTM", None)
def _load(d: Decoder, i: Instruction) -> Step:
    form = fragment(i.modifiers)
    count = len(form.lanes)
    address = tensor_address(d, i, i.operands[1])
    puts = [d.put(i.operands[0], part) for part in range(count)]

    def load(f: Frame) -> None:
        places, words = address.of(f), np.zeros((count, f.rows, LANES), np.uint32)
        for row in acting(f):
            block, lane = _start(address, f, row, places[row], form, "loads")
            column = places[row][1]
            held = f.machine.tensor.words[block]
            if form.packed:
                columns = column + 2 * form.columns
                low, high = held[columns, lane + form.lanes], held[columns + 1, lane + form.lanes]
                words[:, row] = low & np.uint32(0xFFFF) | high << np.uint32(16)
            elif form.rows == LANES:
                words[:, row] = held[column : column + count, lane : lane + LANES]
            else:
                words[:, row] = held[column + form.columns, lane + form.lanes]
        saved = None if form.threads.all() else f.narrow(f.lanes() & form.threads)
        for part, put in enumerate(puts):
            put(f, words[part])
        if saved is not None:
            f.restore(saved)

    return load


@opcode("STTM", None)
def _store(d: Decoder, i: Instruction) -> Step:
    form = fragment(i.modifiers)
    address, source = tensor_address(d, i, i.operands[0]), i.operands[1]
    if not isinstance(source, Register):
        raise UnsupportedInstructionError(f"operands {i.text}")
    sources = [d.raw(source, part) for part in range(len(form.lanes))]

    def store(f: Frame) -> None:
        places = address.of(f)
        words = np.stack([f.spread(fetch(f)) for fetch in sources])
        on = form.threads
        for row in acting(f):
            block, lane = _start(address, f, row, places[row], form, "stores to")
            column = places[row][1]
            held, lanes = f.machine.tensor.words[block], lane + form.lanes[:, on]
            values = words[:, row][:, on]
            if form.packed:
                columns = column + 2 * form.columns[:, on]
                held[columns, lanes] = values & np.uint32(0xFFFF)
                held[columns + 1, lanes] = values >> np.uint32(16)
            else:
                held[column + form.columns[:, on], lanes] = values

    return store
