"""Launches of HeCBench's CUDA programs on an RTX 3080: predicted, and held against published measurements.

    python benchmarks/hecbench.py gpuFLOPBench/src gpuFLOPBench/cuda-profiling/profiling-data.csv --out rows.csv

The sources and the measurements are public (Scientific-Computing-Lab/gpuFLOPBench @4738733); how each kernel is
launched stands in `hecbench.toml`. With --built, each file is compiled as for the measurements, by their own command
(compile_commands.json beside the table), with the clang 18 and the toolkit that `clang_cuda.py --make` lays out.
NVRTC compiles what that cannot. The measurements were taken by Nsight Compute: SM clock at its base of 1440 MHz,
caches flushed, the time is gpu__time_duration. Each launch runs in a process of its own; the command resumes where it
stopped, and without the first two arguments it only prints what `--out` holds. Programs at odd positions are there
for choices (rates, residuals), those at even ones for reporting alone. `--against` compares with the output of
another version, over the kernels that both predict.
"""

from __future__ import annotations

import csv
import json
import math
import shlex
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from drywarp.analysis.counters import group_of
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.request import Options
from drywarp.analysis.stages import answer_prepared
from drywarp.analysis.uncertainty.uncertainty import uncertainty
from drywarp.analysis.uncertainty.variants import ATOMICS, SCATTERED
from drywarp.errors import InputFileError, UsageError
from drywarp.experiments.rows import predictions_of
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.load import load_kernel
from drywarp.kernel.profile import Profile
from drywarp.models import get_model, model_names

