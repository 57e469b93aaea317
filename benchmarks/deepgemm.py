"""FP8 matrix products of DeepGEMM: the times that its authors published for an H800, as a table for `validate`.

    python benchmarks/deepgemm.py DeepGEMM/     # deepseek-ai/DeepGEMM @a6d97a1, whose README has the figures
    cd DeepGEMM && drywarp validate times.csv --gpu traced.toml --macros , -I deep_gemm/include -I CUTLASS/include \\
        --time-limit 900 --out rows.csv

Writes `times.csv`, a file for each kernel, and `traced.toml`. The kernels need nvcc 13, which no longer has the macro's
old name. An H800 has the SMs, clocks and memory of an H100 SXM; its times are those of torch.profiler, so the GPU is an
H100 with the start that a trace shows. Each kernel is taken to find its data outside the L2: it follows those that
wrote them anew. Shapes of tiles are chosen as the library's host code chooses them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from drywarp.hardware import load_gpu

SHAPES = ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))
"""N and K."""
TFLOPS = {
    64: (206, 289, 219, 336, 287, 295),
    128: (352, 535, 358, 645, 533, 510),
    4096: (1058, 990, 590, 1358, 1304, 1025),
}
"""README, normal GEMMs: TFLOP/s by M, in the order of `SHAPES`."""
SMS, SHARED_BYTES, SLICE = 132, 232448, 128


def shared_bytes(stages: int, k: int, tile_m: int, tile_n: int) -> int:
    """Dynamic shared memory: the tile of D, then A, its scales and B by stage, B's scales and two barriers a stage."""
    stage = tile_m * SLICE + tile_m * 4 + tile_n * SLICE + 16
    return tile_m * tile_n * 2 + stages * stage + 4 * -(-k // SLICE) * (1 if SLICE % tile_n == 0 else 2)


def configuration(m: int, n: int, k: int) -> tuple[int, int, int, int]:
    """Tile of M and N, stages, and blocks that share a tile of A: the fewest waves, then the fullest last wave."""
    tile_m = 64 if m <= 64 else 128

    def cost(tile_n: int) -> tuple[int, int, int]:
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return -(-tiles // SMS), -(tiles % SMS or SMS), -tile_n

    tile_n = min(range(16, 129, 8), key=cost)
    most = 8 if SLICE % tile_n == 0 else 6
    stages = next(s for s in range(most, 3, -1) if shared_bytes(s, k, tile_m, tile_n) <= SHARED_BYTES)
    return tile_m, tile_n, stages, 2 if m >= 1024 and n % (2 * tile_n) == 0 else 1


def instance(m: int, n: int, k: int) -> str:
    """The kernel's name with its template arguments."""
    tile_m, tile_n, stages, shared_by = configuration(m, n, k)
    values = f"{n},{k},{tile_m},{tile_n},128,1,{stages},128,128,{shared_by}"
    return f"deep_gemm::fp8_gemm_kernel<{values},deep_gemm::GemmType::Normal>"


def source(m: int, n: int, k: int) -> str:
    """A file with the one kernel."""
    parameters = ", ".join(
        ["__nv_bfloat16*", "float*", "int*", "uint32_t", *["const __grid_constant__ CUtensorMap"] * 4]
    )
    made = f"template __global__ void {instance(m, n, k)}({parameters});"
    return f'#include "deep_gemm/fp8_gemm.cuh"\n{made}\n'


def launch(m: int, n: int, k: int) -> str:
    """The options of a launch, as the host code makes it."""
    tile_m, tile_n, stages, shared_by = configuration(m, n, k)
    args = {
        "gmem_d": f"bf16[{m},{n}]",
        "scales_b": f"f32[{-(-n // SLICE)},{-(-k // SLICE)}]:ones",
        "grouped_layout": "null",
        "shape_m": f"{m}",
        "tensor_map_a": f"tensormap(box={tile_m}x{SLICE},swizzle=128):u8[{m},{k}]:random",
        "tensor_map_b": f"tensormap(box={tile_n}x{SLICE},swizzle=128):u8[{n},{k}]:random",
        "tensor_map_scales_a": f"tensormap(box=1x{tile_m}):f32[{-(-k // SLICE)},{m}]:ones",
        "tensor_map_d": f"tensormap(box={tile_m}x{tile_n}):bf16[{m},{n}]",
    }
    threads = 128 + (128 if tile_m == 64 else 256)
    words = [f"--entry '{instance(m, n, k)}' --grid {SMS} --block {threads} --cluster {shared_by}"]
    words += [f"--shared {shared_bytes(stages, k, tile_m, tile_n)}"]
    words += ["-D PFN_cuTensorMapEncodeTiled=PFN_cuTensorMapEncodeTiled_v12000"]
    return " ".join(words + [f"--arg {name}={value}" for name, value in args.items()])


def traced(name: str) -> str:
    """The file of a GPU whose kernels start as in a trace."""
    given = load_gpu(name).known["device.traced_start_ns"]
    fact = f'{{ value = {given.value}, source = "{given.source}", kind = "{given.kind}", note = "in a trace" }}'
    return f'format = 1\ntitle = "{name}, traced"\ninherits = "{name}"\n\n[device]\nkernel_start_ns = {fact}\n'


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout of DeepGEMM.")],
) -> None:
    """Write times.csv, the kernels and the GPU's file into the folder."""
    (folder / "traced.toml").write_text(traced("h100"), encoding="utf-8")
    with (folder / "times.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["product", "file", "launch", "time_us"])
        for m, rates in TFLOPS.items():
            for (n, k), rate in zip(SHAPES, rates, strict=True):
                (folder / f"gemm_{m}_{n}_{k}.cu").write_text(source(m, n, k), encoding="utf-8")
                time_us = 2e-6 * m * n * k / rate
                out.writerow([f"{m}x{n}x{k}", f"gemm_{m}_{n}_{k}.cu", launch(m, n, k), f"{time_us:.2f}"])


if __name__ == "__main__":
    typer.run(main)
