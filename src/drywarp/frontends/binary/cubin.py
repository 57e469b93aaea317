"""Build kernels from a CUBIN and its listing: resources, parameters, constant banks, symbols."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ...errors import InputFileError
from ...kernel.kernel import External, Kernel, Parameter, Relocation, Resources, Symbol
from .elf import ElfFile, Section, parse_elf
from .linked import ADDRESS_BANK, Linker, code_sections
from .sass import Listing, parse_listing
from .signatures import plain_name, variable_name, with_types

# Attributes of .nv.info, numbered as in CUBINs of CUDA 11 to 13.
_MAX_THREADS, _PARAM_CBANK, _FRAME_SIZE, _MIN_STACK, _KPARAM_INFO = 0x05, 0x0A, 0x11, 0x12, 0x17
_REGCOUNT, _NUM_BARRIERS, _CLUSTER = 0x2F, 0x4C, 0x3D
_LARGE_KPARAM_INFO = 0x45
"""In the place of _KPARAM_INFO where parameters take more than 4 KiB together: a size in 32 bits."""
_SPILLS = re.compile(
    r"Function properties for (\S+)\s+[^\n,]*?\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_MOST_CONSTANT = 1 << 20
"""Size limit of a constant bank in bytes; the hardware can address 64 KiB."""
_MOST_ZERO_CONSTANTS = 1 << 26
"""Total size limit in bytes of constant bank data that is not stored in the file."""
_MOST_IMAGE = 1 << 30
"""Total size limit of a module's `__device__` variables in bytes."""
_RESERVED_SHARED = 1024
"""Bytes at the start of shared memory that sm_90 and later reserve for the system, included in the section size."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    id: int
    payload: bytes


def _attributes(data: bytes) -> Iterator[_Attribute]:
    """Records of a .nv.info section: format, id, then either length and payload or an inline value."""
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
    """All kernels in a CUBIN by symbol. `listing` is nvdisasm's output for it, `log` the compiler's.

    Raises InputFileError naming `origin` for a file that is damaged or not a CUBIN.
    """
    elf = parse_elf(cubin, origin)
    code = {name: elf.sections[index].data for index, name in code_sections(elf).items()}
    listings = parse_listing(listing, origin, code)
    try:
        return _kernels(elf, listings, arch, origin, log)
    except (struct.error, IndexError, OverflowError):
        raise InputFileError(f"{origin}: damaged CUBIN (its attributes do not match its sections)") from None


def _kernels(elf: ElfFile, listings: Mapping[str, Listing], arch: str, origin: str, log: str) -> dict[str, Kernel]:
    image, image_offsets = _global_image(elf, origin)
    relocations = tuple(_bank_relocations(elf, image_offsets))
    externals = tuple(_externals(elf))
    attributes, banks = _by_kernel(elf), _constant_banks(elf, origin)
    variables, shared = _variables(elf, image_offsets)
    spills = _spills(log)
    linker = Linker(elf, listings, image_offsets, len(banks.get("", {}).get(ADDRESS_BANK, b"")))
    if linker.needed:
        image = _with_pointers(linker, elf, image_offsets, image, banks)
    kernels = {}
    for symbol in elf.symbols:
        is_function, is_entry = symbol.info & 15 == 2, elf.section(f".nv.info.{symbol.name}") is not None
        code, text = listings.get(symbol.name), elf.section(f".text.{symbol.name}")
        if not (is_function and is_entry and text and code and code.instructions):
            continue
        if linker.needed and not linker.is_kernel(symbol.name):
            continue
        name = symbol.name
        parameters, base = _parameters(elf, name)
        symbols = {
            label: Symbol("code", offset, 0) for label, offset in code.labels.items() if not label.startswith(".")
        }
        symbols |= variables | shared.get(name, {})
        instructions, functions = linker.code(name) if linker.needed else (code.instructions, {})
        symbols |= functions
        kernels[name] = Kernel(
            name=plain_name(name),
            symbol=name,
            arch=arch,
            instructions=instructions,
            parameters=parameters,
            parameter_base=base,
            resources=_resources(elf, name, text, arch, attributes.get(name, {}), spills.get(name)),
            constant_banks=banks.get("", {}) | banks.get(name, {}),
            global_image=image,
            relocations=relocations,
            symbols=symbols,
            externals=externals,
            source_file=origin,
        )
    return {name: _with_addresses(kernel, linker) for name, kernel in kernels.items()} if linker.needed else kernels


def _with_pointers(
    linker: Linker, elf: ElfFile, starts: Mapping[int, int], image: bytes, banks: Mapping[str, dict[int, bytes]]
) -> bytes:
    """The image of variables with the addresses of functions in it; those in `banks` are stored there."""
    changed = bytearray(image)
    for section in elf.sections:
        if section.index in starts:
            for offset, word in linker.pointers(section.index):
                at = starts[section.index] + offset
                changed[at : at + len(word)] = word
        elif (match := re.match(r"\.nv\.constant(\d{1,3})$", section.name)) and (held := banks.get("")):
            bank = bytearray(held[int(match[1])])
            for offset, word in linker.pointers(section.index):
                bank[offset : offset + len(word)] = word
            held[int(match[1])] = bytes(bank)
    if len(changed) != len(image):
        raise IndexError("an address beyond its section")
    return bytes(changed)


def _with_addresses(kernel: Kernel, linker: Linker) -> Kernel:
    """The kernel with the words that its code was given for addresses of variables and of the driver's functions."""
    bank = kernel.constant_banks.get(ADDRESS_BANK, b"").ljust(linker.end, b"\0")
    return replace(
        kernel,
        constant_banks={**kernel.constant_banks, ADDRESS_BANK: bank} if linker.end else kernel.constant_banks,
        relocations=(*kernel.relocations, *linker.relocations),
        externals=(*kernel.externals, *linker.externals),
    )


