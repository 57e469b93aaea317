"""A workload, its memory behaviour and a GPU, bound: every node gets its subsystem, λ and Λ.

Context-independent classes take theirs from the GPU file (the analysis paper's mapper f, §3.1.3);
memory instructions from how they behave (mapper g).
"""

from __future__ import annotations

from dataclasses import dataclass

from .bound import BoundNode, BoundPath, BoundWorkload, Level, Subsystem, to_ticks
from .hardware import ClassCost, Gpu, model_parameters
from .kernel.amd import is_amd
from .kernel.amd.matrix import matrix_shape
from .kernel.classes import is_barrier
from .kernel.instruction import Instruction
from .kernel.operand import Address, Register
from .kernel.profile import SPACE_SHARED
from .kernel.register_reads import register_reads
from .kernel.sleep import sleeps_of
from .memory.behaviour import AccessBehaviour, MemoryBehaviour
from .workload import Node, Path, Workload


@dataclass(frozen=True)
class Binding:
    """The choices of one binding: clock in MHz, scheduler policy, blocks per SM of this launch."""

    clock_mhz: float
    policy: str
    blocks_per_sm: int


def bind(workload: Workload, memory: MemoryBehaviour, gpu: Gpu, binding: Binding) -> BoundWorkload:
    """Bind a workload to a GPU."""
    names = list(gpu.subsystems)
    costs = _Costs(workload, memory, gpu, binding, {name: n for n, name in enumerate(names)})
    paths = tuple(costs.path(path) for path in workload.paths)
    return on_gpu(workload, gpu, binding, paths, memory, (_UNKNOWN_SLEEP,) if costs.unknown_sleep else ())


