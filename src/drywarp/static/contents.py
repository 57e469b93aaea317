"""What stands in for memory that nobody filled: which place an access goes to, and what a load brings from there.

Each element is taken to hold its own number, so that data that are used as an index lead to neighbouring
places in neighbouring lanes, unless the code scatters them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED
from .parameters import SLOT_BYTES, slot
from .state import Batch
from .words import Lanes

Addresses = npt.NDArray[np.uint64]
SPACES = {"global": SPACE_GLOBAL, "shared": SPACE_SHARED, "local": SPACE_LOCAL}
STRAY_BYTES = 1 << 38
"""Where accesses that lead to no buffer are put lies in so many bytes."""
POINTER, INTEGER = "pointer", "integer"
"""What a load of 64 bits brings, where that is known."""
PATTERNS = ("coalesced", "random", "uniform")
"""Patterns that a user may state for the accesses of a line: neighbouring, anywhere, or one place for all lanes."""
_BUFFERS = 1 << 12
"""Buffers, each in its part of a slot, that addresses in memory point to."""


def element(kind: str, loaded: int, offset: Addresses, width: int, word: int) -> npt.NDArray[np.uint32]:
    """Word `word` of what lies at an offset: the number of the element, or of the word in a wide one.

    `kind` says what the load brings, `loaded` is the slot of the buffers that its pointers lead to.
    """
    if kind == INTEGER:
        number = offset >> np.uint64(3) if word == 0 else np.zeros_like(offset)
    elif kind == POINTER:
        # The element's number says which of many buffers it points to.
        buffer = (offset >> np.uint64(3)) % np.uint64(_BUFFERS) * np.uint64(SLOT_BYTES // _BUFFERS)
        number = (np.uint64(slot(loaded)) + buffer) >> np.uint64(32 * word)
    elif width < 4:
        number = offset >> np.uint64(width.bit_length() - 1)
    else:
        number = (offset >> np.uint64(2)) + np.uint64(word)
    return number.astype(np.uint32)


def stated(batch: Batch, pattern: str, number: int, where: Addresses, width: int, lanes: Lanes) -> Addresses:
    """Addresses in the pattern that a user stated, in the buffer that the access goes to anyway."""
    slot_start = where & ~np.uint64(SLOT_BYTES - 1)
    first = np.take_along_axis(slot_start, lanes.argmax(axis=1)[:, None], axis=1)
    thread = batch.state.thread[batch.warps].astype(np.uint64)
    if pattern == "uniform":
        chosen = np.take_along_axis(where, lanes.argmax(axis=1)[:, None], axis=1)
        return np.broadcast_to(chosen, where.shape) & ~np.uint64(width - 1)
    turn = np.uint64(batch.executions(~number))
    elements = np.uint64(max(batch.state.launch.blocks * batch.state.launch.threads_per_block, 1))
    element = thread + turn * elements
    if pattern == "random":
        # A mixer of bits (the finaliser of SplitMix64), so that a run repeats.
        x = element + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        element = (x ^ x >> np.uint64(31)) % elements
    return first + element * np.uint64(width)
