"""The parts of an ELF file that a CUBIN needs: sections, symbols, relocations. 64-bit little-endian."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ...errors import InputFileError

T = TypeVar("T")
NOBITS = 8
_WITHOUT_BYTES = (NOBITS, 0x70000007, 0x70000008, 0x7000000A)
"""Types of sections without bytes in the file; the others are global, local and shared memory of relocatable files."""
CUDA_MACHINE = 190
_MOST_ZEROS = 4 << 30
"""Total size limit in bytes of sections without data (zeroed `__device__` variables, shared memory)."""
_MOST_ALIGNMENT = 1 << 16
_LONGEST_NAME = 1 << 16
"""Length limit of a symbol name in bytes; mangled names of nested templates take several thousand."""
_MOST_NAMES = 1 << 28
"""Total length limit of the names in one table in bytes: a forged table may have millions that overlap."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section; `data` is empty if it takes no room in the file; its `size` still counts."""

    index: int
    name: str
    type: int
    flags: int
    info: int
    link: int
    size: int
    align: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """One symbol: value and size in bytes, index of its section, binding and type in `info`."""

    name: str
    info: int
    section: int
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class ElfRelocation:
    """One relocation entry of the section with index `section`; a REL entry has addend None."""

    section: int
    offset: int
    type: int
    symbol: int
    addend: int | None


@dataclass(frozen=True)
class ElfFile:
    """A parsed file."""

    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[ElfSymbol, ...]
    relocations: tuple[ElfRelocation, ...]

    def section(self, name: str) -> Section | None:
        """The section of this name, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Section]:
        # If several sections share a name, the first wins.
        return {section.name: section for section in reversed(self.sections)}


class _Names:
    """A table of zero-terminated names. Bounded, so that a forged table wastes neither time nor memory."""

    def __init__(self, table: bytes) -> None:
        self.table, self.left = table, _MOST_NAMES

    def at(self, offset: int) -> str:
        """The name at an offset. Raises ValueError if it is not terminated, or if the total length is too large."""
        name = self.table[offset : self.table.index(b"\0", offset, offset + _LONGEST_NAME)]
        self.left -= len(name)
        if self.left < 0:
            raise ValueError("names too long")
        return name.decode("utf-8", "replace")


def parse_elf(data: bytes, origin: str) -> ElfFile:
    """Parse a CUBIN. Raises InputFileError naming `origin` for any other file, or a truncated one."""
    if data[:4] != b"\x7fELF":
        raise InputFileError(f"{origin}: not an ELF file (expected a CUBIN)")
    return _guarded(_parse, data, origin)


def sections_of(data: bytes, origin: str) -> tuple[Section, ...]:
    """The sections of an ELF file for any machine. Raises InputFileError for a damaged one."""
    return _guarded(_sections, data, origin)


def _guarded(read: Callable[[bytes, str], T], data: bytes, origin: str) -> T:
    try:
        return read(data, origin)
    except (struct.error, IndexError, ValueError, OverflowError):
        raise InputFileError(f"{origin}: truncated or damaged ELF file") from None


def _sections(data: bytes, origin: str) -> tuple[Section, ...]:
    if data[4] != 2 or data[5] != 1:
        raise InputFileError(f"{origin}: expected a 64-bit little-endian ELF file")
    offset = struct.unpack_from("<Q", data, 40)[0]
    segments, segment_size, segment_count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    entry_size, count, names_index = struct.unpack_from("<HHH", data, 58)
    if segments + segment_size * segment_count > len(data):
        raise ValueError("segment headers beyond the end of the file")
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * entry_size) for i in range(count)]
    names = _Names(data[headers[names_index][4] :][: headers[names_index][5]])
    # Sections do not overlap; in a forged file each could span the whole file.
    if sum(header[5] for header in headers if header[1] not in _WITHOUT_BYTES) > 2 * len(data):
        raise ValueError("sections of more bytes than the file has")
    if (zeros := sum(header[5] for header in headers if header[1] in _WITHOUT_BYTES)) > _MOST_ZEROS:
        raise InputFileError(f"{origin}: {zeros} bytes of zeroed variables; expected at most {_MOST_ZEROS}")
    sections = []
    for index, (name, type_, section_flags, _, start, size, link, info, align, _) in enumerate(headers):
        body = b"" if type_ in _WITHOUT_BYTES else data[start : start + size]
        if (type_ not in _WITHOUT_BYTES and len(body) < size) or align > _MOST_ALIGNMENT:
            raise ValueError("section beyond the end of the file, or its alignment too large")
        sections.append(Section(index, names.at(name), type_, section_flags, info, link, size, align, body))
    return tuple(sections)


def _parse(data: bytes, origin: str) -> ElfFile:
    machine, flags = struct.unpack_from("<H28xI", data, 18)
    if machine != CUDA_MACHINE and data[4:6] == b"\2\1":
        raise InputFileError(f"{origin}: ELF file for machine {machine}, expected CUDA machine code ({CUDA_MACHINE})")
    sections = _sections(data, origin)
    symbols, relocations = list[ElfSymbol](), list[ElfRelocation]()
    for section in sections:
        if section.type == 2:
            strings = _Names(sections[section.link].data)
            for at in range(0, section.size, 24):
                name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", section.data, at)
                symbols.append(ElfSymbol(strings.at(name), info, index, value, size))
        elif section.type in (4, 9):
            step = 24 if section.type == 4 else 16
            for at in range(0, section.size, step):
                where, info = struct.unpack_from("<QQ", section.data, at)
                addend = struct.unpack_from("<q", section.data, at + 16)[0] if step == 24 else None
                relocations.append(ElfRelocation(section.info, where, info & 0xFFFFFFFF, info >> 32, addend))
    return ElfFile(flags, sections, tuple(symbols), tuple(relocations))
