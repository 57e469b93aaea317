"""Stored counts of other people's kernels, and predictions from nothing but these.

    python -m benchmarks.accuracy count gpuFLOPBench/src     # count HeCBench's kernels again (needs their sources)

Counts are facts and may be kept; the kernels' code may not. A row of `rows/counts.csv` is a group of one kernel's warp
instructions that cost the same: its class, and for memory what each access does (`AccessBehaviour`), as means over the
group. A prediction takes them as one loop: its loads first, then all other instructions, which wait for the loads,
then its stores. That is not the kernel (its dependences and its paths are missing), so these times are held against
nothing that was measured: they show when rates, memory costs or the simulation change what real mixes of instructions
take.
"""

from __future__ import annotations

import csv
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.hardware import Gpu, load_gpu
from drywarp.kernel.instruction import ControlBits, Instruction, MemoryAccess
from drywarp.kernel.kernel import Kernel, Resources
from drywarp.kernel.launch.launch import Launch
from drywarp.memory.behaviour import AccessBehaviour, MemoryBehaviour
from drywarp.models import get_model
from drywarp.workload.build import Node, Workload
from drywarp.workload.build import Path as WarpPath
from drywarp.workload.cost import BlockType, Repeat
from drywarp.workload.cost_model import Conditions, assign_costs

from ..hecbench import CLOCK_MHZ, GPU, LAUNCHES, values
from .rows import HERE

COUNTS = HERE / "rows" / "counts.csv"
MEANS = tuple(field.name for field in fields(AccessBehaviour) if field.name not in ("executions", "space"))
COLUMNS = ("kernel", "gpu", "clock_mhz", "blocks", "warps", "per_sm", "class", "kind", "where", "width", "space",
           "executions", "stall", "means")  # fmt: skip
"""`executions` are warp instructions of the whole grid, `stall` the compiler's mean distance to the next, in slots.

`means` are those fields of `AccessBehaviour` that are not its defaults.
"""
DEFAULTS = {field.name: field.default for field in fields(AccessBehaviour) if field.default is not MISSING}
EVERY, ITERATIONS = 4, 32
"""How many programs there are to each that is kept; iterations over which a warp's instructions are spread."""
LOADS = ("load", "copy", "atomic")


def counted(kernel: str, gpu: str, clock_mhz: float, ready: Prepared) -> Iterator[dict[str, str]]:
    """Rows of an emulated kernel."""
    groups: defaultdict[tuple[Any, ...], list[tuple[float, int, AccessBehaviour | None]]] = defaultdict(list)
    every = ready.profile.executions()
    for index, instruction in enumerate(ready.kernel.instructions):
        if each := float(every[index]):
            access, known = instruction.memory, ready.behaviour.accesses.get(index)
            seen = "" if known is None else known.space
            told = (access.kind, access.space, access.width, seen) if access else ("", "", "", "")
            groups[instruction.class_, *told].append((each, instruction.control.stall, known))
    launch = ready.launch
    head = dict(zip(COLUMNS, (kernel, gpu, f"{clock_mhz:g}", launch.blocks, launch.warps_per_block,
                              ready.costed.blocks_per_sm), strict=False))  # fmt: skip
    for key, members in groups.items():
        total = sum(each for each, _, _ in members)
        row = {**head, **dict(zip(COLUMNS[6:11], key, strict=True)), "executions": f"{total:.6g}"}
        row["stall"] = f"{sum(each * stall for each, stall, _ in members) / total:.3g}"
        if all(known is not None for _, _, known in members):
            means = {name: sum(each * getattr(known, name) for each, _, known in members) / total for name in MEANS}
            told = {name: f"{mean:.4g}" for name, mean in means.items() if abs(mean - DEFAULTS.get(name, 0)) > 1e-9}
            row["means"] = " ".join(f"{name}={mean}" for name, mean in told.items())
        yield {name: str(value) for name, value in row.items()}


def of_hecbench(sources: Path, entry: Mapping[str, Any]) -> list[dict[str, str]]:
    """Rows of a launch of `benchmarks/hecbench.toml`, whose programs lie in `sources`."""
    ready = prepare_kernel(
        sources / entry["file"], gpu=GPU, entry=entry["kernel"], grid=entry["grid"], block=entry["block"],
        options=Options(clock_mhz=CLOCK_MHZ, models=("pipeline",), occupancies=()), shared=entry.get("shared"),
        args=values(entry.get("args", {}), sources), constants=values(entry.get("constants", {}), sources),
        defines={name: str(value) for name, value in entry.get("defines", {}).items()},
        includes=[str(sources / folder) for folder in entry.get("include", [])],
    )  # fmt: skip
    program = entry["file"].split("/")[0].removesuffix("-cuda")
    return list(counted(f"{program}: {entry['kernel']}", GPU, CLOCK_MHZ, ready))


