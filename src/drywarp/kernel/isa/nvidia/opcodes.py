"""The opcodes of NVIDIA's machine code and the instruction classes: a row each in opcodes.txt and classes.txt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...instruction import Instruction, MemoryAccess


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


def _lines(name: str) -> list[str]:
    """The lines of a table beside this file, without comments."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


OPCODES = {row.name: row for row in map(_row, _lines("opcodes.txt"))}
"""Every known opcode by name."""


def having(trait: str) -> frozenset[str]:
    """The opcodes with a trait."""
    return frozenset(name for name, row in OPCODES.items() if trait in row.traits)


def giving(results: str) -> frozenset[str]:
    """The opcodes whose operands hold such results."""
    return frozenset(name for name, row in OPCODES.items() if row.results == results)


CLASSES: dict[str, str] = dict(line.split(maxsplit=1) for line in _lines("classes.txt"))
"""Every class with its description."""

UNKNOWN = "unknown"

MEMORY_CLASSES = frozenset(
    name for name in CLASSES if name.split("_")[0] in ("global", "local", "shared", "async", "bulk", "texture")
)

_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def memory_access(opcode: str, modifiers: tuple[str, ...]) -> MemoryAccess | None:
    """Space, kind and bytes per lane of a memory opcode; None for all others.

    The width of an atomic follows its type suffix. LDSM reads 16 bytes per addressed row. For a bulk copy, the accesses
    to global memory are given, 16 bytes each. A texture fetch counts as 4 bytes, because only the texture determines
    the texel size.
    """
    if opcode == "UBLKCP":
        direction = {"S.G": "bulk_load", "G.S": "bulk_store"}.get(".".join(modifiers[:2]))
        return MemoryAccess("global", direction, 16) if direction else None
    row = OPCODES.get(opcode)
    if row is None or row.memory is None:
        return None
    space, kind = row.memory
    if kind.startswith("bulk"):
        return MemoryAccess(space, kind, 16)
    width = 16 if opcode in ("LDSM", "STSM") else 4
    if opcode not in ("LDSM", "STSM"):
        for modifier in modifiers:
            if modifier in _WIDTHS:
                width = _WIDTHS[modifier]
            elif modifier in ("U64", "S64", "F64"):
                width = 8
    return MemoryAccess(space, kind, width)


def class_of(opcode: str, modifiers: tuple[str, ...]) -> str:
    """The instruction class of an opcode with its modifiers; ``unknown`` if there is none."""
    if opcode in ("IMAD", "IMUL") and modifiers and modifiers[0] in ("WIDE", "HI"):
        return "imad_wide"
    if row := OPCODES.get(opcode):
        return row.class_
    return "uniform" if opcode.startswith("U") and len(opcode) > 3 else UNKNOWN


def is_barrier(instruction: Instruction) -> bool:
    """Whether the warp waits here for the other warps of its thread block (assuming a barrier for all threads).

    For NVIDIA's cluster barrier, with one block per cluster, this is its second half.
    """
    if instruction.opcode == "BAR":
        return "ARV" not in instruction.modifiers
    return instruction.opcode in ("s_barrier", "UCGABAR_WAIT")
