"""A real kernel on a GPU of the papers: def-use dependences, and λ and Λ of the paper's table.

Such a GPU has no memory levels; the memory analysis module of the analysis paper (§6.3) derives the cost of an access
from the table's figures, the bytes that it moves to and from DRAM, and its bank conflicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import UsageError
from ..hardware import ClassCost, Gpu, MachineCode
from ..kernel.cfg import ControlFlowGraph
from ..kernel.dataflow import Dataflow
from ..kernel.instruction import Instruction
from ..kernel.isa.nvidia.opcodes import is_barrier
from ..kernel.profile import SPACE_SHARED
from ..memory.behaviour import AccessBehaviour, MemoryBehaviour
from .build import Path, Workload
from .cost import CostedNode, CostedPath, CostedWorkload, Item, Repeat, to_ticks
from .cost_model import Conditions, idle_instructions, on_gpu

LANE_BYTES = 4
"""The table's accesses are of four bytes per lane."""

_NOTES = (
    "scalar instructions, waits and branches are ignored: the paper's table lists none",
    "cache hits cost the same as DRAM accesses: the paper's table has no λ and Λ for caches",
)


def bind_to_table(
    workload: Workload, cfg: ControlFlowGraph, memory: MemoryBehaviour, gpu: Gpu, conditions: Conditions
) -> CostedWorkload:
    """Assign costs on a GPU whose file has `[machine_code]` and no memory levels."""
    code = gpu.machine_code
    if code is None:
        raise UsageError(f"GPU {gpu.name} takes abstract workloads only")
    chains = Dataflow(workload.kernel.instructions, cfg).producers
    costs = _Costs(workload.kernel.instructions, memory, gpu, code, chains)
    return on_gpu(workload, gpu, conditions, tuple(costs.path(path) for path in workload.paths), memory, _NOTES)


@dataclass(frozen=True)
class _Costs:
    instructions: Sequence[Instruction]
    memory: MemoryBehaviour
    gpu: Gpu
    code: MachineCode
    producers: Sequence[Sequence[int]]

    def counted(self, instruction: int) -> bool:
        """Whether the table has a class for an instruction."""
        return bool(self.code.classes[self.instructions[instruction].class_])

    def path(self, path: Path) -> CostedPath:
        kept = [n for n, node in enumerate(path.nodes) if self.counted(node.instruction)]
        place = {path.nodes[old].instruction: new for new, old in enumerate(kept)}
        nodes = tuple(self.node(path.nodes[old].instruction, place) for old in kept)
        moved = {old: new for new, old in enumerate(kept)}
        made = CostedPath(nodes, _kept_items(path.program, moved), len(nodes))
        return replace(made, idle=idle_instructions(made.counts(), [path.lanes[old] for old in kept]))

    def node(self, instruction: int, place: dict[int, int]) -> CostedNode:
        i = self.instructions[instruction]
        cost = self.gpu.classes[self.code.classes[i.class_]]
        behaviour = self.memory.accesses.get(instruction)
        lambda_, latency = cost.lambda_, cost.latency or 0.0
        if behaviour is not None and i.memory is not None:
            lambda_, latency = self.access(cost, behaviour, i.memory.width)
        stores = i.memory is not None and i.memory.kind in ("store", "reduction")
        return CostedNode(
            instruction=instruction,
            class_=i.class_,
            subsystem=list(self.gpu.subsystems).index(cost.subsystem),
            lambda_ticks=to_ticks(lambda_),
            latency_ticks=to_ticks(latency),
            waits=tuple(sorted({place[p] for p in self._sources(instruction) if p in place})),
            sets=-1 if stores else place[instruction],
            barrier=is_barrier(i),
            async_result=stores,
            transactions=behaviour.lines if behaviour is not None and behaviour.space != SPACE_SHARED else 0.0,
        )

    def access(self, cost: ClassCost, behaviour: AccessBehaviour, width: int) -> tuple[float, float]:
        """λ and Λ of an access (§6.3); R: bytes moved to and from DRAM for each byte asked for, D: the conflicts."""
        latency = cost.latency or 0.0
        if behaviour.space == SPACE_SHARED:
            wavefronts = max(1.0, self.gpu.occupancy.warp_size * width / self._pass_bytes)
            conflicts = max(0.0, behaviour.units / wavefronts - 1)
            return (1 + conflicts) * cost.lambda_ * width / LANE_BYTES, latency + conflicts * cost.lambda_
        asked = self.gpu.occupancy.warp_size * width
        moved = (behaviour.dram_read + behaviour.dram_write) * self.code.transaction_bytes
        ratio = max(1.0, moved / asked)
        return ratio * cost.lambda_ * width / LANE_BYTES, latency + (ratio - 1) * cost.lambda_

    @property
    def _pass_bytes(self) -> int:
        return self.code.shared_banks * LANE_BYTES

    def _sources(self, instruction: int) -> set[int]:
        """The counted instructions whose results an instruction needs, directly or through uncounted ones."""
        found: set[int] = set()
        pending, seen = list(self.producers[instruction]), set()
        while pending:
            producer = pending.pop()
            if producer in seen:
                continue
            seen.add(producer)
            if self.counted(producer):
                found.add(producer)
            else:
                pending.extend(self.producers[producer])
        return found


def _kept_items(program: Sequence[Item], moved: dict[int, int]) -> tuple[Item, ...]:
    items: list[Item] = []
    for item in program:
        if isinstance(item, Repeat):
            body = _kept_items(item.body, moved)
            if body:
                items.append(Repeat(item.count, body))
        elif item in moved:
            items.append(moved[item])
    return tuple(items)
