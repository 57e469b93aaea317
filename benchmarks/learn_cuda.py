"""Public kernels for Blackwell with published times, as a table for `validate`.

    python benchmarks/learn_cuda.py learn-cuda/ rtx5090 --out made     # gau-nernst/learn-cuda @1454f8b; or b200
    cd made && drywarp validate times.csv --gpu rtx5090 --models pipeline,roofline,volkov --out rows.csv

Times follow from the TFLOP/s that the author's READMEs give: matrix products of BF16 and int8, of int8 and FP8 with
scales, and attention on an RTX 5090 at 400 W; matrix products with tcgen05, step by step, on a B200. Builds a program
of each file (`learn_cuda.cu`, nvcc 13), lets it compute a small case whose result it checks, and keeps the launch of
each published case (`drywarp run --keep`).
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DRIVER = Path(__file__).with_suffix(".cu")
FLAGS = "-w -std=c++17 -O3 -lineinfo --expt-relaxed-constexpr".split()
SMALL = (512, 512, 512)
SMALL_ATTENTION = (256, 320, 2)
LARGEST_DIFFERENCE = 0.004
"""Of the largest result: half a unit in the last place of BF16, and a little for sums in single precision."""
STUBS = "int cuTensorMapEncodeTiled(void) { return 999; }\nint cuGetErrorString(void) { return 999; }\n"
"""What the programs call of the driver, to link them where there is none."""
TORCH = """#pragma once
#include <cstdlib>
#define TORCH_CHECK(condition, ...) do { if (!(condition)) std::abort(); } while (0)
"""
"""What the files use of PyTorch's header."""


class Device(StrEnum):
    """The GPU of a table."""

    B200 = "b200"
    RTX5090 = "rtx5090"


@dataclass(frozen=True)
class File:
    """A file of the checkout: its functions as `learn_cuda.cu` calls them, and their TFLOP/s by extents."""

    path: str
    functions: tuple[str, ...]
    tflops: dict[tuple[int, int, int], tuple[float, ...]]

    @property
    def attention(self) -> bool:
        return "attention" in self.path

    def flops(self, extents: tuple[int, int, int]) -> int:
        """Of a product, or of queries, keys and heads of 128 columns: two products."""
        a, b, c = extents
        return 2 * a * b * c * (2 * 128 if self.attention else 1)


def cube(size: int) -> tuple[int, int, int]:
    return size, size, size


def _step(name: str, *functions: str, **by_size: tuple[float, ...]) -> File:
    tflops = {cube(int(size[1:])): times for size, times in by_size.items()}
    return File(f"02e_matmul_sm100/matmul_{name}.cu", tuple(f"F(matmul_{one})" for one in functions), tflops)


def _pair(name: str, by_size: dict[int, tuple[float, float]]) -> File:
    functions = (f"F(matmul_{name}_bf16)", f"F(matmul_{name}_int8)")
    tflops = {cube(size): times for size, times in by_size.items()}
    return File(f"02c_matmul_sm120/matmul_{name}.cu", functions, tflops)


def _attention(version: int, tflops: float) -> File:
    """Of 32 heads: the README says one batch of eight, its script runs four batches.

    Of 512 blocks, as one batch makes, some of the 170 SMs run four; the published times would need 3.0 GHz for that.
    """
    return File(f"07_attention/attention_v{version}.cu", (f"F(attention_v{version})",), {(4096, 8192, 32): (tflops,)})


