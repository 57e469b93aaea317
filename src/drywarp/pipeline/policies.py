"""Scheduler policies: which of the warps that could issue at the same tick does.

Every policy is a priority among the warps of one partition, so it is written down as data that the
compiled loops read; a new policy of this kind is one entry here and nothing is compiled anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError

ROTATION, OLDEST, YOUNGEST = 0, 1, -1
"""Orders among warps: onward from the warp slot that issued last; by launch, either way."""


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
        Policy(
            "greedy_then_round_robin",
            "the warp that issued last, else the next warp slot after it",
            ROTATION,
            greedy=True,
        ),
        Policy("greedy_then_oldest", "the warp that issued last, else the one launched first", OLDEST, greedy=True),
        Policy("oldest_first", "the warp launched first", OLDEST),
        Policy("greedy_then_youngest", "the warp that issued last, else the one launched last", YOUNGEST, greedy=True),
    )
}
"""All known policies by name."""


def policy_named(name: str) -> Policy:
    """The policy of that name. Raises UsageError naming those that exist."""
    try:
        return POLICIES[name]
    except KeyError:
        raise UsageError(f"unknown scheduler policy {name!r}; known: {', '.join(POLICIES)}") from None