def _resources(
    elf: ElfFile, name: str, text: Section, arch: str, attributes: Mapping[int, int], spills: int | None
) -> Resources:
    shared = elf.section(f".nv.shared.{name}")
    shared_size = shared.size if shared else 0
    major = int("".join(c for c in arch.removeprefix("sm_") if c.isdigit())[:-1])
    reserved = _RESERVED_SHARED if major >= 9 else 0
    if reserved and shared_size < reserved:
        reserved = 0 if shared is None else min(reserved, shared_size)
    max_threads = 0
    cluster = (1, 1, 1)
    # CUDA 11 stores the number of barriers in the section flags, later versions in an attribute.
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
        registers=attributes.get(_REGCOUNT, 0) or (text.info >> 24) & 0xFF,
        shared_bytes=shared_size - reserved,
        shared_reserved=reserved,
        # The stack of the whole call tree if the compiler knows it, else the frame of the kernel alone.
        local_bytes=max(attributes.get(_FRAME_SIZE, 0), attributes.get(_MIN_STACK, 0)),
        spill_bytes=spills,
        barriers=barriers,
        max_threads=max_threads,
        cluster=cluster,
    )


def _payload(elf: ElfFile, name: str) -> bytes:
    section = elf.section(name)
    return section.data if section else b""


def _by_kernel(elf: ElfFile) -> dict[str, dict[int, int]]:
    """The per-symbol attributes in the file's .nv.info section: the largest value of each, by symbol name."""
    found: dict[str, dict[int, int]] = {}
    for attribute in _attributes(_payload(elf, ".nv.info")):
        if attribute.id in (_REGCOUNT, _FRAME_SIZE, _MIN_STACK) and len(attribute.payload) >= 8:
            index, value = struct.unpack_from("<II", attribute.payload)
            held = found.setdefault(elf.symbols[index].name, {})
            held[attribute.id] = max(value, held.get(attribute.id, 0))
    return found