FILES = {
    Device.B200: (
        _step("v0", "v0", n4096=(409.06,)),
        _step("v1", "v1a", "v1b", n4096=(255.73, 254.37)),
        _step("v2", "v2a", "v2b", n4096=(699.39, 721.02)),
        _step("v3", "v3", n4096=(914.42,)),
        _step("v4", "v4", n4096=(1053.61,)),
        _step("v5", "v5", n4096=(1169.65,)),
        _step("v6", "v6", n4096=(1273.32,)),
        _step(
            *("v7", "v7a", "v7b", "v7c"),
            n2048=(930.34, 930.19, 955.32),
            n4096=(1293.38, 1316.16, 1326.11),
            n8192=(1283.26, 1238.74, 1246.06),
        ),
    ),
    Device.RTX5090: (
        _pair("v0", {2048: (158.24, 401.87), 4096: (164.01, 425.00), 8192: (192.29, 448.42)}),
        _pair("v1", {2048: (164.27, 440.57), 4096: (171.24, 463.30), 8192: (200.29, 485.84)}),
        _pair("v2", {2048: (164.41, 439.72), 4096: (173.07, 464.89), 8192: (201.03, 485.83)}),
        *(_attention(n, tflops) for n, tflops in enumerate((142.87, 181.11, 189.84, 194.33, 197.74), 1)),
        File(
            "08_row_scaled_mm/row_scaled_mm_v1.cu",
            ("INT8(row_scaled_mm_v1)", "FP8(row_scaled_mm_v1)"),
            {(4096, 4096, 8192): (559.04, 502.95)},
        ),
    ),
}
ARCHITECTURES = {Device.B200: "100a", Device.RTX5090: "120a"}


def drywarp(*words: str | Path) -> str:
    """What a `drywarp run` prints of its program."""
    command = [sys.executable, "-m", "drywarp", "run", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def build(file: File, checkout: Path, out: Path, arch: str, nvcc: str) -> Path:
    """Compile the program of a file."""
    source = checkout.resolve() / file.path
    made = out / source.stem
    words = [nvcc, *FLAGS, "-gencode", f"arch=compute_{arch},code=sm_{arch}", "-I", str(out), "-I", str(source.parent)]
    words += [f'-DSOURCE="{source}"', "-DFUNCTIONS=" + "".join(file.functions)]
    subprocess.run([*words, "-o", str(made), str(DRIVER), f"-L{out}", "-lcuda"], check=True)
    return made


def checked(file: File, made: Path, gpu: Device) -> Iterator[int]:
    """Compute a small case with each function; yields those whose results are right, and says what became of others."""
    for number, function in enumerate(file.functions):
        extents = SMALL_ATTENTION if file.attention else SMALL
        said = drywarp("--gpu", gpu, "--", made, str(number), *map(str, extents), "check").split()
        print(f"{function}: {' '.join(said)}")
        if float(said[-3]) <= LARGEST_DIFFERENCE * float(said[-1]):
            yield number


def main(
    checkout: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout of learn-cuda.")],
    gpu: Device,
    out: Annotated[Path, typer.Option(help="A new folder.")],
    nvcc: str = "nvcc",
    compiler: Annotated[str, typer.Option(help="The C compiler.")] = "cc",
) -> None:
    """Write the kept launches and times.csv into a folder."""
    (out / "torch").mkdir(parents=True)
    (out / "torch" / "library.h").write_text(TORCH, encoding="utf-8")
    (out / "stubs.c").write_text(STUBS, encoding="utf-8")
    link = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(out / "libcuda.so"), str(out / "stubs.c")]
    subprocess.run([compiler, *link], check=True)
    with (out / "times.csv").open("w", newline="", encoding="utf-8") as table:
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(["case", "file", "launch", "time_us"])
        for file in FILES[gpu]:
            made = build(file, checkout, out, ARCHITECTURES[gpu], nvcc)
            right = set(checked(file, made, gpu))
            for extents, tflops in file.tflops.items():
                for number, rate in enumerate(tflops):
                    if number not in right:
                        continue
                    folder = out / f"{made.name}_{number}_{extents[0]}"
                    words = ("--gpu", gpu, "--emulate-steps", "1", "--keep", folder, "--", made, str(number))
                    drywarp(*words, *map(str, extents))
                    (kept,) = folder.glob("*.launch")
                    kind, _, name = file.functions[number].rstrip(")").partition("(")
                    case = f"{name}{'' if kind == 'F' else ' ' + kind} {' x '.join(map(str, extents))}"
                    time_us = file.flops(extents) / rate / 1e6
                    rows.writerow([case, str(kept.relative_to(out)), "", f"{time_us:.3f}"])


if __name__ == "__main__":
    typer.run(main)
