"""What a ranking answers: plain data, finished before any report is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .. import figures
from ..notebook import frame_of, table_html
from ..result import SCHEMA_VERSION
from ..units import time_text

Order = Literal["time", "energy", "cost"]
ORDERS: tuple[Order, ...] = ("time", "energy", "cost")
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class RankedGpu:
    """A kernel on one GPU. Times in seconds, `tdp_w` in watts (None: not known), `price_per_hour` as the user gave it.

    `low_s` and `high_s` are the band that the truth lies in (None: not known; see `drywarp.result.Band`). `mode` says
    whether the kernel was emulated there or followed without data, which assumes more.
    """

    gpu: str
    gpu_title: str
    gpu_hash: str
    arch: str
    time_s: float
    low_s: float | None
    high_s: float | None
    start_s: float
    cycles: float
    clock_hz: float
    limiter: str
    warps_per_sm: int
    occupancy: float
    waves: float
    mode: Literal["emulated", "static"]
    tdp_w: float | None
    price_per_hour: float | None
    notes: tuple[str, ...]

    @property
    def energy_j(self) -> float | None:
        """Joules of one run at the board's thermal design power: what it may draw, not what it was seen to draw."""
        return None if self.tdp_w is None else self.tdp_w * self.time_s

    @property
    def cost(self) -> float | None:
        """Price of the time of one run, in the price's own currency."""
        return None if self.price_per_hour is None else self.price_per_hour * self.time_s / HOUR_S

    def by(self, order: Order) -> float | None:
        """The figure that an order sorts by; None where it is not known."""
        return {"time": self.time_s, "energy": self.energy_j, "cost": self.cost}[order]

    def to_dict(self) -> dict[str, Any]:
        """One entry of `gpus` of the documented JSON object."""
        return {
            "gpu": self.gpu,
            "gpu_title": self.gpu_title,
            "gpu_hash": self.gpu_hash,
            "arch": self.arch,
            "time_s": self.time_s,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "start_s": self.start_s,
            "cycles": self.cycles,
            "clock_hz": self.clock_hz,
            "limiter": self.limiter,
            "warps_per_sm": self.warps_per_sm,
            "occupancy": self.occupancy,
            "waves": self.waves,
            "mode": self.mode,
            "tdp_w": self.tdp_w,
            "energy_at_tdp_j": self.energy_j,
            "price_per_hour": self.price_per_hour,
            "cost": self.cost,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Ranking:
    """The GPUs in order, those without the figure that they are sorted by last; `failed` maps others to the reason."""

    kernel: str
    source_file: str
    by: Order
    l2_state: str
    gpus: tuple[RankedGpu, ...]
    failed: Mapping[str, str]
    versions: Mapping[str, str]

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the GPUs in their order."""
        return table_html(
            self.kernel,
            [{"GPU": g.gpu, "time": time_text(g.time_s), "limited by": g.limiter, "mode": g.mode} for g in self.gpus],
        )

    def to_pandas(self) -> Any:
        """A row for each GPU as a pandas DataFrame, under the JSON object's keys. Raises UsageError without pandas."""
        return frame_of([found.to_dict() for found in self.gpus])

    def figure(self, **settings: Any) -> Any:
        """Time on every GPU with its band as a Matplotlib figure (docs/figures.md): `theme`, and `width` in inches."""
        rows = [figures.Bar(found.gpu, found.time_s, found.low_s, found.high_s, found.limiter) for found in self.gpus]
        return figures.bars(rows, self.kernel, **settings)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/compare.md)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": dict(self.versions),
            "kernel": self.kernel,
            "source_file": self.source_file,
            "by": self.by,
            "l2": self.l2_state,
            "gpus": [gpu.to_dict() for gpu in self.gpus],
            "failed": dict(self.failed),
        }
