"""Costs of a workload on a GPU, given its memory behaviour: every node gets its subsystem, λ and Λ.

Context-independent classes get their costs from the GPU file (the analysis paper's mapper f, §3.1.3), memory
instructions from their behaviour (mapper g).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from ..hardware import ClassCost, Gpu, model_parameters
from ..kernel.instruction import RZ, Address, Constant, Immediate, Instruction, Register
from ..kernel.isa.amd import is_amd
from ..kernel.isa.amd.opcodes import matrix_shape
from ..kernel.isa.nvidia.opcodes import is_barrier
from ..kernel.isa.nvidia.registers import matrix_form, moved_registers, register_reads
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch, Scalar
from ..kernel.profile import SPACE_SHARED
from ..memory.behaviour import AccessBehaviour, MemoryBehaviour
from ..memory.constants import waits_at_issue
from ..support.text import bytes_text
from .build import Node, Path, Workload
from .cost import CostedNode, CostedPath, CostedWorkload, Level, Subsystem, length_of, to_ticks
from .memory_costs import MemoryCosts


@dataclass(frozen=True)
class Conditions:
    """What costs depend on beside kernel and GPU: clock in MHz, scheduler policy, blocks per SM of this launch."""

    clock_mhz: float
    policy: str
    blocks_per_sm: int


def assign_costs(workload: Workload, memory: MemoryBehaviour, gpu: Gpu, conditions: Conditions) -> CostedWorkload:
    """Assign a workload its costs on a GPU."""
    names = list(gpu.subsystems)
    costs = _Costs(workload, memory, gpu, conditions, {name: n for n, name in enumerate(names)})
    paths = tuple(costs.path(path) for path in workload.paths)
    notes = _block_notes(workload) + ((_UNKNOWN_SLEEP,) if costs.unknown_sleep else ())
    return on_gpu(workload, gpu, conditions, paths, memory, notes)


def _block_notes(workload: Workload) -> tuple[str, ...]:
    """Notes where blocks are represented by others, and where the blocks of clusters differ, so that none waits."""
    if workload.stood_in:
        least, most = workload.off
        alike = f"{workload.stood_in} of the emulated blocks are simulated as another block of similar length"
        return (f"very long paths: {alike} (theirs is {least:.2f} to {most:.2f} of its)",)
    blocks = workload.launch.cluster_blocks
    lengths = [sum(length_of(workload.paths[path].program) for path in kind.paths) for kind in workload.block_types]
    if blocks == 1 or max(lengths) <= _ALIKE * min(lengths):
        return ()
    work = f"{min(lengths):,} to {max(lengths):,} warp instructions"
    waits = "those that wait for others at a cluster barrier are simulated as if they did not"
    return (f"blocks of clusters differ ({work}): {waits}",)


def on_gpu(
    workload: Workload,
    gpu: Gpu,
    conditions: Conditions,
    paths: tuple[CostedPath, ...],
    memory: MemoryBehaviour,
    notes: tuple[str, ...] = (),
) -> CostedWorkload:
    """The workload with costs on its paths, and the machine parameters of the GPU's file."""
    launch, limits, scheduler = workload.launch, gpu.occupancy, gpu.scheduler
    warps = launch.warps_per_block
    most_blocks = (limits.max_multiwarp_blocks_per_sm if warps > 1 else None) or limits.max_blocks_per_sm
    return CostedWorkload(
        paths=paths,
        block_types=workload.block_types,
        subsystems=tuple(_subsystem(name, gpu) for name in gpu.subsystems),
        partitions=scheduler.partitions,
        issue_ticks=to_ticks(1 / scheduler.issue_per_cycle) if scheduler.issue_per_cycle else 0,
        policy=conditions.policy,
        in_order=scheduler.in_order,
        launch_ticks=to_ticks(gpu.device.block_launch_latency),
        launch_interval_ticks=to_ticks(
            (gpu.device.block_launch_interval or 0.0) * min(gpu.device.sm_count, launch.blocks)
        ),
        blocks=launch.blocks,
        warps_per_block=warps,
        blocks_per_sm=conditions.blocks_per_sm,
        max_blocks_per_sm=max(1, min(limits.max_warps_per_sm // warps, most_blocks), conditions.blocks_per_sm),
        sm_count=gpu.device.sm_count,
        clock_hz=conditions.clock_mhz * 1e6,
        notes=(*_clock_notes(gpu, conditions.clock_mhz), *_host_notes(gpu, memory), *notes),
        parameters=model_parameters(gpu, conditions.clock_mhz),
        data_bytes=memory.dram_read_bytes + memory.dram_write_bytes,
        read_window_ticks=to_ticks(scheduler.read_cycles or 0.0),
        **_products(workload, gpu),
        start_s=(gpu.device.kernel_start_ns or 0.0) * 1e-9,
    )


def _subsystem(name: str, gpu: Gpu) -> Subsystem:
    """A subsystem of the GPU's file; the one for warp-group products accepts a few at a time."""
    product, its = gpu.classes.get("wgmma"), gpu.subsystems[name]
    most = gpu.scheduler.product_queue if product is not None and product.subsystem == name else None
    return Subsystem(name, its.scope, its.upstream, most or 0)


class _Products(TypedDict, total=False):
    bank_rival: int
    beside_rival: float


def _products(workload: Workload, gpu: Gpu) -> _Products:
    """What warp-group products do to the register file: their sums lie there, and take a part of what banks give."""
    taken = gpu.scheduler.product_registers
    if taken is None or all(one.class_ != "wgmma" for one in workload.kernel.instructions):
        return {}
    return {
        "bank_rival": list(gpu.subsystems).index(gpu.classes["tensor"].subsystem),
        "beside_rival": taken / (_BANKS - taken),
    }


def _clock_notes(gpu: Gpu, clock_mhz: float) -> tuple[str, ...]:
    """A note on a clock above the GPU's highest."""
    high = gpu.device.highest_clock_mhz
    return (f"{clock_mhz:g} MHz is above the highest clock of {gpu.name}, {high:.0f} MHz",) if clock_mhz > high else ()


def _host_notes(gpu: Gpu, memory: MemoryBehaviour) -> tuple[str, ...]:
    """A note on the bytes that cross the bus to the host."""
    moved = memory.host_read_bytes + memory.host_write_bytes
    if gpu.host is None or not moved:
        return ()
    said = f"{bytes_text(moved)} cross the bus to host memory at {gpu.host.copy_gbs:g} GB/s in each direction"
    return (f"{said}; the L2 is taken to keep them as it keeps device memory",)


class _Costs:
    """Looks up what each node costs on one GPU."""

    def __init__(
        self, workload: Workload, memory: MemoryBehaviour, gpu: Gpu, conditions: Conditions, index: dict[str, int]
    ) -> None:
        self.instructions, self.sleeps = workload.kernel.instructions, sleeps_of(workload.kernel, workload.launch)
        self.hertz, self.unknown_sleep = conditions.clock_mhz * 1e6, False
        self.memory, self.gpu, self.index = memory, gpu, index
        self.reads = register_reads(self.instructions) if gpu.scheduler.read_cycles else ()
        read, write = memory.dram_read_bytes, memory.dram_write_bytes
        host = memory.host_read_bytes, memory.host_write_bytes
        products = any(one.class_ == "wgmma" for one in self.instructions)
        self.access = MemoryCosts(gpu, conditions.clock_mhz, workload.launch.blocks, index, read, write, host, products)
        self.known: dict[int, CostedNode] = {}
        self.equal: dict[Node, CostedNode] = {}
        self.stalls: dict[tuple[str, int, bool], int] = {}
        self.usual: dict[str, tuple[int, int, int]] = {}

    def path(self, path: Path) -> CostedPath:
        # Paths share most of their nodes: equal ones become one object.
        for node in path.nodes:
            if id(node) not in self.known:
                if node not in self.equal:
                    self.equal[node] = self.node(node)
                self.known[id(node)] = self.equal[node]
        nodes = tuple(self.known[id(node)] for node in path.nodes)
        made = CostedPath(nodes, path.program, path.slots, path.events, path.signals)
        return replace(made, idle=idle_instructions(made.counts(), path.lanes))

    def node(self, node: Node) -> CostedNode:
        instruction = self.instructions[node.instruction]
        class_, access = instruction.class_, instruction.memory
        cost = self.gpu.classes[class_]
        behaviour = self.memory.accesses.get(node.instruction)
        levels: tuple[Level, ...] = ()
        if access is None and class_ not in _OWN_COSTS and node.instruction not in self.memory.constant_addresses:
            # All instructions of such a class cost the same, but for fences.
            block = class_ == "fence" and _of_block(instruction)
            ticks = self.usual.get(class_ + "_block" * block)
            if ticks is None:
                latency = (cost.block_latency if block else None) or cost.latency or 0.0
                ticks = self.usual[class_ + "_block" * block] = _ticks(cost, cost.lambda_, latency)
        else:
            lambda_, latency, levels = self._own(node, cost, behaviour)
            ticks = _ticks(cost, lambda_, latency)
        late, at_issue, held = self._missed(node.instruction)
        stall = self.stalls.get((class_, node.stall, node.taken))
        if stall is None:
            stall = self.stalls[class_, node.stall, node.taken] = to_ticks(self._stall(node, cost))
        if node.instruction in self.sleeps:
            asleep = self.sleeps[node.instruction]
            self.unknown_sleep |= asleep is None
            stall = max(stall, to_ticks((asleep or 0.0) * 1e-9 * self.hertz))
        return CostedNode(
            instruction=node.instruction,
            class_=class_,
            subsystem=self.index[cost.subsystem],
            lambda_ticks=ticks[0],
            latency_ticks=ticks[1] + (0 if at_issue else late),
            stall_ticks=stall,
            waits=node.waits,
            sets=node.sets,
            sets_read=node.sets_read,
            read_ticks=ticks[2],
            barrier=is_barrier(instruction) and not (node.sync or node.skipped),
            async_result=access is not None and access.kind in _ACCEPTED,
            levels=levels,
            transactions=_transactions(instruction, behaviour),
            conflict_ticks=_conflict(behaviour, cost.lambda_),
            dram_share=dram_share(behaviour),
            sync=node.sync,
            after=node.after,
            register_ticks=self._register_ticks(node.instruction),
            miss_ticks=late if at_issue else 0,
            held_ticks=held,
            stays=is_amd(instruction.opcode) or instruction.control.yield_hint,
        )

    def _own(
        self, node: Node, cost: ClassCost, behaviour: AccessBehaviour | None
    ) -> tuple[float, float, tuple[Level, ...]]:
        """λ, Λ and further levels of an instruction whose costs differ from its class's."""
        instruction = self.instructions[node.instruction]
        lambda_, latency = cost.lambda_, cost.latency or 0.0
        if (asked := self.memory.constant_addresses.get(node.instruction)) is not None:
            # The constant cache serves one address at a time (CUDA C++ Programming Guide, "Constant Memory").
            return lambda_ * asked, latency + lambda_ * (asked - 1), ()
        if instruction.class_ == "tensor":
            return self._tensor(instruction, lambda_), latency, ()
        if instruction.class_ == "wgmma":
            busy, levels = self._warp_group(instruction)
            return lambda_, latency + busy, levels
        if instruction.class_ == "tcgen05":
            busy, levels = self._whole_sm(instruction)
            return lambda_, latency + busy, levels
        if instruction.class_ in ("tensor_load", "tensor_store"):
            moved = lambda_ * moved_registers(instruction)
            return moved, latency + moved, ()
        if instruction.class_ == "bulk_copy":
            return self.access.bulk_cost(behaviour, cost.lambda_, latency)
        assert instruction.memory is not None
        floats = next((m for m in instruction.modifiers if m.startswith(("F16", "F32", "F64", "BF16"))), "")
        access = instruction.memory
        filled = access.kind == "load" and not is_amd(instruction.opcode)
        returned = self.gpu.occupancy.warp_size * max(access.width, _REGISTER_BYTES) if filled else 0
        return self.access.cost(access.space == "shared", behaviour, cost.lambda_, floats, returned)

    def _missed(self, index: int) -> tuple[int, bool, int]:
        """Mean ticks that a constant is late because the first cache does not have it, whether the issue waits for it,
        and for how long no other warp of the partition issues."""
        rate, cache = self.memory.constant_misses.get(index, 0.0), self.gpu.memory.constants
        if not rate or cache is None or not self.gpu.scheduler.in_order:
            return 0, False, 0
        if waits_at_issue(self.instructions[index]):
            return to_ticks(rate * cache.operand_miss), True, to_ticks(rate * cache.operand_hold)
        return to_ticks(rate * cache.load_miss), False, 0

    def _register_ticks(self, index: int) -> tuple[int, int]:
        """The register-bank time of a fixed-latency instruction; other instructions yield to it."""
        control = self.instructions[index].control
        variable = control.write_barrier is not None or control.read_barrier is not None
        if not self.reads or variable or self.gpu.classes[self.instructions[index].class_].subsystem not in _FIXED:
            return 0, 0
        even, odd = self.reads[index]
        return to_ticks(even), to_ticks(odd)

    def _warp_group(self, instruction: Instruction) -> tuple[float, tuple[Level, ...]]:
        """Tensor-core cycles of a partition for a warp's part of a warp-group product, and the levels it visits.

        A warp computes a quarter of the rows. Operands pass through the data path of shared memory: a warp's own rows
        of the first, unless registers hold it, and its share of the second, which all four warps read together. Loads,
        stores and copies go first there.
        """
        form = matrix_form(instruction)
        assert form is not None
        kind, rows = _input_type(instruction, form.element_bits), form.rows // _GROUP_WARPS
        busy = self.gpu.tensor_lambda(kind, rows, form.columns, form.depth // (1 + form.sparse))
        held = [o for o in instruction.operands if isinstance(o, Register | Address)]
        own = rows if isinstance(held[1], Address) else 0
        # A sparse first operand is stored by half, so that its rows are as long as usual and the second's twice that.
        moved = (own + form.columns * (1 + form.sparse) / _GROUP_WARPS) * _GROUP_K_BYTES
        fetch = self.access.shared_ticks(moved)
        tensor = self.index[self.gpu.classes["tensor"].subsystem]
        product = to_ticks(busy)
        return busy, (Level(self.index["async_shared"], fetch, fetch), Level(tensor, product, product))

    def _whole_sm(self, instruction: Instruction) -> tuple[float, tuple[Level, ...]]:
        """Tensor-core cycles of an operation on tensor memory, and the levels that it visits.

        A product occupies the tensor cores of all partitions. Its operands pass through the data path of shared
        memory: rows of the first, unless tensor memory holds it, and columns of the second, of which a pair of blocks
        has half each. Where its shape is not known, and for shifts, only the issue slot counts.
        """
        moved, busy = float(copied_bytes(instruction)), 0.0
        if form := matrix_form(instruction):
            paired = 1 + ("2CTA" in instruction.modifiers)
            kind, rows = _input_type(instruction, form.element_bits), form.rows // paired
            depth = form.depth // (1 + form.sparse)
            busy = self.gpu.tensor_lambda(kind, rows, form.columns, depth) / self.gpu.scheduler.partitions
            own = 0 if re.search(r"\stmem\[", instruction.text.split(",")[0]) else rows
            # The only products whose K is not always 32 bytes are those of packed 4-bit floats.
            row = depth // 2 if instruction.opcode == "UTCOMMA" else _GROUP_K_BYTES
            moved = (own + form.columns * (1 + form.sparse) / paired) * row
        levels = []
        if moved:
            fetch = self.access.shared_ticks(moved)
            levels.append(Level(self.index["async_shared"], fetch, fetch))
        if busy:
            product = to_ticks(busy)
            levels.append(Level(self.index["async_tensor"], product, product))
        return busy, tuple(levels)

    def _stall(self, node: Node, cost: ClassCost) -> float:
        """Cycles until the warp's next instruction; after a taken branch, Λ or the scheduler's own delay."""
        scheduler = self.gpu.scheduler
        slots = node.stall * scheduler.slot_cycles
        return max(slots, scheduler.taken_cycles or cost.latency or 0.0) if node.taken else slots

    def _tensor(self, instruction: Instruction, usual: float) -> float:
        """λ of a matrix instruction from its shape and input type; the class's λ if unknown."""
        found = matrix_work(instruction)
        rate = self.gpu.tensor_rate(found[0]) if found else None
        return found[1] / rate if found and rate else usual


def _of_block(fence: Instruction) -> bool:
    """Whether a fence orders a block's own accesses alone: among its threads, or before copies from shared memory."""
    return "CTA" in fence.modifiers or (fence.opcode == "FENCE" and {"ASYNC", "S"} <= set(fence.modifiers))


def matrix_work(instruction: Instruction) -> tuple[str, int] | None:
    """Input type (as in `[tensor]`) and multiply-adds of a warp's matrix instruction; None if the shape is unknown."""
    if is_amd(instruction.opcode):
        matrix = matrix_shape(instruction.opcode)
        return (matrix.input_type, matrix.multiplications) if matrix else None
    form = matrix_form(instruction)
    if form is None:
        return None
    share = _GROUP_WARPS if instruction.class_ == "wgmma" else 1
    return _input_type(instruction, form.element_bits), form.multiplications // share


def copied_bytes(instruction: Instruction) -> int:
    """Bytes of shared memory that a copy to tensor memory reads; 0 for other instructions."""
    if instruction.opcode != "UTCCP":
        return 0
    found = next((m for m in map(_COPIED.match, instruction.modifiers) if m), None)
    rows, bits = (int(found[2]), int(found[3])) if found else (128, 256)
    return rows * bits // 8


def _input_type(instruction: Instruction, element_bits: int) -> str:
    """The input type of a matrix instruction, as `[tensor]` names it; no GPU file knows a rate of 4-bit integers."""
    if instruction.opcode in ("IMMA", "IGMMA", "UTCIMMA"):
        return "int8"
    if instruction.opcode in ("UTCQMMA", "UTCOMMA"):
        return "fp8" if instruction.opcode == "UTCQMMA" else "fp4"
    if instruction.opcode == "QMMA":  # floats of 6 and 4 bits at the rate of 8
        widest = sum(instruction.modifiers.count(one) for one in ("E4M3", "E5M2")) == _OPERANDS
        return "fp8_scaled" if widest and "SF" in instruction.modifiers else "fp8"
    if element_bits == 16:
        return "bf16" if instruction.class_ in ("wgmma", "tcgen05") and "BF16" in instruction.modifiers else "fp16"
    return {64: "fp64", 32: "tf32", 8: "fp8", 4: "fp4", 1: "bits"}[element_bits]


_OPERANDS = 2
_REGISTER_BYTES = 4
_ALIKE = 1.1
"""Ratio of warp instructions up to which blocks count as equally long."""
_UNKNOWN_SLEEP = "the duration of __nanosleep depends on data: assumed to be zero"


def _ticks(cost: ClassCost, lambda_: float, latency: float) -> tuple[int, int, int]:
    """λ, Λ and the time until the operands are read, in ticks."""
    return to_ticks(lambda_), to_ticks(latency), to_ticks(max(cost.read_latency or 0.0, lambda_))


def _transactions(instruction: Instruction, behaviour: AccessBehaviour | None) -> float:
    """Lines that a warp's access to global or local memory touches; 0 for anything else."""
    if instruction.memory is None or behaviour is None or behaviour.space == SPACE_SHARED:
        return 0.0
    return behaviour.lines


def _conflict(behaviour: AccessBehaviour | None, wavefront: float) -> int:
    """Ticks of the wavefronts after the first of an access to shared memory."""
    if behaviour is None or behaviour.space != SPACE_SHARED:
        return 0
    return to_ticks(max(0.0, behaviour.units - behaviour.requests) * wavefront)


def dram_share(behaviour: AccessBehaviour | None) -> float:
    """The share of an access that neither a cache nor shared memory serves."""
    if behaviour is None or behaviour.space == SPACE_SHARED:
        return 0.0
    return (1 - behaviour.l1_hit) * (1 - behaviour.l2_hit) * (1 - behaviour.l3_hit)


def idle_instructions(counts: Sequence[int], lanes: Sequence[float]) -> float:
    """Warp instructions that a path's inactive lanes are worth, against the lanes that the warp starts with.

    `counts` says how often the warp runs each node, `lanes` its mean number of active lanes. Of two sides of a branch
    with half of the lanes each, half of the instructions are idle: a warp whose lanes agree runs one side.
    """
    first = max(1.0, lanes[0]) if lanes else 1.0
    return sum(count * max(0.0, 1 - on / first) for count, on in zip(counts, lanes, strict=True))


_COPIED = re.compile(r"(?:(\d)x)?(\d+)dp(\d+)bit")
_OWN_COSTS = ("tensor", "wgmma", "bulk_copy", "tcgen05", "tensor_load", "tensor_store")
"""Classes whose costs depend on their shapes and bytes."""
_BANKS = 2
"""Banks of a partition's register file, each of which gives one register a cycle."""
_FIXED = ("alu", "fma", "fp16")
"""Pipes whose instructions have fixed latencies."""
_ACCEPTED = ("store", "reduction", "bulk_store", "bulk_reduction")
"""Kinds of access that are complete once memory has accepted them."""
_GROUP_WARPS, _GROUP_K_BYTES = 4, 32
"""For a warp-group product: the warps, and the bytes of K that are stored."""


def class_totals(workload: Workload, executions: list[float]) -> dict[str, float]:
    """Warp instructions of the whole grid by class, most first."""
    totals: dict[str, float] = {}
    for instruction, count in zip(workload.kernel.instructions, executions, strict=True):
        if count:
            totals[instruction.class_] = totals.get(instruction.class_, 0.0) + count
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


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
