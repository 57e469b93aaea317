"""Why an answer as a whole is in doubt, in words."""

from __future__ import annotations

from collections.abc import Iterator

from ..kernel.kernel import Kernel
from ..memory.behaviour import MemoryBehaviour
from ..ready import BoundKernel
from ..units import bytes_text


def doubts_of(ready: BoundKernel) -> tuple[str, ...]:
    """What comes before anything else that is said of this kernel; empty where nothing does."""
    return tuple(_doubts(ready.kernel, ready.behaviour))


def _doubts(kernel: Kernel, behaviour: MemoryBehaviour) -> Iterator[str]:
    if behaviour.dependent is not None:
        yield (
            f"not to be trusted: what a block does depends on what other blocks of the launch write"
            f"{_place(kernel, behaviour.dependent)}; each was predicted as if it were alone"
        )
    if behaviour.contended is not None:
        yield (
            f"at least the time given: blocks repeat a compare-and-swap on one address"
            f"{_place(kernel, behaviour.contended)} and get in each other's way; "
            "the attempts of one block alone are counted"
        )


def _place(kernel: Kernel, index: int) -> str:
    source = kernel.instructions[index].source
    return f" ({source})" if source else ""


def memory_doubt(behaviour: MemoryBehaviour) -> tuple[str, ...]:
    """Between which figures DRAM reads lie where what blocks share in the L2 could not be followed to the end."""
    if behaviour.dram_read_range is None:
        return ()
    least, most = (bytes_text(end) for end in behaviour.dram_read_range)
    return (f"the L2 was not followed to the end: DRAM reads lie between {least} and {most}",)
