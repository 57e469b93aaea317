"""`rank`: one kernel and launch on many GPUs, in the order of time, energy or cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..api import Options, analyze_bound
from ..errors import DrywarpError, UsageError
from ..hardware import Gpu
from ..ready import BoundKernel
from ..result import Analysis
from ..several_gpus import ALL, SeveralGpus, chosen_gpus, launch_and_options
from .result import ORDERS, Order, RankedGpu, Ranking


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
    """Predict a kernel's time on every GPU, and sort.

    `source` and `launch` (grid, block, args, defines, …, fields of `Options`) are as for `analyze`; `gpus` is
    ``"all"`` (every product), a name, or several. `by` is ``"time"``, ``"energy"`` (time times thermal design power) or
    ``"cost"`` (time times price). `prices` maps GPU names to a price per hour. GPUs that the kernel cannot run on stand
    in `failed` with the reason. Compiled and emulated once per architecture. `on_gpu` is told each GPU as it is
    begun. Raises DrywarpError where no GPU is left, and for wrong usage.
    """
    if by not in ORDERS:
        raise UsageError(f"by {by!r}: expected one of {', '.join(ORDERS)}")
    machines = chosen_gpus(gpus)
    priced = _prices(prices or {}, machines)
    if by == "cost" and not priced:
        raise UsageError("an order by cost needs prices, such as a100=1.2 an hour: drywarp knows none")
    said, chosen = launch_and_options(launch, replace(options or Options(), models=("pipeline",), occupancies=range(0)))
    kernel = SeveralGpus(source, said, chosen)
    ranked: list[RankedGpu] = []
    failed: dict[str, DrywarpError] = {}
    answer: Analysis | None = None
    for number, machine in enumerate(machines):
        on_gpu(machine.name, number, len(machines))
        try:
            ready = kernel.bind(machine)
            answer = analyze_bound(ready, chosen)
            ranked.append(_ranked(ready, answer, priced.get(machine.name)))
        except DrywarpError as error:
            failed[machine.name] = error
    if answer is None:
        # The same reason everywhere most of the time: the first says it.
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
    """The key of an order: its figure, those without it last; then time and name."""
    figure = gpu.by(by)
    return (math.inf if figure is None else figure, gpu.time_s, gpu.gpu)


def _prices(prices: Mapping[str, float], machines: Sequence[Gpu]) -> dict[str, float]:
    known = {machine.name for machine in machines}
    for name, price in prices.items():
        if name not in known:
            raise UsageError(f"price of {name}: not among the GPUs that are ranked ({', '.join(sorted(known))})")
        if not (math.isfinite(price) and price >= 0):
            raise UsageError(f"price of {name}: {price:g}, expected a number, 0 or more")
    return dict(prices)


def _ranked(ready: BoundKernel, answer: Analysis, price: float | None) -> RankedGpu:
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
        tdp_w=ready.gpu.device.tdp_w,
        price_per_hour=price,
        notes=answer.notes,
    )
