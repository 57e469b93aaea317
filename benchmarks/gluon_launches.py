"""Make the launches of a Gluon tutorial: what `gluon_tutorials.py` runs, with an interpreter that has Triton.

    drywarp run --gpu gb200 --keep DIR -- python benchmarks/gluon_launches.py TUTORIAL.py CASES.json

Each case is a function below with its arguments, and makes one launch. Nothing is filled: memory is zeros, of which
times of these kernels do not depend.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from triton._C.libtriton import nvidia
from triton.experimental.gluon import language as gl

nvidia.cublas.CublasLt = lambda workspace: None
"""Some tutorials compare with cuBLAS, which is no kernel of theirs."""


def empty(*shape: int, dtype: Any = torch.float16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="cuda")


def copy_scalars(t: Any, count: int, block: int) -> None:
    t.memcpy(empty(count, dtype=torch.float32), empty(count, dtype=torch.float32), block)


def copy_1d(t: Any, count: int, block: int, each: int) -> None:
    """Each thread has `each` elements side by side."""
    layout = gl.BlockedLayout([each], [32], [4], [0])
    t.memcpy_1d_impl(empty(count, dtype=torch.float32), empty(count, dtype=torch.float32), block, layout, 4)


def copy_2d(t: Any, rows: int, columns: int, source: str, target: str, layout: str) -> None:
    """Tensors are `rows`, `columns` (transposed) or `every_second` row; `layout` is by rows, by columns, or by both."""

    def tensor(kind: str) -> torch.Tensor:
        if kind == "columns":
            return empty(columns, rows, dtype=torch.float32).T
        if kind.startswith("every_second"):
            return empty(2 * rows, columns, dtype=torch.float32)[::2]
        return empty(rows, columns, dtype=torch.float32)

    a, b = tensor(source), tensor(target)
    if layout == "both":
        t.memcpy_2d_inout(a, b)
    elif layout == "rows":
        t.memcpy_2d_impl(a, b, 1, 2048, gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0]), 4)
    else:
        if layout == "columns of transposed":
            a, b = a.T, b.T
        t.memcpy_2d_impl(a, b, 2048, 1, gl.BlockedLayout([1, 1], [32, 1], [4, 1], [0, 1]), 4)


def add(t: Any, function: str, **keys: int) -> None:
    """A sum of two matrices of 32768 x 32768."""
    a, b, c = (empty(32768, 32768, dtype=torch.float32) for _ in range(3))
    more: dict[str, Any] = dict(keys)
    if function == "elementwise_add_cpasync":
        more["smem_layout"] = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[1, 0])
    module = t if hasattr(t, function) else t.t3
    getattr(module, function)(a, b, c, **more)


def product(t: Any, function: str, m: int, n: int, k: int, group: int | None = None, **keys: Any) -> None:
    """A product of halves; `group` chooses the scheduler of persistent blocks, 0 the plain one."""
    if group is not None:
        t7 = getattr(t, "t7", t)
        keys["SchedulerImpl"] = t7.GroupedPersistentTileScheduler(group) if group else t7.PersistentTileScheduler
    getattr(t, function)(empty(m, k), empty(k, n), empty(m, n), **keys)


def scaled(t: Any, function: str, formats: str, size: int) -> None:
    """A product of small floats with a scale for each 16 or 32 of a row."""
    names = formats.split(" x ")
    vector, tile_m, tile_n = (16 if names[0] == "nvfp4" else 32), 128, 256
    tile_k = 256 if all("fp4" in name for name in names) else 128
    values, scales = [], []
    for name, tile in zip(names, (tile_m, tile_n), strict=True):
        bits = 4 if "fp4" in name else 8
        values.append(empty(size, size * bits // 8, dtype=torch.uint8 if bits == 4 else torch.float8_e4m3fn))
        of_scales = torch.float8_e4m3fn if name == "nvfp4" else torch.uint8
        columns, slices = size // vector, tile_k // vector
        shapes = {"simple": (size, columns), "contig": (size // tile, columns // slices, tile, slices)}
        shape = next((s for key, s in shapes.items() if key in function), (size // 128, columns // 4, 32, 4, 4))
        scales.append(empty(*shape, dtype=of_scales))
    call = getattr(t, function)
    if function.endswith("kernel"):
        t.mma_scaled(*values, *scales, vector, call)
    else:
        call(*values, *scales, vector, BLOCK_M=tile_m, BLOCK_N=tile_n, BLOCK_K=tile_k)


def softmax(t: Any, rows: int, columns: int) -> None:
    t.multicta_softmax_f32(empty(rows, columns, dtype=torch.float32), empty(rows, columns, dtype=torch.float32))


def pairs(t: Any, m: int, n: int, k: int, **keys: Any) -> None:
    """A product by pairs of blocks."""
    keys["cga_layout"] = tuple(map(tuple, keys["cga_layout"]))
    t.matmul_multicta(empty(m, k), empty(k, n), out=empty(m, n), **keys)


def main() -> None:
    """Make the launches of the cases in turn."""
    tutorial, cases = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    sys.path.insert(0, str(tutorial.parent))
    sys.argv[1:] = []
    module = importlib.import_module(tutorial.stem)
    for case in cases:
        globals()[case.pop("call")](module, **case)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
