"""The registers and predicates that an instruction reads and writes.

Widths are not in the text; they follow from the opcode. A place is a pair (file, index) with the files ``R``, ``UR``,
``P`` and ``UP`` (for AMD GPUs, see `amd.registers`). Zero registers and true predicates are not places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...instruction import PT, RZ, Address, Constant, Instruction, MemoryAccess, Operand, Predicate, Register, Special
from ..amd import is_amd
from ..amd.registers import reads_and_writes
from .opcodes import OPCODES, giving, having
from .texture_operands import FETCHES, SURFACE_ACCESSES, surface_operands, texture_operands

Place = tuple[str, int]
PREDICATES = 7


@dataclass(frozen=True, slots=True)
class Accessed:
    """Places that an instruction reads and writes. A guarded instruction may not perform its writes."""

    reads: frozenset[Place]
    writes: frozenset[Place]


_NO_RESULT, _ALL_RESULTS = giving("none"), giving("all")
_SET_PREDICATES = {name: int(row.results[1:]) for name, row in OPCODES.items() if row.results.startswith("P")}
_PACKED_SINGLE, _DOUBLE = having("packed"), having("pairs")
_SIZED, _OF_SIZE, _TWO, _CONVERTS = (having(trait) for trait in ("sized", "of_size", "two", "converts"))


def accessed(instruction: Instruction) -> Accessed:
    """The places that one instruction reads and writes."""
    if is_amd(instruction.opcode):
        read, written = reads_and_writes(instruction)
        return Accessed(frozenset(read), frozenset(written))
    if instruction.opcode in FETCHES or instruction.opcode in SURFACE_ACCESSES:
        return _texture_access(instruction)
    results, sources = _split(instruction)
    writes: set[Place] = set()
    reads: set[Place] = set()
    for operand in results:
        writes.update(_places(operand, _result_width(instruction)))
    for position, operand in enumerate(sources):
        reads.update(_places(operand, _source_width(instruction, operand, position)))
    if instruction.class_ == "bulk_copy":
        reads.update(_copied(instruction))
    if instruction.opcode == "R2P":
        writes.update(("P", n) for n in range(PREDICATES))
    if instruction.guard is not None:
        reads.update(_places(instruction.guard, 1))
    return Accessed(frozenset(reads), frozenset(writes))


def operand_registers(instruction: Instruction) -> Iterator[tuple[Register, int]]:
    """Source operands that are per-thread registers, in order, and the number of consecutive registers of each."""
    for position, operand in enumerate(_split(instruction)[1]):
        if isinstance(operand, Register) and not operand.uniform:
            yield operand, _source_width(instruction, operand, position)


def written(instruction: Instruction) -> frozenset[Place]:
    """The places that one instruction writes: the writes of `accessed`, computed faster."""
    opcode = instruction.opcode
    if is_amd(opcode) or opcode in FETCHES or opcode in SURFACE_ACCESSES or opcode == "R2P":
        return accessed(instruction).writes
    width = _result_width(instruction)
    return frozenset(place for operand in _split(instruction)[0] for place in _places(operand, width))


def address_places(instruction: Instruction) -> set[Place]:
    """Registers in a memory instruction's addresses and its guard.

    A base may be a pair even if not marked as one, but for shared and local memory, whose addresses have 32 bits.
    """
    places: set[Place] = set()
    memory = instruction.memory
    words = 1 if memory is not None and memory.space in ("shared", "local") else 2
    for operand in instruction.operands:
        if isinstance(operand, Address):
            for register in (operand.base, operand.uniform):
                if isinstance(register, Register):
                    name = "UR" if register.uniform else "R"
                    places.update((name, register.index + word) for word in range(words))
    if instruction.guard is not None:
        places.add(("UP" if instruction.guard.uniform else "P", instruction.guard.index))
    return places


def _texture_access(instruction: Instruction) -> Accessed:
    """Places of a texture or surface access; an access of unknown form reads all registers that it names."""
    known = texture_operands(instruction) if instruction.opcode in FETCHES else surface_operands(instruction)
    guard = [instruction.guard] if instruction.guard is not None else []
    if known is None:
        named: list[Operand] = [*instruction.operands, *guard]
        return Accessed(frozenset(place for operand in named for place in _places(operand, 1)), frozenset())
    layer = [known.layer] if known.layer is not None else []
    absent = [known.absent] if known.absent is not None else []
    sources: list[Operand] = [*known.coordinates, *layer, known.handle, *known.others, *guard]
    results: list[Operand] = [*known.results, *absent]
    reads, writes = ({place for operand in part for place in _places(operand, 1)} for part in (sources, results))
    return Accessed(frozenset(reads), frozenset(writes))


def _split(instruction: Instruction) -> tuple[list[Operand], list[Operand]]:
    """Operands that receive results, and those that are read."""
    operands = list(instruction.operands)
    opcode = instruction.opcode
    if opcode in _NO_RESULT:
        return [], operands
    if opcode in _SET_PREDICATES:
        count = _SET_PREDICATES[opcode]
        return operands[:count], operands[count:]
    if opcode in _ALL_RESULTS:
        return operands, []
    at = 0
    while at < len(operands) and isinstance(operands[at], Predicate):
        at += 1
    if at == len(operands):
        return operands[:1], operands[1:]
    if isinstance(operands[at], Register):
        # A load of 256 bits names two groups of four registers.
        at += 1 + (opcode == "LDG" and "256" in instruction.modifiers)
    # Carry-outs come between the result and the sources; a source predicate comes last.
    while at + 1 < len(operands) and isinstance(operands[at], Predicate) and _is_carry_out(opcode, operands, at):
        at += 1
    return operands[:at], operands[at:]


def _is_carry_out(opcode: str, operands: list[Operand], at: int) -> bool:
    predicate = operands[at]
    if isinstance(predicate, Predicate) and predicate.index < 0:
        return False
    if opcode in ("VOTE", "VOTEU"):
        return isinstance(operands[at + 1], Predicate)
    return not all(isinstance(o, Predicate) for o in operands[at:])


def _words(memory: MemoryAccess) -> int:
    """Consecutive registers of an access: of 256 bits there are two groups."""
    return min(max(1, memory.width // 4), 4)


def _result_width(instruction: Instruction) -> int:
    """Number of consecutive registers of a result."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if instruction.memory is not None and instruction.memory.kind in ("load", "atomic"):
        if opcode == "LDSM":
            return next((int(m) for m in modifiers if m in ("1", "2", "4")), 1)
        return _words(instruction.memory)
    if opcode in _DOUBLE or opcode in _PACKED_SINGLE or (opcode in ("IMAD", "UIMAD") and modifiers[:1] == ("WIDE",)):
        return 2
    if opcode in _SIZED:
        return 4 if "128" in modifiers else 2 if {"64", "S64", "U64"} & set(modifiers) else 1
    if opcode in _TWO:
        return 1 if "32" in modifiers else 2
    if opcode in _CONVERTS:
        # The result type comes first, unless an integer one is omitted: F2I.S64.F64, I2F.F64.S32.
        wide = ("F64",) if opcode in ("F2F", "I2F", "FRND") else ("S64", "U64")
        return 2 if modifiers[:1] and modifiers[0] in wide else 1
    if opcode == "LDTM":
        return moved_registers(instruction)
    return _tensor_widths(instruction)[0] if instruction.class_ in ("tensor", "wgmma") else 1


