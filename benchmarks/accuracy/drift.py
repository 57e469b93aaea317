"""The drift gate: a frozen sample of kernels is predicted again, and nothing may have moved unnoticed.

The sample is each `EVERY`-th of the configurations of the suite's kernels, examples and ladders that `drywarp measure
suite/` would run, at its full size; and kernels of others, from their stored counts (`counts.py`). A prediction that
differs by more than `MOST` from `rows/frozen.csv` has moved. Whoever moves one writes the rows anew (`--accept`) and
says why in the changelog.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.request import Options
from drywarp.analysis.stages import answer_prepared
from drywarp.errors import UsageError
from drywarp.experiments.measure.configuration import configurations, read_suite

from .counts import counts, predicted_from
from .rows import HERE

GPUS = ("a100", "rtx2080ti")
MOST, EVERY = 0.005, 3
FROZEN = HERE / "rows" / "frozen.csv"
SUITE = HERE.parents[1] / "suite"
COLUMNS = ("kernel", "variant", "gpu", "time_us", "limiter")


def predict(number: int, at: int, gpu: str) -> dict[str, str] | None:
    """A row of `COLUMNS`: the configuration `at` of kernel `number` of the suite; None if no GPU could launch it."""
    one = configurations(read_suite(SUITE)[number])[at]
    options = Options(models=("pipeline",), occupancies=(), findings=False, brief=True)
    try:
        ready = prepare_kernel(
            one.source, gpu=gpu, entry=one.kernel.entry.entry, grid=one.grid, block=one.block, args=one.args,
            shared=one.shared, defines=one.defines, compiler_options=one.kernel.entry.compiler_options, options=options,
        )  # fmt: skip
    except UsageError:
        return None
    found = answer_prepared(ready, options)
    named = {"kernel": one.name, "variant": one.variant, "gpu": gpu}
    return named | {"time_us": f"{found.time_s * 1e6:.5g}", "limiter": found.limiter}


def predicted(jobs: int | None = None) -> list[dict[str, str]]:
    """Rows of the sample, in its order."""
    kernels = enumerate(read_suite(SUITE))
    numbered = [(number, at) for number, kernel in kernels for at in range(len(configurations(kernel)))]
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        asked = [pool.submit(predict, *one, gpu) for one in numbered[::EVERY] for gpu in GPUS]
        return [row for each in asked if (row := each.result()) is not None] + from_counts()


def from_counts() -> list[dict[str, str]]:
    """Rows of other people's kernels, predicted from their stored counts."""
    found = []
    for name, rows in counts().items():
        time_s, limiter = predicted_from(rows)
        named = {"kernel": name, "variant": "counts", "gpu": rows[0]["gpu"]}
        found.append(named | {"time_us": f"{time_s * 1e6:.5g}", "limiter": limiter})
    return found


def frozen() -> list[dict[str, str]]:
    """The rows that were accepted last."""
    with FROZEN.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def accept(rows: Sequence[Mapping[str, str]]) -> None:
    """Freeze these rows."""
    with FROZEN.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def moved(before: Sequence[Mapping[str, str]], now: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """A line for each prediction that moved by more than `MOST`, and for each that has no counterpart."""

    def by_name(rows: Sequence[Mapping[str, str]]) -> dict[tuple[str, ...], Mapping[str, str]]:
        return {tuple(row[name] for name in COLUMNS[:3]): row for row in rows}

    old, new = by_name(before), by_name(now)
    for key in [*old, *(key for key in new if key not in old)]:
        name = " ".join(part for part in key if part)
        if key not in old or key not in new:
            yield f"{name}: {'new' if key in new else 'gone'}"
            continue
        ratio = float(new[key]["time_us"]) / float(old[key]["time_us"])
        if abs(ratio - 1) > MOST:
            limits = " to ".join(dict.fromkeys((old[key]["limiter"], new[key]["limiter"])))
            yield f"{name}: {old[key]['time_us']} to {new[key]['time_us']} µs ({ratio - 1:+.1%}), limited by {limits}"
