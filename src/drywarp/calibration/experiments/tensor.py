"""Matrix instructions of a warp (mma): rate of a tensor core by input type, and Λ of a chain of accumulations."""

from __future__ import annotations

from dataclasses import dataclass

from ..device import Program
from ..machine_code import waits_for_result
from ..result import Findings
from ..session import SHORT, Session
from .chains import HIDDEN

ARGUMENTS = {"every": 1, "a": 3, "b": 5, "out": None}
CHAINS = 4
"""Independent accumulations of a warp, so that λ shows whatever Λ is."""
FILLERS = 3
"""Instructions that the compiler may put between two dependent ones to make time pass, for each of them."""
WARP_GROUP_CAPABILITY = 9.0
"""From here on a warp's own instructions may not reach a tensor core's full rate."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A macro of ``tensor.cu``: input type, extents, opcode, and the architectures it is measured on."""

    macro: str
    input_type: str
    m: int
    n: int
    k: int
    opcode: str
    oldest: int = 75
    newest: int = 999


SHAPES = (
    Shape("TYPE_F16", "fp16", 16, 8, 16, "HMMA", oldest=80),
    Shape("TYPE_F16_K8", "fp16", 16, 8, 8, "HMMA", newest=79),
    Shape("TYPE_BF16", "bf16", 16, 8, 16, "HMMA", oldest=80),
    Shape("TYPE_TF32", "tf32", 16, 8, 8, "HMMA", oldest=80),
    Shape("TYPE_INT8", "int8", 16, 8, 32, "IMMA", oldest=80),
    Shape("TYPE_INT8_K16", "int8", 8, 8, 16, "IMMA", newest=79),
    Shape("TYPE_FP64", "fp64", 8, 8, 4, "DMMA", oldest=80),
)


def measure(session: Session, findings: Findings) -> None:
    """Find ``tensor.*`` and ``classes.tensor``."""
    attributes = session.device.attributes
    number = int("".join(c for c in attributes.arch if c.isdigit()))
    partitions = round(findings.value("scheduler.partitions", 4))
    reached = float(attributes.compute_capability) < WARP_GROUP_CAPABILITY
    if not reached:
        findings.silent["tensor.*"] = (
            "rates of a warp's own mma are in the report alone: those of warp groups may be higher"
        )
    for shape in (s for s in SHAPES if s.oldest <= number <= s.newest):
        warps = min(32, attributes.max_warps_per_sm)
        grid, block = session.occupancy(warps)
        defines, opcodes = {shape.macro: "", "ILP": str(CHAINS)}, {shape.opcode: 1}
        step = session.per_instruction("tensor", defines, opcodes, grid, block, ARGUMENTS, others=FILLERS)
        lambda_ = step * (partitions / warps)
        how = f"mma.m{shape.m}n{shape.n}k{shape.k}, {warps} warps with {CHAINS} chains each"
        rate = lambda_.into(shape.m * shape.n * shape.k)
        findings.add(f"tensor.{shape.input_type}", rate, "FMA/cycle", how, in_file=reached)
        if shape.input_type == "fp16":
            findings.scopes["tensor"] = "partition"
            findings.add("classes.tensor.lambda", lambda_, "cycles", how)
            _latency(session, findings, shape)


def _latency(session: Session, findings: Findings, shape: Shape) -> None:
    program = Program("tensor", ((shape.macro, ""), ("LENGTH", str(SHORT))))
    sms = session.device.attributes.sm_count
    step = session.per_instruction("tensor", {shape.macro: ""}, {shape.opcode: 1}, sms, 32, ARGUMENTS, others=FILLERS)
    own = findings.value("classes.tensor.lambda", 0.0)
    if step.value <= HIDDEN * own:
        findings.silent["classes.tensor.latency"] = "no longer than λ, which hides it"
        return
    how = "chain of accumulations of one warp"
    if not waits_for_result(session.device.code(program), shape.opcode):
        findings.distances.add("tensor")
        how += "; the distance that the compiler leaves, as nothing waits for a scoreboard"
    findings.add("classes.tensor.latency", step, "cycles", how)
