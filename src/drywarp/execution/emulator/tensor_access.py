"""Loads and stores of tensor memory: LDTM and STTM move 32 lanes a warp, its own quarter, or 16 of them.

Register r of thread t is a lane and a column; where they are packed (or expanded), the low halves of two columns.
Source: PTX ISA, "Data movement shape", and the layouts by which CUTLASS describes these accesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import Instruction, Register
from .bits import LANES
from .decode import Decoder, Step, opcode
from .frame import Frame
from .tcgen05_form import TensorAddress, acting, tensor_address
from .tensor_operands import Ints

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
