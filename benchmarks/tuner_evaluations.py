"""How many measurements Kernel Tuner needs to come close to the best configuration, by search strategy.

Kernel Tuner itself searches, in its simulation mode: a measurement is looked up among those that are there. ROWS is
what `drywarp validate TABLE … --models pipeline --warm-l2 --out ROWS` wrote: measured and predicted times of a table's
configurations, or of those that `--where` kept. With `--measured TABLE` it may also be what `drywarp sweep --out ROWS`
wrote of the same parameters. Counted are distinct configurations that were tried until one was at most `--within` per
cent slower than the fastest; a search that ends before counts as all of them.

    python benchmarks/tuner_evaluations.py a4000.csv pnpoly.csv --seeds 100

Needs `pip install 'drywarp[kernel-tuner]'`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import statistics
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kernel_tuner
import numpy as np

from drywarp.experiments.rows.recipe import as_value
from drywarp.experiments.tuners.kernel_tuner import PredictedOrder, Predictions
from drywarp.experiments.validate.compare import read_rows
from drywarp.experiments.validate.read import read_table


@dataclass(frozen=True)
class Measured:
    """Measured times of a file of rows as Kernel Tuner's cache, and predicted ones."""

    name: str
    cache: Path
    names: tuple[str, ...]
    times_ms: Mapping[tuple[Any, ...], float]
    predictions: Predictions


def measured(file: Path, table: Path | None, folder: Path) -> Measured:
    predictions = Predictions.read(file)
    names = predictions.names
    if table is None:
        found = [(row.parameters, row.measured_s) for row in read_rows(file)[2]]
    else:
        found = [(row.cells, row.time_s) for row in read_table(table).rows]
    times = {
        tuple(as_value(cells[name]) for name in names): seconds * 1e3
        for cells, seconds in found
        if predictions.key(cells) in predictions.times.keys() | predictions.failed.keys()
    }
    overhead = {"compile_time": 0, "verification_time": 0, "benchmark_time": 0}
    cache = {
        "device_name": file.stem,
        "kernel_name": file.stem,
        "problem_size": [1],
        "tune_params_keys": names,
        "tune_params": {name: sorted({c[place] for c in times}) for place, name in enumerate(names)},
        "objective": "time",
        "cache": {
            ",".join(map(str, c)): {**dict(zip(names, c, strict=True)), "time": time, "times": [time], **overhead}
            for c, time in times.items()
        },
    }
    path = folder / f"{file.stem}.json"
    path.write_text(json.dumps(cache))
    return Measured(file.stem, path, names, times, predictions)


def strategies(predictions: Predictions, count: int) -> dict[str, tuple[Callable[[], Any], dict[str, Any]]]:
    """Makers of strategies and their options. Kernel Tuner's default is to go through the whole space in order."""
    every = {"max_fevals": count}
    own = ("random_sample", "genetic_algorithm", "simulated_annealing")
    return {
        "predicted order": (lambda: PredictedOrder(predictions=predictions, correct=False), {}),
        "predicted order, corrected": (lambda: PredictedOrder(predictions=predictions), {}),
        "brute_force (default)": (lambda: None, {}),
        **{name: (lambda name=name: name, every) for name in own},
    }


def evaluations(table: Measured, strategy: Any, options: Mapping[str, Any], seed: int, close: float) -> int | None:
    """Distinct configurations until one takes at most `close` milliseconds; None where none did."""
    random.seed(seed)
    np.random.seed(seed)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, _ = kernel_tuner.tune_cache(
            str(table.cache), strategy=strategy, strategy_options=dict(options), quiet=True, seed=seed
        )
    tried: set[tuple[Any, ...]] = set()
    for result in found:
        configuration = tuple(result[name] for name in table.names)
        tried.add(configuration)
        if table.times_ms.get(configuration, float("inf")) <= close:
            return len(tried)
    return None


def report(table: Measured, seeds: Iterable[int], within: float) -> list[str]:
    count, best = len(table.times_ms), min(table.times_ms.values())
    close = best * (1 + within / 100)
    near = sum(time <= close for time in table.times_ms.values())
    lines = [
        f"**{table.name}**: {count} configurations, {near} of them within {within:g} % of the fastest "
        f"({best:.4g} ms); {len(table.predictions.failed)} without a prediction",
        "",
        "| strategy | median | mean | 90 % | worst | not found |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, (make, options) in strategies(table.predictions, count).items():
        found = [evaluations(table, make(), options, seed, close) for seed in seeds]
        needed = sorted(count if n is None else n for n in found)
        lines.append(
            f"| {name} | {statistics.median(needed):g} | {statistics.mean(needed):.1f} "
            f"| {needed[max(0, -(-9 * len(needed) // 10) - 1)]} | {needed[-1]} | {found.count(None)} |"
        )
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", type=Path, metavar="ROWS")
    parser.add_argument("--measured", type=Path, metavar="TABLE")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--within", type=float, default=5.0, metavar="%")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        for file in given.rows:
            print(
                "\n".join(report(measured(file, given.measured, Path(folder)), range(given.seeds), given.within)),
                flush=True,
            )


if __name__ == "__main__":
    main()
