"""The kernels of the analysis paper's Table 9 as machine code of Maxwell and Pascal: the packaged graphs of both.

    pip install --no-deps --target TOOLS triton==3.0.0 nvidia-cuda-nvrtc-cu12==12.6.85
    python -m benchmarks.rodinia_older TOOLS

One thread block of each kernel, the one that the graph of Turing code is made of, runs in `older_code.py`. What it
stores is compared with what NumPy says of the kernel, and the instructions of its warps with those of Turing code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from benchmarks.dependence_graph import Graph, graph_from, loops_of
from benchmarks.older_code import LANES, PARAMETERS, Line, Memory, Warp, Words, constants_of, cubin, lines_of, listing
from benchmarks.rodinia_graphs import (
    FOLDER,
    LOOPS,
    OPTIONS,
    TABLE_9,
    Entry,
    chosen_block,
    graphs_of,
    launch_of,
    prepared,
    text_of,
)

from drywarp.analysis.prepared import Prepared
from drywarp.execution.emulator.content import buffer_content
from drywarp.experiments.measure.row import difference, expected_outputs, inputs_of
from drywarp.kernel.launch.launch import Buffer, Scalar
from drywarp.workload.cost import Item, Repeat

TARGETS = {"maxwell": "sm_50", "pascal": "sm_61"}
COMPILER = "nvidia-cuda-nvrtc-cu12 12.6.85"
FIRST = 1 << 32
"""Address of the first array; each further one starts a quarter of that later."""
SHARED_WORDS = 12288


def code_of(entry: Entry, tools: Path, target: str) -> tuple[list[Line], Words]:
    """Our kernel's instructions for an older GPU, and the compiler's constants."""
    launch = launch_of(entry)
    defines = [f"-D{name}={value}" for name, value in {**launch.defines, **LOOPS}.items()]
    source = Path(launch.source)
    own = (*launch.kernel.entry.compiler_options, *OPTIONS)
    options = [f"--gpu-architecture={target}", f"-I{source.parent}", *own, *defines]
    made = cubin(tools, source.read_text(encoding="utf-8"), source.name, options)
    return lines_of(listing(tools, made), entry.ours), constants_of(made, entry.ours)


@dataclass(frozen=True)
class Run:
    """What a block's warps executed, and each buffer after it and before, by the parameter's name."""

    warps: tuple[list[tuple[int, int, frozenset[int]]], ...]
    after: dict[str, Words]
    before: dict[str, Words]


def run_block(code: Sequence[Line], numbers: Words, launch: Prepared, sample: int) -> Run:
    """The sampled block of the prepared launch, run with this code."""
    stated = launch.launch
    constants = np.zeros(1024, np.uint32)
    constants[2:5], constants[5:8] = stated.block, stated.grid
    arrays: dict[int, Words] = {}
    names: list[str] = []
    parameters = constants.view(np.uint8)
    for ordinal, (parameter, argument) in enumerate(zip(launch.kernel.parameters, stated.arguments, strict=True)):
        at = PARAMETERS + parameter.offset
        if isinstance(argument, Buffer):
            content = np.ascontiguousarray(buffer_content(argument, ordinal, stated.seed)).reshape(-1)
            base = FIRST + len(arrays) * (FIRST >> 2)
            arrays[base] = content.view(np.uint32).copy()
            names.append(parameter.name)
            parameters[at : at + 8] = np.frombuffer(base.to_bytes(8, "little"), np.uint8)
        elif isinstance(argument, Scalar):
            parameters[at : at + len(argument.data)] = np.frombuffer(argument.data, np.uint8)
    before = {name: array.copy() for name, array in zip(names, arrays.values(), strict=True)}
    memory = Memory(arrays, np.zeros(SHARED_WORDS, np.uint32))
    warps = _warps(code, launch, sample, {0: constants, 2: numbers}, memory)
    waiting = [warp.run() for warp in warps]
    while waiting:  # to the next barrier, all of them
        waiting = [one for one in waiting if next(one, "over") != "over"]
    after = dict(zip(names, arrays.values(), strict=True))
    return Run(tuple(warp.history for warp in warps), after, before)


def deviation(entry: Entry, launch: Prepared, run: Run) -> float:
    """The largest deviation of what the block stores from what NumPy says: a fraction, infinity for whole numbers."""
    inputs = inputs_of(launch.kernel, launch.launch)
    wanted = expected_outputs(launch_of(entry), launch.kernel, launch.launch, inputs)
    changed = {name: run.after[name] != run.before[name] for name in wanted}
    if not any(where.any() for where in changed.values()):
        raise ValueError(f"{entry.ours}: the block stores nothing")
    return max(
        difference(run.after[name].view(inputs[name].dtype)[where], wanted[name].reshape(-1)[where])
        for name, where in changed.items()
        if where.any()
    )


def _warps(code: Sequence[Line], launch: Prepared, sample: int, banks: dict[int, Words], memory: Memory) -> list[Warp]:
    x, y, z = launch.launch.block
    place = launch.profile.blocks[sample].coordinates
    warps = []
    for first in range(0, x * y * z, LANES):
        threads = np.arange(first, first + LANES)
        special = {f"SR_CTAID.{axis}": np.full(LANES, at, np.uint32) for axis, at in zip("XYZ", place, strict=True)}
        own = {"X": threads % x, "Y": threads // x % y, "Z": threads // (x * y)}
        special |= {f"SR_TID.{axis}": values.astype(np.uint32) for axis, values in own.items()}
        warps.append(Warp(code, banks, special, memory, threads < x * y * z))
    return warps


# Graphs.

FLOATS = ("FADD", "FMUL", "FFMA", "FADD32I", "FMUL32I")
CLASSES = {
    **dict.fromkeys(FLOATS, "fp"),
    **dict.fromkeys(("MUFU", "I2F", "F2I", "I2I"), "sfu"),
    **dict.fromkeys(("LDS", "STS"), "local"),
    "LDG": "load", "STG": "store", "BAR": "barrier",
}  # fmt: skip
"""The class of Table 5 for each opcode; all others, XMAD among them, are the simple instruction."""


def class_of(line: Line) -> str:
    """The class of one instruction."""
    return CLASSES.get(line.opcode, "alu")


def graph(code: Sequence[Line], history: Sequence[tuple[int, int, frozenset[int]]]) -> Graph:
    """The dependence graph of a warp's history."""
    ends = {at + 1 for at, line in enumerate(code) if line.opcode in ("BRA", "SYNC", "BRK", "EXIT", "BAR")}
    starts = sorted({0, *(line.target for line in code if line.target >= 0), *ends} - {len(code)})
    blocks = [range(at, end) for at, end in zip(starts, [*starts[1:], len(code)], strict=True)]
    number = {at: block for block, its in enumerate(blocks) for at in its}
    path: list[int] = []
    run: list[tuple[int, int]] = []
    for at, _, _ in history:
        if at == blocks[number[at]].start:
            path.append(number[at])
        run.append((len(path) - 1, at))
    back = {(b, a) for a, b in pairwise(path) if b <= a}
    loops = [(header, frozenset(range(header, latch + 1))) for header, latch in back]
    loops.sort(key=lambda loop: len(loop[1]))
    producers = _producers(code, history)
    return graph_from(loops_of(path, loops), blocks, run, producers, lambda at: class_of(code[at]))


