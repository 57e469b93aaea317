"""Loads, stores and copies between the memories and registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.instruction import RZ, Address, Constant, Instruction, Operand, Predicate
from .access import Site
from .bits import LANES
from .constants import LOCAL_WINDOW, SHARED_WINDOW
from .decode import Decoder, Step, opcode, place
from .frame import Frame
from .machine import RANK_SHIFT
from .operands import ZERO, Fetch, Put, Value, constant, join
from .recorder import Recorder

HINTS = (
    "E CONSTANT EF EL LU NA STRONG WEAK SYS GPU SM CTA VC PRIVATE U BYPASS ACCESS LTC64B LTC128B LTC256B MMIO"
    " EVICT_FIRST EVICT_LAST"
)
WIDTHS = " U8 S8 U16 S16 64 128"
_WINDOW_SHIFT = np.uint64(32)
_WORD_SHIFT = np.uint32(2)
_SHARED_TOP = np.uint64(SHARED_WINDOW) >> _WINDOW_SHIFT
_LOCAL_TOP = np.uint64(LOCAL_WINDOW) >> _WINDOW_SHIFT

Load = Callable[[Frame, Value], Value]
Store = Callable[[Frame, Value, Value], None]


def address_of(operand: Operand) -> Address:
    """The memory operand; raises if it is of another kind."""
    if not isinstance(operand, Address):
        raise UnsupportedInstructionError(f"memory operand {operand}")
    if operand.symbol:
        raise UnsupportedInstructionError(f"unresolved symbol {operand.symbol} in an address; link the object first")
    return operand


def address32(d: Decoder, operand: Operand) -> Fetch:
    """32-bit addresses of shared and local memory: base * scale + uniform + offset, modulo 2^32."""
    a = address_of(operand)
    terms: list[Fetch] = []
    if a.base is not None and a.base.index != RZ:
        base, scale = d.register(a.base.index, a.base.uniform), np.uint32(a.scale)
        terms.append(base if a.scale == 1 else (lambda f: base(f) * scale))
    if a.uniform is not None and a.uniform.index != RZ:
        terms.append(d.register(a.uniform.index, True))
    offset = np.uint32(a.offset & 0xFFFFFFFF)
    return _sum_of(terms, offset)


def address64(d: Decoder, operand: Operand) -> Fetch:
    """64-bit addresses. A base is a register pair, marked or not, unless it is marked as 32-bit."""
    a = address_of(operand)
    offset = np.uint64(a.offset & 0xFFFFFFFFFFFFFFFF)
    terms: list[Fetch] = []
    if a.base is not None and a.base.index != RZ:
        if a.base_unsigned32:
            narrow = d.register(a.base.index)
            terms.append(lambda f: narrow(f).astype(np.uint64))
        else:
            low, high = d.register(a.base.index), d.register(a.base.index + 1)
            terms.append(lambda f: join(low(f), high(f)))
    if a.uniform is not None and a.uniform.index != RZ:
        uniform_low, uniform_high = d.register(a.uniform.index, True), d.register(a.uniform.index + 1, True)
        terms.append(lambda f: join(uniform_low(f), uniform_high(f)))
    return _sum_of(terms, offset)


def _sum_of(terms: Sequence[Fetch], offset: np.uint32 | np.uint64) -> Fetch:
    """The sum of at most two terms and an offset."""
    if not terms:
        return constant(offset)
    first = terms[0]
    if len(terms) == 2:
        second = terms[1]
        return lambda f: first(f) + second(f) + offset
    return (lambda f: first(f) + offset) if offset else first


def width_of(i: Instruction) -> int:
    """Bytes per lane of a load or store."""
    assert i.memory is not None
    return i.memory.width


def word_puts(d: Decoder, operand: Operand, width: int) -> list[Put]:
    """Writers of the consecutive registers that a vector load fills."""
    return [d.put(operand, part) for part in range(max(width // 4, 1))]


def word_sources(d: Decoder, operand: Operand, width: int) -> list[Fetch]:
    """The consecutive registers that a vector store reads; the zero register gives zeros."""
    return [d.raw(operand, part) for part in range(max(width // 4, 1))]


_EXTEND: dict[str, Callable[[Value], Value]] = {
    "U8": lambda v: v.astype(np.uint32),
    "S8": lambda v: v.view(np.int8).astype(np.int32).view(np.uint32),
    "U16": lambda v: v.astype(np.uint32),
    "S16": lambda v: v.view(np.int16).astype(np.int32).view(np.uint32),
}


def scatter_words(f: Frame, puts: list[Put], value: Value, extend: Callable[[Value], Value] | None) -> None:
    """Write loaded elements of any width, shape (rows, 32), into registers."""
    if extend is not None:
        puts[0](f, extend(value))
    elif len(puts) == 1:
        puts[0](f, value)
    else:
        words = value.view(np.uint32).reshape(f.rows, LANES, len(puts))
        for part, put in enumerate(puts):
            put(f, words[..., part])


def gather_words(f: Frame, sources: list[Fetch], width: int) -> Value:
    """Elements to be stored, shape (rows, 32), of `width` bytes each, from registers."""
    shape = (f.rows, LANES)
    if width <= 4:
        word = np.broadcast_to(sources[0](f), shape)
        return word if width == 4 else word.astype(np.uint8 if width == 1 else np.uint16)
    words = np.empty((*shape, len(sources)), np.uint32)
    for part, source in enumerate(sources):
        words[..., part] = source(f)
    return words.view(np.uint64 if width == 8 else np.complex128)[..., 0]


def put_elements(f: Frame, view: Any, index: Value, values: Value) -> None:
    """Store elements; if lanes hit the same place, the highest lane of the last warp wins."""
    if f.exec is None:
        view[index] = values
    else:
        view[index[f.exec]] = values[f.exec]


def _local_load(f: Frame, site: Site, addresses: Value) -> Value:
    word, byte = site.local_index(f, addresses)
    local, width = f.machine.local, site.width
    if width < 4:
        kind = np.uint8 if width == 1 else np.uint16
        return (local.take(word) >> (byte * 8).astype(np.uint32)).astype(kind)
    if width == 4:
        return local.take(word)
    words = np.empty((*word.shape, width // 4), np.uint32)
    for part in range(width // 4):
        words[..., part] = local.take(word + part * f.machine.threads)
    return words.view(np.uint64 if width == 8 else np.complex128)[..., 0]


def _local_store(f: Frame, site: Site, addresses: Value, values: Value) -> None:
    word, byte = site.local_index(f, addresses)
    local, width = f.machine.local, site.width
    if width < 4:
        shift = (byte * 8).astype(np.uint32)
        field = np.uint32((1 << 8 * width) - 1) << shift
        put_elements(f, local, word, local.take(word) & ~field | values.astype(np.uint32) << shift)
    elif width == 4:
        put_elements(f, local, word, values)
    else:
        words = np.ascontiguousarray(values).view(np.uint32).reshape(*word.shape, -1)
        for part in range(width // 4):
            put_elements(f, local, word + part * f.machine.threads, words[..., part])


def split_generic(f: Frame, addresses: Value) -> list[tuple[str, Any]]:
    """The spaces of generic addresses, with the lanes of each; None for all executing lanes.

    ``remote`` is the shared memory of other blocks of the cluster.
    """
    addresses = f.spread(addresses)
    top = addresses >> _WINDOW_SHIFT
    shared, local = top == _SHARED_TOP, top == _LOCAL_TOP
    lanes = f.lanes()
    spaces = {"shared": shared, "local": local, "global": ~(shared | local)}
    if f.machine.cluster_blocks > 1 and shared.any():
        own = (addresses.astype(np.uint32) ^ f.shared_first.astype(np.uint32)) >> np.uint32(RANK_SHIFT) == 0
        spaces |= {"shared": shared & own, "remote": shared & ~own}
    parts = [(name, where & lanes) for name, where in spaces.items() if (where & lanes).any()]
    return [(parts[0][0], None)] if len(parts) == 1 else parts


def in_each_space(f: Frame, addresses: Value, run: Callable[[str, Value], None]) -> None:
    """Perform an access for each space, with only that space's lanes executing."""
    for space, lanes in split_generic(f, addresses):
        local = addresses if space == "global" else np.asarray(addresses).astype(np.uint32)
        if lanes is None:
            run(space, local)
            continue
        saved = f.narrow(lanes)
        try:
            run(space, local)
        finally:
            f.restore(saved)


