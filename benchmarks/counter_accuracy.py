"""Emulated counters against measured ones: the ratio of each, over the rows of a table of measurements.

    python benchmarks/counter_accuracy.py measured.csv --kernel kernel.cu --gpu rtx2080ti \
        --macros BLOCK_SIZE_X,TILE_SIZE --arg 'bitmap=i32[20000000]' [--rows 200] [--jobs 2] [--out ratios.csv]

The table has a column `grid` and a column `block` (as in 64x32x1), one column per macro, and counters under Nsight
Compute's names. `--rows` takes so many of them, evenly spread. A row whose kernel needs more registers than its
launch can have is compiled with the cap that lets it run. For each counter: how many rows lie within 1, 2, 5 and
10 %, the median of |ratio - 1| and its 90th percentile.
"""

from __future__ import annotations

import argparse
import csv
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from drywarp.counts_api import count
from drywarp.errors import DrywarpError

REGISTERS_OF_AN_SM = 65536


def compare(task: tuple[dict[str, str], argparse.Namespace]) -> dict[str, Any]:
    row, options = task
    extents = {name: tuple(int(n) for n in row[name].split("x")) for name in ("grid", "block")}
    macros = {name: row[name] for name in options.macros.split(",")}
    threads = extents["block"][0] * extents["block"][1] * extents["block"][2]
    cap = REGISTERS_OF_AN_SM // (-(-threads // 128) * 128) // 8 * 8
    args = dict(text.split("=", 1) for text in options.arg)
    kernel = {"gpu": options.gpu, "args": args, "defines": macros, **extents}
    try:
        try:
            found = count(Path(options.kernel), **kernel)
        except DrywarpError as error:
            if "registers per thread" not in str(error):
                raise
            found = count(Path(options.kernel), max_registers=cap, **kernel)
    except DrywarpError as error:
        return {**macros, "error": str(error)}
    ratios: dict[str, Any] = {
        name: value / float(row[name]) if float(row[name]) else (1.0 if not value else float("inf"))
        for name, value in found.counts.items()
        if row.get(name)
    }
    same = found.registers == int(row.get("regs") or 0) and found.local_bytes == int(row.get("local_bytes") or 0)
    return {**macros, "same_registers": int(same), **ratios}


def summary(name: str, values: list[float]) -> str:
    errors = sorted(abs(value - 1) for value in values)
    within = [sum(e <= limit for e in errors) / len(errors) for limit in (0.01, 0.02, 0.05, 0.10)]
    ninth = quantiles(errors, n=10)[8] if len(errors) > 1 else errors[0]
    shares = " ".join(f"{share:6.1%}" for share in within)
    return f"{name:62s} {shares} {median(values):8.4f} {median(errors):8.2%} {ninth:8.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--gpu", required=True)
    parser.add_argument("--macros", required=True)
    parser.add_argument("--arg", action="append", default=[])
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out")
    options = parser.parse_args()
    with open(options.table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    step = max(1, len(rows) // options.rows) if options.rows else 1
    done = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for result in pool.map(compare, [(row, options) for row in rows[::step]]):
            done.append(result)
            print(f"\r{len(done)} of {len(rows[::step])}", end="", file=sys.stderr)
    print(file=sys.stderr)
    good = [result for result in done if "error" not in result]
    if options.out:
        columns = list(dict.fromkeys(key for result in done for key in result))
        with open(options.out, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(done)
    print(f"{len(done)} rows, {len(good)} counted, of them {sum(r['same_registers'] for r in good)} with the registers")
    for result in done:
        if "error" in result:
            print(f"  {result}")
    print(f"{'counter':62s} {'1 %':>6s} {'2 %':>6s} {'5 %':>6s} {'10 %':>6s} {'ratio':>8s} {'median':>8s} {'90 %':>8s}")
    for name in sorted({key for result in good for key in result if "__" in key}):
        values = [result[name] for result in good if name in result]
        if any(value != 1.0 for value in values):
            print(summary(name, values))
        else:
            print(f"{name:62s} all equal")


if __name__ == "__main__":
    main()
