"""User hints on loops, branches and accesses, by loop name or by source line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ...errors import UsageError
from ...kernel.instruction import Instruction
from .decide import DEFAULT_TRIPS
from .flow import Flow

T = TypeVar("T")


@dataclass(frozen=True)
class Hints:
    """A user's hints.

    `trips`: trip count of a machine-code loop by name (``L1``), or of a source loop by line (``file.cu:21`` or ``21``).
    `taken`: share of threads that take a branch at a line whose condition is unknown. `access`: pattern of the accesses
    at a line. `default_trips` is the trip count of a source loop about which nothing is known; instead, `seen` says how
    many iterations of a machine-code loop an emulation had run when it was stopped, by the loop's first basic block.
    """

    trips: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[str, float] = field(default_factory=dict)
    access: Mapping[str, str] = field(default_factory=dict)
    default_trips: int = DEFAULT_TRIPS
    seen: Mapping[int, int] = field(default_factory=dict)


def trips_by_loop(hints: Hints, flow: Flow, name: str) -> dict[int, int]:
    """Trip counts by loop index. Raises UsageError for a loop that does not exist or an impossible count."""
    found: dict[int, int] = {}
    for key, count in hints.trips.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise UsageError(f"trip {key}={count}: expected a whole number, 0 or more")
        if key in by_name(flow):
            indices = [by_name(flow)[key]]
        else:
            indices = [
                loop.index for loop in flow.loops if loop.source and _meant(key, loop.source.file, loop.source.line)
            ]
        if not indices:
            raise UsageError(f"trip {key}: {name} has no such loop; it has {_loops_text(flow)}")
        for index in indices:
            loop = flow.loops[index]
            iterations = count if key in by_name(flow) else -(-count // loop.copies)
            found[index] = max(iterations, 1) if loop.at_end else iterations
    return found


def by_name(flow: Flow) -> dict[str, int]:
    """Loop index by name."""
    return {loop.name: loop.index for loop in flow.loops}


def _loops_text(flow: Flow) -> str:
    return ", ".join(f"{loop.name} at {loop.source or 'no known line'}" for loop in flow.loops) or "no loops"


def _meant(key: str, file: str, line: int) -> bool:
    """Whether `file.cu:21`, or `21`, names a line."""
    wanted, _, number = key.rpartition(":")
    return number == str(line) and (not wanted or file == wanted or file.endswith(f"/{wanted}"))


def shares_by_instruction(hints: Hints, instructions: Sequence[Instruction]) -> dict[int, float]:
    """Stated shares by instruction. Raises UsageError for an unknown line or an invalid share."""
    for key, share in hints.taken.items():
        if not 0 <= share <= 1:
            raise UsageError(f"taken {key}={share:g}: expected a fraction between 0 and 1")
    return _by_line(hints.taken, instructions, lambda i: True, "taken")


def patterns_by_instruction(
    hints: Hints, instructions: Sequence[Instruction], patterns: Sequence[str]
) -> dict[int, str]:
    """Stated patterns by memory instruction. Raises UsageError for an unknown pattern or a line without accesses."""
    for key, pattern in hints.access.items():
        if pattern not in patterns:
            raise UsageError(f"access {key}={pattern}: expected one of {', '.join(patterns)}")
    return _by_line(hints.access, instructions, lambda i: i.memory is not None, "access")


def _by_line(
    stated: Mapping[str, T], instructions: Sequence[Instruction], counts: Callable[[Instruction], bool], what: str
) -> dict[int, T]:
    found: dict[int, T] = {}
    for key, value in stated.items():
        here = [
            n
            for n, i in enumerate(instructions)
            if i.source and counts(i) and _meant(key, i.source.file, i.source.line)
        ]
        if not here:
            expected = "a line with a memory access" if what == "access" else "a line with code"
            raise UsageError(f"{what} {key}: no such line (expected {expected}, as in 21 or file.cu:21)")
        found |= dict.fromkeys(here, value)
    return found
