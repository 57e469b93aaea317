"""λ and Λ of the arithmetic classes: dependent chains over all occupancies, fitted with the boat hull."""

from __future__ import annotations

from dataclasses import dataclass

from .device import Program
from .fits import BoatHull, fit_boat_hull
from .journal import SHORT, Session, waits_for_result
from .load import occupancies
from .result import Curve, Estimate, Findings

# The chains of `kernels/chain.cu`: the instruction class that each measures, and its required machine code.


@dataclass(frozen=True, slots=True)
class Operation:
    """A macro of ``chain.cu`` and what one step of it must compile to.

    `opcodes` are counts by opcode (``A|B``: either). `count` is the number of instructions of the class per step;
    `oldest` is the first architecture that has it, `newest` the last on which it belongs to this class. If other
    instructions share the chain, `pure` is false: only λ can be measured, and only if they run on another pipe.
    `others` is the number of allowed uncounted instructions.
    """

    macro: str
    class_: str
    opcodes: tuple[tuple[str, int], ...]
    count: int = 1
    oldest: int = 75
    newest: int = 999
    pure: bool = True
    others: int = 0


OPERATIONS = (
    Operation("OP_FFMA", "fp32", (("FFMA", 1),)),
    Operation("OP_FMNMX", "fp32_compare", (("FMNMX", 2),), 2),
    Operation("OP_HALF", "fp16", (("HADD2|HFMA2", 1),)),
    Operation("OP_DFMA", "fp64", (("DFMA", 1),)),
    Operation("OP_INT", "int", (("LOP3", 1), ("IMNMX|VIMNMX", 1)), 2),
    Operation("OP_IMAD", "imad", (("IMAD", 1),)),
    Operation("OP_IMAD_HI", "imad_wide", (("IMAD", 1),)),
    Operation("OP_SHF", "shift", (("SHF", 1),)),
    Operation("OP_POPC", "bit", (("POPC", 1),)),
    Operation("OP_MUFU", "sfu", (("MUFU", 1),)),
    Operation("OP_FRND", "convert", (("FRND", 1),)),
    Operation("OP_F2FP", "convert_fast", (("F2FP", 1),), oldest=80),
    Operation("OP_SHFL", "shuffle", (("SHFL", 1),)),
    Operation("OP_REDUX", "reduce", (("REDUX", 1), ("MOV|IMAD", 1)), oldest=80, pure=False),
    Operation("OP_S2R", "special_register", (("S2R|S2UR", 1),), pure=False, others=1),
    Operation("OP_LDC", "constant_load", (("LDC", 1),)),
    Operation("OP_MEMBAR_CTA", "fence", (("MEMBAR", 1),), pure=False),
)
"""One for each class that can be measured with a chain of arithmetic or of one lane's values."""


def for_architecture(arch: str) -> list[Operation]:
    """The operations of an architecture such as ``sm_86``."""
    number = int("".join(c for c in arch if c.isdigit()))
    return [op for op in OPERATIONS if op.oldest <= number <= op.newest]


ARGUMENTS = {"a": 3, "b": 5, "out": None}
WARPS_OF_PART = 8
"""Warps on a single partition, used to find whether a pipe belongs to the partition or the SM."""
HIDDEN = 1.03
"""A flat part up to this many times λ of one partition may be λ itself, with Λ hidden below it."""


def measure_chains(session: Session, findings: Findings) -> None:
    """Measure ``classes.*.lambda`` and ``latency`` of the operations of this architecture (`OPERATIONS`)."""
    for operation in for_architecture(session.device.attributes.arch):
        _chain(session, findings, operation)


def _chain(session: Session, findings: Findings, operation: Operation) -> None:
    warps = occupancies(session.device.attributes.max_warps_per_sm)
    defines, opcodes = {operation.macro: ""}, dict(operation.opcodes)

    def step(grid: int, block: int, every: int) -> Estimate:
        arguments = {"every": every, **ARGUMENTS}
        taken = session.per_instruction("chain", defines, opcodes, grid, block, arguments, others=operation.others)
        return taken / operation.count

    points = [step(*session.occupancy(n), 1) for n in warps]
    hull = fit_boat_hull(warps, points)
    partitions = round(findings.value("scheduler.partitions", 4))
    part = step(session.device.attributes.sm_count, WARPS_OF_PART * partitions * 32, partitions)
    scope = scope_of(hull, part, WARPS_OF_PART, partitions)
    findings.scopes[operation.class_] = scope
    program = Program("chain", ((operation.macro, ""), ("LENGTH", str(SHORT))))
    if not waits_for_result(session.device.code(program), operation.opcodes[0][0]):
        findings.distances.add(operation.class_)
    note(findings, operation.class_, hull, scope, partitions, operation.pure)
    findings.curves.append(curve_of(operation.class_, f"Chain of {operation.opcodes[0][0]}", warps, points, hull))


