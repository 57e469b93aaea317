"""What a rule looks at: the kernel as it is, and where its predicted time goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from ..kernel.instruction import Instruction
from ..models.base import Prediction
from .setting import Setting


@dataclass(frozen=True)
class Case:
    """A kernel in its setting, with the prediction that is believed."""

    setting: Setting
    prediction: Prediction

    @cached_property
    def stalled(self) -> float:
        """Warp-cycles of all reasons together."""
        return sum(self.prediction.stalls.values())

    def stall_share(self, *reasons: str) -> float:
        """The share of the warps' time that these reasons take, 0..1."""
        return sum(self.prediction.stalls.get(reason, 0.0) for reason in reasons) / self.stalled if self.stalled else 0

    def use(self, subsystem: str) -> float:
        """The fraction of the time that a subsystem, or ``issue``, is busy."""
        return self.prediction.utilization.get(subsystem, 0.0)

    def use_by(self, class_: str) -> float:
        """The fraction of the time that the subsystem of an instruction class is busy; 0 where the GPU names none."""
        cost = self.setting.gpu.classes.get(class_)
        return self.use(cost.subsystem) if cost is not None else 0.0

    def waiting(self, index: int, *reasons: str) -> float:
        """Warp-cycles that an instruction spends for these reasons, or for all."""
        stalls = self.prediction.node_stalls.get(index, {})
        return sum(stalls.get(reason, 0.0) for reason in reasons) if reasons else sum(stalls.values())

    def costliest(self, instructions: Iterable[int], *reasons: str) -> list[int]:
        """Instructions by the time that warps spend at them, most first."""
        return sorted(instructions, key=lambda index: (-self.waiting(index, *reasons), index))

    def share_of(self, wanted: Callable[[Instruction], bool]) -> float:
        """The share of all executed warp instructions that are wanted."""
        total = sum(self.setting.executions)
        found = sum(
            count for ins, count in zip(self.setting.instructions, self.setting.executions, strict=True) if wanted(ins)
        )
        return found / total if total else 0.0
