"""Load kernels from existing machine code: a CUBIN, a fat binary, an executable or an object file."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputFileError, ToolError, UsageError
from ...kernel.kernel import Kernel
from ...kernel.launch.layout import Layouts
from ..loaded import chosen, cubin_kernels
from ..ptx import is_ptx, read_ptx
from ..ptx.assembler import ptx_kernels
from . import MAGIC, MAGIC_BYTES, is_binary, is_kept
from .elf import CUDA_MACHINE, parse_elf, sections_of
from .kept import read_kept
from .signatures import layouts_in

# Fat binaries: the container in which the compiler driver packs machine code for several architectures.
#
# NVIDIA does not document the layout; this is what CUDA 11 to 13 write. A container is a 16-byte header followed by
# entries, each with its own header. An executable has its containers in section `.nv_fatbin` (or `__nv_relfatbin`
# before linking).

_ELF, _PTX = 2, 1
_LZ4, _ZSTD = 0x2000, 0x8000
_HEADER_BYTES, _ENTRY_BYTES = 16, 64
_MOST_UNPACKED = 1 << 28
"""Size limit of one module's machine code in bytes."""
_MOST_WINDOW = 1 << 27
_LZ4_RATIO = 255
"""LZ4's maximum compression ratio: one length byte for 255 bytes of output."""


@dataclass(frozen=True, slots=True)
class Image:
    """One entry: machine code or PTX text for `sm`, unpacked on demand."""

    is_cubin: bool
    sm: int
    flags: int
    packed: bytes
    size: int

    def unpacked(self, origin: str) -> bytes:
        """The content. Raises ToolError if the package that unpacks it is not installed."""
        if not self.flags & (_ZSTD | _LZ4):
            return self.packed
        if self.size > _MOST_UNPACKED:
            raise InputFileError(f"{origin}: {self.size} bytes of machine code; expected at most {_MOST_UNPACKED}")
        body = _zstd(self.packed, self.size, origin) if self.flags & _ZSTD else _lz4(self.packed, self.size, origin)
        if len(body) != self.size:
            raise InputFileError(f"{origin}: damaged compressed machine code")
        return body


def images(data: bytes, origin: str) -> Iterator[Image]:
    """All entries of the consecutive containers in `data`, which may have padding between them."""
    at = 0
    while at + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:
            found = data.find(MAGIC_BYTES, at + 1)
            # Containers are aligned to 8 bytes; an unaligned match is other data.
            at = len(data) if found < 0 else -(-found // 8) * 8
            continue
        if header < _HEADER_BYTES:
            raise InputFileError(f"{origin}: damaged fat binary")
        end = at + header + size
        if end > len(data):
            raise InputFileError(f"{origin}: truncated fat binary (its header states {header + size} bytes)")
        at += header
        while at < end:
            try:
                kind, _, head, stored, packed = struct.unpack_from("<HHIQI", data, at)
                sm = struct.unpack_from("<I", data, at + 28)[0]
                flags, _, unpacked = struct.unpack_from("<QQQ", data, at + 40)
            except struct.error:
                raise InputFileError(f"{origin}: truncated fat binary") from None
            if head < 64 or at + head + stored > end:
                raise InputFileError(f"{origin}: damaged fat binary")
            if kind in (_ELF, _PTX):
                body = data[at + head : at + head + (packed or stored)]
                yield Image(kind == _ELF, sm, flags, body, unpacked)
            at += head + stored
        at = end


def _zstd(packed: bytes, size: int, origin: str) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise ToolError(f"{origin}: compressed with zstd; unpacking needs: pip install 'drywarp[binaries]'") from None
    try:
        # Never read more than the container's stated size, whatever the frame claims.
        with zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).stream_reader(packed) as reader:
            return reader.read(size + 1)
    except zstandard.ZstdError:
        raise InputFileError(f"{origin}: damaged compressed machine code") from None


