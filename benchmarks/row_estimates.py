"""How far estimates of rows of a table are off, by how much of each launch is simulated, against all of it simulated.

    python benchmarks/row_estimates.py 8 TABLE --kernel … --gpu … [further options of `drywarp validate`]

The rows are those that ``drywarp validate --rows 8`` takes. For each budget, in millions of warp instructions, a row
shows the time of the pipeline's estimate over that of the full simulation, less one, and the seconds of the processor
that it took; the first column of figures is the full simulation. Small budgets apply to estimates
alone here: no share is simulated in full because it is small. `exact` marks answers in which a state recurred.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

from row_speed import collected

BUDGETS = (12, 6, 3, 1)
"""Millions of warp instructions; the first is `LAUNCH_BUDGET`, the third that of a sweep."""


def order(one: list[float], other: list[float]) -> float:
    """Spearman's correlation of two series without ties."""
    import numpy as np

    ranks = [np.argsort(np.argsort(series)) for series in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def tried(costed: Any) -> tuple[float, float, float, list[tuple[float, float, bool]]]:
    """Millions of warp instructions, ticks and seconds of all of it; of each budget error, seconds, whether exact."""
    from drywarp.pipeline import extrapolate, share_of, simulate
    from drywarp.pipeline.simulate import Program

    share, program = share_of(costed, costed.blocks_per_sm), Program(costed)
    extrapolate.WORTH = 1.0

    def timed(**how: Any) -> tuple[Any, float]:
        started = time.process_time()
        return simulate(costed, share, program=program, **how), time.process_time() - started

    full, whole = timed(full=True)  # jumps change no number, so none are taken
    found = []
    for budget in BUDGETS:
        result, seconds = timed(budget=budget * 10**6)
        found.append((result.total_ticks / full.total_ticks - 1, seconds, not result.extrapolated))
    return full.issued / 1e6, full.total_ticks, whole, found


def main() -> None:
    """Predict the rows, and print a line for each and the largest error of each budget."""
    standard, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    rows = collected([*sys.argv[2:], "--rows", sys.argv[1]])
    sys.stdout = standard
    from drywarp.experiments import rows as predicting
    from drywarp.experiments.rows import worker

    worst = [0.0] * len(BUDGETS)
    ticks: list[list[float]] = [[] for _ in (0, *BUDGETS)]
    spent = [0.0] * (1 + len(BUDGETS))
    print("row         M in full      s" + "".join(f"{f'{budget} M':>12}      s" for budget in BUDGETS))

    def instead(prepared: Any, models: Any) -> Any:
        size, all_of_it, whole, found = tried(prepared.costed)
        texts = (f"{'exact' if exact else f'{off:+.1%}':>12} {seconds:6.2f}" for off, seconds, exact in found)
        print(f"{len(ticks[0]):<12}{size:8.1f} {whole:6.2f}" + "".join(texts), flush=True)
        for k, (off, seconds, _) in enumerate(found):
            worst[k] = max(worst[k], abs(off))
            spent[k + 1] += seconds
            ticks[k + 1].append(all_of_it * (1 + off))
        spent[0] += whole
        ticks[0].append(all_of_it)
        return {}, {}

    predicting.predictions_of = instead
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DRYWARP_CACHE_DIR"] = folder
        for _, task, launch in rows:
            worker.answer(replace(task, settings=replace(task.settings, band=False)), launch)
    ends = (f"{off:12.1%} {seconds:6.2f}" for off, seconds in zip(worst, spent[1:], strict=True))
    print(f"{'largest, sum':20} {spent[0]:6.2f}" + "".join(ends))
    print(f"{'order, Spearman':27}" + "".join(f"{order(ticks[0], its):12.4f}{'':7}" for its in ticks[1:]))


if __name__ == "__main__":
    main()