def _source_width(instruction: Instruction, operand: Operand, position: int) -> int:
    """Number of consecutive registers of a source; `position` is its index among the sources."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _PACKED_SINGLE:
        return 2 if isinstance(operand, Register) and operand.select.startswith("F32x2") else 1
    if isinstance(operand, Register) and operand.uniform:
        wide = {"64", "S64", "U64"} & set(modifiers)
        return 2 if opcode in _DOUBLE or wide or (position == 2 and modifiers[:1] in (("WIDE",), ("HI",))) else 1
    if opcode == "STSM":
        return next((int(m) for m in modifiers if m in ("1", "2", "4")), 1)
    if opcode == "STTM":
        return moved_registers(instruction)
    if instruction.memory is not None and instruction.memory.kind != "load":
        return _words(instruction.memory)
    if opcode in _DOUBLE:
        return 2
    if opcode in ("IMAD", "UIMAD") and position == 2 and modifiers[:1] in (("WIDE",), ("HI",)):
        return 2
    if opcode in _CONVERTS:
        wide_source = {"F2F": ("F64",), "F2I": ("F64",), "I2F": ("S64", "U64"), "FRND": ("F64",)}[opcode]
        named = modifiers if opcode in ("FRND", "F2I") else modifiers[1:]
        return 2 if any(m in wide_source for m in named) else 1
    if opcode in _OF_SIZE and {"64", "S64", "U64"} & set(modifiers):
        return 2
    if instruction.class_ == "tensor":
        # The metadata of a sparse operand follows the accumulator, in a pair with the first operand's scale factors.
        pair = position == 3 and "SP" in modifiers and "SF" in modifiers
        return _tensor_widths(instruction)[1 + position] if position < 3 else 1 + pair
    if instruction.class_ == "wgmma" and isinstance(operand, Register):
        # If the first operand is not in registers, the descriptors come first.
        sources = [o for o in _split(instruction)[1] if isinstance(o, Register | Address)]
        if operand is sources[-1] and "SP" in modifiers:
            return 1
        return 4 if position == 0 else _tensor_widths(instruction)[0]
    return 2 if opcode == "SYNCS" and "EXCH" in modifiers else 1


_TENSOR_FORMS = {"16dp128bit": 2, "16dp256bit": 4}
"""Registers that the shapes of a tensor-memory access move for each .x1; 1 for all others."""


def moved_registers(instruction: Instruction) -> int:
    """Registers of a thread that a load from or store to tensor memory moves."""
    each = next((_TENSOR_FORMS[m] for m in instruction.modifiers if m in _TENSOR_FORMS), 1)
    return each * next((int(m[1:]) for m in instruction.modifiers if m[0] == "x" and m[1:].isdigit()), 1)


def _copied(instruction: Instruction) -> Iterator[Place]:
    """Uniform registers in a bulk copy's memory operands: addresses, barrier and coordinates."""
    modifiers = instruction.modifiers
    rank = next((int(m[0]) for m in modifiers if m in ("1D", "2D", "3D", "4D", "5D")), 0)
    if {"GATHER4", "SCATTER4"} & set(modifiers):
        rank = 5  # a column and four rows
    first = {"UTMALDG": 2 + rank, "UTMASTG": 1 + rank, "UTMAREDG": 1 + rank, "UTMAPF": rank}.get(instruction.opcode, 2)
    memory = [o for o in instruction.operands if isinstance(o, Address) and o.uniform is not None]
    for operand, width in zip(memory, (first, 2), strict=False):
        if operand.uniform is not None:
            yield from _places(operand.uniform, width)


