"""What limits a kernel, in words."""

from __future__ import annotations

from ..models.base import UNKNOWN_LIMIT, Prediction

SUBSYSTEM_WORDS = {
    "dram": "DRAM bandwidth",
    "l2": "L2 bandwidth",
    "issue": "the issue rate of the warp schedulers",
    "latency": "latency",
    "atomics": "atomics on one address",
    UNKNOWN_LIMIT: "something that is not known",
}
"""What a reader calls a limit; pipes go by their own names."""


def limit_words(limit: str) -> str:
    """A limit as a reader calls it: `DRAM bandwidth`, `the fma pipe`."""
    return SUBSYSTEM_WORDS.get(limit, f"the {limit} pipe")


MATTERS, _NEARLY_ALL = 0.05, 0.95
"""Shares of the time from which on the kernel's start is spoken of, and is all that matters."""


def verdict(prediction: Prediction, start: float = 0.0, why: str = "") -> str:
    """What limits the kernel, and by how much, in a sentence; `start` is the share of its time before and behind it.

    `why` says why the limit is not known, where it is not.
    """
    said = _limit(prediction, why)
    if start < MATTERS:
        return said
    most = "Nearly all" if start > _NEARLY_ALL else f"{start:.0%}"
    return f"{most} of the time is the kernel's start, whatever it does. While it runs: {said[0].lower()}{said[1:]}"


def _limit(prediction: Prediction, why: str) -> str:
    limiter, busy = prediction.limiter, prediction.utilization
    if limiter == UNKNOWN_LIMIT:
        return "What limits it is not known" + (f": {why}." if why else ".")
    only = {name: cycles for name, cycles in prediction.headroom.items() if cycles > 0}
    if limiter == "latency":
        if not busy:
            return "Limited by latency: too few warps are in flight to keep any pipe busy."
        top = max(busy, key=lambda name: busy[name])
        gain = f", which alone would take {only[top] / prediction.cycles:.0%} of the time" if top in only else ""
        return (
            f"Limited by latency: waits are not hidden, and the busiest part, {limit_words(top)}, "
            f"is in use {busy[top]:.0%} of the time{gain}."
        )
    share = busy.get(limiter)
    text = f"Limited by {limit_words(limiter)}"
    if share is not None:
        text += f": in use {share:.0%} of the time"
    others = [(cycles, name) for name, cycles in only.items() if name not in (limiter, "latency")]
    if others and others[-1]:
        cycles, name = max(others)
        text += f"; the next limit, {limit_words(name)}, would allow {prediction.cycles / cycles:.1f} times the speed"
    return text + "."
