"""Code that nvlink put together: kernels that call functions in sections of their own (`nvcc -rdc=true`).

A kernel's code is then its own section followed by those that its calls reach, and code addresses are offsets in all
of it. Functions whose addresses are taken lie at the same offsets in every kernel that calls by address, as pointers
to them pass from one kernel to another. Addresses of variables, which only a launch knows, are read from words in a
constant bank, as compilers do for whole programs.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...kernel.instruction import CONTROL_SHIFT, Constant, ControlBits, Immediate, Instruction, Label, Operand, Register
from ...kernel.isa.nvidia.opcodes import class_of
from ...kernel.kernel import External, Relocation, Symbol
from .elf import ElfFile, ElfRelocation, ElfSymbol
from .sass import Listing

_CODE, _SHARED = ".text.", ".nv.shared."
_DATA = re.compile(r"\.nv\.(?:global\.init|constant\d+)$")
_BYTES = 16
"""Bytes of an instruction."""
ADDRESS_BANK = 4
"""The constant bank in which compilers store addresses of variables."""
_HALF = re.compile(r"32@(lo|hi)\(")
_ADDEND = re.compile(r" \+ (0x[0-9a-f]+)\)")
_DESCRIPTOR = "fun@fdesc("
"""Stands before a function whose address is meant, which may be the one that the instruction is in."""


def code_sections(elf: ElfFile) -> dict[int, str]:
    """The names of code sections by index, without their prefix.

    Each file has its own copy of what the compiler adds, such as a slow path of divisions. nvdisasm tells sections of
    one name apart by their number.
    """
    often: Counter[str] = Counter()
    names = {}
    for section in elf.sections:
        if section.name.startswith(_CODE):
            name = section.name.removeprefix(_CODE)
            names[section.index] = f"{name}__{often[name]}" if often[name] else name
            often[name] += 1
    return names


@dataclass
class Linker:
    """The code of one CUBIN whose functions are in sections of their own.

    `listings` are its code sections by symbol, `image_offsets` the offset of each section of variables, by its index,
    in their image, and `bank` the present size in bytes of the constant bank of addresses.
    """

    elf: ElfFile
    listings: Mapping[str, Listing]
    image_offsets: Mapping[int, int]
    bank: int
    relocations: list[Relocation] = field(default_factory=list)
    externals: list[External] = field(default_factory=list)
    """Words that were added to the bank of addresses, from `bank` on: of variables, and of the driver's functions."""
    _words: dict[int | str, int] = field(default_factory=dict)

    @cached_property
    def _at(self) -> dict[tuple[str, int], ElfRelocation]:
        """Relocations of instructions by code section and offset."""
        return {
            (self._names[r.section], r.offset // _BYTES * _BYTES): r
            for r in self.elf.relocations
            if r.section in self._names
        }

    @cached_property
    def _names(self) -> dict[int, str]:
        return code_sections(self.elf)

    @property
    def needed(self) -> bool:
        """Whether there is anything to do: what compilers emit for whole programs has no such relocations."""
        return bool(self._at)

    def is_kernel(self, name: str) -> bool:
        """Whether a function is a kernel: only these have parameters in a constant bank."""
        return self.elf.section(f".nv.constant0.{name}") is not None

    def _function(self, symbol: ElfSymbol) -> str | None:
        """The code section in which a function lies; None for anything else."""
        name = self._names.get(symbol.section) if symbol.info & 15 == 2 else None
        return name if name in self.listings else None

    @cached_property
    def _calls(self) -> dict[str, list[str]]:
        """The other code sections that each one names, in the order of their places."""
        found: dict[str, list[str]] = {}
        for (name, _), relocation in sorted(self._at.items()):
            callee = self._function(self.elf.symbols[relocation.symbol])
            if callee and callee != name:
                found.setdefault(name, []).append(callee)
        return found

    def _reached(self, names: Iterable[str]) -> list[str]:
        """These code sections and all that they name, each once."""
        found: dict[str, None] = {}
        waiting = list(names)[::-1]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting += self._calls.get(name, [])[::-1]
        return list(found)

    def _by_address(self, names: Iterable[str]) -> bool:
        code = (i for name in names for i in self.listings[name].instructions)
        return any(i.opcode == "CALL" and any(isinstance(o, Register) for o in i.operands) for i in code)

    @cached_property
    def _pointers(self) -> list[tuple[ElfRelocation, str]]:
        """Words of variables and constants that hold the address of a function, and which."""
        names = [section.name for section in self.elf.sections]
        found = ((r, self._function(self.elf.symbols[r.symbol])) for r in self.elf.relocations)
        return [(r, function) for r, function in found if function and _DATA.match(names[r.section])]

    @cached_property
    def _taken(self) -> list[str]:
        """The functions whose addresses are taken, and what they call."""
        taken = {function for _, function in self._pointers}
        for (name, pc), relocation in self._at.items():
            function = self._function(self.elf.symbols[relocation.symbol])
            code = self.listings[name].instructions if name in self.listings else ()
            if function and function != name and pc // _BYTES < len(code) and code[pc // _BYTES].opcode != "CALL":
                taken.add(function)
        return self._reached(sorted(taken))

    @cached_property
    def _places(self) -> dict[str, int]:
        """Offsets of the functions whose addresses are taken: beyond every kernel that calls by address."""
        kernels = [name for name in self.listings if self.is_kernel(name)]
        at = max((_size(self.listings[k]) for k in kernels if self._by_address(self._reached([k]))), default=0)
        found = {}
        for name in self._taken:
            found[name] = at
            at += _size(self.listings[name])
        return found

    def pointers(self, index: int) -> Iterator[tuple[int, bytes]]:
        """Offsets in the section of this index, and what stands there: 64-bit addresses of functions."""
        for relocation, function in self._pointers:
            if relocation.section == index:
                yield relocation.offset, struct.pack("<Q", self._places[function] + (relocation.addend or 0))

    def code(self, kernel: str) -> tuple[tuple[Instruction, ...], dict[str, Symbol]]:
        """A kernel's instructions with those of all functions that it may call, and where these begin."""
        names = self._reached([kernel])
        places = {kernel: 0}
        if self._taken and self._by_address(names):
            names = self._reached([kernel, *self._taken])
            places |= self._places
        end = max(places[name] + _size(self.listings[name]) for name in places)
        for name in names:
            if name not in places:
                places[name] = end
                end += _size(self.listings[name])
        code: list[Instruction] = []
        for name, place in sorted(places.items(), key=lambda one: one[1]):
            code += [_nothing(pc) for pc in range(len(code) * _BYTES, place, _BYTES)]
            code += [self._placed(i, name, places, kernel) for i in self.listings[name].instructions]
        return tuple(code), {name: Symbol("code", place, 0) for name, place in places.items() if place}

    def _placed(self, i: Instruction, section: str, places: Mapping[str, int], kernel: str) -> Instruction:
        """An instruction at its place in a kernel's code, with the addresses that it names."""
        base = places[section]
        modifiers, operands = i.modifiers, i.operands
        if not base and i.opcode != "RET" and not any(isinstance(o, Label) for o in operands):
            return i
        relocation = self._at.get((section, i.pc))
        symbol = self.elf.symbols[relocation.symbol] if relocation else None
        function = (self._function(symbol) if symbol else None) or ""
        moved: list[Operand] = []
        for operand in operands:
            if isinstance(operand, Label):
                half = _HALF.search(i.text)
                if operand.target >= 0 and not (half and _DESCRIPTOR in i.text):
                    operand = replace(operand, target=operand.target + base)
                elif function in places and i.opcode == "CALL":
                    operand = Label(operand.name, places[function])
                elif symbol and i.opcode == "CALL":
                    self._from_driver(symbol)
                elif relocation and symbol and half:
                    operand = self._address(operand, relocation, places, half[1] == "hi", kernel, i.text)
            moved.append(operand)
        if i.opcode == "CALL" and function in places:
            modifiers = tuple("REL" if m == "ABS" else m for m in modifiers)
        elif i.opcode == "RET" and "ABS" in modifiers and moved[1:] == [Immediate(0, "0x0")]:
            modifiers, moved = tuple("REL" if m == "ABS" else m for m in modifiers), moved[:1]
        return replace(i, pc=i.pc + base, modifiers=modifiers, operands=tuple(moved))

    def _address(
        self, operand: Label, relocation: ElfRelocation, places: Mapping[str, int], high: bool, kernel: str, text: str
    ) -> Operand:
        """One half of the address of a function, a place in one, or a variable; the operand itself if it is outside."""
        symbol = self.elf.symbols[relocation.symbol]
        stated = _ADDEND.search(text)
        addend = relocation.addend if relocation.addend is not None else int(stated[1], 16) if stated else 0
        function = self._function(symbol) or ""
        if function in places:
            return _immediate(0 if high else places[function] + symbol.value + addend)
        where = self.elf.sections[symbol.section] if 0 < symbol.section < len(self.elf.sections) else None
        if where is not None and where.index in self.image_offsets:
            target = self.image_offsets[where.index] + symbol.value + addend
            return Constant(ADDRESS_BANK, self._word(target) + 4 * high)
        if where is not None and where.name.startswith(_SHARED):
            return _immediate(0 if high else symbol.value + addend)
        return operand

    def _word(self, target: int) -> int:
        """Offset in the bank of addresses of a word with that of a place in the image of variables."""
        if target not in self._words:
            self._words[target] = self._next_word()
            self.relocations.append(Relocation(ADDRESS_BANK, self._words[target], target))
        return self._words[target]

    def _next_word(self) -> int:
        return -(-self.bank // 8) * 8 + 8 * len(self._words)

    def _from_driver(self, symbol: ElfSymbol) -> None:
        """Note a function that no file defines: the driver has it."""
        if symbol.section == 0 and symbol.name and symbol.name not in self._words:
            self._words[symbol.name] = self._next_word()
            self.externals.append(External(ADDRESS_BANK, self._words[symbol.name], symbol.name))

    @property
    def end(self) -> int:
        """Size in bytes of the bank of addresses with the words that were added; 0 without any."""
        return self._next_word() if self._words else 0


def _size(listing: Listing) -> int:
    return len(listing.instructions) * _BYTES


def _immediate(value: int) -> Immediate:
    return Immediate(value, hex(value))


def _nothing(pc: int) -> Instruction:
    control = ControlBits.decode(0b111111 << CONTROL_SHIFT + 5)  # no barriers
    return Instruction(pc, "NOP", (), (), None, class_of("NOP", ()), None, control, None, "NOP")
