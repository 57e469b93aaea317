"""What would a profiler count? The metrics, groups and pipes, and the answer of `drywarp counts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...kernel.instruction import RZ, Instruction, Register
from ...kernel.isa.amd import is_amd
from ...kernel.isa.amd.opcodes import operations as amd_operations
from ...kernel.isa.nvidia.opcodes import OPCODES
from ...kernel.launch.launch import Dim3
from ...support.folders import packaged_rows
from ...support.text import json_of
from ..result.analysis import HEAD


@dataclass(frozen=True)
class Counts:
    """Nsight Compute's metrics of one launch on one GPU, for the whole grid.

    `counts` maps metric to value (see `METRICS`). `method` states how the L2 and DRAM figures were found
    (``affine``, ``followed``, ``emulated``, or ``bounded``: between extremes).
    """

    kernel: str
    source_file: str
    arch: str
    gpu: str
    gpu_title: str
    gpu_hash: str
    grid: Dim3
    block: Dim3
    registers: int
    shared_bytes: int
    local_bytes: int
    sampled_blocks: int
    method: str
    l2_state: str
    clock_hz: float
    counts: Mapping[str, float]
    versions: Mapping[str, str]
    schema_version: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        return {
            **json_of(self, f"schema_version versions {HEAD} counts notes"),
            "assumptions": {"l2": self.l2_state, "clock_hz": self.clock_hz},
            "launch": json_of(self, "grid block sampled_blocks"),
            "resources": json_of(self, "registers shared_bytes local_bytes"),
            "l2_method": self.method,
        }


METRICS = {row["metric"]: row["meaning"] for row in packaged_rows(Path(__file__).with_name("metrics.csv"))}
"""Maps a metric, or a family of metrics with *, to its meaning."""


def describe(metric: str) -> str:
    """What a metric means; empty for one that drywarp does not report."""
    if metric in METRICS:
        return METRICS[metric]
    for family, meaning in METRICS.items():
        head, star, tail = family.partition("*")
        if star and metric.startswith(head) and metric.endswith(tail):
            return meaning
    return ""


# The Nsight Compute group that an instruction counts in: `smsp__sass_thread_inst_executed_op_*_pred_on`.
#
# NVIDIA documents the groups in a line each. Which opcode belongs where was settled by arithmetic: for public kernels
# whose machine code equals that of published measurements (RTX 2080 Ti), one assignment alone gives every group's
# counter to all its digits. Opcodes that occur there have a star in
# kernel/isa/nvidia/opcodes.txt; the rest are placed with the opcodes most like them.
#
# Surprising facts: IMAD in all its forms, including moves by IMAD, and LEA, SHF and LOP3 are integer; FSETP, FCHK and
# MUFU are fp32; MOV, S2R, CS2R, BMOV and BAR are misc, BSSY and BSYNC control; LDC is memory; PLOP3, P2R and the
# uniform datapath count in no group.

GROUPS = ("fp16", "fp32", "fp64", "integer", "control", "memory", "misc", "conversion", "inter_thread_communication")


def group_of(instruction: Instruction) -> str:
    """The group that an instruction's threads count in; ``""`` if none."""
    opcode = instruction.opcode
    return OPCODES[opcode].group if opcode in OPCODES else ""


# The Nsight Compute pipe that an instruction counts on: `smsp__inst_executed_pipe_*`.
#
# The GPU file assigns classes to pipes. Reads of special registers are the exception: according to published counters
# of an RTX 2080 Ti, reads of the thread index count on the LSU pipe and reads of the block index do not. The pipe of
# the latter is unknown; they are left out, as are the other registers that are equal across a warp.

PER_LANE = ("SR_TID", "SR_LANEID", "SR_LANEMASK", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK")
"""Special registers that differ between the lanes of a warp. Counters confirm SR_TID; the rest are assumed."""


def pipe_of(instruction: Instruction, pipes: Mapping[str, str]) -> str | None:
    """The pipe of an instruction, None if it counts on none. `pipes` maps instruction class to pipe."""
    pipe = pipes.get(instruction.class_)
    if instruction.class_ == "special_register" and not (
        instruction.opcode == "S2R" and any(name in instruction.text for name in PER_LANE)
    ):
        return None
    return pipe


# The operations of an instruction, for a roofline. As in Nsight Compute's, additions and multiplications count, a
# fused multiply-add twice; minima, comparisons, conversions and special functions do not. Unlike there, an addition of
# zero or a product of zeros does not count either: the compiler moves, negates and converts numbers that way.

_INTEGER = frozenset({"int", "imad", "imad_wide", "shift", "bit"})


def is_integer(kind: str) -> bool:
    """Whether a kind of `operations_of` is of integers."""
    return kind in _INTEGER or kind.startswith("int")


def operations_of(instruction: Instruction) -> tuple[str, int, int] | None:
    """Kind of numbers (the class), operations per lane, and those of a multiply-add in its place; None if it has none.

    An instruction on integers counts once. Matrix instructions are not covered.
    """
    opcode, class_ = instruction.opcode, instruction.class_
    if class_ in _INTEGER:
        return class_, 1, 1
    if is_amd(opcode):
        found = amd_operations(opcode)
        return (class_, found, 4 if "_pk_" in opcode else 2) if found and class_ in _FLOATING else None
    traits = OPCODES[opcode].traits if opcode in OPCODES else frozenset()
    if class_ not in _FLOATING or not traits & {"flop", "fma"} or _moves(instruction):
        return None
    numbers = 2 if class_ == "fp16" or "packed" in traits else 1
    return class_, numbers * (2 if "fma" in traits else 1), 2 * numbers


_FLOATING = ("fp32", "fp16", "fp64")


def _moves(instruction: Instruction) -> bool:
    """Whether an addition or multiply-add has a zero register where the other operand then passes unchanged."""
    sources = instruction.operands[1:]
    zeros = [isinstance(o, Register) and not o.uniform and o.index == RZ for o in sources]
    return all(zeros[:2]) if "fma" in OPCODES[instruction.opcode].traits else any(zeros[:2])
