"""All models on one workload: what a comparison holds, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .base import Prediction
from .inputs import ModelInputs


@dataclass(frozen=True)
class Comparison:
    """The curves of all models over `occupancies` (warps per SM), and what the models were given.

    `predictions` holds the models that apply; `not_applicable` says of each other one why not. `settings`
    and `runs` are those of an abstract workload (`runs` 0: a grid of blocks). `input_sources` says of each input
    where it came from (see `input_sources`).
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

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md), less its head."""
        return {
            "workload": self.workload,
            "title": self.title,
            "gpu": self.gpu,
            "gpu_title": self.gpu_title,
            "gpu_hash": self.gpu_hash,
            "settings": dict(self.settings),
            "runs": self.runs,
            "assumptions": {"clock_hz": self.inputs.clock_hz, "scheduler": self.scheduler},
            "occupancies_warps": list(self.occupancies),
            "models": {name: [] for name in self.not_applicable}
            | {name: self._curve(prediction) for name, prediction in self.predictions.items()},
            "not_applicable": dict(self.not_applicable),
            "predictions": {
                name: {"time_s": p.time_s, "cycles": p.cycles, "limiter": p.limiter, "notes": list(p.notes)}
                for name, p in self.predictions.items()
            },
            "inputs": inputs_dict(self.inputs),
            "input_sources": dict(self.input_sources),
            "notes": list(self.notes),
        }

    @staticmethod
    def _curve(prediction: Prediction) -> list[dict[str, Any]]:
        return [
            {
                "occupancy_warps": point.occupancy_warps,
                "warps_per_cycle": point.warps_per_cycle,
                "cycles_per_run": point.cycles_per_run,
                "bound": point.bound,
            }
            for point in prediction.curve
        ]


def inputs_dict(inputs: ModelInputs) -> dict[str, Any]:
    """The inputs under the names of `ModelInputs`, with the figures that follow from them."""
    derived = {"instructions": inputs.instructions, "intensity": inputs.intensity, "periods": inputs.periods}
    return asdict(inputs) | derived