def _spills(log: str) -> dict[str, int]:
    """Spill stores plus loads in bytes by symbol, from ptxas' verbose log; empty if the log has none."""
    return {name: int(stores) + int(loads) for name, stores, loads in _SPILLS.findall(log)}


def _parameters(elf: ElfFile, name: str) -> tuple[tuple[Parameter, ...], int]:
    base, found = 0, []
    for attribute in _attributes(_payload(elf, f".nv.info.{name}")):
        if attribute.id == _PARAM_CBANK:
            base = struct.unpack_from("<IH", attribute.payload)[1]
        elif attribute.id == _KPARAM_INFO:
            _, ordinal, offset, flags = struct.unpack_from("<IHHI", attribute.payload)
            found.append(Parameter(ordinal, offset, flags >> 18))
        elif attribute.id == _LARGE_KPARAM_INFO:
            found.append(Parameter(*struct.unpack_from("<4xHHI", attribute.payload)))
    return with_types(sorted(found, key=lambda p: p.ordinal), name), base


def _constant_banks(elf: ElfFile, origin: str) -> dict[str, dict[int, bytes]]:
    """Contents of constant banks by kernel; banks shared by all kernels have the empty name."""
    banks: dict[str, dict[int, bytes]] = {}
    zeros = 0
    for section in elf.sections:
        if match := re.match(r"\.nv\.constant(\d{1,3})(?:\.(.+))?$", section.name):
            if section.size > _MOST_CONSTANT:
                raise InputFileError(
                    f"{origin}: {section.name} has {section.size} bytes; expected at most {_MOST_CONSTANT}"
                )
            zeros += section.size - len(section.data)
            if zeros > _MOST_ZERO_CONSTANTS:
                raise InputFileError(f"{origin}: more than {_MOST_ZERO_CONSTANTS} bytes of zeroed constant banks")
            banks.setdefault(match[2] or "", {})[int(match[1])] = section.data or bytes(section.size)
    return banks


def _global_image(elf: ElfFile, origin: str) -> tuple[bytes, dict[int, int]]:
    """The module's `__device__` variables as one image, and where each section starts in it."""
    image, starts = bytearray(), {}
    for section in elf.sections:
        if section.name in (".nv.global", ".nv.global.init"):
            if len(image) + section.size > _MOST_IMAGE:
                raise InputFileError(f"{origin}: more than {_MOST_IMAGE} bytes of __device__ variables")
            image += bytes(-len(image) % max(section.align, 256))
            starts[section.index] = len(image)
            image += section.data or bytes(section.size)
    return bytes(image), starts


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
    """Driver functions whose addresses are stored in a constant bank."""
    for relocation in elf.relocations:
        match = re.match(r"\.nv\.constant(\d+)", elf.sections[relocation.section].name)
        symbol = elf.symbols[relocation.symbol]
        if match and not symbol.section and symbol.name:
            yield External(int(match[1]), relocation.offset, symbol.name)


def _variables(elf: ElfFile, image_offsets: dict[int, int]) -> tuple[dict[str, Symbol], dict[str, dict[str, Symbol]]]:
    """The variables visible to all kernels, and the shared-memory variables by kernel."""
    found: dict[str, Symbol] = {}
    shared: dict[str, dict[str, Symbol]] = {}
    for symbol in elf.symbols:
        if symbol.info & 15 != 1 or not 0 < symbol.section < len(elf.sections):
            continue
        section = elf.sections[symbol.section]
        if section.name == ".nv.constant3":
            name = variable_name(symbol.name)
            # Instances of a template share a name.
            found[symbol.name if name in found else name] = Symbol("constant", symbol.value, symbol.size)
        elif symbol.section in image_offsets:
            name = variable_name(symbol.name)
            found[symbol.name if name in found else name] = Symbol(
                "global", image_offsets[symbol.section] + symbol.value, symbol.size
            )
        elif section.name.startswith(".nv.shared."):
            held = shared.setdefault(section.name.removeprefix(".nv.shared."), {})
            held[symbol.name] = Symbol("shared", symbol.value, symbol.size)
    return found, shared
