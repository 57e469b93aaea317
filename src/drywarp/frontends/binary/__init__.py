"""Machine code: ELF, cubins, fat binaries, and the listing of nvdisasm."""

from __future__ import annotations

import struct

MAGIC = 0xBA55ED50
"""With which a fat binary begins."""
MAGIC_BYTES = struct.pack("<I", MAGIC)
KEPT_MAGIC = b"\x93drywarp launch\n"
"""With which the file of a launch begins."""


def is_binary(data: bytes) -> bool:
    """Whether the data starts like a file that `containers` reads."""
    return data[:4] in (b"\x7fELF", MAGIC_BYTES) or is_kept(data)


def is_kept(data: bytes) -> bool:
    """Whether this is a kept launch, damaged or not."""
    return data.startswith(KEPT_MAGIC)
