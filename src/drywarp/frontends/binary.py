"""Kernels out of machine code that exists already: a CUBIN, a fat binary, an executable or object file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..errors import InputFileError, UsageError
from ..kernel.kernel import Kernel
from . import cache
from .cubin import kernels_of, plain_name
from .disassemble import disassemble
from .elf import CUDA_MACHINE, parse_elf, sections_of
from .fatbin import MAGIC, Image, images
from .toolchain import tool_versions

_HOST_SECTIONS = (".nv_fatbin", "__nv_relfatbin")


def is_binary(data: bytes) -> bool:
    """Whether these are the first bytes of a file that this module reads."""
    return data[:4] == b"\x7fELF" or (len(data) >= 4 and struct.unpack_from("<I", data)[0] == MAGIC)


def load_binary(path: Path, data: bytes, *, arch: str, entry: str | None = None) -> Kernel:
    """One kernel of a binary file, for a GPU of architecture `arch` (``sm_80``).

    Machine code runs on its own architecture and on later ones of the same major version; of several the
    latest that runs is taken. `entry` is a kernel's name, or its mangled symbol. Raises InputFileError
    for a foreign or damaged file, UsageError where no kernel fits.
    """
    origin = str(path)
    found: dict[str, Kernel] = {}
    architectures: set[str] = set()
    only_ptx = False
    wanted = _number(arch)
    for image in sorted(_images(data, origin), key=lambda i: (not i.is_cubin, -i.sm)):
        if not image.is_cubin:
            only_ptx = not architectures
            continue
        architectures.add(f"sm_{image.sm}")
        if image.sm // 10 == wanted // 10 and image.sm <= wanted:
            for symbol, kernel in _kernels(image, origin).items():
                found.setdefault(symbol, kernel)
    if not found:
        held = ", ".join(sorted(architectures)) or ("PTX only" if only_ptx else "none")
        raise UsageError(f"{origin}: no machine code that runs on {arch} (it holds: {held})")
    return _chosen(found, entry, origin)


def _chosen(found: dict[str, Kernel], entry: str | None, origin: str) -> Kernel:
    names = {symbol: plain_name(symbol) for symbol in found}
    plain = list(names.values())
    # Instances of one template share a name; their symbols tell them apart.
    listed = ", ".join(sorted(name if plain.count(name) == 1 else symbol for symbol, name in names.items()))
    if entry is None:
        if len(found) == 1:
            return next(iter(found.values()))
        raise UsageError(f"{origin}: several kernels, name one with --entry: {listed}")
    matches = [symbol for symbol, name in names.items() if entry in (symbol, name, name.split("::")[-1])]
    if len(matches) == 1:
        return replace(found[matches[0]], name=entry)
    if matches:
        raise UsageError(f"{origin}: {entry} is ambiguous, name a symbol with --entry: {', '.join(sorted(matches))}")
    raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {listed}")


def _images(data: bytes, origin: str) -> Iterator[Image]:
    if data[:4] != b"\x7fELF":
        yield from images(data, origin)
        return
    if len(data) >= 20 and struct.unpack_from("<H", data, 18)[0] == CUDA_MACHINE:
        yield Image(True, architecture(data, origin), 0, data, len(data))
        return
    held = [section for section in sections_of(data, origin) if section.name in _HOST_SECTIONS]
    if not held:
        raise InputFileError(f"{origin}: no CUDA machine code in this ELF file")
    for section in held:
        yield from images(section.data, origin)


def architecture(cubin: bytes, origin: str) -> int:
    """The number after ``sm_`` of a CUBIN: in its ELF flags, at a place that changed with ABI version 8."""
    flags = parse_elf(cubin, origin).flags
    number = (flags >> 8) & 0xFF if cubin[8] >= 8 else flags & 0xFF
    if not 20 <= number <= 255:
        raise InputFileError(f"{origin}: CUBIN of an unknown architecture (ELF flags {flags:#x})")
    return number


def _kernels(image: Image, origin: str) -> dict[str, Kernel]:
    cubin = image.unpacked(origin)
    key = cache.key_of(cubin, origin, tool_versions()["nvdisasm"])
    entry = cache.load(key)
    if entry is None:
        entry = cache.Entry(cubin, disassemble(cubin, origin), "", {})
        cache.store(key, entry)
    return kernels_of(cubin, entry.listing, f"sm_{image.sm}", origin)


def _number(arch: str) -> int:
    return int("".join(c for c in arch.removeprefix("sm_") if c.isdigit()))
