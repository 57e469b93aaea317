"""Copies by the copy engine: bulk copies of a run of bytes, tensor copies of a box that a tensor map describes.

One warp instruction moves all the data, and here it does so immediately: programs must not rely on when. Operands are
uniform registers: [UR] and the next one are an address in shared memory and the barrier that receives the byte count,
or an address in global memory; the size is in units of 16 bytes in its low half. With MULTICAST its high half is a mask
of ranks: each of these blocks of the cluster receives the data, and the byte count at its barrier, at the same places
as the block that copies. With 2CTA (cta_group::2) the barrier may be that of either block of the receiver's pair. An
address in the shared memory of a cluster begins with the rank of a block. The address (and the barrier) of a tensor
copy are followed by its coordinates, fastest dimension first. Where a load from an im2col map reads beside its pixels
stands below that mask: 16 bits for one spatial dimension, 8 for each of two, 5 of three.
Reductions compute in the buffer's type, floats in float64 and rounded once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import RZ, Address, Instruction, Operand, Register
from ...kernel.launch.launch import DTYPES, MAP_BYTES
from .bits import LANES
from .content import numpy_dtype
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .half import double_to_bf16
from .machine import RANK_SHIFT
from .mbarrier import BarrierWords
from .operands import Fetch, join
from .tensor_maps import ROWS, Box, TensorView, box_of, decode, rows_of, swizzled

PIECE = 16
"""Bytes that the copy engine moves together."""
UNREAD = "UNREAD"
"""A modifier of ours: nothing reads what is copied, so that only the accesses and the signals count."""
Bytes = npt.NDArray[np.uint8]


class Site:
    """One copy instruction: its memory accesses and its error messages."""

    def __init__(self, d: Decoder, i: Instruction) -> None:
        self.memory, self.recorder = d.memory, d.recorder
        self.number, self.where = i.pc // 16, place(d.kernel, i)
        self._arena = d.memory.views[1]

    def span(self, f: Frame, row: int, address: int, size: int, what: str) -> Bytes:
        """The bytes of a run in global memory as a view. Raises EmulationError if the run leaves its buffer."""
        self._aligned(f, row, address, "global")
        self._check(f, row, address, size, what)
        start = address - self.memory.start
        return self._arena[start : start + size]

    def _check(self, f: Frame, row: int, address: int, size: int, what: str) -> None:
        found = int(self.memory.region_of(np.array([address], np.uint64), np.uint64(size))[0])
        if found < 0:
            nearest = self.memory.describe(address, size)
            raise EmulationError(
                f"{self.where}: {what} of {size} bytes out of bounds at address {address:#x},"
                f" {self._thread(f, row)}: {nearest}"
            )
        region = self.memory.regions[found]
        first = np.uint64(address) - region.base
        self.memory.prepare(region, np.arange(first, first + np.uint64(size), 4096, dtype=np.uint64))
        self.memory.prepare(region, np.array([first + np.uint64(size - 1)], np.uint64))

    def shared(self, f: Frame, row: int, address: int, size: int) -> int:
        """Where a run in the shared memory of a block of the cluster begins in the byte view."""
        self._aligned(f, row, address, "shared")
        machine = f.machine
        block, offset = machine.owner(int(f.warps[row]), address)
        if block < 0 or offset + size > machine.shared_bytes:
            blocks = f", the cluster {machine.cluster_blocks} blocks" if machine.cluster_blocks > 1 else ""
            raise EmulationError(
                f"{self.where}: copy of {size} bytes out of bounds at shared address {address:#x},"
                f" {self._thread(f, row)}: the block has {machine.shared_bytes} bytes of shared memory{blocks}"
            )
        return block * machine.shared_stride + offset

    def receivers(self, f: Frame, row: int, mask: int) -> list[int]:
        """What a multicast adds to the addresses of its copy for each block of the cluster that receives it."""
        ranks = [rank for rank in range(16) if mask >> rank & 1]
        if not ranks or ranks[-1] >= f.machine.cluster_blocks:
            raise EmulationError(
                f"{self.where}: a copy to the blocks in the mask {mask:#x}, {self._thread(f, row)}: expected some of"
                f" the cluster's {f.machine.cluster_blocks} blocks (--cluster X,Y,Z states its size)"
            )
        return [(rank << RANK_SHIFT) - int(f.machine.shared_first[f.warps[row]]) for rank in ranks]

    def places(self, f: Frame, row: int, address: int, box: Box, view: TensorView) -> npt.NDArray[np.int64]:
        """Where the units of a box lie in shared memory's view of their width; the block's addresses permute them."""
        start = self.shared(f, row, address, view.room(box.size))
        own = address + view.apart(np.arange(0, box.size, box.unit, dtype=np.int64))
        return (swizzled(own, view.swizzle) + (start - address)) // box.unit

    def _aligned(self, f: Frame, row: int, address: int, space: str) -> None:
        if address % PIECE:
            raise EmulationError(
                f"{self.where}: {space} address {address:#x} of a copy: expected a multiple of {PIECE},"
                f" {self._thread(f, row)}"
            )

    def _thread(self, f: Frame, row: int) -> str:
        return f.machine.thread_name(int(f.warps[row]), int(f.leader()[row]))

    def record(self, f: Frame, row: int, addresses: npt.NDArray[np.int64]) -> None:
        """Record the 16-byte pieces of global memory that a copy touches, 32 per request."""
        count = -(-len(addresses) // LANES)
        padded = np.zeros(count * LANES, np.int64)
        padded[: len(addresses)] = addresses
        lanes = np.arange(count * LANES) < len(addresses)
        shape = (count, LANES)
        self.recorder.rows(self.number, int(f.warps[row]), padded.reshape(shape), lanes.reshape(shape))


def uniform_registers(operand: Operand, count: int) -> list[Register]:
    """The consecutive uniform registers starting at the one that a memory operand names.

    Raises UnsupportedInstructionError for other operands.
    """
    register = operand.uniform if isinstance(operand, Address) else operand
    if not isinstance(register, Register) or not register.uniform or (isinstance(operand, Address) and operand.offset):
        raise UnsupportedInstructionError(f"operand {operand} of a copy")
    step = int(register.index != RZ)
    return [Register(register.index + step * part, True) for part in range(count)]


def _uniform(d: Decoder, operand: Operand, count: int) -> list[Fetch]:
    return [d.register(register.index, True) for register in uniform_registers(operand, count)]


def _words(f: Frame, fetches: list[Fetch]) -> npt.NDArray[np.uint32]:
    """Words of uniform registers, shape (rows, registers)."""
    return np.concatenate([np.broadcast_to(fetch(f), (f.rows, 1)) for fetch in fetches], axis=1)


def _acting(f: Frame) -> list[int]:
    return [int(row) for row in np.flatnonzero(f.words())]


def _pair(words: npt.NDArray[np.uint32], row: int) -> int:
    return int(join(words[row, 0], words[row, 1]))


def run_bytes(word: int) -> int:
    """Bytes of a run, by the word that holds its size."""
    return (word & 0xFFFF) * PIECE


@opcode("UBLKCP", f"S G MULTICAST {UNREAD}")
def _bulk_copy(d: Decoder, i: Instruction) -> Step:
    ends = i.modifiers[:2]
    site = Site(d, i)
    to, source, size = _uniform(d, i.operands[0], 2), _uniform(d, i.operands[1], 2), _uniform(d, i.operands[2], 1)
    if ends not in (("S", "G"), ("G", "S"), ("S", "S")):
        raise UnsupportedInstructionError(f"modifiers {'.'.join(i.modifiers)}")
    multicast, unread = (name in i.modifiers for name in ("MULTICAST", UNREAD))

    def copy(f: Frame) -> None:
        to_words, from_words, sizes = _words(f, to), _words(f, source), _words(f, size)
        shared = f.machine.shared[1]
        for row in _acting(f):
            count = run_bytes(int(sizes[row, 0]))
            if not count:
                continue
            if ends == ("G", "S"):
                at = site.shared(f, row, int(from_words[row, 0]), count)
                address = _pair(to_words, row)
                site.span(f, row, address, count, "bulk copy to global memory")[...] = shared[at : at + count]
                site.record(f, row, np.arange(address, address + count, PIECE, dtype=np.int64))
                continue
            if ends == ("S", "S"):
                begin = site.shared(f, row, int(from_words[row, 0]), count)
                data = shared[begin : begin + count].copy()
            else:
                address = _pair(from_words, row)
                data = site.span(f, row, address, count, "bulk copy from global memory")
                site.record(f, row, np.arange(address, address + count, PIECE, dtype=np.int64))
            for further in site.receivers(f, row, int(sizes[row, 0]) >> 16) if multicast else (0,):
                at = site.shared(f, row, int(to_words[row, 0]) + further, count)
                if unread:
                    f.machine.leave_out(at, count, site.recorder.logged)
                else:
                    shared[at : at + count] = data
                _complete(f, site, row, int(to_words[row, 1]) + further, count)

    return copy


def _complete(f: Frame, site: Site, row: int, barrier: int, count: int) -> None:
    """Report to a barrier that this many bytes have arrived."""
    BarrierWords(f.machine, site.recorder, site.where).add(int(f.warps[row]), barrier, site.number, 0, -count)


@opcode("UGETNEXTWORKID", "SELFCAST BROADCAST")
def _next_work(d: Decoder, i: Instruction) -> Step:
    """Ask for a cluster that has not started, to do its work (clusterlaunchcontrol.try_cancel).

    Bit 64 of the 16 bytes says that one was taken; its first block's x, y and z stand below, in 32, 16 and 16 bits. If
    every cluster of the launch starts, none is left; a program has to expect that. If only some do (`Launch.starts`),
    each takes over its share of the others in turn, as if all worked equally long. `BROADCAST`
    (multicast::cluster::all) answers every block of the cluster, at the same places in its shared memory.
    """
    site, broadcast = Site(d, i), "BROADCAST" in i.modifiers
    answer, barrier = _uniform(d, i.operands[0], 1), _uniform(d, i.operands[1], 1)

    def ask(f: Frame) -> None:
        answers, barriers = _words(f, answer), _words(f, barrier)
        for row in _acting(f):
            everyone = (1 << f.machine.cluster_blocks) - 1
            told = _taken_over(f, row)
            for further in site.receivers(f, row, everyone) if broadcast else (0,):
                at = site.shared(f, row, int(answers[row, 0]) + further, 16)
                f.machine.shared[1][at : at + 16] = np.frombuffer(told, np.uint8)
                _complete(f, site, row, int(barriers[row, 0]) + further, 16)

    return ask


def _taken_over(f: Frame, row: int) -> bytes:
    """The answer to a cluster that asks for another one: what it takes over, if any is left."""
    machine, launch = f.machine, f.machine.launch
    own = launch.cluster_of(machine.blocks[int(f.warps[row]) // machine.warps_per_block])
    total = math.prod(launch.clusters)
    starts = launch.starts or total
    taken = own + starts * (machine.taken[own] + 1)
    if starts == total:
        machine.notes.add("the kernel takes over blocks that have not started; here each block does its own work")
    else:
        unit = "blocks" if launch.cluster_blocks == 1 else "clusters"
        machine.notes.add(
            f"cluster launch control: the {starts:,} {unit} that start take over the other {total - starts:,} in turn;"
            " on a GPU, whichever asks first gets the next"
        )
    if taken >= total:
        machine.told_none.add(own)
        return bytes(16)
    machine.taken[own] += 1
    return struct.pack("<I2H2I", *launch.first_block(taken), 1, 0)


# Tensor copies ------------------------------------------------------------------------------------


@opcode("UTMALDG", f"1D 2D 3D 4D 5D IM2COL GATHER4 MULTICAST 2CTA {UNREAD}")
def _tensor_load(d: Decoder, i: Instruction) -> Step:
    """A box from global to shared memory; what lies outside the tensor is filled."""
    site, rank, apart = Site(d, i), int(i.modifiers[0][0]), "GATHER4" in i.modifiers
    to, held = _uniform(d, i.operands[0], 2 + (ROWS + 1 if apart else rank)), _uniform(d, i.operands[1], 2)
    columns, multicast, paired, unread = (name in i.modifiers for name in ("IM2COL", "MULTICAST", "2CTA", UNREAD))
    more = _uniform(d, i.operands[2], 1) if columns or multicast else None

    def load(f: Frame) -> None:
        words, maps = _words(f, to), _words(f, held)
        further_words = _words(f, more) if more is not None else np.zeros((f.rows, 1), np.uint32)
        for row in _acting(f):
            view, beside = _view(site, f, row, _pair(maps, row), rank, columns), int(further_words[row, 0])
            box = (_rows if apart else _box)(site, f, row, view, words[row, 2:], beside & 0xFFFF)
            if not unread:
                data = _outside(view, box)
                data[box.places] = site.memory.views[box.unit][_units(site, box)]
            site.record(f, row, box.pieces)
            first, barrier = int(words[row, 0]), int(words[row, 1])
            for further in site.receivers(f, row, beside >> 16) if multicast else (0,):
                if unread:
                    room = view.room(box.size)
                    f.machine.leave_out(site.shared(f, row, first + further, room), room, site.recorder.logged)
                else:
                    places = site.places(f, row, first + further, box, view)
                    f.machine.shared[box.unit][places] = data
                signalled = _of_pair(barrier, first + further) if paired else barrier + further
                _complete(f, site, row, signalled, box.size)

    return load


def _of_pair(barrier: int, to: int) -> int:
    """The barrier at the same place, with the same parity of rank, in the pair of blocks that receives the data."""
    low = (2 << RANK_SHIFT) - 1
    return to & ~low | barrier & low


@opcode("UTMASTG", "1D 2D 3D 4D 5D IM2COL SCATTER4")
def _tensor_store(d: Decoder, i: Instruction) -> Step:
    """A box from shared to global memory; what lies outside the tensor is dropped."""

    def put(view: TensorView, old: Any, new: Any) -> Any:
        return new

    return _to_tensor(d, i, put)


@opcode("UTMAREDG", "1D 2D 3D 4D 5D IM2COL ADD MIN MAX AND OR XOR")
def _tensor_reduce(d: Decoder, i: Instruction) -> Step:
    """A box of shared memory combined into global memory."""
    name = next(m for m in i.modifiers if m in _INTEGERS)

    def put(view: TensorView, old: Any, new: Any) -> Any:
        return combined(name, view.dtype, old, new)

    return _to_tensor(d, i, put)


def _to_tensor(d: Decoder, i: Instruction, put: Callable[[TensorView, Any, Any], Any]) -> Step:
    site, rank, apart = Site(d, i), int(i.modifiers[0][0]), "SCATTER4" in i.modifiers
    source, held = _uniform(d, i.operands[0], 1 + (ROWS + 1 if apart else rank)), _uniform(d, i.operands[1], 2)
    columns, reduces = "IM2COL" in i.modifiers, i.opcode == "UTMAREDG"

    def store(f: Frame) -> None:
        words, maps = _words(f, source), _words(f, held)
        for row in _acting(f):
            view = _view(site, f, row, _pair(maps, row), rank, columns)
            box = (_rows if apart else _box)(site, f, row, view, words[row, 1:])
            if view.bits < 8 and (reduces or (view.padded and view.bits == 4)):
                raise EmulationError(f"{site.where}: a map of {view.bits}-bit elements, which no such copy takes")
            data = (_squeezed if view.padded else _dense)(site, f, row, int(words[row, 0]), box, view)
            memory, targets = site.memory.views[box.unit], _units(site, box)
            memory[targets] = put(view, memory[targets], data[box.places])
            site.record(f, row, box.pieces)

    return store


def _dense(site: Site, f: Frame, row: int, address: int, box: Box, view: TensorView) -> Any:
    """The units of a box that lies in shared memory as in global memory, but for the permutation."""
    return f.machine.shared[box.unit][site.places(f, row, address, box, view)]


def _squeezed(site: Site, f: Frame, row: int, address: int, box: Box, view: TensorView) -> Any:
    """The units of a box whose 6-bit elements have a byte each in shared memory (.b6p2x16)."""
    pieces = replace(box, unit=PIECE, size=view.room(box.size))
    places = site.places(f, row, address, pieces, replace(view, padded=False))
    elements = f.machine.shared[PIECE][places].view(np.uint8).reshape(-1, PIECE, 1)
    bits = np.unpackbits(elements, axis=2, count=view.bits, bitorder="little")
    return np.packbits(bits.reshape(len(bits), -1), axis=1, bitorder="little").reshape(-1).view(np.uint32)


def _view(site: Site, f: Frame, row: int, address: int, rank: int, columns: bool) -> TensorView:
    found = int(site.memory.region_of(np.array([address], np.uint64), np.uint64(MAP_BYTES))[0])
    if found < 0:
        raise EmulationError(
            f"{site.where}: tensor map at address {address:#x}: expected one passed by value, as a"
            " `const __grid_constant__ CUtensorMap` parameter, or in device memory, as `const CUtensorMap*`"
        )
    region = site.memory.regions[found]
    start = address - region.start
    view = decode(site.memory.bytes_of(region)[start : start + MAP_BYTES].tobytes(), site.where)
    if len(view.extents) != rank:
        raise EmulationError(f"{site.where}: a {rank}D copy through a {len(view.extents)}D tensor map")
    if columns != bool(view.lower):
        kinds = ("an im2col", "a tiled") if columns else ("a tiled", "an im2col")
        raise EmulationError(f"{site.where}: {kinds[0]} copy through {kinds[1]} tensor map")
    return view


def _box(
    site: Site, f: Frame, row: int, view: TensorView, coordinates: npt.NDArray[np.uint32], offsets: int = 0
) -> Box:
    box = box_of(view, coordinates.view(np.int32).tolist(), offsets)
    _reach(site, f, row, box)
    return box


def _rows(
    site: Site, f: Frame, row: int, view: TensorView, coordinates: npt.NDArray[np.uint32], offsets: int = 0
) -> Box:
    if view.box[1] != 1:
        raise EmulationError(f"{site.where}: a copy of four rows through boxes of {view.box[1]} rows: expected one")
    box = rows_of(view, coordinates.view(np.int32).tolist())
    _reach(site, f, row, box)
    return box


def _reach(site: Site, f: Frame, row: int, box: Box) -> None:
    """Raises EmulationError if the box leaves its buffer."""
    if len(box.sources):
        low, high = int(box.sources.min()), int(box.sources.max())
        site._check(f, row, low, high - low + 1, "tensor copy")


def _units(site: Site, box: Box) -> npt.NDArray[np.int64]:
    """Where a box's units lie in the arena's view of their width."""
    return (box.sources - site.memory.start) // box.unit


def _outside(view: TensorView, box: Box) -> Any:
    """The units of a box of which nothing lies within the tensor."""
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}[box.unit]
    if not view.nan:
        return np.zeros(box.size // box.unit, kind)
    bits = {"f16": (np.uint16, 0x7FFF), "bf16": (np.uint16, 0x7FFF), "f32": (np.uint32, 0x7FFFFFFF)}
    element, word = bits.get(view.dtype, (np.uint64, 0x7FFFFFFFFFFFFFFF))
    return np.full(box.size // view.element_bytes, word, element).view(kind)


# Reductions ---------------------------------------------------------------------------------------

_INTEGERS: dict[str, Callable[..., Any]] = {
    "ADD": np.add, "MIN": np.minimum, "MAX": np.maximum,
    "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
}  # fmt: skip


def combined(operation: str, dtype: str, old: Any, new: Any) -> Any:
    """Elements of `dtype` reduced by ``ADD``, ``MIN``, …; given and returned in the units in which they come."""
    kind = numpy_dtype(dtype)
    left, right = (np.ascontiguousarray(part).view(kind) for part in (old, new))
    function = _INTEGERS[operation]
    if DTYPES[dtype][0].startswith(("float", "bfloat")) and operation in ("AND", "OR", "XOR"):
        raise UnsupportedInstructionError(f"{operation} of {dtype}")
    if dtype == "bf16":
        wide = [(bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64) for bits in (left, right)]
        result: Any = double_to_bf16(function(*wide))
    elif dtype in ("f16", "f32"):
        result = function(left.astype(np.float64), right.astype(np.float64)).astype(kind)
    else:
        result = function(left, right)
    return np.ascontiguousarray(result).view(old.dtype)


_REDUCED = {
    "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64", "S32": "i32", "S64": "i64", "U32": "u32", "U64": "u64",
}  # fmt: skip


@opcode("UBLKRED", "G S ADD MIN MAX AND OR XOR RN FTZ NOFTZ " + " ".join(_REDUCED))
def _bulk_reduce(d: Decoder, i: Instruction) -> Step:
    """A run of shared memory combined into global memory."""
    if i.modifiers[:2] != ("G", "S"):
        raise UnsupportedInstructionError(f"modifiers {'.'.join(i.modifiers)}")
    operation = next((m for m in i.modifiers if m in _INTEGERS), "")
    # Without a type the elements are 32-bit words.
    dtype = _REDUCED[next((m for m in i.modifiers if m in _REDUCED), "U32")]
    site = Site(d, i)
    to, source, size = _uniform(d, i.operands[0], 2), _uniform(d, i.operands[1], 1), _uniform(d, i.operands[2], 1)

    def reduce(f: Frame) -> None:
        to_words, from_words, sizes = _words(f, to), _words(f, source), _words(f, size)
        for row in _acting(f):
            count, address = run_bytes(int(sizes[row, 0])), _pair(to_words, row)
            if count:
                at = site.shared(f, row, int(from_words[row, 0]), count)
                target = site.span(f, row, address, count, "bulk reduction")
                target[...] = combined(operation, dtype, target.copy(), f.machine.shared[1][at : at + count].copy())
                site.record(f, row, np.arange(address, address + count, PIECE, dtype=np.int64))

    return reduce


@opcode("UTMAPF UBLKPF", None)
def _prefetch(d: Decoder, i: Instruction) -> Step:
    """Prefetches into the L2 have no result."""
    return lambda f: None
