"""FlashAttention 3's forward kernel on an H100 at 1500 MHz: 24 published times, as a table for `validate`.

    python benchmarks/flash_attention3.py flash-attention/ cutlass/ --out fa3     # CUTLASS as it pins it
    cd fa3 && drywarp validate times.csv --gpu h100 --clock 1500 --models pipeline,roofline,volkov --out rows.csv

The times are Nsight Compute's in FlashGPU-Sim/FlashGPU-Sim @580352d,
tests/baselines/fa3-sass-ccd2-20260914/results.csv, and the calls are those of that repository's tests: 2048 columns of
heads in all, zeros as inputs, no clusters. Builds a program for each kind (`flash_attention3.cu`; nvcc 13.3 was
measured; a minute and a half each), lets it compute a small case whose result it checks, and keeps the launch of each
case (`drywarp run --keep`). `--most-tokens` leaves longer sequences out.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

COLUMNS = 2048
"""Heads times columns of a head."""
TIMES_US = {
    (16, 512): (119.392, 88.16, 71.712, 65.312),
    (64, 512): (465.92, 336.45, 268.26, 244.06),
    (32, 1024): (804.06, 515.3, 457.6, 305.12),
    (16, 2048): (1240.0, 734.4, 842.72, 470.14),
    (8, 4096): (2350.0, 1300.0, 1610.0, 841.18),
    (4, 8192): (4380.0, 2330.0, 3110.0, 1590.0),
}
"""Measured µs by batch and tokens, in the order of `KINDS`."""
KINDS = ((64, False), (64, True), (128, False), (128, True))
"""Columns of a head, and whether the mask is causal."""
LARGEST_DIFFERENCE = 1e-3
SOURCE = Path(__file__).with_suffix(".cu")
FLAGS = (
    "-std=c++17 -O3 --expt-relaxed-constexpr --expt-extended-lambda --use_fast_math -lineinfo -DNDEBUG"
    " -gencode arch=compute_90a,code=sm_90a -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED -DCUTLASS_ENABLE_GDC_FOR_SM90"
).split()


def build(made: Path, head: int, causal: bool, nvcc: str, includes: list[Path], libraries: list[Path]) -> None:
    """Compile the program of a kind."""
    words = [nvcc, *FLAGS, f"-DHEAD={head}", f"-DCAUSAL_MASK={str(causal).lower()}"]
    words += [word for folder in includes for word in ("-I", str(folder))] + [f"-L{folder}" for folder in libraries]
    subprocess.run([*words, "-o", str(made), str(SOURCE)], check=True)


def checked(made: Path) -> None:
    """Compute a small case; exits where it is wrong."""
    words = [sys.executable, "-m", "drywarp", "run", "--gpu", "h100", "--", str(made), "1", "384", "1", "check"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    print(f"{made.name}: {' '.join(said)}")
    if float(said[-1]) > LARGEST_DIFFERENCE:
        raise typer.Exit(1)


def main(
    attention: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout of flash-attention.")],
    cutlass: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A checkout of CUTLASS.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    nvcc: str = "nvcc",
    include: Annotated[list[Path] | None, typer.Option(help="CUDA's C++ headers, if nvcc lacks them.")] = None,
    library: Annotated[list[Path] | None, typer.Option(help="The CUDA runtime, if nvcc does not find it.")] = None,
    most_tokens: int = 8192,
) -> None:
    """Write the kept launches and times.csv into a folder."""
    out.mkdir()
    includes = [*(include or []), attention / "hopper", cutlass / "include"]
    programs = [out / f"attention_{head}{'_causal' if causal else ''}" for head, causal in KINDS]
    for made, (head, causal) in zip(programs, KINDS, strict=True):
        build(made, head, causal, nvcc, includes, library or [])
        checked(made)
    with (out / "times.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["case", "file", "launch", "time_us"])
        for (batch, tokens), times in TIMES_US.items():
            for made, (head, causal), time_us in zip(programs, KINDS, times, strict=True):
                if tokens > most_tokens:
                    continue
                heads, folder = COLUMNS // head, out / f"{made.name}_{batch}x{tokens}"
                words = ["run", "--gpu", "h100", "--emulate-steps", "1", "--keep", str(folder), "--", str(made)]
                words += map(str, (batch, tokens, heads))
                subprocess.run([sys.executable, "-m", "drywarp", *words], check=True)
                (kept,) = folder.glob("*.launch")
                name = f"{heads} heads of {head}{', causal' if causal else ''}, {batch} x {tokens} tokens"
                table.writerow([name, str(kept.relative_to(out)), "", time_us])


if __name__ == "__main__":
    typer.run(main)
