"""Functions that the code calls but does not contain: the device's printf, assert and malloc.

They come with the driver. A call goes through a word of a constant bank that the loader fills with the function's
address; here the address identifies the function's name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...kernel.instruction import Instruction, Register
from ...kernel.kernel import Kernel
from .bits import LANES
from .constants import EXTERNAL_BASE, EXTERNAL_STRIDE
from .decode import Decoder, place
from .frame import Frame
from .operands import ZERO

_VALUE_REGISTER = 4
"""First register of arguments and results in the device's calling convention."""
_ALLOCATION = np.uint64(16)
HEAP = "the device's heap"
HEAP_BYTES = 8 << 20
"""The default heap of `malloc` in device code (cudaLimitMallocHeapSize)."""
_HEAP_NOTE = (
    f"malloc and free: served from a heap of {HEAP_BYTES >> 20} MiB; free returns nothing to it; both take zero time"
)

Call = Callable[[Frame], None]


def external_at(kernel: Kernel, address: int) -> str | None:
    """The name of the external function at an address; None if there is none."""
    number, rest = divmod(address - EXTERNAL_BASE, EXTERNAL_STRIDE)
    return kernel.externals[number].name if not rest and 0 <= number < len(kernel.externals) else None


def needs_heap(kernel: Kernel) -> bool:
    """Whether the kernel allocates memory."""
    return any(external.name == "malloc" for external in kernel.externals)


def external_call(d: Decoder, i: Instruction, name: str) -> Call:
    """The effect of a call to an external function on the executing lanes, besides returning."""
    result = d.put(Register(_VALUE_REGISTER))
    if name == "malloc":
        return _allocate(d)
    left_out = {
        "vprintf": "printf was skipped",
        "free": _HEAP_NOTE,
        "__assertfail": f"an assertion failed at {place(d.kernel, i)}; the run continued",
    }.get(name, f"{name} was skipped at {place(d.kernel, i)}: its code is not in the kernel; it returned 0")

    def leave_out(f: Frame) -> None:
        f.machine.notes.add(left_out)
        result(f, ZERO)

    return leave_out


def _allocate(d: Decoder) -> Call:
    """Memory from a heap that only grows, lane after lane; a null pointer if it is exhausted."""
    size = d.pair(Register(_VALUE_REGISTER))
    result = d.put_pair(Register(_VALUE_REGISTER))
    memory = d.memory
    used_up = f"malloc returned null pointers: the device's heap of {HEAP_BYTES >> 20} MiB was exhausted"

    def allocate(f: Frame) -> None:
        f.machine.notes.add(_HEAP_NOTE)
        lanes = f.lanes()
        wanted = f.spread(size(f))
        possible = wanted <= np.uint64(HEAP_BYTES)
        pieces = (np.maximum(wanted, np.uint64(1)) + _ALLOCATION - np.uint64(1)) // _ALLOCATION
        taken = np.where(lanes & possible, pieces * _ALLOCATION, np.uint64(0))
        ends = np.cumsum(taken, dtype=np.uint64).reshape(f.rows, LANES) + np.uint64(memory.heap_used)
        fits = possible & (ends <= np.uint64(HEAP_BYTES))
        if not fits[lanes].all():
            f.machine.notes.add(used_up)
        memory.heap_used = int(ends[fits & lanes].max(initial=memory.heap_used))
        start = np.uint64(memory.region_named(HEAP).start)
        result(f, np.where(fits, start + ends - taken, np.uint64(0)))

    return allocate