def scope_of(hull: BoatHull, part: Estimate, warps: int, partitions: int) -> str:
    """``partition`` or ``sm``: whichever better fits the cycles of `warps` warps on a single partition."""
    if hull.lambda_ is None:
        return "sm"
    flat, slope = (hull.latency.value if hull.latency else 0.0), hull.lambda_.value
    own, shared = max(flat, warps * partitions * slope), max(flat, warps * slope)
    return "partition" if abs(part.value - own) <= abs(part.value - shared) else "sm"


def note(findings: Findings, class_: str, hull: BoatHull, scope: str, partitions: int, pure: bool = True) -> None:
    """Record a hull as λ (at the scope of the pipe) and Λ of a class."""
    own = partitions if scope == "partition" else 1
    if hull.lambda_:
        how = "dependent chain over all occupancies, rising part" + (", per partition" if own > 1 else "")
        findings.add(f"classes.{class_}.lambda", hull.lambda_ * own, "cycles", how)
    else:
        findings.silent[f"classes.{class_}.lambda"] = "Λ exceeds the issue time of all warps"
    if not pure:
        findings.silent[f"classes.{class_}.latency"] = "the chain contains other instructions too"
    elif hull.latency is None or (hull.lambda_ and hull.latency.value <= HIDDEN * own * hull.lambda_.value):
        findings.silent[f"classes.{class_}.latency"] = "no longer than λ, which hides it"
    else:
        how = "dependent chain, flat part"
        if class_ in findings.distances:
            how += "; the distance that the compiler schedules, without a scoreboard"
        findings.add(f"classes.{class_}.latency", hull.latency, "cycles", how)


def curve_of(name: str, title: str, warps: list[int], points: list[Estimate], hull: BoatHull) -> Curve:
    """The boat hull as a curve."""
    latency = f"Λ = {hull.latency.value:.2f}" if hull.latency else "Λ not reached"
    slope = f"λ = {hull.lambda_.value:.3f}" if hull.lambda_ else "λ not reached"
    return Curve(
        f"chain {name}",
        title,
        "warps per SM",
        "cycles for one instruction of each warp",
        tuple(map(float, warps)),
        tuple(p.value for p in points),
        tuple(p.spread for p in points),
        tuple(hull.at(n) for n in warps),
        f"max(Λ, n·λ): {latency}, {slope} of the SM",
    )


# Warp-level matrix instructions (mma): tensor-core rate by input type, and Λ of a chain of accumulations.

TENSOR_ARGUMENTS = {"every": 1, "a": 3, "b": 5, "out": None}
CHAINS = 4
"""Independent accumulations per warp, so that λ shows regardless of Λ."""
FILLERS = 3
"""Filler instructions that the compiler may insert per dependent instruction."""
WARP_GROUP_CAPABILITY = 9.0
"""From this capability, warp-level instructions may not reach the full tensor-core rate."""


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


def measure_tensor(session: Session, findings: Findings) -> None:
    """Measure ``tensor.*`` and ``classes.tensor``."""
    attributes = session.device.attributes
    number = int("".join(c for c in attributes.arch if c.isdigit()))
    partitions = round(findings.value("scheduler.partitions", 4))
    reached = float(attributes.compute_capability) < WARP_GROUP_CAPABILITY
    if not reached:
        findings.silent["tensor.*"] = "warp-level mma rates are only in the report: warp-group rates may be higher"
    for shape in (s for s in SHAPES if s.oldest <= number <= s.newest):
        warps = min(32, attributes.max_warps_per_sm)
        grid, block = session.occupancy(warps)
        defines, opcodes = {shape.macro: "", "ILP": str(CHAINS)}, {shape.opcode: 1}
        step = session.per_instruction("tensor", defines, opcodes, grid, block, TENSOR_ARGUMENTS, others=FILLERS)
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
    step = session.per_instruction(
        "tensor", {shape.macro: ""}, {shape.opcode: 1}, sms, 32, TENSOR_ARGUMENTS, others=FILLERS
    )
    own = findings.value("classes.tensor.lambda", 0.0)
    if step.value <= HIDDEN * own:
        findings.silent["classes.tensor.latency"] = "no longer than λ, which hides it"
        return
    how = "chain of accumulations of one warp"
    if not waits_for_result(session.device.code(program), shape.opcode):
        findings.distances.add("tensor")
        how += "; the distance that the compiler schedules, without a scoreboard"
    findings.add("classes.tensor.latency", step, "cycles", how)
