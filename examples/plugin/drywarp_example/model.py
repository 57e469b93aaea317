"""A model: as if nothing but the issue limit cost time."""

from __future__ import annotations

from collections.abc import Sequence

from drywarp.models.base import Prediction, register
from drywarp.models.cycles_per_run import Run, predict_runs
from drywarp.models.inputs import inputs_of
from drywarp.workload.cost import CostedWorkload


@register("issue_only")
class IssueOnly:
    """Instructions of all warps, one after the other."""

    name = "issue_only"
    summary = "an SM that issues one instruction a cycle and never waits (an example)"

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        instructions = sum(part.count for part in inputs_of(workload).by_class.values())
        return predict_runs(
            self.name, workload, occupancies, lambda occupancy: Run(occupancy * instructions, "computation")
        )
