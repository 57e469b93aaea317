"""Why a warp does not issue: the reasons, which classes have which, and how a warp's time is divided.

A warp's time on the SM, from its launch to its end, is divided completely and exactly, in ticks. Suppose a warp issued
instruction P at t0 and its next instruction N at t1. Then [t0, t1) is cut into the following parts, in this order, each
beginning where the previous one ended and none extending beyond t1:

1. ``selected`` up to t0 + 1 cycle: the warp issues. It belongs to P; all that follows belongs to N, the
   instruction that waits, as in Nsight Compute's source view.
2. ``wait`` up to t0 + P's stall count.
3. ``barrier`` up to the tick at which the barrier lets the warp go, where P is one.
4. Up to the tick at which all slots that N waits for are ready: the reason of the producer that is ready last (the
   first of equals), `dependent_reason`.
5. From there on N could issue as far as its warp goes. While its subsystem takes no instruction (the
   last one's λ is not over, or its limit of outstanding instructions is reached): `busy_reason`. While the
   subsystem would take it, but the valve is shut or another warp goes first: ``not_selected``.

If P awaits some of its block's warps (`blocks.py`), the time until it resumes is charged to P.

The first instruction has no P: its time since the launch is of the fifth kind. After its last
instruction a warp is ``selected`` for a cycle too, is at the ``barrier`` if that was one, and else in
``drain`` until its results are there: time of that last instruction.

If a warp may issue out of program order, N is the instruction that issued next: none of that time is charged to the
others that were waiting.

A subsystem to which instructions issue and which is also a further level of some transaction counts as busy from the
instruction's wait on until it is free, though it may have been idle in between. An instruction that queues for its own
subsystem never waits for it: its consumers wait for its result.
"""

from __future__ import annotations

from typing import Any

from .columns import BEFORE, BUSY_REASON, COUNTED, NOT_SELECTED, SELECTED, SPELL_BEFORE, SPELL_START, step

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

In an execution profile ``selected`` means that nothing delayed the instruction: the first of a warp, at its launch.
``drain`` is not used there.
"""

_L1TEX = ("global", "local", "texture", "async_copy", "bulk_copy", "mem")
"""Prefixes of the names of classes that use the L1TEX unit; ``mem`` is the papers' memory class."""

_MIO = ("shared", "sfu", "shuffle", "reduce", "special_register", "constant_load", "bit", "barrier", "mbarrier")
"""Prefixes for the memory input/output queue, which includes special functions according to NVIDIA."""

_MIO_EXACT = ("convert",)
"""Full names of such classes: conversions at the rate of integer arithmetic have a fixed latency."""

_VARIABLE = ("fp64",)
"""Arithmetic for which the compiler uses a scoreboard; the pipe itself is a math pipe."""


def dependent_reason(class_: str, levels: bool) -> str:
    """The reason for waiting for the result of a node of a class: fixed latencies count as ``wait``.

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
    """The reason for waiting at such a node for some warps of the block."""
    return "barrier" if class_ == "barrier" else dependent_reason(class_, levels)


def busy_reason(class_: str) -> str:
    """The reason for waiting until the subsystem of a node of a class accepts it."""
    if class_ == "texture":
        return "tex_throttle"
    if class_.startswith((*_L1TEX, "fence")):
        return "lg_throttle"
    return "mio_throttle" if _is_mio(class_) else "math_pipe_throttle"


def _is_mio(class_: str) -> bool:
    return class_.startswith(_MIO) or class_ in _MIO_EXACT


# Compiled steps that divide the warps' time among reasons; the module's docstring defines how.
#
# The difficult part is how long a subsystem accepted nothing while an instruction could have issued: other warps may
# have found it free in between. So each subsystem's busy periods are recorded, contiguous ones merged, with the sum of
# the earlier ones. The last one, `newest`, ends when the subsystem is next free. The notes are bounded: when they are
# full, what each waiting instruction needs of them is saved, and they are reset.


@step
def busy_before(resource: int, tick: int, free: Any, spells: Any, newest: Any) -> int:
    """Ticks before `tick` in which the subsystem was busy; `tick` is not before the first recorded period."""
    low, high = 0, newest[resource]
    while low < high:
        middle = (low + high + 1) // 2
        if spells[resource, middle, SPELL_START] <= tick:
            low = middle
        else:
            high = middle - 1
    begins = spells[resource, low, SPELL_START]
    before = spells[resource, low, SPELL_BEFORE]
    last = low == newest[resource]
    lasts = free[resource] - begins if last else spells[resource, low + 1, SPELL_BEFORE] - before
    ticks: int = before + min(tick - begins, lasts)
    return ticks


@step
def busy_since(resource: int, tick: int, written: int, free: Any, spells: Any, newest: Any) -> int:
    """Ticks from `tick` until now in which the subsystem was busy; it became free after `tick`.

    `written` is `busy_before` of `tick` if the notes no longer reach back that far.
    """
    last = newest[resource]
    begins = spells[resource, last, SPELL_START]
    ticks: int = free[resource] - max(tick, begins)
    if tick < begins:
        ticks += spells[resource, last, SPELL_BEFORE]
        if tick < spells[resource, 0, SPELL_START]:
            ticks -= written
        else:
            ticks -= busy_before(resource, tick, free, spells, newest)
    return ticks


@step
def note_spell(resource: int, tick: int, free: Any, spells: Any, newest: Any) -> None:
    """Record that a busy period begins at `tick`, after an idle time; full notes are reset."""
    last = newest[resource]
    before = spells[resource, last, SPELL_BEFORE] + free[resource] - spells[resource, last, SPELL_START]
    last = last + 1 if last + 1 < spells.shape[1] else 0
    spells[resource, last, SPELL_START] = tick
    spells[resource, last, SPELL_BEFORE] = before
    newest[resource] = last


@step
def count_issue(
    w: int, node: int, own: int, tick: int, counted: int, written: int, cycle: int, nodes: Any, warps: Any,
    stalls: Any, free: Any, spells: Any, newest: Any,
) -> None:  # fmt: skip
    """Account for the time from `counted`, when the instruction could issue within its warp, to its issue."""
    if tick < warps[w, COUNTED]:  # sooner than a cycle after the last
        stalls[warps[w, BEFORE], SELECTED] -= warps[w, COUNTED] - tick
    elif tick > counted:
        if free[own] > counted:
            throttled = busy_since(own, counted, written, free, spells, newest)
            stalls[node, nodes[node, BUSY_REASON]] += throttled
            counted += throttled
        stalls[node, NOT_SELECTED] += tick - counted
    warps[w, BEFORE] = node
    warps[w, COUNTED] = tick + cycle
    stalls[node, SELECTED] += cycle
