"""The opcodes of NVIDIA's machine code: one row each, in opcodes.txt beside this file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Opcode:
    """A row of opcodes.txt, where its columns are explained.

    `group` is empty for an opcode that counts in none; `settled` says that counters show it. `memory` is the space and
    the kind of its access, None where it makes none.
    """

    name: str
    class_: str
    group: str
    settled: bool
    results: str
    memory: tuple[str, str] | None
    traits: frozenset[str]


def _row(line: str) -> Opcode:
    name, class_, group, results, memory, *traits = line.split()
    space, _, kind = memory.partition(".")
    return Opcode(
        name,
        class_,
        "" if group.rstrip("*") in ("-", "none") else group.rstrip("*"),
        group.endswith("*"),
        results,
        (space, kind) if kind else None,
        frozenset(traits),
    )


def _rows() -> dict[str, Opcode]:
    lines = (Path(__file__).with_name("opcodes.txt")).read_text(encoding="utf-8").splitlines()
    rows = [_row(line) for line in lines if line and not line.startswith("#")]
    return {row.name: row for row in rows}


OPCODES = _rows()
"""Every known opcode by name."""


def having(trait: str) -> frozenset[str]:
    """The opcodes with a trait."""
    return frozenset(name for name, row in OPCODES.items() if trait in row.traits)


def giving(results: str) -> frozenset[str]:
    """The opcodes whose operands hold such results."""
    return frozenset(name for name, row in OPCODES.items() if row.results == results)