def _lz4(packed: bytes, size: int, origin: str) -> bytes:
    try:
        import lz4.block
    except ImportError:
        raise ToolError(f"{origin}: compressed with LZ4; unpacking needs: pip install 'drywarp[binaries]'") from None
    if size > len(packed) * _LZ4_RATIO + _LZ4_RATIO:
        raise InputFileError(f"{origin}: damaged compressed machine code")
    try:
        body: bytes = lz4.block.decompress(packed, uncompressed_size=size)
        return body
    except lz4.block.LZ4BlockError:
        raise InputFileError(f"{origin}: damaged compressed machine code") from None


_HOST_SECTIONS = (".nv_fatbin", "__nv_relfatbin")


def load_binary(path: Path, data: bytes, *, arch: str, entry: str | None = None) -> Kernel:
    """Load one kernel from a binary file, for a GPU of architecture `arch` (``sm_80``); a kept launch holds one.

    Machine code runs on its own architecture and on later ones of the same major version; the latest that runs is
    used. If none runs, PTX is assembled, as the driver does. `entry` is a kernel's name or mangled symbol. Raises
    InputFileError for an unknown or damaged file, UsageError if no kernel fits.
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
    if is_kept(data):
        symbol = read_kept(data, origin).symbol
        if symbol not in found:
            raise InputFileError(f"{origin}: damaged kept launch (its code has no kernel {symbol[:200]!r})")
        return {symbol: found[symbol]}
    return found


def images_with(data: bytes, symbol: str, origin: str) -> bytes:
    """A fat binary with all images of a binary file, or the PTX text, that may hold a kernel, unpacked."""
    if is_binary(data):
        held = [(image.is_cubin, image.sm, image.unpacked(origin)) for image in _images(data, origin)]
    else:
        text = data.rstrip(b"\0")
        held = [(False, _number(read_ptx(text.decode("utf-8", "replace")).target or "sm_0"), text)]
    entries = b"".join(_entry(*image) for image in held if symbol.encode() in image[2])
    return struct.pack("<IHHQ", MAGIC, 1, _HEADER_BYTES, len(entries)) + entries


def _entry(is_cubin: bool, sm: int, content: bytes) -> bytes:
    stored = len(content) + -len(content) % 8
    head = struct.pack("<HHIQI", _ELF if is_cubin else _PTX, 0, _ENTRY_BYTES, stored, len(content))
    head = head.ljust(28, b"\0") + struct.pack("<I", sm)
    head = head.ljust(40, b"\0") + struct.pack("<QQQ", 0, 0, len(content))
    return head + content.ljust(stored, b"\0")


def debug_layouts(kernel: Kernel, data: bytes, origin: str) -> Layouts | None:
    """The layouts that debug information in a binary file states for one of its kernels; None without any.

    Damaged debug information counts as none: the machine code alone is enough for most launches.
    """
    for image in _images(data, origin):
        if image.is_cubin and f"sm_{image.sm}" == kernel.arch:
            with contextlib.suppress(InputFileError):
                if (found := layouts_in(image.unpacked(origin), kernel.symbol, origin)) is not None:
                    return found
    return None


def _assembled(held: Sequence[Image], arch: str, origin: str) -> dict[str, Kernel]:
    """The kernels from the newest PTX that runs on `arch`. Raises UsageError if none does."""
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
    if is_kept(data):
        data = read_kept(data, origin).code
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
    """The number after ``sm_`` of a CUBIN, from its ELF flags; its position changed with ABI version 8."""
    flags = parse_elf(cubin, origin).flags
    number = (flags >> 8) & 0xFF if cubin[8] >= 8 else flags & 0xFF
    if not 20 <= number <= 255:
        raise InputFileError(f"{origin}: CUBIN of an unknown architecture (ELF flags {flags:#x})")
    return number


def _number(arch: str) -> int:
    return int("".join(c for c in arch.removeprefix("sm_") if c.isdigit()))


def holds_device_code(data: bytes) -> bool:
    """Whether this binary contains CUDA machine code or PTX, damaged or not."""
    try:
        if data[:4] != b"\x7fELF":
            return is_binary(data)
        if len(data) >= 20 and struct.unpack_from("<H", data, 18)[0] == CUDA_MACHINE:
            return True
        return any(section.name in _HOST_SECTIONS for section in sections_of(data, ""))
    except InputFileError:
        return False
