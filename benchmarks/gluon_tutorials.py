"""Triton's Gluon tutorials on a GB200: the rates that their comments state, as a table for `validate`.

    python benchmarks/gluon_tutorials.py triton/ --python PYTHON --out gluon
    cd gluon && drywarp validate times.csv --gpu gb200 --models pipeline,roofline,volkov --out rows.csv

`triton/` is a checkout of triton-lang/triton @9d9a2d7 (April 27, 2026); PYTHON has Triton 3.8.0 and PyTorch. Each
published case is launched once in `drywarp run`, with the tutorial's own host code (`gluon_launches.py`), and the
launch is kept. `do_bench` clears the L2 before each run, `do_bench_cudagraph` leaves what the run before left (column
`l2`). `--only 07` makes the launches of one tutorial. Six figures are left out: Triton 3.8.0 refuses tutorial 7's
`persistent_matmul_pipelined`, which takes one buffer of B for two.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

LAUNCHES = Path(__file__).with_name("gluon_launches.py")
EDITS = {
    "06-tcgen05": ("tmem_block.value", "tmem_block"),
    "14-multicta": ("], multicast=True)", "], multicast=True, two_ctas=True)"),
}
"""What Triton 3.8.0 calls by other names than the checkout."""
UNGUARDED = "\nbenchmark_multicta_softmax_f32()\n"
"""A benchmark that importing its tutorial would run."""
COUNT, TIB = 2 << 30, 1 << 40
CUBE = 8192


@dataclass(frozen=True)
class Case:
    """A published figure: its tutorial, its time, and the call that makes the launch."""

    tutorial: str
    name: str
    time_us: float
    call: dict[str, Any] = field(hash=False)
    warm: bool = False


def _copies() -> Iterator[Case]:
    """Tutorials 1 and 2: copies of 8 GiB; their TB are 2**40 bytes."""
    yield Case("01-intro", "copy by one thread", 24.00e3, {"call": "copy_scalars", "count": COUNT, "block": 2048})
    tutorial = "02-layouts"

    def at(name: str, rate: float, size: int, **call: Any) -> Case:
        return Case(tutorial, name, size / TIB / rate * 1e6, call)

    rates = {
        1024: (6.566, 6.548, 6.542, 6.550, 5.226),
        2048: (6.572, 6.474, 6.474, 6.504, 6.218),
        4096: (6.554, 6.492, 6.454, 6.396, 6.182),
        8192: (6.606, 6.532, 6.482, 6.478, 6.176),
        16384: (6.522, 6.556, 6.486, 6.510, 6.146),
    }
    for block, some in rates.items():
        for each, rate in zip((1, 2, 4, 8, 16), some, strict=True):
            name = f"copy, {each} a thread, block {block}"
            yield at(name, rate, 8 * COUNT, call="copy_1d", count=COUNT, block=block, each=each)
    two = (
        ("rows", 6.260, 32768, 65536, "rows", "rows", "rows"),
        ("transposed, layout by rows", 0.774, 65536, 32768, "columns", "columns", "rows"),
        ("transposed, layout by columns", 6.590, 65536, 32768, "columns", "columns", "columns"),
        ("every second row", 6.258, 16384, 65536, "every_second", "rows", "rows"),
        ("every second row, transposed", 6.398, 16384, 65536, "every_second", "rows", "columns of transposed"),
        ("to transposed, layout by rows", 0.978, 32768, 32768, "rows", "columns", "rows"),
        ("to transposed, layout by columns", 1.674, 32768, 32768, "rows", "columns", "columns"),
        ("to transposed, both layouts", 4.814, 32768, 32768, "rows", "columns", "both"),
    )
    for name, rate, rows, columns, source, target, layout in two:
        call = {"call": "copy_2d", "rows": rows, "columns": columns, "source": source, "target": target}
        yield at(f"2D copy, {name}", rate, 8 * rows * columns, **call, layout=layout)


def _sums() -> Iterator[Case]:
    """Tutorials 3, 4 and 8: sums of matrices of 32768 x 32768."""
    deep = {"XBLOCK": 64, "YBLOCK": 128}
    for tutorial, name, rate, function, keys in (
        ("03-async-copy", "sum", 1.48, "elementwise_add", {}),
        ("03-async-copy", "sum, cp.async", 3.97, "elementwise_add_cpasync", {}),
        ("03-async-copy", "sum, cp.async, 2 buffers", 4.20, "elementwise_add_pipelined", {"num_buffers": 2}),
        ("03-async-copy", "sum, cp.async, 3 buffers", 4.20, "elementwise_add_pipelined", {"num_buffers": 3}),
        ("04-tma", "sum, TMA", 5.50, "elementwise_add_tma", {}),
        ("04-tma", "sum, TMA, 64 x 128, 3 buffers", 5.90, "elementwise_add_tma", {**deep, "num_buffers": 3}),
        (
            "08-warp-specialization",
            "sum, warp specialised",
            5.98,
            "elementwise_add_warp_specialized",
            {**deep, "num_load_buffers": 3, "num_store_buffers": 1},
        ),
    ):
        call = {"call": "add", "function": function, **keys}
        yield Case(tutorial, name, 3 * 4 * 32768**2 / TIB / rate * 1e6, call)


def _product(tutorial: str, name: str, k: int, rate: float, warm: bool, **call: Any) -> Case:
    """A product of 8192 x 8192 results at a rate in TFLOP/s."""
    call = {"call": "product", "m": CUBE, "n": CUBE, "k": k, **call}
    return Case(tutorial, f"{name}, K {k}", 2e-6 * CUBE**2 * k / rate, call, warm)


def _blocked() -> Iterator[Case]:
    """Tutorial 6: products by single blocks."""
    deep, tutorial = 16384, "06-tcgen05"
    for (tile, k), rate in {
        (64, 64): 671.77,
        (64, 128): 660.93,
        (64, 256): 526.10,
        (128, 64): 898.61,
        (128, 128): 1019.46,
        (128, 256): 563.13,
    }.items():
        keys = {"BLOCK_M": tile, "BLOCK_N": tile, "BLOCK_K": k, "TRANSPOSE_B": False, "num_warps": 4}
        name = f"blocked product, tile {tile} x {tile} x {k}"
        yield _product(tutorial, name, deep, rate, False, function="blocked_matmul", **keys)
    for (k, warps), rate in {(64, 4): 1000.51, (64, 8): 1113.49, (128, 4): 1040.27, (128, 8): 1011.47}.items():
        keys = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": k, "num_warps": warps}
        name = f"two tiles a block, tile 128 x 128 x {k}, {warps} warps"
        yield _product(tutorial, name, deep, rate, False, function="blocked_matmul_pipelined", **keys)


def _persistent() -> Iterator[Case]:
    """Tutorials 7, 8 and 12: tiles of 128 x 256, persistent blocks and the ways to share tiles out."""
    tutorial, deep = "07-persistence", 16384
    depths = ((128, 2, 4), (128, 2, 8), (64, 3, 4), (64, 3, 8), (64, 4, 4), (64, 4, 8))
    several = (
        (None, (735.96, 697.97, 1054.00, 973.94, 1175.70, 1072.83)),
        (0, (712.25, 686.64, 1032.16, 938.81, 1142.26, 1071.46)),
    )
    tile = {"BLOCK_M": 128, "BLOCK_N": 256}
    for group, rates in several:
        function = "matmul_pipelined" if group is None else "persistent_matmul"
        for (k, buffers, warps), rate in zip(depths, rates, strict=True):
            keys = {**tile, "BLOCK_K": k, "num_buffers": buffers, "num_warps": warps, "group": group}
            name = f"{'pipelined' if group is None else 'persistent'}, {buffers} buffers of {k}, {warps} warps"
            yield _product(tutorial, name, deep, rate, True, function=function, **keys)
    best = {**tile, "BLOCK_K": 64, "num_buffers": 4, "num_warps": 4}
    for group, rate in {1: 1025.11, 2: 1050.43, 4: 1032.71, 6: 1057.27, 8: 1179.94}.items():
        name = f"persistent, groups of {group}"
        yield _product(tutorial, name, deep, rate, True, function="persistent_matmul", **best, group=group)
    for function, some in {
        "matmul_pipelined": (615.86, 997.16, 1152.74, 1164.05, 1160.93, 1185.62),
        "persistent_matmul": (828.70, 1077.28, 1190.55, 1120.92, 1074.97, 1096.34),
    }.items():
        group = None if function == "matmul_pipelined" else 8
        for power, rate in enumerate(some, start=9):
            yield _product(tutorial, f"{function}", 2**power, rate, True, function=function, **best, group=group)
    for power, rate in enumerate((1004.18, 1182.61, 1313.71, 1317.58, 1291.56, 1256.74), start=9):
        keys = {**best, "SUBTILE_FACTOR": 4, "group": 8, "function": "matmul_warp_specialized"}
        yield _product("08-warp-specialization", "warp specialised product", 2**power, rate, False, **keys)
    for clc, rate in {False: 1040.13, True: 1080.74}.items():
        name = "cluster launch control" if clc else "static tiles"
        keys = {"function": "run_matmul_kernel", "use_clc": clc}
        yield _product("12-cluster-launch-control", name, CUBE, rate, True, **keys)


def _scaled() -> Iterator[Case]:
    """Tutorial 11: products of small floats with scales."""
    formats = ("mxfp8 x mxfp8", "mxfp4 x mxfp4", "mxfp8 x mxfp4", "nvfp4 x nvfp4")
    for function, rates in {
        "simple_mma_scaled": (33.41, 67.02, 34.60, 70.84),
        "mma_scaled_contig": (663.28, 1435.05, 741.82, 1303.69),
        "mma_scaled_packed_block": (900.97, 2081.76, 1000.48, 2002.05),
        "mma_scaled_tcgen05_copy": (929.07, 2147.76, 1035.60, 2092.39),
        "mma_scaled_pipelined_kernel": (2018.58, 3916.62, 2144.05, 3842.19),
        "mma_scaled_warp_specialized_kernel": (2378.49, 4870.97, 2615.73, 4846.83),
    }.items():
        for kind, rate in zip(formats, rates, strict=True):
            call = {"call": "scaled", "function": function, "formats": kind, "size": CUBE}
            name = f"{function.removesuffix('_kernel')}, {kind}"
            yield Case("11-tcgen05-mma-scaled", name, 2e-6 * CUBE**3 / rate, call, warm=True)


def _clusters() -> Iterator[Case]:
    """Tutorial 14: softmax of long rows by clusters, and products by pairs of blocks."""
    tutorial = "14-multicta"
    rates = (3661.46, 6746.45, 6740.50, 6920.01, 7065.25, 7136.76, 7157.74, 6545.11, 6057.26, 5468.66, 4736.15)
    for power, rate in enumerate(rates, start=8):
        rows, columns = 2 ** min(15, 31 - power), 2**power
        call = {"call": "softmax", "rows": rows, "columns": columns}
        yield Case(tutorial, f"softmax {rows} x {columns}", 8e-3 * rows * columns / rate, call, warm=True)
    keys = {
        "block_size_m": 128,
        "block_size_n": 256,
        "block_size_k": 64,
        "grid_minor_dim": 0,
        "grid_tile_width": 16,
        "stages": 6,
        "acc_stages": 2,
        "cga_layout": ((1, 0),),
        "epilogue_size_n": 32,
        "subtile_stages": 4,
    }
    for power, rate in enumerate((1096.31, 1306.07, 1379.80, 1444.26, 1302.33, 1292.40), start=9):
        case = _product(tutorial, "product by pairs", 2**power, rate, False, **keys)
        yield Case(tutorial, case.name, case.time_us, {**case.call, "call": "pairs"})


def cases() -> list[Case]:
    """Every published figure of a kernel of the tutorials, by tutorial."""
    every = [*_copies(), *_sums(), *_blocked(), *_persistent(), *_scaled(), *_clusters()]
    return sorted(every, key=lambda case: case.tutorial)


def tutorials(checkout: Path, out: Path) -> None:
    """Copy the tutorials as this Triton takes them."""
    out.mkdir(parents=True)
    for path in sorted((checkout / "python/tutorials/gluon").glob("*-*.py")):
        text = path.read_text(encoding="utf-8").replace(UNGUARDED, "\n")
        if edit := EDITS.get(path.stem):
            text = text.replace(*edit)
        (out / path.name).write_text(text, encoding="utf-8")


def rounds(some: list[Case]) -> list[list[Case]]:
    """The cases in groups without two that differ in K alone: of launches of one shape a process keeps the first.

    Nor in the group of a scheduler: Triton 3.8.0 takes a cached kernel for one of another group.
    """
    found: list[list[Case]] = []
    seen = Counter[str]()
    for case in some:
        shape = json.dumps({key: value for key, value in case.call.items() if key not in ("k", "group")})
        if seen[shape] == len(found):
            found.append([])
        found[seen[shape]].append(case)
        seen[shape] += 1
    return found


def kept(out: Path, python: Path, tutorial: str, some: list[Case]) -> Iterator[tuple[Case, Path]]:
    """Each case of a tutorial with its launch."""
    for number, cases_of_round in enumerate(rounds(some), start=1):
        folder = out / f"{tutorial}_{number}"
        asked = folder.with_suffix(".json")
        asked.write_text(json.dumps([case.call for case in cases_of_round]), encoding="utf-8")
        words = ["run", "--gpu", "gb200", "--emulate-steps", "1", "--keep", folder, "--", python, LAUNCHES.resolve()]
        words += [out / "tutorials" / f"{tutorial}.py", asked]
        command, own = [sys.executable, "-m", "drywarp", *map(str, words)], {"TRITON_CACHE_DIR": f"{folder}_cache"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **own})
        found = sorted(folder.glob("*.launch"))
        if len(found) != len(cases_of_round):
            raise ValueError(f"{folder}: {len(found)} launches, expected {len(cases_of_round)}")
        yield from zip(cases_of_round, found, strict=True)


def main(
    checkout: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout of Triton.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    python: Annotated[Path, typer.Option(help="An interpreter with Triton and PyTorch.")] = Path(sys.executable),
    only: Annotated[str, typer.Option(help="The start of a tutorial's name.")] = "",
) -> None:
    """Write the kept launches and times.csv into a folder."""
    tutorials(checkout, out / "tutorials")
    wanted = [case for case in cases() if case.tutorial.startswith(only)]
    with (out / "times.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["case", "file", "launch", "l2", "time_us"])
        for tutorial in dict.fromkeys(case.tutorial for case in wanted):
            some = [case for case in wanted if case.tutorial == tutorial]
            for case, path in kept(out, python, tutorial, some):
                l2 = "warm" if case.warm else "cold"
                table.writerow([f"{tutorial[:2]}: {case.name}", path.relative_to(out), "", l2, f"{case.time_us:.4g}"])


if __name__ == "__main__":
    typer.run(main)