_MATRIX_SHAPE = re.compile(r"(16|8)x?8x?(\d+)|(64|128|256)x(\d+)x(\d+)")
_ELEMENT_BITS = {"F64": 64, "TF32": 32, "S8": 8, "U8": 8, "E4M3": 8, "E5M2": 8, "S4": 4, "U4": 4, "E2M1": 4}


@dataclass(frozen=True, slots=True)
class MatrixForm:
    """The shape of a warp's matrix instruction, or a warp group's, and the bits of its elements."""

    rows: int
    columns: int
    depth: int
    element_bits: int
    sparse: bool

    @property
    def multiplications(self) -> int:
        """Multiply-adds that are done: a sparse first operand skips half of them."""
        return self.rows * self.columns * self.depth // (1 + self.sparse)


def matrix_form(instruction: Instruction) -> MatrixForm | None:
    """The form of an NVIDIA matrix instruction (`MMA` or `GMMA`); None if its shape is not spelled as others are."""
    found = next((m for m in map(_MATRIX_SHAPE.fullmatch, instruction.modifiers) if m), None)
    if found is None:
        return None
    usual = {"DMMA": 64, "BMMA": 1, "BGMMA": 1, "QMMA": 8, "OMMA": 4}.get(instruction.opcode, 16)
    bits = next((_ELEMENT_BITS[m] for m in instruction.modifiers if m in _ELEMENT_BITS), usual)
    rows, columns, depth = (found[3], found[4], found[5]) if found[3] else (found[1], 8, found[2])
    return MatrixForm(int(rows), int(columns), int(depth), bits, "SP" in instruction.modifiers)