def on_gpu(
    workload: Workload,
    gpu: Gpu,
    binding: Binding,
    paths: tuple[BoundPath, ...],
    memory: MemoryBehaviour,
    notes: tuple[str, ...] = (),
) -> BoundWorkload:
    """The workload with its paths bound, and what the GPU's file says of the machine around them."""
    launch, limits, scheduler = workload.launch, gpu.occupancy, gpu.scheduler
    warps = launch.warps_per_block
    most_blocks = (limits.max_multiwarp_blocks_per_sm if warps > 1 else None) or limits.max_blocks_per_sm
    return BoundWorkload(
        paths=paths,
        block_types=workload.block_types,
        subsystems=tuple(Subsystem(name, its.scope, its.upstream) for name, its in gpu.subsystems.items()),
        partitions=scheduler.partitions,
        issue_ticks=to_ticks(1 / scheduler.issue_per_cycle) if scheduler.issue_per_cycle else 0,
        policy=binding.policy,
        in_order=scheduler.in_order,
        launch_ticks=to_ticks(gpu.device.block_launch_latency),
        blocks=launch.blocks,
        warps_per_block=warps,
        blocks_per_sm=binding.blocks_per_sm,
        max_blocks_per_sm=max(1, min(limits.max_warps_per_sm // warps, most_blocks), binding.blocks_per_sm),
        sm_count=gpu.device.sm_count,
        clock_hz=binding.clock_mhz * 1e6,
        notes=notes,
        parameters=model_parameters(gpu, binding.clock_mhz),
        data_bytes=memory.dram_read_bytes + memory.dram_write_bytes,
        read_window_ticks=to_ticks(scheduler.read_cycles or 0.0),
        start_s=(gpu.device.kernel_start_ns or 0.0) * 1e-9,
    )


class _Costs:
    """Looks up what each node costs on one GPU."""

    def __init__(
        self, workload: Workload, memory: MemoryBehaviour, gpu: Gpu, binding: Binding, index: dict[str, int]
    ) -> None:
        self.instructions, self.sleeps = workload.kernel.instructions, sleeps_of(workload.kernel, workload.launch)
        self.hertz, self.unknown_sleep = binding.clock_mhz * 1e6, False
        self.memory, self.gpu, self.index = memory, gpu, index
        self.reads = register_reads(self.instructions) if gpu.scheduler.read_cycles else ()
        read, write = memory.dram_read_bytes, memory.dram_write_bytes
        self.access = MemoryCosts(gpu, binding.clock_mhz, workload.launch.blocks, index, read, write)

        self.known: dict[int, BoundNode] = {}
        self.equal: dict[Node, BoundNode] = {}
        self.stalls: dict[tuple[str, int, bool], int] = {}
        self.usual: dict[str, tuple[int, int, int]] = {}

    def path(self, path: Path) -> BoundPath:
        # Paths share most of their nodes: equal ones become one object.
        for node in path.nodes:
            if id(node) not in self.known:
                if node not in self.equal:
                    self.equal[node] = self.node(node)
                self.known[id(node)] = self.equal[node]
        nodes = tuple(self.known[id(node)] for node in path.nodes)
        return BoundPath(nodes, path.program, path.slots, path.events, path.signals)

    def node(self, node: Node) -> BoundNode:
        instruction = self.instructions[node.instruction]
        class_, access = instruction.class_, instruction.memory
        cost = self.gpu.classes[class_]
        behaviour = self.memory.accesses.get(node.instruction)
        levels: tuple[Level, ...] = ()
        if access is None and class_ not in _OWN_COSTS:
            # All instructions of such a class cost the same.
            ticks = self.usual.get(class_)
            if ticks is None:
                ticks = self.usual[class_] = _ticks(cost, cost.lambda_, cost.latency or 0.0)
        else:
            lambda_, latency, levels = self._own(instruction, cost, behaviour)
            ticks = _ticks(cost, lambda_, latency)
        stall = self.stalls.get((class_, node.stall, node.taken))
        if stall is None:
            stall = self.stalls[class_, node.stall, node.taken] = to_ticks(self._stall(node, cost))
        if node.instruction in self.sleeps:
            asleep = self.sleeps[node.instruction]
            self.unknown_sleep |= asleep is None
            stall = max(stall, to_ticks((asleep or 0.0) * 1e-9 * self.hertz))
        return BoundNode(
            instruction=node.instruction,
            class_=class_,
            subsystem=self.index[cost.subsystem],
            lambda_ticks=ticks[0],
            latency_ticks=ticks[1],
            stall_ticks=stall,
            waits=node.waits,
            sets=node.sets,
            sets_read=node.sets_read,
            read_ticks=ticks[2],
            barrier=is_barrier(instruction) and not node.sync,
            async_result=access is not None and access.kind in _ACCEPTED,
            levels=levels,
            transactions=_transactions(instruction, behaviour),
            conflict_ticks=_conflict(behaviour, cost.lambda_),
            sync=node.sync,
            after=node.after,
            register_ticks=self._register_ticks(node.instruction),
            stays=is_amd(instruction.opcode) or instruction.control.yield_hint,
        )

    def _own(
        self, instruction: Instruction, cost: ClassCost, behaviour: AccessBehaviour | None
    ) -> tuple[float, float, tuple[Level, ...]]:
        """λ, Λ and further levels of an instruction that does not cost what its class does."""
        lambda_, latency = cost.lambda_, cost.latency or 0.0
        if instruction.class_ == "tensor":
            return self._tensor(instruction, lambda_), latency, ()
        if instruction.class_ == "wgmma":
            busy, levels = self._warp_group(instruction)
            return lambda_, latency + busy, levels
        if instruction.class_ == "bulk_copy":
            return self.access.bulk_cost(behaviour, cost.lambda_, latency)
        assert instruction.memory is not None
        return self.access.cost(instruction.memory.space == "shared", behaviour, cost.lambda_)

    def _register_ticks(self, index: int) -> tuple[int, int]:
        """What an instruction of fixed latency takes of the register file's banks; those of others give way to it."""
        control = self.instructions[index].control
        variable = control.write_barrier is not None or control.read_barrier is not None
        if not self.reads or variable or self.gpu.classes[self.instructions[index].class_].subsystem not in _FIXED:
            return 0, 0
        even, odd = self.reads[index]
        return to_ticks(even), to_ticks(odd)

    def _warp_group(self, instruction: Instruction) -> tuple[float, tuple[Level, ...]]:
        """Cycles of a partition's tensor core for a warp's part of a warp-group product, and what it visits.

        A warp does a quarter of the rows. Operands come through the data path of shared memory: a warp's own
        rows of the first, unless registers hold it, and its share of the second, which all four read as one.
        Loads and stores of shared memory are taken to find gaps there.
        """
        _, columns, depth = (int(extent) for extent in instruction.modifiers[0].split("x"))
        kind = _GROUP_TYPES.get(instruction.opcode, "fp16")
        if kind == "fp16" and {"BF16", "TF32"} & set(instruction.modifiers):
            kind = "bf16" if "BF16" in instruction.modifiers else "tf32"
        busy = self.gpu.tensor_lambda(kind, _GROUP_ROWS, columns, depth)
        held = [o for o in instruction.operands if isinstance(o, Register | Address)]
        own = _GROUP_ROWS if isinstance(held[1], Address) else 0
        moved = (own + columns / _GROUP_WARPS) * _GROUP_K_BYTES
        fetch = self.access.shared_ticks(moved)
        tensor = self.index[self.gpu.classes["tensor"].subsystem]
        product = to_ticks(busy)
        return busy, (Level(self.index["async_shared"], fetch, fetch), Level(tensor, product, product))

    def _stall(self, node: Node, cost: ClassCost) -> float:
        """Cycles until the warp's next instruction; after a branch that is taken, Λ or what the scheduler says."""
        scheduler = self.gpu.scheduler
        slots = node.stall * scheduler.slot_cycles
        return max(slots, scheduler.taken_cycles or cost.latency or 0.0) if node.taken else slots

    def _tensor(self, instruction: Instruction, usual: float) -> float:
        """λ of a matrix instruction from its shape and input type; the class's λ where unknown."""
        if is_amd(instruction.opcode):
            matrix = matrix_shape(instruction.opcode)
            if matrix is None or matrix.input_type not in self.gpu.tensor:
                return usual
            return matrix.multiplications / self.gpu.tensor[matrix.input_type]
        shape = _SHAPES.get(next((m for m in instruction.modifiers if m in _SHAPES), ""))
        kind = {"DMMA": "fp64", "IMMA": "int8"}.get(instruction.opcode, "fp16")
        if "TF32" in instruction.modifiers:
            kind = "tf32"
        return self.gpu.tensor_lambda(kind, *shape) if shape and kind in self.gpu.tensor else usual


class MemoryCosts:
    """λ, Λ and further levels of accesses to memory on one GPU, whose blocks move so many bytes to and from DRAM."""

    def __init__(
        self, gpu: Gpu, clock_mhz: float, blocks: int, index: dict[str, int], read: float, write: float
    ) -> None:
        self.gpu, self.index = gpu, index
        levels, sms = gpu.memory, gpu.device.sm_count
        # SMs that work in the partial last wave; all of them where the grid divides evenly.
        self.sms, self.tail_sms = sms, blocks % sms or sms
        self.l1_latency = levels.l1.latency
        # The crossbar and the L2 follow the SM clock, what lies behind them does not.
        near, far = levels.l2.latency_ns, levels.l3.latency_ns if levels.l3 else 0.0
        self.l2_latency = gpu.cycles(near)
        self.l3_latency = self.l2_latency + gpu.cycles(far - near, clock_mhz) if levels.l3 else 0.0
        self.dram_latency = self.l2_latency + gpu.cycles(levels.dram.latency_ns - near, clock_mhz)
        self.sm_intake = levels.l2.bytes_per_cycle_per_sm or levels.l1.bytes_per_cycle
        gbs = dram_bandwidth(levels.dram.read_gbs, levels.dram.copy_gbs, levels.dram.write_gbs, read, write)
        self.dram_rate = gpu.bytes_per_cycle(gbs, clock_mhz)

    def cost(
        self, shared: bool, behaviour: AccessBehaviour | None, slot: float
    ) -> tuple[float, float, tuple[Level, ...]]:
        """λ, Λ and further levels of a memory instruction; `slot` is the λ of its class.

        An access takes its slot of the load-store unit, or its wavefronts if they take longer: for shared
        memory as many as its bank conflicts make, for global and local memory one for each line's worth
        of sectors, each 4 tags, or each pass of the banks that are the L1's data stage too, whichever is
        most. Λ is the mean over where its sectors are found (the
        average memory access time, GPUPerf §3), plus the λ of its own further wavefronts (analysis
        paper §6.3). Executions without an active lane take their slot too, so that they do not hide the
        conflicts of the others.
        """
        levels = self.gpu.memory
        if behaviour is None:
            return slot, levels.shared.latency if shared else self.l1_latency, ()
        # A measured rate may lie a little under the documented wavefront a slot.
        bank_pass = min(slot, levels.shared.banks * levels.shared.bank_bytes / levels.shared.bytes_per_cycle)
        idle = max(0.0, 1 - behaviour.requests)
        if behaviour.space == SPACE_SHARED:
            passes = max(1.0, behaviour.units + idle)
            return max(slot, bank_pass * passes), levels.shared.latency + (passes - 1) * bank_pass, ()
        sectors = behaviour.units
        wavefront = min(slot, levels.line_bytes / levels.l1.bytes_per_cycle)
        lines = sectors * levels.sector_bytes / levels.line_bytes
        moved = wavefront * max(1.0, lines + idle, behaviour.lines / levels.l1.tags_per_cycle + idle)
        # The banks are those of shared memory, and a pass takes what it takes there.
        busy = max(moved, bank_pass * (behaviour.passes + idle))
        miss, far = 1 - behaviour.l1_hit, 1 - behaviour.l2_hit
        farthest = self.l3_latency * behaviour.l3_hit + self.dram_latency * (1 - behaviour.l3_hit)
        beyond = self.l2_latency * (1 - far) + farthest * far
        latency = self.l1_latency * behaviour.l1_hit + beyond * miss + busy - wavefront
        to_l2 = sectors * miss * levels.sector_bytes
        to_dram = (behaviour.dram_read + behaviour.dram_write) * levels.sector_bytes
        visited = [self._level("l2", to_l2, levels.l2.bytes_per_cycle)] if to_l2 else []
        if levels.l3 and (to_l3 := (to_l2 * far + behaviour.dram_write * levels.sector_bytes)):
            visited.append(self._level("l3", to_l3, levels.l3.bytes_per_cycle))
        if to_dram:
            visited.append(self._level("dram", to_dram, self.dram_rate))
        if levels.l2.atomics_per_cycle and behaviour.same_address:
            lanes = behaviour.same_address / levels.l2.atomics_per_cycle
            visited.append(Level(self.index["atomics"], to_ticks(lanes * self.sms), to_ticks(lanes * self.tail_sms)))
        return max(slot, busy), latency, tuple(visited)

    def bulk_cost(
        self, behaviour: AccessBehaviour | None, slot: float, engine: float
    ) -> tuple[float, float, tuple[Level, ...]]:
        """λ, Λ and further levels of a copy by the copy engine: `slot` for 128 bytes, `engine` beside the memory's Λ.

        The bytes take time of shared memory's data path from products of warp groups, without waiting for them, and
        go to or from the L2 past the L1.
        """
        if behaviour is None:
            return slot, engine, ()
        levels = self.gpu.memory
        moved = behaviour.units * levels.sector_bytes
        far = 1 - behaviour.l2_hit
        latency = engine + self.l2_latency * (1 - far) + self.dram_latency * far
        taken = self.shared_ticks(moved)
        visited = [Level(self.index["async_shared"], taken, taken, queues=False)]
        if moved:
            visited.append(self._level("l2", moved, levels.l2.bytes_per_cycle))
        if to_dram := (behaviour.dram_read + behaviour.dram_write) * levels.sector_bytes:
            visited.append(self._level("dram", to_dram, self.dram_rate))
        return max(slot, slot * moved / levels.line_bytes), latency, tuple(visited)

    def shared_ticks(self, moved: float) -> int:
        """Ticks that `moved` bytes without bank conflicts take of the data path of shared memory."""
        shared = self.gpu.memory.shared
        return to_ticks(moved / (shared.banks * shared.bank_bytes))

    def _level(self, name: str, moved: float, rate: float) -> Level:
        """λ of one SM's transfer of `moved` bytes where all SMs share `rate` bytes a cycle."""
        alone = moved / self.sm_intake
        return Level(
            self.index[name],
            to_ticks(max(moved * self.sms / rate, alone)),
            to_ticks(max(moved * self.tail_sms / rate, alone)),
        )


_UNKNOWN_SLEEP = "how long __nanosleep sleeps depends on data: taken as no time"


def _ticks(cost: ClassCost, lambda_: float, latency: float) -> tuple[int, int, int]:
    """λ, Λ and the time until the operands are read, in ticks."""
    return to_ticks(lambda_), to_ticks(latency), to_ticks(max(cost.read_latency or 0.0, lambda_))


def _transactions(instruction: Instruction, behaviour: AccessBehaviour | None) -> float:
    """Lines that a warp's access to global or local memory touches; 0 for everything else."""
    if instruction.memory is None or behaviour is None or behaviour.space == SPACE_SHARED:
        return 0.0
    return behaviour.lines


def _conflict(behaviour: AccessBehaviour | None, wavefront: float) -> int:
    """Ticks of the wavefronts beyond one of an access to shared memory."""
    if behaviour is None or behaviour.space != SPACE_SHARED:
        return 0
    return to_ticks(max(0.0, behaviour.units - behaviour.requests) * wavefront)


_OWN_COSTS = ("tensor", "wgmma", "bulk_copy")
"""Classes whose instructions cost what their shapes and bytes say."""
_FIXED = ("alu", "fma", "fp16")
"""Pipes whose instructions have fixed latencies."""
_ACCEPTED = ("store", "reduction", "bulk_store", "bulk_reduction")
"""Kinds of access that are done when memory has accepted them."""
_GROUP_TYPES = {"HGMMA": "fp16", "QGMMA": "fp8", "IGMMA": "int8"}
_GROUP_ROWS, _GROUP_WARPS, _GROUP_K_BYTES = 16, 4, 32
"""Of a warp-group product: a warp's rows, the warps, and the bytes of K."""

_SHAPES = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "884": (8, 8, 4), "8x8x4": (8, 8, 4),
    "16832": (16, 8, 32), "8816": (8, 8, 16), "8832": (8, 8, 32), "16864": (16, 8, 64),
}  # fmt: skip
"""Shapes m, n, k as the machine code spells them."""


def dram_bandwidth(read_gbs: float, copy_gbs: float, write_gbs: float, read: float, written: float) -> float:
    """Achievable DRAM bandwidth in GB/s for a mixture of bytes read and written.

    Between the measured rates of pure reading, copying (half and half) and pure writing, in a line.
    """
    if read + written <= 0:
        return read_gbs
    share = written / (read + written)
    if share <= 0.5:
        return read_gbs + (copy_gbs - read_gbs) * 2 * share
    return copy_gbs + (write_gbs - copy_gbs) * (2 * share - 1)


def class_totals(workload: Workload, executions: list[float]) -> dict[str, float]:
    """Warp instructions of the whole grid by class, most first."""
    totals: dict[str, float] = {}
    for instruction, count in zip(workload.kernel.instructions, executions, strict=True):
        if count:
            totals[instruction.class_] = totals.get(instruction.class_, 0.0) + count
    return dict(sorted(totals.items(), key=lambda item: -item[1]))
