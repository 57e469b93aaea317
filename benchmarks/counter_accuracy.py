"""Emulated counters against measured ones: the ratio of each, over the rows of a table of measurements.

    python benchmarks/counter_accuracy.py measured.csv --kernel kernel.cu --gpu rtx2080ti \
        --macros BLOCK_SIZE_X,TILE_SIZE --arg 'bitmap=i32[20000000]' [--rows 200] [--jobs 2] [--out ratios.jsonl]

The table has a column `grid` and a column `block` (as in 64x32x1), one column per macro, and counters under Nsight
Compute's names. Rows are taken in an order of which every beginning is spread evenly over the table; `--rows` takes so
many of them. With `--out` each row's answer is added to a file as it comes, and rows that are there already are not
counted again: stop and go on as you like (`--seconds` stops by itself, 0 only prints what is there). A row whose
kernel needs more registers than its launch can have is compiled with the cap that lets it run. `--simulated` is how
many of the first rows get their achieved occupancy simulated, which takes longer than all the rest.

For each counter: how many rows lie within 1, 2, 5 and 10 %, the median ratio, the median of |ratio - 1| and its 90th
percentile. `--of odd` or `--of even` restricts all that to rows of odd or even number in the table, counted from 0.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from drywarp.api import Options
from drywarp.counts_api import count
from drywarp.emulator import Limits
from drywarp.errors import DrywarpError
from drywarp.hardware import Gpu, load_gpu

REGISTERS_OF_AN_SM = 65536
EMULATION_SECONDS = 600.0
"""The time limit of an emulation: a busy machine must not make the sample smaller."""

gpu_named = cache(load_gpu)


def compare(number: int, row: dict[str, str], options: argparse.Namespace, simulated: bool) -> dict[str, Any]:
    """The answer for one row: ratios of counted to measured, or the error."""
    extents = {name: tuple(int(n) for n in row[name].split("x")) for name in ("grid", "block")}
    macros = {name: row[name] for name in options.macros.split(",")}
    threads = extents["block"][0] * extents["block"][1] * extents["block"][2]
    cap = REGISTERS_OF_AN_SM // (-(-threads // 128) * 128) // 8 * 8
    args = dict(text.split("=", 1) for text in options.arg)
    gpu: Gpu = gpu_named(options.gpu)
    kernel: dict[str, Any] = {"gpu": gpu, "args": args, "defines": macros, "simulated": simulated, **extents}
    kernel["options"] = Options(limits=Limits(seconds=EMULATION_SECONDS))
    began = perf_counter()
    try:
        try:
            found = count(Path(options.kernel), **kernel)
        except DrywarpError as error:
            if "registers per thread" not in str(error):
                raise
            found = count(Path(options.kernel), max_registers=cap, **kernel)
    except DrywarpError as error:
        return {"row": number, **macros, "error": str(error)}
    ratios: dict[str, Any] = {
        name: value / float(row[name]) if float(row[name]) else (1.0 if not value else float("inf"))
        for name, value in found.counts.items()
        if row.get(name)
    }
    same = found.registers == int(row.get("regs") or 0) and found.local_bytes == int(row.get("local_bytes") or 0)
    seconds = round(perf_counter() - began, 3)
    return {"row": number, **macros, "seconds": seconds, "same_registers": int(same), **ratios}


def spread(count: int) -> Iterator[int]:
    """0 to count - 1 by their bits reversed: every beginning lies evenly."""
    bits = max(1, (count - 1).bit_length())
    for number in range(1 << bits):
        place = int(f"{number:0{bits}b}"[::-1], 2)
        if place < count:
            yield place


def wanted(row: int, options: argparse.Namespace) -> bool:
    return options.of is None or options.of == ("even", "odd")[row % 2]


def run(rows: list[dict[str, str]], options: argparse.Namespace, done: dict[int, dict[str, Any]]) -> None:
    """Count the rows that are not done, in order, until they or the time are used up."""
    began = perf_counter()
    order = list(islice((row for row in spread(len(rows)) if wanted(row, options)), options.rows or None))
    simulated = set(order if options.simulated is None else order[: options.simulated])
    waiting = iter([number for number in order if number not in done])
    with ExitStack() as opened:
        pool = opened.enter_context(ProcessPoolExecutor(options.jobs))
        out = opened.enter_context(open(options.out, "a", encoding="utf-8")) if options.out else None
        running = set()
        while True:
            in_time = options.seconds is None or perf_counter() - began < options.seconds
            if in_time:
                for number in islice(waiting, options.jobs + 1 - len(running)):
                    running.add(pool.submit(compare, number, rows[number], options, number in simulated))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                answer = future.result()
                done[answer["row"]] = answer
                if out:
                    print(json.dumps(answer), file=out, flush=True)
            print(f"\r{len(done)} of {len(order)}", end="", file=sys.stderr)
    print(file=sys.stderr)


def summary(name: str, values: list[float]) -> str:
    errors = sorted(abs(value - 1) for value in values)
    within = [sum(e <= limit for e in errors) / len(errors) for limit in (0.01, 0.02, 0.05, 0.10)]
    ninth = quantiles(errors, n=10)[8] if len(errors) > 1 else errors[0]
    shares = " ".join(f"{share:6.1%}" for share in within)
    return f"{name:62s} {shares} {median(values):8.4f} {median(errors):8.2%} {ninth:8.2%}"


def report(done: list[dict[str, Any]], total: int) -> None:
    good = [result for result in done if "error" not in result]
    same = sum(result["same_registers"] for result in good)
    print(f"{len(done)} of {total} rows, {len(good)} counted; registers and local memory as measured in {same}")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--gpu", required=True)
    parser.add_argument("--macros", required=True)
    parser.add_argument("--arg", action="append", default=[])
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--simulated", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("--of", choices=("even", "odd"))
    options = parser.parse_args()
    with open(options.table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    done: dict[int, dict[str, Any]] = {}
    if options.out and Path(options.out).exists():
        with open(options.out, encoding="utf-8") as file:
            done = {answer["row"]: answer for answer in map(json.loads, file)}
    run(rows, options, done)
    report([answer for row, answer in sorted(done.items()) if wanted(row, options)], len(rows))


if __name__ == "__main__":
    main()
