"""What a rule looks at: the kernel as it is, and where its predicted time goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...hardware import Gpu, Occupancy
from ...kernel.instruction import Instruction
from ...kernel.profile import Profile
from ...memory.behaviour import MemoryBehaviour
from ...memory.table import RequestTable, request_table
from ...models.base import Prediction
from ...workload.build import Workload
from ...workload.cost import CostedNode, CostedWorkload
from ...workload.cost_model import Conditions
from ..fits import geometry_of
from ..prepare import cost_workload
from ..prepared import Prepared
from ..result.detail import Place

# All inputs of a prediction in one value; a what-if returns a changed one.

Change = Callable[[CostedWorkload], CostedWorkload]


@dataclass(frozen=True)
class Setting:
    """A kernel in a launch on a GPU, before costs are assigned; `costed` is what is simulated.

    `changes` are applied to the costed workload in order. The simulated time is multiplied by `part`, which differs
    from 1 where something other than the launch's own share is simulated. `warm_l2` is as in `Options`.
    """

    profile: Profile
    workload: Workload
    behaviour: MemoryBehaviour
    gpu: Gpu
    fits: Occupancy
    conditions: Conditions
    warm_l2: bool = False
    changes: tuple[Change, ...] = ()
    part: float = 1.0

    @classmethod
    def of(cls, prepared: Prepared, warm_l2: bool = False) -> Setting:
        """The kernel as it is."""
        conditions = Conditions(prepared.costed.clock_hz / 1e6, prepared.costed.policy, prepared.costed.blocks_per_sm)
        return cls(
            prepared.profile, prepared.workload, prepared.behaviour, prepared.gpu, prepared.fits, conditions, warm_l2
        )

    @cached_property
    def costed(self) -> CostedWorkload:
        """The workload with the GPU's costs and all changes applied."""
        costed = cost_workload(self.workload, self.profile.cfg, self.behaviour, self.gpu, self.conditions)
        for change in self.changes:
            costed = change(costed)
        return costed

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The kernel's instructions, with their assumed classes."""
        return self.workload.kernel.instructions

    @cached_property
    def requests(self) -> RequestTable:
        """Each logged access with its cost, and its cost at best."""
        return request_table(self.profile, geometry_of(self.gpu, self.fits))

    @cached_property
    def executions(self) -> list[float]:
        """Warp-level executions of each instruction over the whole grid."""
        return [float(count) for count in self.profile.executions()]

    def then(self, change: Change) -> Setting:
        """The same setting with one more change of the costed workload."""
        return replace(self, changes=(*self.changes, change))

    def changed(
        self, change: Callable[[CostedNode], CostedNode], where: Callable[[CostedNode], bool] | None = None
    ) -> Setting | None:
        """The same setting with every node changed; None if there is no node for which `where` holds."""
        if where and not any(where(node) for path in self.costed.paths for node in path.nodes):
            return None
        return self.then(lambda costed: change_nodes(costed, change))

    def indices(self, *classes: str) -> list[int]:
        """Executed instructions of these classes."""
        return [n for n, ins in enumerate(self.instructions) if ins.class_ in classes and self.executions[n] > 0]

    def places(self, instructions: Iterable[int], limit: int = 6) -> tuple[Place, ...]:
        """The source lines of instructions, in order, without duplicates."""
        found: dict[Place, None] = {}
        for index in instructions:
            if source := self.instructions[index].source:
                found.setdefault(Place(source.file, source.line))
        return tuple(found)[:limit]


def change_nodes(costed: CostedWorkload, change: Callable[[CostedNode], CostedNode]) -> CostedWorkload:
    """The workload with every node changed."""
    paths = tuple(replace(path, nodes=tuple(change(node) for node in path.nodes)) for path in costed.paths)
    return replace(costed, paths=paths)


@dataclass(frozen=True)
class Case:
    """A kernel in its setting, with the primary model's prediction."""

    setting: Setting
    prediction: Prediction

    @cached_property
    def stalled(self) -> float:
        """Warp-cycles over all stall reasons."""
        return sum(self.prediction.stalls.values())

    def stall_share(self, *reasons: str) -> float:
        """The share of warp time spent on these stall reasons, 0..1."""
        return sum(self.prediction.stalls.get(reason, 0.0) for reason in reasons) / self.stalled if self.stalled else 0

    def use(self, subsystem: str) -> float:
        """The fraction of the time that a subsystem, or ``issue``, is busy."""
        return self.prediction.utilization.get(subsystem, 0.0)

    def use_by(self, class_: str) -> float:
        """The fraction of the time that an instruction class's subsystem is busy; 0 if the GPU has no such class."""
        cost = self.setting.gpu.classes.get(class_)
        return self.use(cost.subsystem) if cost is not None else 0.0

    def waiting(self, index: int, *reasons: str) -> float:
        """Warp-cycles that an instruction spends for these reasons, or for all."""
        stalls = self.prediction.node_stalls.get(index, {})
        return sum(stalls.get(reason, 0.0) for reason in reasons) if reasons else sum(stalls.values())

    def costliest(self, instructions: Iterable[int], *reasons: str) -> list[int]:
        """Instructions sorted by the time that warps spend at them, longest first."""
        return sorted(instructions, key=lambda index: (-self.waiting(index, *reasons), index))

    def share_of(self, wanted: Callable[[Instruction], bool]) -> float:
        """The share of all executed warp instructions that `wanted` selects."""
        total = sum(self.setting.executions)
        found = sum(
            count for ins, count in zip(self.setting.instructions, self.setting.executions, strict=True) if wanted(ins)
        )
        return found / total if total else 0.0
