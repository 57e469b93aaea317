"""A CUBIN and its listing, made into kernels: resources, parameters, constant banks, symbols."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import InputFileError
from ..kernel.kernel import External, Kernel, Parameter, Relocation, Resources, Symbol
from .elf import ElfFile, Section, parse_elf
from .sass import Listing, parse_listing

# Attributes of .nv.info: their numbers as they stand in CUBINs of CUDA 11 to 13.
_MAX_THREADS, _PARAM_CBANK, _FRAME_SIZE, _MIN_STACK, _KPARAM_INFO = 0x05, 0x0A, 0x11, 0x12, 0x17
_REGCOUNT, _NUM_BARRIERS, _CLUSTER = 0x2F, 0x4C, 0x3D
_RESERVED_SHARED = 1024
"""Bytes at the start of shared memory that sm_90 and later keep for the system in a section's size."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    id: int
    payload: bytes


def _attributes(data: bytes) -> Iterator[_Attribute]:
    """Records of a .nv.info section: format, id, then a length and payload or a value inline."""
    at = 0
    while at + 4 <= len(data):
        form, id_, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            yield _Attribute(id_, data[at : at + value])
            at += value
        else:
            yield _Attribute(id_, struct.pack("<H", value))


def kernels_of(cubin: bytes, listing: str, arch: str, origin: str, log: str = "") -> dict[str, Kernel]:
    """All kernels of a CUBIN by symbol. `listing` is nvdisasm's text of it, `log` the compiler's.

    Raises InputFileError naming `origin` for a file that is damaged or not a CUBIN.
    """
    elf = parse_elf(cubin, origin)
    listings = parse_listing(listing, origin)
    try:
        return _kernels(elf, listings, arch, origin, log)
    except (struct.error, IndexError, OverflowError):
        raise InputFileError(f"{origin}: damaged CUBIN (its attributes do not fit its sections)") from None


def _kernels(elf: ElfFile, listings: Mapping[str, Listing], arch: str, origin: str, log: str) -> dict[str, Kernel]:
    image, image_offsets = _global_image(elf)
    relocations = tuple(_bank_relocations(elf, image_offsets))
    kernels = {}
    for symbol in elf.symbols:
        is_function, is_entry = symbol.info & 15 == 2, elf.section(f".nv.info.{symbol.name}") is not None
        code, text = listings.get(symbol.name), elf.section(f".text.{symbol.name}")
        if not (is_function and is_entry and text and code and code.instructions):
            continue
        name = symbol.name
        parameters, base = _parameters(elf, name)
        symbols = {
            label: Symbol("code", offset, 0) for label, offset in code.labels.items() if not label.startswith(".")
        }
        symbols.update(_variables(elf, image_offsets, name))
        kernels[name] = Kernel(
            name=plain_name(name),
            symbol=name,
            arch=arch,
            instructions=code.instructions,
            parameters=parameters,
            parameter_base=base,
            resources=_resources(elf, name, text, arch, log),
            constant_banks=_constant_banks(elf, name),
            global_image=image,
            relocations=relocations,
            symbols=symbols,
            externals=tuple(_externals(elf)),
            source_file=origin,
        )
    return kernels


def plain_name(symbol: str) -> str:
    """The function name of a mangled symbol, without parameters; other symbols as they are."""
    match = re.match(r"^_Z(N?)(\d+)", symbol)
    if not match:
        return symbol
    if not match[1]:
        # What follows are the parameters' types, which may begin with a name as well.
        return symbol[match.end() : match.end() + int(match[2])]
    names, rest = [], symbol[3:]
    while number := re.match(r"\d+", rest):
        length, start = int(number[0]), number.end()
        names.append(rest[start : start + length])
        rest = rest[start + length :]
    return "::".join(names)


def variable_name(symbol: str) -> str:
    """The name of a variable as the source spells it, unnamed namespaces left out."""
    parts = plain_name(symbol).split("::")
    return "::".join(p for p in parts if not p.startswith(("_INTERNAL_", "_GLOBAL__N_")))


def _resources(elf: ElfFile, name: str, text: Section, arch: str, log: str) -> Resources:
    shared = elf.section(f".nv.shared.{name}")
    shared_size = shared.size if shared else 0
    major = int("".join(c for c in arch.removeprefix("sm_") if c.isdigit())[:-1])
    reserved = _RESERVED_SHARED if major >= 9 else 0
    if reserved and shared_size < reserved:
        reserved = 0 if shared is None else min(reserved, shared_size)
    max_threads = 0
    cluster = (1, 1, 1)
    # CUBINs of CUDA 11 have the number of barriers in the section's flags, later ones an attribute.
    barriers = (text.flags >> 20) & 0x7F
    for attribute in _attributes(_payload(elf, f".nv.info.{name}")):
        if attribute.id == _MAX_THREADS and len(attribute.payload) >= 12:
            x, y, z = struct.unpack_from("<III", attribute.payload)
            max_threads = x * y * z
        elif attribute.id == _NUM_BARRIERS:
            barriers = attribute.payload[0]
        elif attribute.id == _CLUSTER and len(attribute.payload) >= 12:
            cluster = struct.unpack_from("<III", attribute.payload)
    return Resources(
        registers=_per_kernel(elf, name, _REGCOUNT) or (text.info >> 24) & 0xFF,
        shared_bytes=shared_size - reserved,
        shared_reserved=reserved,
        # The whole call tree's stack where the compiler knows it, else the frame of the kernel alone.
        local_bytes=_per_kernel(elf, name, _FRAME_SIZE, _MIN_STACK),
        spill_bytes=_spills(log, name),
        barriers=barriers,
        max_threads=max_threads,
        cluster=cluster,
    )


