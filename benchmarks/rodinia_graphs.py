"""The packaged graphs of the kernels of the analysis paper's Table 9, made from our own kernels of the same algorithms.

    python -m benchmarks.rodinia_graphs             # write all of them
    python -m benchmarks.rodinia_graphs Fan2 hotspot

Those of Maxwell and Pascal code are `rodinia_older.py`'s.

A kernel of suite/ is compiled for the newest of the paper's GPUs, the RTX 2070, with the launch of Table 9, and some of
its thread blocks are emulated. The most common kind of block becomes instruction dependence graphs: every machine
instruction that a warp executes is a node, its edges are the registers and predicates that it reads, the words of
shared memory that the same warp wrote, and the last conditional branch before it. docs/abstract-kernels.md says more.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.dependence_graph import Graph, graph_of

from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.errors import UsageError
from drywarp.experiments.measure.configuration import Configuration, configurations, read_suite
from drywarp.kernel.instruction import Instruction
from drywarp.kernel.profile import Profile
from drywarp.workload.cost import Item, Repeat

SUITE = Path(__file__).parents[1] / "suite" / "kernels.toml"
FOLDER = Path(__file__).parents[1] / "src" / "drywarp" / "workload" / "abstract" / "papers"
GPU, NEWEST = "rtx2070", "turing"
LOOPS = {"for": '_Pragma("unroll 1") for'}
"""A macro by which loops stay loops."""
OPTIONS = ("--prec-div=false", "--prec-sqrt=false")
"""Division and square root have the precision that OpenCL, in which the paper's kernels are written, asks for."""
HALF = 0.5
"""Share of the grid above which the most common kind of block stands for all."""


@dataclass(frozen=True)
class Entry:
    """A row of Table 9: its kernel, the application, the occupancy range in warps, and the variant of ours."""

    kernel: str
    application: str
    least: int
    most: int
    ours: str
    variant: Mapping[str, int]

    @property
    def workload(self) -> str:
        """The packaged name, of Turing code."""
        return f"papers/rodinia-{self.ours.lower().replace('_', '-')}"

    def on(self, gpu: str) -> str:
        """The packaged name of the code for one of the paper's GPUs, `papers/analysis-GPU`."""
        return self.workload if gpu == NEWEST else f"{self.workload}-{gpu}"


TABLE_9 = (
    Entry("Fan2", "Gaussian Elimination", 2, 64, "Fan2", {"BLOCK_X": 8, "BLOCK_Y": 8}),
    Entry("nw_kernel1", "Needleman-Wunsch", 1, 32, "nw_kernel1", {"BLOCK": 16}),
    Entry("kmeans_kernel_c", "Kmeans", 8, 64, "kmeans_kernel_c", {"BLOCK": 256}),
    Entry("kmeans_swap", "Kmeans", 2, 64, "kmeans_swap", {"BLOCK": 64}),
    Entry("lud_perimeter", "LUD Decomposition", 1, 32, "lud_perimeter", {"TILE": 16}),
    Entry("lud_internal", "LUD Decomposition", 8, 64, "lud_internal", {"TILE": 16}),
    Entry("hotspot", "Hotspot3D", 8, 64, "hotspot", {"BLOCK_X": 64, "BLOCK_Y": 4}),
    Entry("opt_srad1", "SRAD", 8, 64, "opt_srad1", {"TILE": 16}),
    Entry("opt_srad2", "SRAD", 8, 64, "opt_srad2", {"TILE": 16}),
    Entry("bpnn_layerforward_ocl", "Back Propagation", 8, 64, "bpnn_layerforward", {"HEIGHT": 16}),
    Entry("bpnn_adjust_weights_ocl", "Back Propagation", 8, 64, "bpnn_adjust_weights", {"HEIGHT": 16}),
    Entry("compute_step_factor", "CFD Solver", 6, 60, "compute_step_factor", {"BLOCK": 192}),
    Entry("time_step", "CFD Solver", 6, 60, "time_step", {"BLOCK": 192}),
    Entry("compute_flux", "CFD Solver", 6, 60, "compute_flux", {"BLOCK": 192}),
)


def launch_of(entry: Entry) -> Configuration:
    """Our kernel's launch with the block of Table 9."""
    for kernel in read_suite(SUITE):
        for launch in configurations(kernel) if kernel.entry.name == entry.ours else ():
            if launch.name == entry.ours and all(launch.values[k] == v for k, v in entry.variant.items()):
                return launch
    raise UsageError(f"{SUITE}: {entry.ours}: expected a variant {dict(entry.variant)}")


