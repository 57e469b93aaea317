"""At which SM clock a table of measurements was taken, as far as the measurements tell.

    python benchmarks/measured_clock.py measured.csv --sms 68
    python benchmarks/measured_clock.py cache.json.gz

A table with Nsight Compute's counters and `duration_us`: executed warp instructions over the issue slots that were in
use give the cycles (four schedulers an SM), and cycles over the duration the clock. A cache of Kernel Tuner lists
single runs: within some configurations the clock changes, which shows as a jump from one level of times to another. How
large the jumps are, and after how many milliseconds of running they come.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from statistics import median, quantiles

import numpy as np

from drywarp.experiments.validate.read import read_table

SCHEDULERS = 4
JUMP, LEVEL = 1.3, 1.05
"""Longest over shortest run of a configuration whose clock changed, and of runs at one clock."""


def from_counters(path: Path, sms: int) -> None:
    found = []
    for row in read_table(path).rows:
        values = row.values()
        issued = values["smsp__inst_executed.sum"]
        busy = values["smsp__issue_active.avg.pct_of_peak_sustained_active"]
        active = values["smsp__cycles_active.avg.pct_of_peak_sustained_elapsed"]
        if all(isinstance(value, int | float) and value > 0 for value in (issued, busy, active)):
            cycles = float(issued) / (sms * SCHEDULERS * float(busy) / 100 * float(active) / 100)
            found.append(cycles / row.time_s / 1e6)
    shares = quantiles(found, n=20)
    print(f"{len(found)} rows: {median(found):.0f} MHz, 90 % of them {shares[0]:.0f} to {shares[-1]:.0f} MHz")


def from_runs(path: Path) -> None:
    data = path.read_bytes()
    cache = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)["cache"]
    jumps, before, listed = [], [], 0
    for entry in cache.values():
        times = entry.get("times")
        if not isinstance(times, list) or len(times) < 8:
            continue
        listed += 1
        runs = np.array(times[1:])
        # The one place where the runs fall into two levels best.
        cut = int(np.abs(np.diff(runs)).argmax()) + 1
        first, second = runs[:cut], runs[cut + 1 :]
        if len(first) < 2 or len(second) < 2 or max(runs) / min(runs) < JUMP:
            continue
        if max(np.quantile(part, 0.9) / np.quantile(part, 0.1) for part in (first, second)) < LEVEL:
            jumps.append(float(np.median(first) / np.median(second)))
            before.append(float(first.sum()))
    faster = [jump for jump in jumps if jump > 1]
    print(f"{len(jumps)} of {listed} configurations jump between two levels, {len(faster)} of them to shorter times")
    if len(jumps) > 1:
        low, high = quantiles(jumps, n=10)[0], quantiles(jumps, n=10)[8]
        print(f"before over after: median {median(jumps):.3f}, 80 % of them {low:.3f} to {high:.3f}")
        print(f"running until then: median {median(before):.0f} ms, at most {max(before):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--sms", type=int, help="SMs of the GPU, for a table with counters")
    options = parser.parse_args()
    if options.sms:
        from_counters(options.table, options.sms)
    else:
        from_runs(options.table)


if __name__ == "__main__":
    main()