def _producers(code: Sequence[Line], history: Sequence[tuple[int, int, frozenset[int]]]) -> list[set[int]]:
    """For each executed instruction the earlier ones that it waits for, as in `dependence_graph.py`."""
    writers: dict[str, list[int]] = {}
    filled: dict[int, int] = {}
    branch, found = -1, []
    for at, (index, lanes, words) in enumerate(history):
        line = code[index]
        mine = {writer for place in line.reads for writer in writers.get(place, ())}
        if line.opcode == "LDS":
            mine |= {filled[word] for word in words if word in filled}
        elif line.opcode == "BAR":
            mine |= set(filled.values())
            filled = {}
        if branch >= 0 and max(mine, default=-1) < branch:
            mine.add(branch)
        found.append(mine)
        for place in line.writes:
            kept = [earlier for earlier in writers.get(place, ()) if line.guard or history[earlier][1] > lanes]
            writers[place] = [*kept, at]
        if line.opcode == "STS":
            filled.update(dict.fromkeys(words, at))
        if line.opcode in ("BRA", "SYNC", "BRK") and line.guard:
            branch = at
    return found


def counts(its: Graph) -> dict[str, int]:
    """Instructions of a warp by class."""
    found: dict[str, int] = {}

    def walk(items: Sequence[Item], times: int) -> None:
        for item in items:
            if isinstance(item, Repeat):
                walk(item.body, times * item.count)
            else:
                found[its.nodes[item].class_] = found.get(its.nodes[item].class_, 0) + times

    walk(its.program, 1)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the graphs, and say how many instructions a warp has by class in each code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rodinia_older", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("tools", type=Path, help="the folder with both packages")
    wanted = parser.parse_args(arguments)
    print("instructions of a warp, simple and multiplying ones as `alu`: Turing, Maxwell, Pascal")
    for entry in TABLE_9:
        launch = prepared(entry)
        chosen = chosen_block(launch.profile)
        own = launch.profile.blocks[chosen.sample].paths
        packaged = graphs_of(launch, chosen)
        rows, off = [counts(packaged[chosen.paths[0]])], 0.0
        for gpu, target in TARGETS.items():
            code, numbers = code_of(entry, wanted.tools, target)
            run = run_block(code, numbers, launch, chosen.sample)
            graphs = {path: graph(code, run.warps[own.index(path)]) for path in packaged}
            made = (f"benchmarks.rodinia_older, with {COMPILER}", target, gpu)
            file = FOLDER.parent / f"{entry.on(gpu)}.toml"
            file.write_text(text_of(entry, launch, chosen, graphs, made), encoding="utf-8")
            rows.append(counts(graphs[chosen.paths[0]]))
            off = max(off, deviation(entry, launch, run))
        for row in rows:
            row["alu"] = row.get("alu", 0) + row.pop("mul", 0)
        names = [
            name for name in ("alu", "fp", "sfu", "local", "load", "store", "barrier") if any(name in r for r in rows)
        ]
        classes = "; ".join(f"{name} {', '.join(str(row.get(name, 0)) for row in rows)}" for name in names)
        print(f"{entry.ours:22}{classes}; off by {off:.0e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
