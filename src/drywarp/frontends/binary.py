"""Kernels out of machine code that exists already: a CUBIN, a fat binary, an executable or object file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import InputFileError, UsageError
from ..kernel.kernel import Kernel
from .elf import CUDA_MACHINE, parse_elf, sections_of
from .entry import chosen
from .fatbin import MAGIC, Image, images
from .machine_code import cubin_kernels
from .ptx import ptx_kernels
from .ptx_text import is_ptx, read_ptx

_HOST_SECTIONS = (".nv_fatbin", "__nv_relfatbin")


def is_binary(data: bytes) -> bool:
    """Whether these are the first bytes of a file that this module reads."""
    return data[:4] == b"\x7fELF" or (len(data) >= 4 and struct.unpack_from("<I", data)[0] == MAGIC)


def load_binary(path: Path, data: bytes, *, arch: str, entry: str | None = None) -> Kernel:
    """One kernel of a binary file, for a GPU of architecture `arch` (``sm_80``).

    Machine code runs on its own architecture and on later ones of the same major version; of several the
    latest that runs is taken. Where none runs, PTX is assembled, as the driver does. `entry` is a kernel's
    name, or its mangled symbol. Raises InputFileError for a foreign or damaged file, UsageError where no
    kernel fits.
    """
    return chosen(load_binary_module(path, data, arch=arch), entry, str(path))


def load_binary_module(path: Path, data: bytes, *, arch: str) -> dict[str, Kernel]:
    """All kernels of a binary file that run on `arch`, by symbol; see `load_binary`."""
    origin = str(path)
    found: dict[str, Kernel] = {}
    wanted = _number(arch)
    held = sorted(_images(data, origin), key=lambda i: (not i.is_cubin, -i.sm))
    for image in held:
        if image.is_cubin and image.sm // 10 == wanted // 10 and image.sm <= wanted:
            for symbol, kernel in cubin_kernels(image.unpacked(origin), f"sm_{image.sm}", origin).items():
                found.setdefault(symbol, kernel)
    if not found:
        found = _assembled(held, arch, origin)
    return found


def _assembled(held: Sequence[Image], arch: str, origin: str) -> dict[str, Kernel]:
    """The kernels of the PTX for the newest architecture that runs here. Raises UsageError where none does."""
    found: dict[str, Kernel] = {}
    texts = [image for image in held if not image.is_cubin]
    newest = max((image.sm for image in texts if image.sm <= _number(arch)), default=0)
    for image in texts:
        if image.sm == newest:
            text = image.unpacked(origin).rstrip(b"\0").decode("utf-8", "replace")
            if not is_ptx(text):
                raise InputFileError(f"{origin}: damaged PTX in a fat binary")
            module = read_ptx(text)
            for symbol, kernel in (ptx_kernels(text, module, arch, origin) if module.entries else {}).items():
                found.setdefault(symbol, kernel)
    if not found:
        names = [f"sm_{i.sm}" if i.is_cubin else f"PTX for sm_{i.sm}" for i in reversed(held)]
        holds = ", ".join(sorted(dict.fromkeys(names), key=lambda name: name.startswith("PTX"))) or "none"
        raise UsageError(f"{origin}: no machine code that runs on {arch} (it holds: {holds})")
    return found


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


def _number(arch: str) -> int:
    return int("".join(c for c in arch.removeprefix("sm_") if c.isdigit()))


def holds_device_code(data: bytes) -> bool:
    """Whether these are the bytes of a binary file with CUDA machine code or PTX in it, damaged or not."""
    try:
        if data[:4] != b"\x7fELF":
            return is_binary(data)
        if len(data) >= 20 and struct.unpack_from("<H", data, 18)[0] == CUDA_MACHINE:
            return True
        return any(section.name in _HOST_SECTIONS for section in sections_of(data, ""))
    except InputFileError:
        return False
