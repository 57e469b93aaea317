"""Why a warp does not issue: the reasons, which classes have which, and how a warp's time is divided.

A warp's time on the SM, from its launch to its end, is divided completely and exactly, in ticks. Let a
warp have issued instruction P at t0, and let N, issued at t1, be its next one. Then [t0, t1) is cut, in this
order, each part beginning where the one before ended and none reaching beyond t1, into

1. ``selected`` up to t0 + 1 cycle: the warp issues. It belongs to P; all that follows belongs to N, the
   instruction that waits, as in Nsight Compute's source view.
2. ``wait`` up to t0 + P's stall count.
3. ``barrier`` up to the tick at which the barrier lets the warp go, where P is one.
4. Up to the tick at which all slots that N waits for are ready: the reason of the producer that is
   ready last (the first of equals), `dependent_reason`.
5. From there on N could issue as far as its warp goes. While its subsystem takes no instruction (the
   last one's λ is not over, or its limit of outstanding instructions is reached): `busy_reason`. While the
   subsystem would take it, but the valve is shut or another warp goes first: ``not_selected``.

Where P awaits some of its block's warps (`phases.py`), the time until it goes on is P's own.

The first instruction has no P: its time since the launch is of the fifth kind. After its last
instruction a warp is ``selected`` for a cycle too, is at the ``barrier`` if that was one, and else in
``drain`` until its results are there: time of that last instruction.

Where a warp may issue out of program order, N is the instruction that issued next: the others that were
waiting as well get nothing of that time.

A subsystem that instructions issue to and that is also some transaction's further level counts as taken
by the instructions alone.
"""

from __future__ import annotations

REASONS = (
    "selected",
    "not_selected",
    "math_pipe_throttle",
    "lg_throttle",
    "mio_throttle",
    "wait",
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "drain",
    "tex_throttle",
    "membar",
    "gmma",
)
"""By code; the names are Nsight Compute's stall reasons.

In an execution profile ``selected`` stands where nothing held the instruction back: the first of a
warp, at its launch. ``drain`` is no instruction's reason there.
"""

_L1TEX = ("global", "local", "texture", "async_copy", "bulk_copy", "mem")
"""Beginnings of the names of classes that go through the L1TEX unit; ``mem`` is the papers' memory class."""

_MIO = ("shared", "sfu", "shuffle", "reduce", "special_register", "constant_load", "bit", "barrier", "mbarrier")
"""Those of classes that go through the memory input/output queue, with special functions as NVIDIA says."""

_MIO_EXACT = ("convert",)
"""Whole names of such classes: conversions at the rate of integer arithmetic are of fixed latency."""

_VARIABLE = ("fp64",)
"""Arithmetic for which the compiler leaves a scoreboard; the pipe itself is a mathematical one."""


def dependent_reason(class_: str, levels: bool) -> str:
    """What waiting for the result of a node of a class is called: fixed latencies count as ``wait``.

    `levels` says whether it visits further levels of memory.
    """
    if class_ == "wgmma":
        return "gmma"
    if levels or class_.startswith(_L1TEX):
        return "long_scoreboard"
    if class_ == "fence":
        return "membar"
    return "short_scoreboard" if _is_mio(class_) or class_ in _VARIABLE else "wait"


def await_reason(class_: str, levels: bool) -> str:
    """What waiting at such a node for some warps of the block is called."""
    return "barrier" if class_ == "barrier" else dependent_reason(class_, levels)


def busy_reason(class_: str) -> str:
    """What waiting for the subsystem of a node of a class to take it is called."""
    if class_ == "texture":
        return "tex_throttle"
    if class_.startswith((*_L1TEX, "fence")):
        return "lg_throttle"
    return "mio_throttle" if _is_mio(class_) else "math_pipe_throttle"


def _is_mio(class_: str) -> bool:
    return class_.startswith(_MIO) or class_ in _MIO_EXACT