def load_from(f: Frame, site: Site, space: str, addresses: Value) -> Value:
    """Elements at addresses of one space, shape (rows, 32)."""
    if space == "local":
        return _local_load(f, site, addresses)
    if space == "shared":
        return f.machine.shared[site.width].take(site.shared_index(f, addresses))
    if space == "remote":
        return f.machine.shared[site.width].take(site.remote_index(f, addresses))
    return site.memory_view.take(site.global_index(f, addresses))


def store_to(f: Frame, site: Site, space: str, addresses: Value, values: Value) -> None:
    """Store elements, shape (rows, 32), at addresses of one space."""
    if space == "local":
        _local_store(f, site, addresses, values)
    elif space == "shared":
        put_elements(f, f.machine.shared[site.width], site.shared_index(f, addresses), values)
    elif space == "remote":
        put_elements(f, f.machine.shared[site.width], site.remote_index(f, addresses), values)
    else:
        put_elements(f, site.memory_view, site.global_index(f, addresses), values)


def address_for(d: Decoder, i: Instruction, operand: Operand) -> tuple[str, Fetch]:
    """The space of a memory instruction and its addresses."""
    assert i.memory is not None
    space = i.memory.space
    wide = space == "global" or (space == "generic" and "E" in i.modifiers)
    return space, address64(d, operand) if wide else address32(d, operand)