LAUNCHES = Path(__file__).with_name("hecbench.toml")
GPU, CLOCK_MHZ = "rtx3080", 1440
FLOATS = ("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA")
COLUMNS = ("position", "program", "kernel", "measured_us", "predicted_us", "low_us", "high_us", "limiter", "doubtful",
           "dram_ratio", "operations_ratio", "parts", "others_us", "seconds", "error", "compiler", "apart")  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A row of the published table: time in µs, DRAM bytes, operations of threads (a fused multiply-add counts two)."""

    time_us: float
    dram_bytes: float
    operations: float


def measured(table: Path, entry: dict[str, Any]) -> Measured:
    """The first launch of its kind in the published table."""

    def extents(value: int | list[int]) -> str:
        given = [value] if isinstance(value, int) else value
        return f"({', '.join(map(str, [*given, 1, 1][:3]))})"

    program = entry["file"].split("/")[0]
    wanted = (program, entry["measured"], extents(entry["grid"]), extents(entry["block"]))
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            here = (row["targetName"], row["kernelName"], row["Grid Size"], row["Block Size"])
            if here == wanted and entry.get("instance", "") in row["Kernel Name"]:
                seconds = float(row["xtime"]) * 1e-9
                floats = (float(row["spPerf"]) + float(row["dpPerf"])) * seconds
                return Measured(seconds * 1e6, float(row["traffic"]) * seconds, floats + float(row["intops"]))
    raise typer.BadParameter(f"{table}: no row of {wanted}")


def operations(profile: Profile) -> float:
    """Operations of all threads, counted as the published table does."""
    weights = np.array([sample.weight for sample in profile.blocks])
    total = 0.0
    for instruction, threads in zip(profile.kernel.instructions, weights @ profile.thread_instructions, strict=True):
        if instruction.opcode in FLOATS:
            total += threads * (2 if "FMA" in instruction.opcode else 1)
        elif group_of(instruction) == "integer":
            total += threads
    return total


def values(given: dict[str, Any], sources: Path) -> dict[str, Any]:
    """Arguments, expressions worked out."""
    known = {"np": np, "rng": np.random.default_rng(0), "src": str(sources)}
    return {
        name: eval(text[1:], known) if isinstance(text, str) and text.startswith("=") else text
        for name, text in given.items()
    }


def as_measured(sources: Path, table: Path, entry: dict[str, Any], built: Path) -> Path | None:
    """The cubin that clang makes of an entry's file by the command of the measurements; None if it cannot.

    Where that command names an older GPU, the measured program held its PTX, and the driver made the machine code: here
    ptxas does.
    """
    file = entry.get("unit", entry["file"])
    cubin = built / (file.replace("/", "__") + ".cubin")
    if cubin.exists():
        return cubin
    tools = (built / "toolkit").resolve()
    for known in json.loads((table.parent / "compile_commands.json").read_text(encoding="utf-8")):
        root, _, inside = known["file"].partition("/src/")
        if inside == file:
            words = shlex.split(known["command"].replace(f"{root}/src", str(sources.resolve())))[1:]
            words = [word for word in words[: words.index("-o")] if not word.startswith("--cuda-path")]
            clang = [str(tools / "bin" / "clang++"), *words, "-w", "--cuda-device-only", f"--cuda-path={tools}", "-o"]
            if "--cuda-gpu-arch=sm_86" in words:
                subprocess.run([*clang, str(cubin)], check=False, capture_output=True)
            else:
                ptx = cubin.with_suffix(".ptx")
                subprocess.run([*clang, str(ptx), "-S"], check=False, capture_output=True)
                assemble = [str(tools / "bin" / "ptxas"), "-arch=sm_86", str(ptx), "-o", str(cubin)]
                subprocess.run(assemble, check=False, capture_output=True)
    return cubin if cubin.exists() else None


def by_number(values: dict[str, Any], kernel: Any) -> dict[str, Any]:
    """Arguments under the names that machine code has for its parameters."""
    numbers = {parameter.name: f"arg{n}" for n, parameter in enumerate(kernel.parameters)}
    return {".".join([numbers[name.split(".")[0]], *name.split(".")[1:]]): value for name, value in values.items()}


def predicted(sources: Path, table: Path, entry: dict[str, Any], built: Path | None = None) -> dict[str, Any]:
    """A row of `COLUMNS`."""
    known = measured(table, entry)
    row = {"position": entry["position"], "program": entry["file"].split("/")[0], "kernel": entry["kernel"],
           "measured_us": f"{known.time_us:.4g}"}  # fmt: skip
    begun = time.monotonic()
    options = Options(clock_mhz=CLOCK_MHZ, models=("pipeline",), occupancies=())
    source, given = sources / entry["file"], values(entry.get("args", {}), sources)
    compiler = {
        "defines": {name: str(value) for name, value in entry.get("defines", {}).items()},
        "includes": [str(sources / folder) for folder in entry.get("include", [])],
    }
    launch = {
        "gpu": GPU, "entry": entry["kernel"], "options": options, "grid": entry["grid"], "block": entry["block"],
        "constants": values(entry.get("constants", {}), sources), "shared": entry.get("shared"),
    }  # fmt: skip
    try:
        cubin = as_measured(sources, table, entry, built) if built else None
        row["compiler"] = "clang"
        try:
            kernel, _ = load_kernel(source, arch="sm_86", entry=entry["kernel"], options=CudaOptions(**compiler))
            symbol = entry.get("symbol", entry["kernel"])
            ready = prepare_kernel(cubin or "none", args=by_number(given, kernel), **launch | {"entry": symbol})
        except (UsageError, InputFileError):  # no such file, no code for this GPU in it, or none by this name
            row["compiler"] = "nvrtc"
            ready = prepare_kernel(source, args=given, **compiler, **launch)
        answer = answer_prepared(ready, options)
        others, _ = predictions_of(ready, {name: get_model(name) for name in model_names() if name != "pipeline"})
    except Exception as error:  # a row that fails is a row
        return row | {"seconds": f"{time.monotonic() - begun:.0f}", "error": str(error).splitlines()[0][:200]}
    row |= {"predicted_us": f"{answer.time_s * 1e6:.4g}", "limiter": answer.limiter, "doubtful": len(answer.doubts)}
    row["apart"] = int(any(access.apart for access in ready.behaviour.accesses.values()))
    row["others_us"] = json.dumps({name: float(f"{other.time_s * 1e6:.4g}") for name, other in others.items()})
    if known.dram_bytes > 0:
        row["dram_ratio"] = f"{answer.memory.dram_bytes / known.dram_bytes:.3f}"
    if known.operations > 0:
        row["operations_ratio"] = f"{operations(ready.profile) / known.operations:.3f}"
    if (band := answer.band) is not None:
        row |= {"low_us": f"{band.low_at_clock_s * 1e6:.4g}", "high_us": f"{band.high_at_clock_s * 1e6:.4g}"}
        row["parts"] = json.dumps({part.name: [round(part.low, 4), round(part.high, 4)] for part in band.parts})
    return row | {"seconds": f"{time.monotonic() - begun:.0f}"}


def summary(rows: Iterable[dict[str, str]]) -> list[str]:
    """How many bands, with the residuals as they are now, hold the measured time, and the residuals that rows need."""
    rows = list(rows)
    good = [row for row in rows if row["predicted_us"] and row["low_us"] and not int(row["doubtful"])]
    failed, doubtful = (sum(row[name] not in ("", "0") for row in rows) for name in ("error", "doubtful"))
    lines = [f"{len(rows)} launches: {failed} failed, {doubtful} not to be trusted, {len(good)} counted"]
    for name, half in (("odd", 1), ("even", 0)):
        every = [row for row in rows if row["predicted_us"] and int(row["position"]) % 2 == half]
        if every:
            lines.append(f"all {len(every)} at {name} positions: {errors(every)}")
        some = [row for row in good if int(row["position"]) % 2 == half]
        if not some:
            continue
        ratio = [float(row["predicted_us"]) / float(row["measured_us"]) for row in some]
        off = [abs(math.log(r)) for r in ratio]
        known = uncertainty().model
        own = {id(row): (known.stream if _streams(row) else known.rest).log for row in some}
        held = sum(_needed(row) <= own[id(row)] + 1e-9 for row in some)
        width = statistics.median(
            math.exp(sum(math.hypot(_others(row, end), own[id(row)]) for end in ("low_us", "high_us"))) for row in some
        )
        groups = {"DRAM streams": [r for r in some if _streams(r)], "others": [r for r in some if not _streams(r)]}
        needed = ", ".join(
            f"{math.exp(_nine_in_ten(map(_needed, group))):.3f} for {len(group)} {group_name}"
            for group_name, group in groups.items()
            if group
        )
        within = ", ".join(
            f"{sum(o <= math.log(f) for o in off) / len(off):.0%} within {f}" for f in (1.1, 1.25, 1.5, 2)
        )
        lines.append(
            f"{name} positions: {held} of {len(some)} inside ({held / len(some):.0%}), median width {width:.2f},"
            f" predicted over measured {statistics.median(ratio):.3f} in the median, {within};"
            f" residuals that hold 90 %: {needed}"
        )
        bytes_ = [float(row["dram_ratio"]) for row in some if row["dram_ratio"]]
        lines.append(f"  {errors(some)}" + (f"; DRAM bytes {spread(bytes_)}" if bytes_ else ""))
        apart = [abs(math.log(float(row["operations_ratio"]))) for row in some if row["operations_ratio"]]
        factor = math.exp(_nine_in_ten(apart))
        lines.append(f"  operations of the two compilers' code: within {factor:.2f} in 90 % of {len(apart)}")
    return lines


def errors(rows: Sequence[dict[str, str]]) -> str:
    """How far predicted times are off, and, of more than two that differ, how well they follow the measured ones."""
    measured_us, predicted_us = (
        np.array([float(row[f"{name}_us"]) for row in rows]) for name in ("measured", "predicted")
    )
    off = f"times {spread(predicted_us / measured_us)}"
    if len(rows) < 3 or not np.ptp(measured_us) or not np.ptp(predicted_us):
        return off
    both = np.array([measured_us, predicted_us])
    of_logs, of_ranks = (np.corrcoef(values)[0, 1] for values in (np.log(both), both.argsort(axis=1).argsort(axis=1)))
    return f"{off}, Pearson of the logarithms {of_logs:.3f}, Spearman {of_ranks:.3f}"


def spread(ratios: Sequence[float] | npt.NDArray[np.float64]) -> str:
    """Mean, median and 90th percentile of how far ratios differ from 1."""
    off = np.abs(np.array(ratios) - 1)
    mean, median, most = off.mean(), np.median(off), np.quantile(off, 0.9)
    return f"off by {mean:.1%} on average, {median:.1%} in the median, {most:.1%} in 90 %"


def compared(rows: Sequence[dict[str, str]], others: Sequence[dict[str, str]]) -> list[str]:
    """The errors of two versions over the kernels that both predict, for each half."""
    before = {row["position"]: row for row in others if row["predicted_us"]}
    lines = []
    for name, half in (("odd", 1), ("even", 0)):
        both = [r for r in rows if r["position"] in before and r["predicted_us"] and int(r["position"]) % 2 == half]
        if not both:
            continue
        lines.append(
            f"{len(both)} at {name} positions in both: {errors([before[row['position']] for row in both])} before"
        )
        lines.append(f"  {errors(both)} now")
    return lines


def _nine_in_ten(logs: Iterable[float]) -> float:
    """The smallest of these that nine in ten of them do not exceed."""
    found = sorted(logs)
    return found[math.ceil(0.9 * len(found)) - 1]


def _streams(row: dict[str, str]) -> bool:
    """Whether a stream through DRAM limits it, as the band takes it."""
    apart = row.get("apart", "0") not in ("", "0")
    return row["limiter"] == "dram" and not apart and not {ATOMICS, SCATTERED} & set(json.loads(row["parts"]))


def _others(row: dict[str, str], end: str) -> float:
    """How far an end of the band lies from the prediction without the model's own part, on a logarithmic scale."""
    own = math.log(json.loads(row["parts"])["model"][1])
    return math.sqrt(max(0.0, math.log(float(row[end]) / float(row["predicted_us"])) ** 2 - own**2))


