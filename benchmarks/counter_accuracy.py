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
percentile. `--of odd` or `--of even` restricts all that to rows of odd or even number in the table, counted from 0, and
`--where 'code_bytes > 47104 and local_bytes == 0'` to rows by a condition over the table's columns, `code_bytes` and
`blocks_per_sm`. Columns in percent of a pipe's peak are compared as the counts that they stand for. Then what the
count leaves of the L2's reads, per microsecond of the kernel, and with `--written BYTES`, the output of every row, the
most of its sectors that never reached DRAM in a kernel that does not spill.
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

from drywarp.analysis.counters.count import counts_of
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.request import Options
from drywarp.errors import DrywarpError
from drywarp.execution.emulator import Limits
from drywarp.hardware import Gpu, load_gpu
from drywarp.support.expressions import ExpressionError, evaluate

REGISTERS_OF_AN_SM = 65536

INSTRUCTIONS = "smsp__inst_executed.sum"
ISSUE_ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
L2_READS, DRAM_WRITES = "lts__t_sectors_op_read.sum", "dram__sectors_write.sum"
SECTOR_BYTES = 32
PEAKS = {"lsu": 0.5, "xu": 0.125}
"""Instructions of a pipe per cycle of a partition that the profiler takes for its peak, where not one."""

gpu_named = cache(load_gpu)


def compare(number: int, row: dict[str, str], options: argparse.Namespace, simulated: bool) -> dict[str, Any]:
    """The answer for one row: ratios of counted to measured, or the error."""
    extents = {name: tuple(int(n) for n in row[name].split("x")) for name in ("grid", "block")}
    macros = {name: row[name] for name in options.macros.split(",")}
    threads = extents["block"][0] * extents["block"][1] * extents["block"][2]
    cap = REGISTERS_OF_AN_SM // (-(-threads // 128) * 128) // 8 * 8
    args = dict(text.split("=", 1) for text in options.arg)
    gpu: Gpu = gpu_named(options.gpu)
    asked = Options(limits=Limits(lane_steps=1 << 50), full_emulation=True)
    kernel: dict[str, Any] = {"gpu": gpu, "args": args, "defines": macros, "options": asked, **extents}
    began = perf_counter()
    try:
        try:
            ready = prepare_kernel(Path(options.kernel), **kernel)
        except DrywarpError as error:
            if "registers per thread" not in str(error):
                raise
            ready = prepare_kernel(Path(options.kernel), max_registers=cap, **kernel)
        counts = counts_of(ready, asked, simulated).counts
    except DrywarpError as error:
        return {"row": number, **macros, "error": str(error)}
    measured = {name: float(row[name]) for name in counts if row.get(name)} | of_pipes(row)
    ratios: dict[str, Any] = {
        name: counts[name] / value if value else (1.0 if not counts[name] else float("inf"))
        for name, value in measured.items()
    }
    has = ready.kernel.resources
    same = has.registers == int(row.get("regs") or 0) and has.local_bytes == int(row.get("local_bytes") or 0)
    facts = {"code_bytes": 16 * len(ready.kernel.instructions), "blocks_per_sm": ready.fits.blocks_per_sm}
    seconds = round(perf_counter() - began, 3)
    return {"row": number, **macros, **facts, "seconds": seconds, "same_registers": int(same), **ratios}


def of_pipes(row: dict[str, str]) -> dict[str, float]:
    """Instructions of pipes out of columns in percent: of the active cycles, which the issue slots in use tell."""
    if not row.get(ISSUE_ACTIVE):
        return {}
    cycles = float(row[INSTRUCTIONS]) / (float(row[ISSUE_ACTIVE]) / 100)
    found = {}
    for pipe in ("xu", "lsu", "tex", "fp64"):
        if column := row.get(f"smsp__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active"):
            found[f"smsp__inst_executed_pipe_{pipe}.sum"] = float(column) / 100 * cycles * PEAKS.get(pipe, 1.0)
    if column := row.get("smsp__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"):
        # 16 lanes in a partition: a warp's instruction keeps them busy for two cycles.
        found["smsp__inst_executed_pipe_fma.sum"] = float(column) / 100 * cycles / 2
    return found


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


def left_of_reads(done: list[dict[str, Any]], rows: list[dict[str, str]]) -> None:
    """Print what the measured L2 reads hold beyond the count, per microsecond."""
    left = [
        float(rows[result["row"]][L2_READS]) * (1 - result[L2_READS]) / float(rows[result["row"]]["duration_us"])
        for result in done
        if L2_READS in result and rows[result["row"]].get("duration_us")
    ]
    if len(left) > 1:
        low, middle, high = (quantiles(left, n=100)[k] for k in (0, 49, 98))
        print(
            f"L2 reads beyond the count, per microsecond: {middle:.2f} in the median, {low:.2f} to {high:.2f} in 98 %"
        )


def stayed(rows: list[dict[str, str]], written: int) -> None:
    """Print the most sectors of an output of so many bytes that never reached DRAM."""
    plain = [row for row in rows if row.get(DRAM_WRITES) and not int(row.get("local_bytes") or 0)]
    most = max(written / SECTOR_BYTES - float(row[DRAM_WRITES]) for row in plain)
    print(f"sectors written that never reached DRAM: {most:.0f} at most, of {len(plain)} kernels that do not spill")


def chosen(answer: dict[str, Any], row: dict[str, str], condition: str | None) -> bool:
    """Whether a counted row fulfils a condition over its columns and its answer."""
    if condition is None:
        return True
    names = {name: float(value) for name, value in {**row, **answer}.items() if is_number(value)}
    try:
        return bool(evaluate(condition, names))
    except ExpressionError as error:
        raise SystemExit(f"row {answer['row']}: --where {condition!r}: {error}") from None


def is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and value.replace(".", "", 1).isdigit())


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
    parser.add_argument("--where")
    parser.add_argument("--written", type=int)
    options = parser.parse_args()
    with open(options.table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    done: dict[int, dict[str, Any]] = {}
    if options.out and Path(options.out).exists():
        with open(options.out, encoding="utf-8") as file:
            done = {answer["row"]: answer for answer in map(json.loads, file)}
    run(rows, options, done)
    mine = [answer for row, answer in sorted(done.items()) if wanted(row, options)]
    mine = [answer for answer in mine if chosen(answer, rows[answer["row"]], options.where)]
    report(mine, len(rows))
    left_of_reads(mine, rows)
    if options.written:
        stayed(rows, options.written)


if __name__ == "__main__":
    main()