@opcode("LDG LDS LDL LD", HINTS + WIDTHS + " 256 ENL2")
def _load(d: Decoder, i: Instruction) -> Step:
    operands = [o for o in i.operands if not isinstance(o, Predicate)]
    width = width_of(i)
    if width == 32:
        return _load_wide(d, i, operands)
    site = Site(d, i, "load", width)
    space, addresses = address_for(d, i, operands[1])
    puts = word_puts(d, operands[0], width)
    extend = next((_EXTEND[n] for n in i.modifiers if n in _EXTEND), None)

    def load(f: Frame) -> None:
        scatter_words(f, puts, load_from(f, site, space, addresses(f)), extend)

    def load_generic(f: Frame) -> None:
        # Addresses are read once: the destination may be the address register.
        where = np.array(f.spread(addresses(f)))
        in_each_space(f, where, lambda found, local: scatter_words(f, puts, load_from(f, site, found, local), extend))

    return load_generic if space == "generic" else load


def _load_wide(d: Decoder, i: Instruction, operands: Sequence[Operand]) -> Step:
    """Loads of 256 bits: the first four registers are the upper half."""
    site, addresses = Site(d, i, "load", 32), address64(d, operands[2])
    halves = [word_puts(d, operand, 16) for operand in (operands[1], operands[0])]
    _only_global(i)

    def load(f: Frame) -> None:
        first = 2 * site.global_index(f, addresses(f))
        values = [site.memory_view.take(first + half) for half in range(2)]
        for puts, value in zip(halves, values, strict=True):
            scatter_words(f, puts, value, None)

    return load


def _store_wide(d: Decoder, i: Instruction) -> Step:
    """Stores of 256 bits: the first four registers are the lower half."""
    site, addresses = Site(d, i, "store", 32), address64(d, i.operands[0])
    halves = [word_sources(d, operand, 16) for operand in i.operands[1:3]]
    _only_global(i)

    def store(f: Frame) -> None:
        first = 2 * site.global_index(f, addresses(f))
        for half, sources in enumerate(halves):
            put_elements(f, site.memory_view, first + half, gather_words(f, sources, 16))

    return store


def _only_global(i: Instruction) -> None:
    if i.memory is None or i.memory.space != "global":
        raise UnsupportedInstructionError("256 bits of another memory than the global one")


@opcode("STG STS STL ST", HINTS + WIDTHS + " 256 ENL2")
def _store(d: Decoder, i: Instruction) -> Step:
    address_op, data_op = i.operands[:2]
    width = width_of(i)
    if width == 32:
        return _store_wide(d, i)
    site = Site(d, i, "store", width)
    space, addresses = address_for(d, i, address_op)
    sources = word_sources(d, data_op, width)

    def store(f: Frame) -> None:
        store_to(f, site, space, addresses(f), gather_words(f, sources, width))

    def store_generic(f: Frame) -> None:
        values = gather_words(f, sources, width)
        in_each_space(f, addresses(f), lambda found, local: store_to(f, site, found, local, values))

    return store_generic if space == "generic" else store


@opcode("LDGSTS", HINTS + WIDTHS + " ZFILL")
def _copy(d: Decoder, i: Instruction) -> Step:
    """Global to shared memory, done immediately; lanes whose source predicate is false store zeros.

    With .ZFILL the low bits of the source address are the number of bytes to omit at the element's end.
    """
    memory_operands = [o for o in i.operands if isinstance(o, Address)]
    predicates = [o for o in i.operands if isinstance(o, Predicate)]
    width = width_of(i)
    to_site, from_site = Site(d, i, "copy to shared memory", width), Site(d, i, "copy from global memory", width)
    to, source = address32(d, memory_operands[0]), address64(d, memory_operands[1])
    valid = d.predicate(predicates[-1]) if predicates else None
    partial = "ZFILL" in i.modifiers

    def fetch(f: Frame) -> Value:
        if not partial:
            return load_from(f, from_site, "global", source(f))
        where = f.spread(source(f))
        unused = where & np.uint64(width - 1)
        values = from_site.memory_view.take(from_site.global_index(f, where - unused, unused))
        data = values.view(np.uint8).reshape(*values.shape, width)
        data[np.arange(width, dtype=np.uint64) >= np.uint64(width) - unused[..., None]] = 0
        return values

    def copy(f: Frame) -> None:
        if valid is None:
            values = fetch(f)
        else:
            good = f.spread(valid(f)) & f.lanes()
            values = np.zeros((f.rows, LANES), from_site.memory_view.dtype)
            if good.any():
                saved = f.narrow(good)
                try:
                    values = np.where(good, fetch(f), values)
                finally:
                    f.restore(saved)
        store_to(f, to_site, "shared", to(f), values)

    return copy


