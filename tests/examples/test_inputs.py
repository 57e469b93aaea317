"""The examples of other inputs than CUDA C++, emulated and held against NumPy."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drywarp.analysis.settle import settle, stated_launch
from drywarp.execution.emulator import emulate
from drywarp.frontends.load import load

FOLDER = Path(__file__).parents[2] / "examples"
RNG = np.random.default_rng(3)


def result(name: str, grid: Any, args: Mapping[str, Any], output: str, config: int | None = None) -> np.ndarray:
    """The example with the block of its own launch comment, on other data."""
    loaded = load(FOLDER / name, arch="sm_80")
    bare = replace(loaded, comment=replace(loaded.comment, arguments={}, config=None))
    said = settle(bare, "sm_80", grid=grid, args=args, config=config)
    launch = stated_launch(said.kernel, said.comment, said.grid, said.block, said.args, None, None)
    return emulate(said.kernel, launch, blocks="all").buffer(output)


def needs(module: str, extra: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"not installed: pip install 'drywarp[{extra}]'")


def test_every_example_is_tried() -> None:
    held = {path.name for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".cu"}
    spaces = {"tiled_matmul_sweep.toml"}  # tests/docs runs it
    assert held == {"axpy.ptx", "gelu_cupy.py", "softmax_triton.py", "transpose_numba.py"} | spaces


def test_ptx() -> None:
    x, y = (RNG.standard_normal(700).astype(np.float32) for _ in range(2))
    got = result("axpy.ptx", "cdiv(n,256)", {"x": x, "y": y, "a": 3, "n": 700}, "y")
    np.testing.assert_allclose(got, 3 * x + y, rtol=1e-5, atol=1e-6)


def test_source_of_a_cupy_program() -> None:
    x = RNG.standard_normal(700).astype(np.float32)
    got = result("gelu_cupy.py", "cdiv(n,256)", {"x": x, "y": np.zeros_like(x), "n": 700}, "y")
    exact = 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-6)


@needs("triton", "triton")
@pytest.mark.parametrize("config", [0, 1, 2])
def test_triton(config: int) -> None:
    x = RNG.standard_normal((5, 100)).astype(np.float32)
    args = {"x": x, "y": np.zeros_like(x), "rows": 5, "columns": 100, "BLOCK": 128}
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    got = result("softmax_triton.py", "rows", args, "y", config)
    np.testing.assert_allclose(got, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


@needs("numba_cuda", "numba-cuda")
def test_numba() -> None:
    a = RNG.standard_normal((64, 96)).astype(np.float32)
    got = result("transpose_numba.py", "3,2", {"a": a, "b": np.zeros((96, 64), np.float32)}, "b.data")
    np.testing.assert_array_equal(got, a.T)