def prepared(entry: Entry) -> Prepared:
    """Compiled for the RTX 2070, emulated, its accesses served."""
    launch = launch_of(entry)
    options = (*launch.kernel.entry.compiler_options, *OPTIONS)
    return prepare_kernel(
        launch.source, gpu=GPU, grid=launch.grid, block=launch.block, args=launch.args, shared=launch.shared,
        defines={**launch.defines, **LOOPS}, compiler_options=options,
    )  # fmt: skip


# Classes: those of the paper's Table 5.

SIMPLE = ("MOV", "SHL", "IADD", "X")
"""First modifiers of an IMAD that multiplies nothing."""
SIMPLEST = 'from = ["mul_f32", "add", "fadd", "fp", "comp", "'
COSTS = {
    "fp": ['kind = "fp"', SIMPLEST + 'fp32"]'],
    "alu": [SIMPLEST + 'int"]'],
    "mul": ['from = ["mul_s32", "mul_f32", "add", "fadd", "fp", "comp", "imad"]'],
    "sfu": ['kind = "sfu"', 'from = ["cos_apx_f32", "sfu", "cos", "fp", "comp"]'],
    "local": ['kind = "shared"', 'from = ["ld_local_s32", "local_memory", "smem", "shared_load"]'],
    "load": ['kind = "memory"', 'from = ["ld_global_s32", "stream", "memory", "mem", "mem_coalesced", "global_load"]',
             'cached = "ld_global_l2"'],
    "store": ['kind = "memory"', "store = true",
              'from = ["ld_global_s32", "stream", "memory", "mem", "mem_coalesced", "global_store"]',
              'cached = "ld_global_l2"'],
    "barrier": ['kind = "barrier"', 'from = ["bar_sync", "barrier"]'],
}  # fmt: skip
"""A class's table: on the paper's GPUs the instruction of Table 5, on others what comes closest."""
SECTORS, DIGITS = 4, 3
"""Sectors of 32 bytes of a warp's access to words side by side; digits that a file's means have."""


def class_of(instruction: Instruction) -> str:
    """The class of one machine instruction; UsageError for an access of a kind that these kernels do not make."""
    own = {"fp32": "fp", "sfu": "sfu", "convert": "sfu", "barrier": "barrier", "constant_load": "alu"}
    if instruction.class_ in own:
        return own[instruction.class_]
    access = instruction.memory
    if access is not None:
        name = {("global", "load"): "load", ("global", "store"): "store"}.get((access.space, access.kind))
        name = "local" if access.space == "shared" and access.kind in ("load", "store") else name
        if name is None:
            raise UsageError(f"{instruction}: no class for {access.kind} in {access.space} memory")
        return name
    multiplies = instruction.opcode in ("IMAD", "UIMAD") and instruction.modifiers[:1] not in [(m,) for m in SIMPLE]
    return "mul" if multiplies else "alu"


# What a file says.


@dataclass(frozen=True)
class Chosen:
    """The sampled block that stands for all, the path of each of its warps, and how many of what are alike."""

    sample: int
    paths: tuple[int, ...]
    alike: float
    total: float
    of_what: str


def chosen_block(profile: Profile) -> Chosen:
    """The most common kind of thread block.

    Where no kind makes up half of the grid, all warps take the path that most warps take.
    """
    kinds: defaultdict[tuple[int, ...], float] = defaultdict(float)
    warps: defaultdict[int, float] = defaultdict(float)
    for block in profile.blocks:
        kinds[block.paths] += block.weight
        for path in block.paths:
            warps[path] += block.weight
    paths, most = max(kinds.items(), key=lambda pair: pair[1])
    blocks = sum(kinds.values())
    if most > HALF * blocks:
        sample = next(n for n, block in enumerate(profile.blocks) if block.paths == paths)
        return Chosen(sample, paths, most, blocks, "thread blocks")
    path, most = max(warps.items(), key=lambda pair: pair[1])
    sample = next(n for n, block in enumerate(profile.blocks) if path in block.paths)
    return Chosen(sample, (path,) * len(paths), most, sum(warps.values()), "warps")


def memory_keys(launch: Prepared, class_: str) -> dict[str, float]:
    """Where the accesses of a class are served, as the keys of its table: means over the whole grid."""
    instructions = launch.kernel.instructions
    found = [a for i, a in launch.behaviour.accesses.items() if class_of(instructions[i]) == class_ and a.executions]
    runs = sum(a.executions for a in found)
    if class_ == "local":
        asked = sum(a.executions * a.requests for a in found)
        return {"conflicts": sum(max(0.0, a.units - a.requests) * a.executions for a in found) / asked}
    sectors = sum(a.units * a.executions for a in found)
    beyond = sum(a.units * a.executions * (1 - a.l1_hit) for a in found)
    dram = sum((a.dram_read if class_ == "load" else a.dram_write) * a.executions for a in found)
    return {
        "dram_ratio": dram / runs / SECTORS,
        "sectors": sectors / runs,
        "l1_hit": 1 - beyond / sectors,
        "l2_hit": max(0.0, 1 - dram / beyond) if beyond else 0.0,
    }


