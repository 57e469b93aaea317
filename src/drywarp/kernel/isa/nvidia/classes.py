"""Instruction classes: the units for which a GPU file gives λ and Λ, and the class of each opcode.

The classes are coarse enough that documentation gives their throughput, and fine enough that all members of a class
behave alike. A class is only a name; the GPU file defines its subsystem and speed.
"""

from __future__ import annotations

from ...instruction import RZ, Constant, Immediate, Instruction, MemoryAccess, Register
from ...kernel import Kernel
from ...launch.launch import Launch, Scalar
from .opcodes import OPCODES

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


# The duration of `__nanosleep`.

_WORD = 4


def sleeps_of(kernel: Kernel, launch: Launch) -> dict[int, float | None]:
    """Nanoseconds that each `__nanosleep` requests, by instruction; None if neither code nor arguments determine it.

    The hardware may sleep for anything between zero and twice this time (CUDA C++ Programming Guide).
    """
    sleeping = {k: i for k, i in enumerate(kernel.instructions) if i.opcode == "NANOSLEEP" and i.operands}
    return {k: _asked(kernel, launch, i) for k, i in sleeping.items() if "SYNCS" not in i.modifiers}


def _asked(kernel: Kernel, launch: Launch, instruction: Instruction) -> float | None:
    operand = instruction.operands[-1]
    if isinstance(operand, Immediate):
        return float(operand.value)
    if isinstance(operand, Register) and operand.index == RZ:
        return 0.0
    if isinstance(operand, Constant) and operand.bank == 0 and operand.register is None:
        for parameter, value in zip(kernel.parameters, launch.arguments, strict=True):
            there = kernel.parameter_base + parameter.offset == operand.offset
            if there and isinstance(value, Scalar) and len(value.data) == _WORD:
                return float(int.from_bytes(value.data, "little"))
    return None