@opcode("LDC ULDC LDCU", "U8 S8 U16 S16 64 128")
def _load_constant(d: Decoder, i: Instruction) -> Step:
    source = i.operands[1]
    if not isinstance(source, Constant) or source.bank_register is not None:
        raise UnsupportedInstructionError("a bindless constant")
    kind = next((n for n in i.modifiers), "")
    width = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}.get(kind, 4)
    puts = word_puts(d, i.operands[0], width)
    index = d.register(source.register.index, source.register.uniform) if source.register else constant(ZERO)
    bank, offset = d.banks.bank(source.bank), np.uint32(source.offset & 0xFFFFFFFF)
    where = _aligned(place(d.kernel, i), source.bank, width, lambda f: index(f) + offset)
    if source.register and source.register.index != RZ:
        where = _counted(d, i.pc // 16, where, source.register.uniform)
    if width < 4:
        narrow = bank if width == 1 else bank.view(np.uint16)
        extend, shift = _EXTEND[kind], np.uint32(width - 1)
        top = np.uint32(len(narrow) - 1)
        return lambda f: puts[0](f, extend(np.asarray(narrow[np.minimum(where(f) >> shift, top)])))
    words, last = bank.view(np.uint32), np.uint32(len(bank) // 4 - 1)
    two = np.uint32(2)

    def load(f: Frame) -> None:
        first = where(f) >> two
        values = [words[np.minimum(first + np.uint32(part), last)] for part in range(len(puts))]
        for put, value in zip(puts, values, strict=True):
            put(f, value)

    return load


def _aligned(at: str, bank: int, width: int, offset: Fetch) -> Fetch:
    """Offsets in a constant bank, which raise where an executing lane's is no multiple of the width."""
    low = np.uint32(width - 1)

    def checked(f: Frame) -> Value:
        where = offset(f)
        if (where & low).any() and (wrong := (f.spread(np.asarray(where & low)) != 0) & f.lanes()).any():
            row, lane = (int(x[0]) for x in np.nonzero(wrong))
            raise EmulationError(
                f"{at}: misaligned constant load of {width} bytes at address c[{bank:#x}]"
                f"[{int(f.spread(where)[row, lane]):#x}], {f.machine.thread_name(int(f.warps[row]), lane)}"
            )
        return where

    return checked


def _counted(d: Decoder, number: int, offset: Fetch, uniform: bool) -> Fetch:
    """Offsets in a constant bank; the different words that the lanes of a warp ask for are recorded."""
    recorder: Recorder | None = d.recorder
    if recorder is None:
        return offset

    def counted(f: Frame) -> Value:
        where = offset(f)
        each = f.spread(where >> _WORD_SHIFT)
        if uniform:
            recorder.constant(f, number, each[:, :1])
            return where
        leaders = each[np.arange(f.rows), f.leader() % LANES]
        recorder.constant(f, number, np.sort(np.where(f.lanes(), each, leaders[:, None]), axis=1))
        return where

    return counted


@opcode("QSPC", "E S G L C")
def _query_space(d: Decoder, i: Instruction) -> Step:
    """Whether generic addresses lie in shared, global or local memory."""
    wanted = {"S": "shared", "G": "global", "L": "local"}.get(next((m for m in i.modifiers if m != "E"), ""))
    predicates = [d.put_predicate(o) for o in i.operands if isinstance(o, Predicate)]
    addresses = address64(d, next(o for o in i.operands if isinstance(o, Address)))
    if wanted is None or not predicates:
        raise UnsupportedInstructionError("memory space")

    def query(f: Frame) -> None:
        where = f.spread(addresses(f))
        inside = np.zeros(where.shape, np.bool_)
        for space, lanes in split_generic(f, where):
            if space.replace("remote", "shared") == wanted:
                inside |= f.lanes() if lanes is None else lanes
        predicates[0](f, inside)

    return query