def _tensor_widths(instruction: Instruction) -> tuple[int, int, int, int]:
    """Number of registers of D, A, B and C of a matrix instruction."""
    form = matrix_form(instruction)
    if form is None:
        return (4, 2, 1, 4) if "F32" in instruction.modifiers else (2, 2, 1, 2)
    wide = {"DMMA": 64, "IMMA": 32, "IGMMA": 32, "BMMA": 32, "BGMMA": 32}.get(
        instruction.opcode, 32 if "F32" in instruction.modifiers else 16
    )
    if instruction.class_ == "wgmma":
        # Each of four warps holds a quarter of the rows; the second operand is in shared memory.
        result = form.columns * wide // 64
        return result, 4, 0, result
    result = form.rows * form.columns * wide // 1024
    left, right = (extent * form.depth * form.element_bits // 1024 for extent in (form.rows, form.columns))
    return result, left // (1 + form.sparse), right, result


def _places(operand: Operand, width: int) -> Iterator[Place]:
    if isinstance(operand, Register):
        if operand.index != RZ:
            name = "UR" if operand.uniform else "R"
            yield from ((name, operand.index + k) for k in range(width))
    elif isinstance(operand, Predicate):
        if operand.index < 0:
            yield from (("P", n) for n in range(PREDICATES))
        elif operand.index != PT:
            yield ("UP" if operand.uniform else "P", operand.index)
    elif isinstance(operand, Address):
        for register, wide in ((operand.base, operand.base_wide), (operand.uniform, operand.uniform_wide)):
            if register is not None:
                yield from _places(register, 2 if wide else 1)
        if operand.descriptor is not None:
            # One memory descriptor, or two matrix descriptors.
            memory = operand.uniform is not None or (operand.base is not None and operand.base.index != RZ)
            yield from _places(operand.descriptor, 2 if memory else 4)
    elif isinstance(operand, Constant):
        for register in (operand.register, operand.bank_register):
            if register is not None:
                yield from _places(register, 1)
    elif isinstance(operand, Special) and operand.name == "PR":
        yield from (("P", n) for n in range(PREDICATES))


# Reads of each register file bank by an instruction, not counting operand cache hits.
#
# Huerta et al. 2025 (§5.3): a partition's registers are in two banks, even and odd numbers, and each bank delivers one
# warp-wide register per cycle. If the compiler has set an operand's reuse bit, the operand cache keeps its value for
# the warp's next instruction that has the same register in the same operand position and bank.

BANKS = 2
_PLACES = (24, 32, 64)
"""Bit positions of the first, second and third source register in a 128-bit encoding."""
_BREAKS = frozenset({"branch", "convergence", "barrier"})

Reads = tuple[int, int]
"""Registers read from the even and from the odd bank."""


def register_reads(instructions: Sequence[Instruction]) -> list[Reads]:
    """Reads of each bank by every instruction, in code order.

    The operand cache is empty at the start, and after instructions that may leave the sequential order.
    """
    known = _latest.get("reads")
    if known is None or known[0] is not instructions:
        known = _latest["reads"] = (instructions, _reads(instructions))
    return known[1]


_latest: dict[str, tuple[Sequence[Instruction], list[Reads]]] = {}
"""Results for the most recent code: one kernel is costed many times, for other GPUs and under other assumptions."""


def _reads(instructions: Sequence[Instruction]) -> list[Reads]:
    kept: dict[tuple[int, int], int] = {}
    found: list[Reads] = []
    for instruction in instructions:
        reads: set[int] = set()
        for place, first, width in _sources(instruction):
            for register in range(first, first + width):
                cell = (register % BANKS, place)
                if kept.pop(cell, -1) != register:
                    reads.add(register)
                if instruction.control.reuse >> place & 1:
                    kept[cell] = register
        found.append((sum(r % BANKS == 0 for r in reads), sum(r % BANKS for r in reads)))
        if instruction.class_ in _BREAKS:
            kept.clear()
    return found


def _sources(instruction: Instruction) -> list[tuple[int, int, int]]:
    """Operand position in the encoding, first register and number of registers of each register source."""
    sources = []
    at = 0
    for register, width in operand_registers(instruction):
        place = at
        while place < len(_PLACES) and instruction.encoding >> _PLACES[place] & 255 != register.index:
            place += 1
        if place == len(_PLACES):
            place = min(at, len(_PLACES) - 1)
        at = place + 1
        if register.index != RZ:
            sources.append((place, register.index, width))
    return sources
