"""A CUBIN that exists already, as kernels; disassembled once and kept."""

from __future__ import annotations

import os

from ..kernel.kernel import Kernel
from . import cache
from .cubin import kernels_of
from .disassemble import disassemble
from .toolchain import tool_versions


def cubin_kernels(cubin: bytes, arch: str, origin: str, source: str = "") -> dict[str, Kernel]:
    """All kernels of a CUBIN for `arch` by symbol; `origin` is the file that messages name.

    `source` is the source file as the user named it: compilers write its absolute place into the line
    numbers, and the user's spelling is what comes out.
    """
    key = cache.key_of(cubin, origin, tool_versions()["nvdisasm"])
    entry = cache.load(key)
    if entry is None:
        entry = cache.Entry(cubin, disassemble(cubin, origin), "", {})
        cache.store(key, entry)
    listing = entry.listing
    if source:
        listing = listing.replace(f'"{os.path.abspath(source)}"', f'"{source}"')
    return kernels_of(cubin, listing, arch, origin)
