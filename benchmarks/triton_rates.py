"""Published rates of Triton's tutorials on an A100, as tables for `validate`.

    python benchmarks/triton_rates.py triton/python/tutorials --out rates   # triton-lang/triton; needs drywarp[triton]
    sh rates/matmul.sh && sh rates/attention.sh                             # about an hour on two cores

The tutorials' pages (triton-lang.org) show what the project's documentation job measured: TFLOP/s of products of square
matrices of halves (03), and of attention, forward, with 4 batches of 32 heads of 64 columns in halves (06). The job
runs on an A100 (`runs-on: nvidia-a100` in .github/workflows/documentation.yml). The tutorials measure all of their
configurations and take the fastest; here each row takes the one that is predicted to be the fastest. Times are those
between two events around a launch, with the L2 cleared before it (`triton.testing.do_bench`).
"""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Annotated

import typer

BATCHES, HEADS, COLUMNS = 4, 32, 64
MATMUL = (
    4.096, 12.288, 26.2144, 42.6667, 68.0566, 87.808, 99.8644, 129.8254, 163.84, 132.9701, 157.2864,
    179.9782, 204.3532, 168.5854, 190.6502, 211.8279, 225.3573, 203.5831, 221.4054, 198.6024, 212.7522, 222.4823,
    213.6721, 218.43, 206.8715, 219.0803, 225.3519, 217.6413, 212.2687, 217.8999, 220.0291,
)  # fmt: skip
"""TFLOP/s of products of n × n matrices, n = 256, 384, … 4096."""
ATTENTION = {
    True: (111.678584, 136.477584, 150.000308, 160.366887, 164.262333),
    False: (141.414536, 159.680652, 160.625979, 163.402601, 166.629837),
}
"""TFLOP/s by whether there is a causal mask, which halves the operations, for 1,024, 2,048, … 16,384 tokens."""


def table(path: Path, names: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Write a table of measurements."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow((*names, "time_us"))
        writer.writerows(rows)


def command(name: str, kernel: Path, entry: str, grid: str, arguments: dict[str, object]) -> str:
    """The command that predicts a table."""
    words = ["drywarp", "validate", f"{name}.csv", "--gpu", "a100-sxm4-40gb", "--kernel", str(kernel), "--entry", entry]
    words += ["--grid", grid, "--config", "best", "--macros", ","]
    words += [word for argument, value in arguments.items() for word in ("--arg", f"{argument}={value}")]
    words += ["--models", "pipeline,roofline,volkov", "--time-limit", "3600", "--out", f"{name}_rows.csv"]
    return f'cd "$(dirname "$0")" && {shlex.join(words)}\n'


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Triton's tutorials.")],
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("rates"),
) -> None:
    """Write the tables, and beside each the command that predicts it."""
    out.mkdir(parents=True, exist_ok=True)
    sizes = range(256, 4097, 128)
    rows: list[tuple[object, ...]] = [(n, f"{2e-6 * n**3 / rate:.5g}") for n, rate in zip(sizes, MATMUL, strict=True)]
    table(out / "matmul.csv", ("n",), rows)
    strides = {"stride_am": "n", "stride_ak": 1, "stride_bk": "n", "stride_bn": 1, "stride_cm": "n", "stride_cn": 1}
    matrices = {"a_ptr": "f16[n,n]:random", "b_ptr": "f16[n,n]:random", "c_ptr": "f16[n,n]"}
    arguments: dict[str, object] = {**matrices, **dict.fromkeys("MNK", "n"), **strides, "ACTIVATION": ""}
    grid = "cdiv(M,BLOCK_SIZE_M)*cdiv(N,BLOCK_SIZE_N)"
    kernel = folder.resolve() / "03-matrix-multiplication.py"
    (out / "matmul.sh").write_text(command("matmul", kernel, "matmul_kernel", grid, arguments), encoding="utf-8")

    heads = BATCHES * HEADS
    rows = []
    for causal, rates in ATTENTION.items():
        for tokens, rate in zip((1024, 2048, 4096, 8192, 16384), rates, strict=True):
            operations = 4 * heads * tokens**2 * COLUMNS / (2 if causal else 1)
            rows.append((tokens, 3 if causal else 1, f"{1e-6 * operations / rate:.5g}"))
    table(out / "attention.csv", ("tokens", "stage"), rows)
    every = f"f16[{heads}*tokens,{COLUMNS}]"
    arguments = dict.fromkeys(("desc_q", "desc_k", "desc_v"), f"{every}:random") | {
        "desc_o": every, "sm_scale": 0.5, "M": f"f32[{heads}*tokens]", "Z": BATCHES, "H": HEADS, "N_CTX": "tokens",
        "HEAD_DIM": COLUMNS, "FP8_OUTPUT": False, "STAGE": "stage", "warp_specialize": False, "IS_HOPPER": False,
    }  # fmt: skip
    kernel = folder.resolve() / "06-fused-attention.py"
    grid = f"cdiv(N_CTX,BLOCK_M),{heads}"
    (out / "attention.sh").write_text(command("attention", kernel, "_attn_fwd", grid, arguments), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
