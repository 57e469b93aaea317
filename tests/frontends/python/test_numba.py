"""Numba-CUDA kernels: compiled to PTX without a GPU, assembled, emulated, and held against NumPy."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import drywarp
from drywarp.analysis.settle import settle, stated_launch
from drywarp.errors import CompileError, ToolError, UsageError
from drywarp.execution.emulator import Emulation, emulate
from drywarp.frontends.load import load
from drywarp.kernel.kernel import Kernel

FILE = Path(__file__).parent / "numba_kernels.py"
LINES = FILE.read_text().split("\n")
RNG = np.random.default_rng(6)

needs_numba_cuda = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="Numba-CUDA is not installed: pip install 'drywarp[numba-cuda]'",
)


def run(
    entry: str, grid: Any, block: Any, args: Mapping[str, Any], arch: str = "sm_80", shared: int | None = None
) -> tuple[Emulation, Kernel]:
    said = settle(load(FILE, arch=arch, entry=entry), arch, grid=grid, block=block, args=args, shared=shared)
    launch = stated_launch(said.kernel, said.comment, said.grid, said.block, said.args, shared, None)
    return emulate(said.kernel, launch, blocks="all"), said.kernel


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@needs_numba_cuda
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("a", [2.5, "2.5", "float32(2.5)", np.float32(2.5)])
def test_arrays_are_expanded(arch: str, a: Any) -> None:
    x, y = normal(300), normal(300)
    done, kernel = run("saxpy", "cdiv(300,128)", 128, {"out": "f32[300]", "a": a, "x": x, "y": y}, arch)
    np.testing.assert_allclose(done.buffer("out.data"), 2.5 * x + y, rtol=1e-6, atol=1e-6)
    names = [p.name for p in kernel.parameters]
    parts = ["meminfo", "parent", "nitems", "itemsize", "data", "shape[0]", "strides[0]"]
    assert names == [*(f"out.{p}" for p in parts), "a", *(f"{v}.{p}" for v in "xy" for p in parts)]
    single = isinstance(a, np.float32) or "float32" in str(a)
    assert next(p.size for p in kernel.parameters if p.name == "a") == (4 if single else 8)


@needs_numba_cuda
def test_a_call_into_the_math_library() -> None:
    x = np.abs(normal(200))
    done, _ = run("waves", 2, 128, {"x": x, "out": np.zeros_like(x)})
    np.testing.assert_allclose(done.buffer("out.data"), np.sqrt(x) + np.sin(x), rtol=1e-4, atol=1e-5)


@needs_numba_cuda
def test_two_dimensions_and_shared_memory() -> None:
    a, b = normal(32, 48), normal(48, 32)
    done, kernel = run("matmul", (2, 2), "16,16", {"a": a, "b": b, "c": np.zeros((32, 32), np.float32)})
    np.testing.assert_allclose(done.buffer("c.data"), a @ b, rtol=1e-4, atol=1e-4)
    assert kernel.resources.shared_bytes == 2 * 16 * 16 * 4


@needs_numba_cuda
def test_dynamic_shared_memory_is_the_launchs() -> None:
    x = normal(512)
    done, _ = run("block_sums", 4, 128, {"x": x, "out": np.zeros(1, np.float32)}, shared=512)
    np.testing.assert_allclose(done.buffer("out.data"), [x.sum()], rtol=1e-4, atol=1e-4)


@needs_numba_cuda
def test_types_of_the_decorator_count() -> None:
    x, y = normal(64), np.arange(64, dtype=np.int32)
    done, kernel = run("stated", 1, 64, {"x": x, "n": 3})
    np.testing.assert_allclose(done.buffer("x.data"), x + 3, rtol=1e-6)
    assert kernel.parameters[-1].size == 4
    done, kernel = run("stated_too", 1, 64, {"x": "i32[64,2]", "y": y})
    np.testing.assert_array_equal(done.buffer("x.data")[:, 1], y)
    assert kernel.resources.registers <= 24
    with pytest.raises(UsageError, match=r"^stated: .*\(array\(float32, 1d, A\), int32\); the given arguments"):
        run("stated", 1, 64, {"x": "f64[64]", "n": 3})


@needs_numba_cuda
def test_source_lines_are_those_of_the_python_file() -> None:
    _, kernel = run("saxpy", 1, 32, {"out": "f32[32]", "a": 1.0, "x": "f32[32]", "y": "f32[32]"})
    assert {i.source.file for i in kernel.instructions if i.source} == {str(FILE)}
    loads = {LINES[i.source.line - 1].strip() for i in kernel.instructions if i.source and i.opcode == "LDG"}
    assert loads == {"out[i] = a * x[i] + y[i]"}


@needs_numba_cuda
def test_the_whole_way_from_the_python_api(monkeypatch: pytest.MonkeyPatch) -> None:
    args = {"out": "f32[65536]", "a": 2.0, "x": normal(1 << 16), "y": "f32[65536]:ones"}
    answer = drywarp.analyze(FILE, entry="saxpy", grid="cdiv(65536,256)", block=256, args=args)
    assert answer.memory.global_store_sectors == (1 << 16) * 4 // 32
    assert {"numba-cuda", "ptxas"} <= answer.versions.keys()
    stand_in = ModuleType("a_framework_that_is_not_there")
    stand_in.set_device = lambda number: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    spec = importlib.util.spec_from_file_location("numba_kernels_of_a_user", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    from drywarp.frontends.python.numba_kernel import offline

    with offline("sm_80", "a test"):
        spec.loader.exec_module(module)
    again = drywarp.analyze(module.saxpy, grid=256, block=256, args=args)
    assert again.time_s == answer.time_s
    assert again.lines[0].text


@needs_numba_cuda
@pytest.mark.parametrize(
    ("entry", "args", "message"),
    [
        ("saxpy", {"q": 1}, r"^saxpy: no parameter named 'q'; it takes: out, a, x, y$"),
        ("saxpy", {"a": 1.0}, r"^saxpy: no value for out, x, y; give each"),
        ("waves", {"x": "f32[4]", "out": "many"}, r"^waves: argument out: got 'many', expected a buffer or a number"),
        ("waves", {"x": "bf16[4]", "out": "f32[4]"}, r"^waves: argument x: Numba has no arrays of bf16"),
        ("wave", {"v": 1}, r"no kernel named 'wave'; it holds: saxpy, waves, matmul, "),
    ],
)
def test_launches_that_do_not_fit(entry: str, args: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(entry, 1, 32, args)


@needs_numba_cuda
def test_numbas_errors_are_one_line() -> None:
    with pytest.raises(
        CompileError, match=r"numba_kernels\.py:\d+: error: wrong: .*no_such_name.* is not def"
    ) as caught:
        run("wrong", 1, 32, {"x": "f32[4]"})
    assert "\n" not in str(caught.value)


def test_without_numba_cuda_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numba_cuda" else find(name))
    with pytest.raises(
        ToolError, match=r"numba_kernels\.py: a Numba-CUDA kernel needs Numba-CUDA: .*'drywarp\[numba-cuda\]'"
    ):
        load(FILE, arch="sm_80", entry="saxpy")