def launches() -> list[dict[str, Any]]:
    """Each `EVERY`-th of HeCBench's launches, all at odd positions: those at even ones are for reporting alone."""
    every: list[dict[str, Any]] = tomllib.loads(LAUNCHES.read_text(encoding="utf-8"))["launch"]
    return [entry for entry in every if entry["position"] % EVERY == 1]


def counts() -> dict[str, list[dict[str, str]]]:
    """The kept rows, by kernel."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    with COUNTS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["kernel"]].append(row)
    return dict(found)


def keep(rows: Sequence[Mapping[str, str]]) -> Path:
    """Write rows of counts."""
    with COUNTS.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    return COUNTS


def predicted_from(rows: Sequence[Mapping[str, str]]) -> tuple[float, str]:
    """Time in seconds and limiter of one kernel's counts, by the Pipeline model."""
    head, gpu = rows[0], load_gpu(rows[0]["gpu"])
    rows = sorted(rows, key=lambda row: 0 if row["kind"] in LOADS else 2 if row["kind"] else 1)
    blocks, warps, per_sm = (int(head[name]) for name in ("blocks", "warps", "per_sm"))
    code = tuple(_instruction(number, row) for number, row in enumerate(rows))
    kernel = Kernel(head["kernel"], "counts", gpu.arch, code, (), 0, Resources(32, 0))
    each = [float(row["executions"]) / (blocks * warps) for row in rows]
    path = _path([row["kind"] in LOADS for row in rows], [round(float(row["stall"])) or 1 for row in rows], each)
    work = Workload(kernel, Launch((blocks, 1, 1), (32 * warps, 1, 1)), (path,), (BlockType((0,) * warps, blocks),))
    conditions = Conditions(float(head["clock_mhz"]), gpu.scheduler.policy, per_sm)
    costed = assign_costs(work, _behaviour(rows, gpu), gpu, conditions)
    found = get_model("pipeline").predict(costed, ())
    return found.time_s, found.limiter


def _instruction(number: int, row: Mapping[str, str]) -> Instruction:
    memory = MemoryAccess(row["where"], row["kind"], int(row["width"])) if row["kind"] else None
    opcode = "BAR" if row["class"] == "barrier" else "NOP"
    control = ControlBits(1, True, None, None, 0, 0)
    return Instruction(16 * number, opcode, (), (), None, row["class"], memory, control, None, opcode)


def _path(loads: Sequence[bool], stalls: Sequence[int], each: Sequence[float]) -> WarpPath:
    """One iteration holds each instruction's share, rounded down; what is left over is run once, before the loop."""
    last = sum(loads)
    nodes = []
    for number, (load, stall) in enumerate(zip(loads, stalls, strict=True)):
        waits = tuple(range(last)) if number == last else ()
        nodes.append(Node(number, waits, number if load else -1, -1, stall))
    whole = [round(count) for count in each]
    body = [number for number, count in enumerate(whole) for _ in range(count // ITERATIONS)]
    rest = [number for number, count in enumerate(whole) for _ in range(count % ITERATIONS)]
    loop = (Repeat(ITERATIONS, tuple(body)),) if body else ()
    return WarpPath(tuple(nodes), (*rest, *loop), (32.0,) * len(nodes), max(last, 1))


def _behaviour(rows: Sequence[Mapping[str, str]], gpu: Gpu) -> MemoryBehaviour:
    sector = gpu.memory.sector_bytes
    accesses = {}
    for number, row in enumerate(rows):
        if row["space"]:
            told = dict(pair.split("=") for pair in row["means"].split())
            means = {"units": 0.0, "lines": 0.0} | {name: float(mean) for name, mean in told.items()}
            accesses[number] = AccessBehaviour(float(row["executions"]), int(row["space"]), **means)
    read, written, to_host, from_host = (
        sector * sum(one.executions * getattr(one, name) for one in accesses.values())
        for name in ("dram_read", "dram_write", "host_write", "host_read")
    )
    found = MemoryBehaviour(accesses, 0.0, 0.0, 0.0, None, None, None, read, written, "counts")
    return replace(found, host_read_bytes=from_host, host_write_bytes=to_host)
