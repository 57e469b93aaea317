"""The opcodes of NVIDIA's machine code, one row each in opcodes.txt beside this file; and the instruction classes."""

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


# Instruction classes: the units for which a GPU file gives λ and Λ, and the class of each opcode.
#
# The classes are coarse enough that documentation gives their throughput, and fine enough that all members of a class
# behave alike. A class is only a name; the GPU file defines its subsystem and speed.

CLASSES: dict[str, str] = {
    "fp32": "single-precision add, multiply, fused multiply-add",
    "fp32_compare": "single-precision compare, minimum, select",
    "fp16": "half-precision (packed or not) arithmetic",
    "fp64": "double-precision arithmetic and compare",
    "int": "32-bit integer add, logic, compare, minimum, select, shift-and-add, permute",
    "imad": "32-bit integer multiply-add, and moves and shifts encoded as such",
    "imad_wide": "integer multiply-add with a 64-bit result or the high half",
    "shift": "shifts and funnel shifts",
    "move": "register moves and constants",
    "bit": "population count, find leading one, bit reverse",
    "sfu": "special functions: reciprocal, square root, exponential, logarithm, sine, cosine; range check",
    "convert": "conversions between types that run on the conversion unit",
    "convert_fast": "conversions and packings at the rate of integer arithmetic",
    "predicate": "predicate logic and moves between predicates and registers",
    "vote": "votes over the lanes of a warp",
    "shuffle": "register exchange between lanes, and match",
    "reduce": "reductions over the lanes of a warp",
    "uniform": "uniform datapath: one result for the whole warp",
    "special_register": "reads of special registers",
    "branch": "branches, calls, returns, exits",
    "convergence": "convergence barriers and warp synchronisation",
    "barrier": "thread-block barriers",
    "mbarrier": "barriers in shared memory: arrivals and waits",
    "fence": "memory fences and cache control",
    "nop": "instructions without effect, and scoreboard waits",
    "tensor": "matrix multiply-accumulate of a warp",
    "wgmma": "matrix multiply-accumulate of a warp group, asynchronous",
    "tcgen05": "matrix multiply-accumulate and copies into tensor memory, asynchronous, for the whole SM",
    "tensor_load": "loads from tensor memory",
    "tensor_store": "stores to tensor memory",
    "constant_load": "loads from constant banks through registers",
    "global_load": "loads from global memory",
    "global_store": "stores to global memory",
    "global_atomic": "atomics and reductions on global memory",
    "local_load": "loads from local memory",
    "local_store": "stores to local memory",
    "shared_load": "loads from shared memory",
    "shared_store": "stores to shared memory",
    "shared_atomic": "atomics on shared memory",
    "async_copy": "asynchronous copies from global to shared memory, lane by lane",
    "bulk_copy": "bulk and tensor copies between global and shared memory by the copy engine",
    "texture": "texture and surface accesses",
    "unknown": "opcodes without a class in drywarp, costed as integer arithmetic",
}
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