def graphs_of(launch: Prepared, chosen: Chosen) -> dict[int, Graph]:
    """The graph of each path of the chosen block."""
    own = launch.profile.blocks[chosen.sample].paths
    return {
        path: graph_of(launch.profile, chosen.sample, own.index(path), class_of) for path in dict.fromkeys(chosen.paths)
    }


def text_of(
    entry: Entry,
    launch: Prepared,
    chosen: Chosen,
    graphs: Mapping[int, Graph],
    made: tuple[str, str, str] | None = None,
) -> str:
    """The file of one kernel, from its prepared launch and the graph of each path.

    `made` is what wrote it with which compiler, the compiler's target, and the GPU, if they are not the usual ones.
    """
    by, target, gpu = made or (f"benchmarks.rodinia_graphs, with nvidia-cuda-nvrtc {compiler()}", "sm_75", NEWEST)
    names = {path: f"warps{number}" for number, path in enumerate(graphs, 1)}
    used = {node.class_ for graph in graphs.values() for node in graph.nodes}
    source = launch_of(entry).source.name
    head = [
        f"# Written by: python -m {by}",
        "format = 1",
        f'title = "{entry.ours} ({entry.application}), from the machine code of our own kernel"',
        f'source = "suite/{source}, for {entry.kernel} of Lemeire, Cornelis, Konstantinidis: Analysis of the Analytical'
        ' Performance Models for GPUs, Table 9"',
        f'about = "Stands for {chosen.alike:,.0f} of {chosen.total:,.0f} {chosen.of_what}. Compiled for {target},'
        ' loops not unrolled; every machine instruction is a node. See docs/abstract-kernels.md."',
        f'gpu = "papers/analysis-{gpu}"',
    ]
    tables = ["", "[launch]", f"warps_per_block = {len(chosen.paths)}", f"max_occupancy = {entry.most}"]
    for class_ in (name for name in COSTS if name in used):
        keys = memory_keys(launch, class_) if class_ in ("local", "load", "store") else {}
        tables += ["", f"[classes.{class_}]", *COSTS[class_]]
        tables += [f"{key} = {round(value, DIGITS):g}" for key, value in keys.items()]
    programs = []
    for path, graph in graphs.items():
        programs += ["", *([f"[graphs.{names[path]}]"] if len(graphs) > 1 else []), "program = [", *_steps(graph), "]"]
    if len(graphs) == 1:  # a key of the whole file stands before its tables
        return "\n".join([*head, *programs, *tables]) + "\n"
    groups = ["", "[[groups]]", f"graphs = [{', '.join(_quoted(names[path]) for path in chosen.paths)}]"]
    return "\n".join([*head, *tables, *programs, *groups]) + "\n"


def compiler() -> str:
    """The version of the compiler's package, on which the machine code depends."""
    return version("nvidia-cuda-nvrtc")


def _steps(graph: Graph) -> list[str]:
    def lines(items: Sequence[Item], indent: str) -> list[str]:
        found = []
        for item in items:
            if isinstance(item, Repeat):
                body = lines(item.body, indent + "  ")
                found += [f"{indent}{{ loop = {item.count}, body = [", *body, f"{indent}] }},"]
                continue
            node = graph.nodes[item]
            text = f"id = {_quoted(node.name)}, class = {_quoted(node.class_)}"
            for key, places in (("needs", node.needs), ("previous", node.previous)):
                if places:
                    text += f", {key} = [{', '.join(_quoted(graph.nodes[place].name) for place in sorted(places))}]"
            found.append(f"{indent}{{ {text} }},")
        return found

    return lines(graph.program, "  ")


def _quoted(text: str) -> str:
    return f'"{text}"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files of the kernels that were named, or of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rodinia_graphs", description=__doc__)
    parser.add_argument("kernels", nargs="*", help="names of Table 9 or of ours (default: all)")
    wanted = parser.parse_args(arguments).kernels
    known = {name for entry in TABLE_9 for name in (entry.kernel, entry.ours)}
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"{unknown[0]}: expected one of {', '.join(entry.kernel for entry in TABLE_9)}")
    for entry in TABLE_9:
        if not wanted or entry.kernel in wanted or entry.ours in wanted:
            path = FOLDER.parent / f"{entry.workload}.toml"
            launch = prepared(entry)
            chosen = chosen_block(launch.profile)
            path.write_text(text_of(entry, launch, chosen, graphs_of(launch, chosen)), encoding="utf-8")
            print(f"{entry.workload}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
