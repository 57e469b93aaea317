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
_MAGIC_BYTES = struct.pack("<I", MAGIC)
_ELF, _PTX = 2, 1
_LZ4, _ZSTD = 0x2000, 0x8000
_HEADER_BYTES = 16
_MOST_UNPACKED = 1 << 28
"""Bytes of one module's machine code."""
_MOST_WINDOW = 1 << 27
_LZ4_RATIO = 255
"""What LZ4 can compress at best: a byte more of length for 255 bytes of output."""


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
        if self.size > _MOST_UNPACKED:
            raise InputFileError(f"{origin}: {self.size} bytes of machine code; expected {_MOST_UNPACKED} at most")
        body = _zstd(self.packed, self.size, origin) if self.flags & _ZSTD else _lz4(self.packed, self.size, origin)
        if len(body) != self.size:
            raise InputFileError(f"{origin}: damaged compressed machine code")
        return body


def images(data: bytes, origin: str) -> Iterator[Image]:
    """All entries of the containers in `data`, which may follow each other with padding between."""
    at = 0
    while at + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:
            found = data.find(_MAGIC_BYTES, at + 1)
            # Containers are aligned to 8 bytes; what is not is content of something else.
            at = len(data) if found < 0 else -(-found // 8) * 8
            continue
        if header < _HEADER_BYTES:
            raise InputFileError(f"{origin}: damaged fat binary")
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


def _zstd(packed: bytes, size: int, origin: str) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise ToolError(f"{origin}: compressed with zstd; unpacking needs: pip install 'drywarp[binaries]'") from None
    try:
        # Never more than the container says, whatever the frame does.
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
