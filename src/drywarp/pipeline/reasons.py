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
5. ``imc_miss`` until the constant that N reads as an operand is in its cache (`CostedNode.miss_ticks`).
6. From there on N could issue as far as its warp goes. While its subsystem takes no instruction (the
   last one's λ is not over, or its limit of outstanding instructions is reached): `busy_reason`. While the
   subsystem would take it, but the valve is shut or another warp goes first: ``not_selected``.

If P awaits some of its block's warps (`blocks.py`), the time until it resumes is charged to P.

The first instruction has no P: its time since the launch is of the last two kinds. After its last
instruction a warp is ``selected`` for a cycle too, is at the ``barrier`` if that was one, and else in
``drain`` until its results are there: time of that last instruction.

If a warp may issue out of program order, N is the instruction that issued next: none of that time is charged to the
others that were waiting.

A subsystem to which instructions issue and which is also a further level of some transaction counts as busy from the
instruction's wait on until it is free, though it may have been idle in between. An instruction that queues for its own
subsystem never waits for it: its consumers wait for its result.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError

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
    "imc_miss",
)
"""By code; the names are Nsight Compute's stall reasons.

In an execution profile ``selected`` means that nothing delayed the instruction: the first of a warp, at its launch.
``drain`` is not used there.
"""

_L1TEX = ("global", "local", "texture", "async_copy", "bulk_copy", "mem")
"""Prefixes of the names of classes that use the L1TEX unit; ``mem`` is the papers' memory class."""

_MIO = (
    *("shared", "sfu", "shuffle", "reduce", "special_register", "constant_load", "bit", "barrier", "mbarrier"),
    *("tensor_load", "tensor_store"),
)
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


# The scheduler policies: which of the ready warps issues.
#
# Every policy is a priority among the warps of one partition, so it is stored as data that the core reads; a new
# policy of this kind is one entry here and needs no recompilation.


ROTATION, OLDEST, YOUNGEST = 0, 1, -1
"""Orders of warps: starting after the warp slot that issued last; by launch, in either direction."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A priority: the first warp in `order` issues; with `greedy`, the warp that issued last does if it can."""

    name: str
    summary: str
    order: int
    greedy: bool = False


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("loose_round_robin", "the next warp slot after the one that issued last", ROTATION),
        Policy("greedy_then_round_robin", "the warp that issued last, else the slot after its", ROTATION, greedy=True),
        Policy("greedy_then_oldest", "the warp that issued last, else the one launched first", OLDEST, greedy=True),
        Policy("oldest_first", "the warp launched first", OLDEST),
        Policy("greedy_then_youngest", "the warp that issued last, else the one launched last", YOUNGEST, greedy=True),
    )
}
"""All known policies by name."""


def policy_named(name: str) -> Policy:
    """The policy of that name. Raises UsageError listing the known ones."""
    try:
        return POLICIES[name]
    except KeyError:
        raise UsageError(f"unknown scheduler policy {name!r}; known: {', '.join(POLICIES)}") from None
