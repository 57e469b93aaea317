"""Kernels of Triton's tutorials: what compiles, runs and is predicted, and what is refused and why.

    python benchmarks/triton_tutorials.py triton/python/tutorials      # triton-lang/triton; needs drywarp[triton]

Prints a table in Markdown, a row for each kernel and GPU: the predicted time of the first configuration, or drywarp's
message.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

SIDE = 2048
MATRICES = {
    "a_ptr": f"f16[{SIDE},{SIDE}]:random",
    "b_ptr": f"f16[{SIDE},{SIDE}]:random",
    "c_ptr": f"f16[{SIDE},{SIDE}]",
}
EXTENTS = dict.fromkeys("MNK", SIDE)
STRIDES = {"stride_am": SIDE, "stride_ak": 1, "stride_bk": SIDE, "stride_bn": 1, "stride_cm": SIDE, "stride_cn": 1}
TILES = f"cdiv({SIDE},BLOCK_SIZE_M)*cdiv({SIDE},BLOCK_SIZE_N)"
ROWS = f"f16[{SIDE},{SIDE}]"
HEADS, TOKENS, COLUMNS = 16, 1024, 64
TOKENS_OF_ALL = f"f16[{HEADS * TOKENS},{COLUMNS}]"
NORM = {
    "X": f"{ROWS}:random",
    "W": f"f16[{SIDE}]",
    "Mean": f"f32[{SIDE}]",
    "Rstd": f"f32[{SIDE}]",
    "stride": SIDE,
    "N": SIDE,
}
ATTENTION = {
    "desc_q": f"{TOKENS_OF_ALL}:random",
    "desc_k": f"{TOKENS_OF_ALL}:random",
    "desc_v": f"{TOKENS_OF_ALL}:random",
}

KERNELS: tuple[tuple[str, str, str, dict[str, object]], ...] = (
    ("02-fused-softmax.py", "softmax_kernel", "432", {
        "output_ptr": f"f32[{SIDE},1024]", "input_ptr": f"f32[{SIDE},1024]:random", "input_row_stride": 1024,
        "output_row_stride": 1024, "n_rows": SIDE, "n_cols": 1024, "BLOCK_SIZE": 1024, "num_stages": 4,
        "num_warps": 8}),
    ("03-matrix-multiplication.py", "matmul_kernel", TILES, {**MATRICES, **EXTENTS, **STRIDES, "ACTIVATION": ""}),
    ("05-layer-norm.py", "_layer_norm_fwd_fused", f"{SIDE}", {
        **NORM, "Y": ROWS, "B": f"f16[{SIDE}]", "eps": 1e-5, "BLOCK_SIZE": SIDE, "num_warps": 8}),
    ("05-layer-norm.py", "_layer_norm_bwd_dx_fused", f"{SIDE}", {
        **NORM, "DX": ROWS, "DY": f"{ROWS}:random", "DW": f"f16[128,{SIDE}]", "DB": f"f16[128,{SIDE}]",
        "Lock": "i32[256]", "GROUP_SIZE_M": 128, "BLOCK_SIZE_N": SIDE, "num_warps": 8}),
    ("05-layer-norm.py", "_layer_norm_bwd_dwdb", f"{SIDE // 128}", {
        "DW": f"f16[128,{SIDE}]", "DB": f"f16[128,{SIDE}]", "FINAL_DW": f"f16[{SIDE}]", "FINAL_DB": f"f16[{SIDE}]",
        "M": 128, "N": SIDE, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 128}),
    ("06-fused-attention.py", "_attn_fwd", f"cdiv({TOKENS},BLOCK_M),{HEADS}", {
        **ATTENTION, "sm_scale": 0.5, "M": f"f32[{HEADS * TOKENS}]", "Z": 1, "H": HEADS, "desc_o": TOKENS_OF_ALL,
        "N_CTX": TOKENS, "HEAD_DIM": COLUMNS, "FP8_OUTPUT": False, "STAGE": 1, "warp_specialize": False,
        "IS_HOPPER": False}),
    ("09-persistent-matmul.py", "matmul_kernel", TILES, {**MATRICES, **EXTENTS, **STRIDES}),
    ("09-persistent-matmul.py", "matmul_kernel_persistent", "min(NUM_SMS,64)", {
        **MATRICES, **EXTENTS, **STRIDES, "NUM_SMS": 64}),
    ("09-persistent-matmul.py", "matmul_kernel_descriptor_persistent", "min(NUM_SMS,64)", {
        **MATRICES, **EXTENTS, "NUM_SMS": 64, "WARP_SPECIALIZE": False, "FLATTEN": True}),
    ("09-persistent-matmul.py", "matmul_kernel_tma", TILES, {
        "a_desc": MATRICES["a_ptr"], "b_desc": MATRICES["b_ptr"], "c_desc": MATRICES["c_ptr"], **EXTENTS,
        "FP8_OUTPUT": False, "WARP_SPECIALIZE": False}),
    ("09-persistent-matmul.py", "matmul_kernel", TILES, {
        **MATRICES, "a_ptr": f"e4m3[{SIDE},{SIDE}]", "b_ptr": f"e4m3[{SIDE},{SIDE}]", **EXTENTS, **STRIDES}),
)  # fmt: skip
"""File, kernel, grid and arguments of each launch."""


def outcome(path: Path, entry: str, grid: str, arguments: dict[str, object], gpu: str, configured: bool) -> str:
    """The predicted time and limiter, or the message of a refusal."""
    words = [
        sys.executable,
        "-m",
        "drywarp",
        "analyze",
        str(path),
        "--entry",
        entry,
        "--grid",
        grid,
        "--gpu",
        gpu,
        "--json",
    ]
    words += [word for name, value in arguments.items() for word in ("--arg", f"{name}={value}")]
    if configured:
        words += ["--config", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("drywarp: ")]
        return f"refused: {said[-1].removeprefix('drywarp: ') if said else done.stderr.strip()}"
    told = json.loads(done.stdout)
    return f"{told['prediction']['time_s'] * 1e6:.3g} µs, {told['prediction']['limiter']}"


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Triton's tutorials.")],
    gpu: Annotated[list[str] | None, typer.Option(help="GPUs; default: h100 and a100.")] = None,
    only: Annotated[str, typer.Option(help="Only kernels whose name has this in it.")] = "",
) -> None:
    """Analyse every kernel on every GPU."""
    print("| tutorial | kernel | GPU | outcome |\n|---|---|---|---|")
    for name, entry, grid, arguments in KERNELS:
        if only not in entry:
            continue
        kind = "fp8 " if "e4m3" in str(arguments) else ""
        configured = "autotune" in (folder / name).read_text(encoding="utf-8")
        for one in gpu or ("h100", "a100"):
            told = outcome(folder / name, entry, grid, arguments, one, configured)
            print(f"| {name} | {kind}`{entry}` | {one} | {told.replace(str(folder) + '/', '')} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
