"""Matrix products for Hopper: the times that fast.cu's author published for an H100 SXM, for `validate`.

    python benchmarks/fast_cu.py fast.cu/          # pranjalssh/fast.cu @a1bb7b2, whose README has the times
    cd fast.cu && drywarp validate times.csv --gpu h100 --warm-l2 --macros , --time-limit 900 --out rows.csv

Writes `times.csv` beside the kernels, and the orders in which persistent blocks take their tiles. Kernels 0 (cuBLAS)
and 3 (for debugging) are left out. All products are square, of bf16.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

TIMES_MS = {
    8192: {1: 33.970, 2: 2.251, 4: 1.731, 5: 1.670, 6: 1.414, 7: 1.376, 11: 1.361},
    6144: {1: 14.438, 2: 0.973, 4: 0.712, 5: 0.741, 6: 0.605, 7: 0.599, 11: 0.584},
}
"""README, N=2048*4 and N=2048*3: milliseconds of each kernel by size."""
BLOCKS, SLOTS = 128, 128
ENTRIES = {
    1: "sgemmWarptiling<128,128,16,64,64,4,8,4,128>",
    2: "M2::matmulKernel2<128,128,64,64,64,16,128>",
    4: "M4::matmulKernel4<128,256,64,384,3,false>",
    5: "M5::matmulKernel5<128,256,64,384,2,128,false>",
    6: "M6::matmulKernel6<128,256,64,384,3,128>",
    7: "M7::matmulKernel7<128,256,64,384,3,128,2,1>",
    11: "M11::matmulKernel11<128,256,64,384,3,128,2,1>",
}


def hilbert(side: int) -> npt.NDArray[np.int32]:
    """The points (x, y) of a square in the order of Hilbert's curve; `side` is a power of two. Shape (side², 2)."""
    points = np.zeros((1, 2), np.int32)
    while (n := round(len(points) ** 0.5)) < side:
        x, y = points.T
        quarters = [(y, x), (x, y + n), (x + n, y + n), (2 * n - 1 - y, n - 1 - x)]
        points = np.concatenate([np.stack(quarter, axis=1) for quarter in quarters]).astype(np.int32)
    return points


def tile_order(rows: int, columns: int, workers: int) -> npt.NDArray[np.int32]:
    """Each worker's tiles (row << 16 | column), dealt out along the curve; −1 where there is none.

    Shape (BLOCKS · SLOTS,).
    """
    points = hilbert(1 << (max(rows, columns) - 1).bit_length())
    tiles = points[(points[:, 0] < rows) & (points[:, 1] < columns)]
    order = np.full((BLOCKS, SLOTS), -1, np.int32)
    number = np.arange(len(tiles))
    order[number % workers, number // workers] = tiles[:, 0] << 16 | tiles[:, 1]
    return order.ravel()


def launch(kernel: int, n: int, folder: Path) -> str:
    """The options of a launch, as the host program makes it. Writes the tiles' order where the kernel reads one."""

    def tiles(name: str, box: str, shape: str = "", fill: str = ":random") -> str:
        swizzle = ",swizzle=128" if fill else ""
        return f"{name}=tensormap(box={box}{swizzle}{shape}):bf16[{n},{n}]{fill}"

    matrix = f"bf16[{n},{n}]"
    args = [f"M={n}", f"N={n}", f"K={n}"] + ([f"C={matrix}"] if kernel < 11 else [])
    grid, threads, shared = f"{BLOCKS}", 384, 147456
    if kernel == 1:
        grid, threads, shared = f"{n // 128},{n // 128}", 128, 0
        args += [f"A={matrix}:random", f"B={matrix}:random"]
    elif kernel == 2:
        grid, threads, shared = f"{(n // 128) ** 2}", 128, 0
        args += [tiles("tensorMapA", "128x64"), tiles("tensorMapB", "128x64")]
    elif kernel in (4, 5):
        grid, shared = (f"{(n // 128) * (n // 256)}", shared) if kernel == 4 else (grid, 98304)
        args += [tiles("tensorMapA", "128x64"), tiles("tensorMapB", "256x64"), "DB=null"]
    else:
        rank = "1x1x" if kernel == 6 else ""
        strides = "64x64x" if kernel == 6 else ""
        shape = f",shape={rank}{n // 64}x{n}x64,strides={strides}64x{n}"
        args += [tiles("tensorMapA", f"{rank}1x128x64", shape), tiles("tensorMapB", f"{rank}1x256x64", shape)]
        pair = 1 if kernel == 6 else 2
        order = folder / f"order_{pair}_{n}.npy"
        np.save(order, tile_order(n // (128 * pair), n // 256, BLOCKS // pair))
        args += [f"dspace=@{order.name}"]
        if kernel == 11:
            args += [tiles("tensorMapC", "2x256x64", f",shape={n // 64}x{n}x64,strides=64x{n}", "")]
            shared += (
                2 * 128 * 256 + 2 * 3 * 8 + 4 * SLOTS + 80
            )  # the tile of C, barriers, the order; rounded up to 128
    words = [
        f"--entry '{ENTRIES[kernel]}'",
        f"--grid {grid}",
        f"--block {threads}",
        f"--shared {shared}" if shared else "",
    ]
    return " ".join(filter(None, [*words, *(f"--arg {arg}" for arg in args), "--use_fast_math"]))


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout of fast.cu @a1bb7b2.")],
) -> None:
    """Write times.csv into the folder."""
    with (folder / "times.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["kernel", "file", "launch", "time_ms"])
        for n, times in TIMES_MS.items():
            for kernel, time in times.items():
                out.writerow([f"{kernel}_{n}", "matmul.cu", launch(kernel, n, folder), time])


if __name__ == "__main__":
    typer.run(main)