def _needed(row: dict[str, str]) -> float:
    """The residual, on a logarithmic scale, with which a row's band would just hold its measured time."""
    off = math.log(float(row["measured_us"]) / float(row["predicted_us"]))
    return math.sqrt(max(0.0, off**2 - _others(row, "high_us" if off > 0 else "low_us") ** 2))


def main(
    sources: Annotated[Path | None, typer.Argument(help="The programs.", exists=True, file_okay=False)] = None,
    table: Annotated[Path | None, typer.Argument(help="Measurements.", exists=True, dir_okay=False)] = None,
    out: Annotated[Path, typer.Option(help="CSV of rows; those that it holds are not predicted again.")] = Path(
        "rows.csv"
    ),
    jobs: int = 2,
    built: Annotated[
        Path | None, typer.Option(help="Compile as for the measurements; the folder for that, with a toolkit/ inside.")
    ] = None,
    program: Annotated[list[str] | None, typer.Option(help="These programs alone.")] = None,
    against: Annotated[Path | None, typer.Option(help="The `--out` of another version.", exists=True)] = None,
) -> None:
    """Predict what `--out` lacks and print how the predictions compare."""
    rows = list(csv.DictReader(out.open(newline=""))) if out.exists() else []
    if sources and table:
        known = {row["position"] for row in rows}
        todo = [
            entry
            for entry in tomllib.loads(LAUNCHES.read_text(encoding="utf-8"))["launch"]
            if str(entry["position"]) not in known and (not program or entry["file"].split("/")[0] in program)
        ]
        with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool, out.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="")
            if not rows:
                writer.writeheader()
            for done in as_completed([pool.submit(predicted, sources, table, entry, built) for entry in todo]):
                row = {name: str(value) for name, value in done.result().items()}
                writer.writerow(row)
                file.flush()
                rows.append(dict.fromkeys(COLUMNS, "") | row)
                print(*(row.get(name, "") for name in COLUMNS if name not in ("parts", "others_us")), file=sys.stderr)
    print("\n".join(summary(rows)))
    if against:
        print("\n".join(compared(rows, list(csv.DictReader(against.open(newline=""))))))


if __name__ == "__main__":
    typer.run(main)
