"""What a prediction stands on, all in one piece: a what-if gives back another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..api import BoundKernel, bind_workload
from ..binding import Binding
from ..bound import BoundNode, BoundWorkload
from ..finding import Place
from ..fit import geometry_of
from ..hardware import Gpu, Occupancy
from ..kernel.instruction import Instruction
from ..kernel.profile import Profile
from ..memory.behaviour import MemoryBehaviour
from ..memory.table import RequestTable, request_table
from ..workload import Workload

Change = Callable[[BoundWorkload], BoundWorkload]


@dataclass(frozen=True)
class Setting:
    """A kernel in a launch on a GPU, before it is bound: `bound` is what is simulated.

    `changes` are made in the bound workload, one after the other. The simulated time counts `part` times: other than
    1 where something else than the launch's own share is simulated. `warm_l2` is as in `Options`.
    """

    profile: Profile
    workload: Workload
    behaviour: MemoryBehaviour
    gpu: Gpu
    fits: Occupancy
    binding: Binding
    warm_l2: bool = False
    changes: tuple[Change, ...] = ()
    part: float = 1.0

    @classmethod
    def of(cls, ready: BoundKernel, warm_l2: bool = False) -> Setting:
        """The kernel as it is."""
        binding = Binding(ready.bound.clock_hz / 1e6, ready.bound.policy, ready.bound.blocks_per_sm)
        return cls(ready.profile, ready.workload, ready.behaviour, ready.gpu, ready.fits, binding, warm_l2)

    @cached_property
    def bound(self) -> BoundWorkload:
        """Tied to its GPU, with all changes made."""
        bound = bind_workload(self.workload, self.profile.cfg, self.behaviour, self.gpu, self.binding)
        for change in self.changes:
            bound = change(bound)
        return bound

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The kernel's, with the classes that they are taken to have."""
        return self.workload.kernel.instructions

    @cached_property
    def requests(self) -> RequestTable:
        """Each logged access with what it costs, and what it would at best."""
        return request_table(self.profile, geometry_of(self.gpu, self.fits))

    @cached_property
    def executions(self) -> list[float]:
        """Warp-level executions of each instruction over the whole grid."""
        return [float(count) for count in self.profile.executions()]

    def then(self, change: Change) -> Setting:
        """The same with a further change of the bound workload."""
        return replace(self, changes=(*self.changes, change))

    def indices(self, *classes: str) -> list[int]:
        """Executed instructions of these classes."""
        return [n for n, ins in enumerate(self.instructions) if ins.class_ in classes and self.executions[n] > 0]

    def places(self, instructions: Iterable[int], limit: int = 6) -> tuple[Place, ...]:
        """The source lines of instructions, in their order, each once."""
        found: dict[Place, None] = {}
        for index in instructions:
            if source := self.instructions[index].source:
                found.setdefault(Place(source.file, source.line))
        return tuple(found)[:limit]


def change_nodes(bound: BoundWorkload, change: Callable[[BoundNode], BoundNode]) -> BoundWorkload:
    """The workload with every node changed."""
    paths = tuple(replace(path, nodes=tuple(change(node) for node in path.nodes)) for path in bound.paths)
    return replace(bound, paths=paths)
