"""Fat binaries: the container in which the compiler driver packs machine code for several architectures.

The layout is that of the files which CUDA 11 to 13 write; NVIDIA documents none of it. A container is a
16-byte header and entries, each with a header of its own; an executable holds containers in its section
`.nv_fatbin` (or `__nv_relfatbin` before linking).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InputFileError, ToolError

MAGIC = 0xBA55ED50
_ELF, _PTX = 2, 1
_LZ4, _ZSTD = 0x2000, 0x8000


@dataclass(frozen=True, slots=True)
class Image:
    """One entry: machine code (`cubin`) or PTX text, for `sm`, with its bytes unpacked on demand."""

    is_cubin: bool
    sm: int
    flags: int
    packed: bytes
    size: int

    def unpacked(self, origin: str) -> bytes:
        """The content. Raises ToolError where the package that unpacks it is not installed."""
        if not self.flags & (_ZSTD | _LZ4):
            return self.packed
        body = _zstd(self.packed, origin) if self.flags & _ZSTD else _lz4(self.packed, self.size, origin)
        if len(body) != self.size:
            raise InputFileError(f"{origin}: damaged compressed machine code")
        return body


def images(data: bytes, origin: str) -> Iterator[Image]:
    """All entries of the containers in `data`, which may follow each other with padding between."""
    at = 0
    while at + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:
            at += 8
            continue
        end = at + header + size
        if end > len(data):
            raise InputFileError(f"{origin}: truncated fat binary (it says {header + size} bytes)")
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


def _zstd(packed: bytes, origin: str) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise ToolError(f"{origin}: compressed with zstd; unpacking needs: pip install 'drywarp[binaries]'") from None
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    except zstandard.ZstdError:
        raise InputFileError(f"{origin}: damaged compressed machine code") from None


def _lz4(packed: bytes, size: int, origin: str) -> bytes:
    try:
        import lz4.block
    except ImportError:
        raise ToolError(f"{origin}: compressed with LZ4; unpacking needs: pip install 'drywarp[binaries]'") from None
    try:
        body: bytes = lz4.block.decompress(packed, uncompressed_size=size)
        return body
    except lz4.block.LZ4BlockError:
        raise InputFileError(f"{origin}: damaged compressed machine code") from None
