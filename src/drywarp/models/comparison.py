"""All models on one workload as plain data, and the occupancies that they are evaluated at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import UsageError
from ..pipeline.extrapolate import CURVE_BUDGET, instructions
from ..support.text import json_of
from ..workload.cost import CostedWorkload
from .base import Prediction
from .inputs import ModelInputs
from .terms import Terms


@dataclass(frozen=True)
class Comparison:
    """The curves of all models over `occupancies` (warps per SM), and what the models were given.

    `predictions` holds the models that apply; `not_applicable` gives the reason for each of the others. `settings` and
    `runs` are those of an abstract workload (`runs` 0: a grid of blocks). `input_sources` gives the source of each
    input (see `input_sources`), `terms` what the older models derive from them.
    """

    workload: str
    title: str
    gpu: str
    gpu_title: str
    gpu_hash: str
    occupancies: tuple[int, ...]
    settings: Mapping[str, float]
    runs: int
    scheduler: str
    inputs: ModelInputs
    predictions: Mapping[str, Prediction]
    not_applicable: Mapping[str, str]
    notes: tuple[str, ...] = ()
    input_sources: Mapping[str, str] = field(default_factory=dict)
    terms: Terms | None = None

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md), without its header."""
        return {
            **json_of(self, "workload title gpu gpu_title gpu_hash settings runs not_applicable input_sources notes"),
            "assumptions": {"clock_hz": self.inputs.clock_hz, "scheduler": self.scheduler},
            "occupancies_warps": list(self.occupancies),
            "models": {name: [] for name in self.not_applicable}
            | {name: self._curve(prediction) for name, prediction in self.predictions.items()},
            "predictions": {
                name: json_of(prediction, "time_s cycles limiter notes")
                for name, prediction in self.predictions.items()
            },
            "inputs": inputs_dict(self.inputs),
            "terms": None if self.terms is None else asdict(self.terms),
        }

    @staticmethod
    def _curve(prediction: Prediction) -> list[dict[str, Any]]:
        names = "occupancy_warps warps_per_cycle cycles_per_run bound"
        return [json_of(point, names) for point in prediction.curve]


def inputs_dict(inputs: ModelInputs) -> dict[str, Any]:
    """The inputs under the names of `ModelInputs`, with the figures derived from them."""
    derived = {"instructions": inputs.instructions, "intensity": inputs.intensity, "periods": inputs.periods}
    return asdict(inputs) | derived


# The occupancies at which a model is evaluated: the points of an answer's curve.

MOST_CURVE_POINTS = 16
"""Maximum number of occupancies on a curve; if more are possible, they are spread evenly."""

FEWEST_CURVE_POINTS, CURVE_STEPS = 5, 4_000_000
"""Minimum number of points on a curve if the GPU allows it, and maximum warp instructions for all points."""


def curve_occupancies(costed: CostedWorkload, wanted: Sequence[int] | None) -> list[int]:
    """Warps per SM in whole blocks; the launch's own occupancy is always among them.

    Of a range, the whole blocks are taken; numbers given individually must be whole blocks. By default, the more a
    point costs to simulate, the fewer there are.
    """
    warps = costed.warps_per_block
    if isinstance(wanted, range):
        whole = [w for w in wanted if 0 < w <= costed.max_blocks_per_sm * warps and w % warps == 0]
        return sorted({*whole, costed.warps_per_sm})
    if wanted is not None:
        for occupancy_warps in wanted:
            if occupancy_warps % warps or not 0 < occupancy_warps <= costed.max_blocks_per_sm * warps:
                raise UsageError(
                    f"occupancy {occupancy_warps}: expected a multiple of {warps} warps (one block) "
                    f"up to {costed.max_blocks_per_sm * warps}"
                )
        return sorted({*wanted, costed.warps_per_sm})
    most = costed.max_blocks_per_sm
    cost = min(instructions(costed, -(-costed.blocks // costed.sm_count)), CURVE_BUDGET)
    affordable = max(FEWEST_CURVE_POINTS, CURVE_STEPS // max(1, cost))
    count = min(most, MOST_CURVE_POINTS, affordable)
    blocks = {round(1 + i * (most - 1) / max(1, count - 1)) for i in range(count)}
    return [b * warps for b in sorted(blocks | {costed.blocks_per_sm})]
