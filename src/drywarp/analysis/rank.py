"""Ranks GPUs for a kernel by time, energy or cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from .._version import __version__
from ..errors import DrywarpError, UsageError
from ..hardware import Gpu
from ..support.by_name import figures, notebook
from ..support.text import json_of, time_text
from .prepared import Prepared
from .request import LaunchRequest, Options
from .result import SCHEMA_VERSION, Analysis
from .several_gpus import ALL, SeveralGpus, chosen_gpus, launch_and_options
from .stages import answer_prepared

# The result of a ranking: plain data, complete before any report is written.

Order = Literal["time", "energy", "cost"]
ORDERS: tuple[Order, ...] = ("time", "energy", "cost")
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class RankedGpu:
    """A kernel on one GPU. Times in seconds, `tdp_w` in watts (None: unknown), `price_per_hour` as given by the user.

    `low_s` and `high_s` are the uncertainty band (None: unknown; see `drywarp.analysis.result.Band`). `mode` states
    whether the kernel was emulated or followed without data, which requires more assumptions.
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
        """Joules of one run at the board's thermal design power: an upper limit, not a measurement."""
        return None if self.tdp_w is None else self.tdp_w * self.time_s

    @property
    def cost(self) -> float | None:
        """Cost of one run's time, in the currency of the price."""
        return None if self.price_per_hour is None else self.price_per_hour * self.time_s / HOUR_S

    def by(self, order: Order) -> float | None:
        """The figure that an order sorts by; None if unknown."""
        return {"time": self.time_s, "energy": self.energy_j, "cost": self.cost}[order]

    def to_dict(self) -> dict[str, Any]:
        """One entry of `gpus` of the documented JSON object."""
        return {**json_of(self), "energy_at_tdp_j": self.energy_j, "cost": self.cost}


@dataclass(frozen=True)
class Ranking:
    """The GPUs in order, those without the sorting figure last; `failed` maps the remaining GPUs to the reason."""

    kernel: str
    source_file: str
    by: Order
    l2_state: str
    gpus: tuple[RankedGpu, ...]
    failed: Mapping[str, str]
    versions: Mapping[str, str]

    def _repr_html_(self) -> str:
        """Notebook view: the GPUs in order."""
        return str(
            notebook().table_html(
                self.kernel,
                [
                    {"GPU": g.gpu, "time": time_text(g.time_s), "limited by": g.limiter, "mode": g.mode}
                    for g in self.gpus
                ],
            )
        )

    def to_pandas(self) -> Any:
        """One row per GPU as a pandas DataFrame, with the JSON object's keys. Raises UsageError without pandas."""
        return notebook().frame_of([found.to_dict() for found in self.gpus])

    def figure(self, **settings: Any) -> Any:
        """Time on every GPU with its band as a Matplotlib figure (docs/figures.md): `theme`, and `width` in inches."""
        rows = [figures().Bar(found.gpu, found.time_s, found.low_s, found.high_s, found.limiter) for found in self.gpus]
        return figures().bars(rows, self.kernel, **settings)

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


# `rank`: one kernel and launch on many GPUs, sorted by time, energy or cost.


def rank(
    source: object,
    *,
    gpus: str | Path | Gpu | Sequence[str | Path | Gpu] = ALL,
    by: Order = "time",
    prices: Mapping[str, float] | None = None,
    options: Options | None = None,
    on_gpu: Callable[[str, int, int], None] = lambda name, done, of: None,
    **launch: Any,
) -> Ranking:
    """Predict a kernel's time on every GPU, and sort the GPUs.

    `source` and `launch` (grid, block, args, defines, …, fields of `Options`) are as for `analyze`; `gpus` is
    ``"all"`` (every product), a name, or several. `by` is ``"time"``, ``"energy"`` (time times thermal design power) or
    ``"cost"`` (time times price). `prices` maps GPU names to a price per hour. GPUs that cannot run the kernel are
    listed in `failed` with the reason. The kernel is compiled and emulated once per architecture. `on_gpu` is called
    with each GPU as it starts. Raises DrywarpError if no GPU can run the kernel, and for wrong usage.
    """
    if by not in ORDERS:
        raise UsageError(f"by {by!r}: expected one of {', '.join(ORDERS)}")
    machines = chosen_gpus(gpus)
    priced = _prices(prices or {}, machines)
    if by == "cost" and not priced:
        raise UsageError("sorting by cost needs hourly prices, such as a100=1.2: drywarp has none")
    plain = replace(options or Options(), models=("pipeline",), occupancies=range(0), findings=False)
    said, chosen = launch_and_options(launch, plain)
    kernel = SeveralGpus(LaunchRequest.of(source, **said), chosen)
    ranked: list[RankedGpu] = []
    failed: dict[str, DrywarpError] = {}
    answer: Analysis | None = None
    for number, machine in enumerate(machines):
        on_gpu(machine.name, number, len(machines))
        try:
            prepared = kernel.prepare(machine)
            answer = answer_prepared(prepared, chosen)
            ranked.append(_ranked(prepared, answer, priced.get(machine.name)))
        except DrywarpError as error:
            failed[machine.name] = error
    if answer is None:
        # The reason is usually the same everywhere: raise the first.
        raise next(iter(failed.values()))
    return Ranking(
        kernel=answer.kernel,
        source_file=answer.source_file,
        by=by,
        l2_state=answer.l2_state,
        gpus=tuple(sorted(ranked, key=lambda gpu: by_figure(gpu, by))),
        failed={name: str(error) for name, error in failed.items()},
        versions={**answer.versions, "drywarp": __version__},
    )


def by_figure(gpu: RankedGpu, by: Order) -> tuple[float, float, str]:
    """The sort key: the order's figure (GPUs without it last), then time and name."""
    figure = gpu.by(by)
    return (math.inf if figure is None else figure, gpu.time_s, gpu.gpu)


def _prices(prices: Mapping[str, float], machines: Sequence[Gpu]) -> dict[str, float]:
    known = {machine.name for machine in machines}
    for name, price in prices.items():
        if name not in known:
            raise UsageError(f"price of {name}: not among the ranked GPUs ({', '.join(sorted(known))})")
        if not (math.isfinite(price) and price >= 0):
            raise UsageError(f"price of {name}: {price:g}, expected a number, 0 or more")
    return dict(prices)


def _ranked(prepared: Prepared, answer: Analysis, price: float | None) -> RankedGpu:
    return RankedGpu(
        gpu=answer.gpu,
        gpu_title=answer.gpu_title,
        gpu_hash=answer.gpu_hash,
        arch=answer.arch,
        time_s=answer.time_s,
        low_s=answer.band.low_s if answer.band else None,
        high_s=answer.band.high_s if answer.band else None,
        start_s=answer.start_s,
        cycles=answer.prediction.cycles,
        clock_hz=answer.clock_hz,
        limiter=answer.limiter,
        warps_per_sm=answer.occupancy.warps_per_sm,
        occupancy=answer.occupancy.fraction,
        waves=answer.waves,
        mode="static" if answer.static else "emulated",
        tdp_w=prepared.gpu.device.tdp_w,
        price_per_hour=price,
        notes=answer.notes,
    )


__all__ = ["Ranking", "rank"]