def _payload(elf: ElfFile, name: str) -> bytes:
    section = elf.section(name)
    return section.data if section else b""


def _per_kernel(elf: ElfFile, name: str, *attributes: int) -> int:
    """The largest of these attributes of the file's .nv.info for one kernel; 0 where there is none."""
    values = [0]
    for attribute in _attributes(_payload(elf, ".nv.info")):
        if attribute.id in attributes and len(attribute.payload) >= 8:
            index, value = struct.unpack_from("<II", attribute.payload)
            if elf.symbols[index].name == name:
                values.append(value)
    return max(values)


def _spills(log: str, name: str) -> int | None:
    """Spill stores plus loads in bytes from ptxas' verbose log; None where the log does not say."""
    match = re.search(
        rf"Function properties for {re.escape(name)}\s.*?(\d+) bytes spill stores, (\d+) bytes spill loads",
        log,
        re.S,
    )
    return int(match[1]) + int(match[2]) if match else None


def _parameters(elf: ElfFile, name: str) -> tuple[tuple[Parameter, ...], int]:
    base, found = 0, []
    for attribute in _attributes(_payload(elf, f".nv.info.{name}")):
        if attribute.id == _PARAM_CBANK:
            base = struct.unpack_from("<IH", attribute.payload)[1]
        elif attribute.id == _KPARAM_INFO:
            _, ordinal, offset, flags = struct.unpack_from("<IHHI", attribute.payload)
            found.append(Parameter(ordinal, offset, flags >> 18))
    return tuple(sorted(found, key=lambda p: p.ordinal)), base


def _constant_banks(elf: ElfFile, name: str) -> dict[int, bytes]:
    banks = {}
    for section in elf.sections:
        match = re.match(r"\.nv\.constant(\d+)(?:\.(.+))?$", section.name)
        if match and match[2] in (None, name):
            banks[int(match[1])] = section.data or bytes(section.size)
    return banks


def _global_image(elf: ElfFile) -> tuple[bytes, dict[int, int]]:
    """The module's `__device__` variables as one image, and where each section starts in it."""
    image, starts = b"", {}
    for section in elf.sections:
        if section.name in (".nv.global", ".nv.global.init"):
            image += bytes(-len(image) % max(section.align, 256))
            starts[section.index] = len(image)
            image += section.data or bytes(section.size)
    return image, starts


def _bank_relocations(elf: ElfFile, image_offsets: dict[int, int]) -> Iterator[Relocation]:
    for relocation in elf.relocations:
        target = elf.sections[relocation.section]
        match = re.match(r"\.nv\.constant(\d+)", target.name)
        symbol = elf.symbols[relocation.symbol]
        if match and symbol.section in image_offsets:
            stored = struct.unpack_from("<Q", target.data, relocation.offset)[0]
            addend = relocation.addend if relocation.addend is not None else stored
            where = image_offsets[symbol.section] + symbol.value + addend
            yield Relocation(int(match[1]), relocation.offset, where)


def _externals(elf: ElfFile) -> Iterator[External]:
    """Functions of the driver whose addresses stand in a constant bank."""
    for relocation in elf.relocations:
        match = re.match(r"\.nv\.constant(\d+)", elf.sections[relocation.section].name)
        symbol = elf.symbols[relocation.symbol]
        if match and not symbol.section and symbol.name:
            yield External(int(match[1]), relocation.offset, symbol.name)


def _variables(elf: ElfFile, image_offsets: dict[int, int], kernel: str) -> dict[str, Symbol]:
    found = {}
    for symbol in elf.symbols:
        if symbol.info & 15 != 1 or not 0 < symbol.section < len(elf.sections):
            continue
        section = elf.sections[symbol.section]
        if section.name == ".nv.constant3":
            name = variable_name(symbol.name)
            # Instances of a template share a name.
            found[symbol.name if name in found else name] = Symbol("constant", symbol.value, symbol.size)
        elif symbol.section in image_offsets:
            found[symbol.name] = Symbol("global", image_offsets[symbol.section] + symbol.value, symbol.size)
        elif section.name == f".nv.shared.{kernel}":
            found[symbol.name] = Symbol("shared", symbol.value, symbol.size)
    return found
