"""Triton kernels: compiled without a GPU, emulated, and held against NumPy."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drywarp
from drywarp.analysis.settle import Settled, settle, stated_launch
from drywarp.errors import CompileError, ToolError, UsageError
from drywarp.execution.emulator import Emulation, emulate
from drywarp.frontends.load import load

FILE = Path(__file__).parent / "triton_kernels.py"
LINES = FILE.read_text().split("\n")
ARCHES = ["sm_80", "sm_86", "sm_89"]
RNG = np.random.default_rng(5)

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed: pip install 'drywarp[triton]'"
)


def settled(entry: str, grid: Any, args: Mapping[str, Any], arch: str = "sm_80", config: int | None = None) -> Settled:
    return settle(load(FILE, arch=arch, entry=entry), arch, grid=grid, args=args, config=config)


def run(entry: str, grid: Any, args: Mapping[str, Any], arch: str = "sm_80", config: int | None = None) -> Emulation:
    said = settled(entry, grid, args, arch, config)
    launch = stated_launch(said.kernel, said.comment, said.grid, said.block, said.args, None, None)
    return emulate(said.kernel, launch, blocks="all")


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


@needs_triton
@pytest.mark.parametrize("arch", [*ARCHES, "sm_75", "sm_90"])
def test_addition(arch: str) -> None:
    x, y = normal(1000), normal(1000)
    args = {"x": x, "y": y, "out": np.zeros(1000, np.float32), "n": 900, "BLOCK": 256}
    got = run("add", "cdiv(n, BLOCK)", args, arch).buffer("out")
    np.testing.assert_allclose(got[:900], (x + 6 * y)[:900], rtol=1e-5, atol=1e-6)
    assert not got[900:].any()


@needs_triton
@pytest.mark.parametrize("arch", ARCHES)
def test_softmax(arch: str) -> None:
    x = normal(7, 300)
    args = {"x": x, "out": np.zeros_like(x), "stride": 300, "columns": 300, "BLOCK": 512, "num_warps": 2}
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    got = run("softmax", 7, args, arch).buffer("out")
    np.testing.assert_allclose(got, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


@needs_triton
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("config", "k"), [(0, 64), (1, 50)])
def test_matrix_product_on_tensor_cores(arch: str, config: int, k: int) -> None:
    m, n = 70, 64
    a, b = normal(m, k, dtype="float16"), normal(k, n, dtype="float16")
    args = {"a": a, "b": b, "c": np.zeros((m, n), np.float16), "m": m, "n": n, "k": k, "ACT": "relu"}
    done = run("matmul", "cdiv(m, M), cdiv(n, N)", args, arch, config)
    exact = np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)
    np.testing.assert_allclose(done.buffer("c").astype(np.float32), exact, rtol=2e-3, atol=1e-2)
    said = settled("matmul", "cdiv(m, M), cdiv(n, N)", args, arch, config)
    assert said.block == (64, 1, 1)
    assert any(i.opcode == "HMMA" for i in said.kernel.instructions)


@needs_triton
@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_blocks_of_a_cluster_share_a_program(blocks: int) -> None:
    n = 128
    a, b = normal(n, n, dtype="float16"), normal(n, n, dtype="float16")
    args = {"a": a, "b": b, "c": np.zeros((n, n), np.float32), "n": n, "M": 128, "N": 64, "K": 32, "num_ctas": blocks}
    said = settled("product", "cdiv(n, M) * cdiv(n, N)", args, "sm_90")
    launch = stated_launch(said.kernel, said.comment, said.grid, said.block, said.args, None, None)
    assert (launch.grid, launch.cluster) == ((2 * blocks, 1, 1), (blocks, 1, 1))
    done = emulate(said.kernel, launch, blocks="all")
    np.testing.assert_allclose(done.buffer("c"), a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=1e-2)


@needs_triton
def test_atomics() -> None:
    x = normal(5000)
    got = run("total", "cdiv(n, BLOCK)", {"x": x, "sums": np.zeros(1, np.float32), "n": 5000, "BLOCK": 1024})
    np.testing.assert_allclose(got.buffer("sums"), x.sum(), rtol=1e-3, atol=1e-3)


@needs_triton
def test_types_and_constants_as_a_user_writes_them() -> None:
    x = RNG.integers(0, 9, 16).astype(np.int32)
    texts = {"n": "5", "scale": "2", "flag": "true", "TYPE": "tl.float16"}
    got = run("typed", "16", {"x": x, "out": "f32[16]", **texts})
    np.testing.assert_array_equal(got.buffer("out"), 2 * x + 5)
    kernel = settled("typed", 16, {"x": x, "out": "f32[16]", **texts}).kernel
    assert [(p.name, p.type, p.pointer) for p in kernel.parameters][:5] == [
        ("x", "int", True),
        ("out", "float", True),
        ("n", "long long", False),
        ("scale", "float", False),
        ("flag", "bool", False),
    ]


@needs_triton
def test_arguments_that_triton_takes_for_constants_leave_the_signature() -> None:
    args = {"x": "f32[1024]", "out": "f32[1024]", "stride": 1, "columns": 16, "BLOCK": 16}
    names = [p.name for p in settled("softmax", 1, args).kernel.parameters]
    assert names[:3] == ["x", "out", "columns"]
    assert settled("softmax", 1, args).args is not None


@needs_triton
def test_multiples_of_sixteen_are_specialised_as_in_a_launch() -> None:
    def vectorised(n: int) -> bool:
        args = {"x": "f32[4096]", "y": "f32[4096]", "out": "f32[4096]", "n": n, "BLOCK": 1024}
        return any("128" in i.modifiers for i in settled("add", 4, args).kernel.instructions if i.opcode == "LDG")

    assert vectorised(4096)
    assert not vectorised(4001)


@needs_triton
def test_source_lines_are_those_of_the_python_file() -> None:
    args = {"x": "f32[64,64]", "out": "f32[64,64]", "stride": 64, "columns": 64, "BLOCK": 64}
    kernel = settled("softmax", 64, args).kernel
    places = {i.source for i in kernel.instructions if i.source}
    elsewhere = {place.file for place in places} - {str(FILE)}
    (load_line,) = {LINES[i.source.line - 1].strip() for i in kernel.instructions if i.source and i.opcode == "LDG"}
    assert load_line.startswith("values = tl.load(")
    if elsewhere:
        # Triton before 3.9 does not say who called its library.
        assert all("/triton/language/" in file for file in elsewhere)
        return
    # What the maximum does inside Triton's own library belongs to the line that asks for it.
    shuffles = {LINES[i.source.line - 1].strip() for i in kernel.instructions if i.source and i.opcode == "SHFL"}
    assert any(line.startswith("powers = ") for line in shuffles)


@needs_triton
def test_the_whole_way_from_the_python_api() -> None:
    args = {"x": normal(1 << 16), "y": "f32[65536]:ones", "out": "f32[65536]", "n": 1 << 16, "BLOCK": 256}
    answer = drywarp.analyze(FILE, entry="add", grid=lambda meta: (meta["n"] // meta["BLOCK"],), args=args)
    assert (answer.grid, answer.block) == ((256, 1, 1), (128, 1, 1))
    assert answer.kernel == "add"
    assert answer.versions["triton"]
    assert answer.memory.global_store_sectors == (1 << 16) * 4 // 32
    assert {line.file for line in answer.lines} == {str(FILE)}
    document = json.loads(json.dumps(answer.to_dict()))
    assert document["launch"]["arguments"]["n"] == "65536"


@needs_triton
def test_a_function_object_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    stand_in = ModuleType("a_framework_that_is_not_there")
    stand_in.set_device = lambda number: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    from triton.runtime import driver

    before = dict(vars(driver))
    spec = importlib.util.spec_from_file_location("triton_kernels_of_a_user", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # The file asks for the GPU's kind while it is imported, which a user's machine has or a test gives.
    from drywarp.frontends.python.triton_values import offline

    with offline("sm_80", "a test"):
        spec.loader.exec_module(module)
    args = {"x": "f32[4096]", "y": "f32[4096]", "out": "f32[4096]", "n": 4096, "BLOCK": 256}
    answer = drywarp.analyze(module.add, gpu="a100", grid=16, args=args)
    assert answer.source_file.endswith("triton_kernels.py")
    assert answer.lines[0].text
    sizes = {"a": "f16[64,64]", "b": "f16[64,64]", "c": "f16[64,64]", "m": 64, "n": 64, "k": 64, "ACT": ""}
    tuned = drywarp.analyze(module.matmul, gpu="a100", grid="cdiv(m,M),cdiv(n,N)", args=sizes, config="best")
    assert tuned.notes[0].startswith("configuration ")
    assert "is predicted to be fastest: M=" in tuned.notes[0]
    assert vars(driver) == before


MATMUL = {"a": "f16[64,64]", "b": "f16[64,64]", "c": "f16[64,64]", "m": 64, "n": 64, "k": 64, "ACT": ""}
ADD = {"x": "f32[64]", "y": "f32[64]", "out": "f32[64]", "n": 64, "BLOCK": 64}


@needs_triton
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: settled("matmul", 1, MATMUL),
            r"autotuned over 2 configurations; choose one .* 0: M=32, N=32, K=16, .*; 1: M",
        ),
        (lambda: settled("matmul", 1, MATMUL, config=2), r"no configuration 2; matmul has 0 to 1"),
        (
            lambda: settled("matmul", 1, {**MATMUL, "M": 64}, config=0),
            r"matmul: M is already set by its configurations",
        ),
        (lambda: settled("add", 1, {**ADD, "m": 1}), r"^add: no parameter named 'm'; it takes: x, y, out, n, BLOCK \("),
        (lambda: settled("add", 1, {"x": "f32[64]"}), r"^add: no value for y, out, n, BLOCK; give each"),
        (lambda: settled("add", 1, {**ADD, "n": "many"}), r"^add: argument n: got 'many', expected a buffer, a number"),
        (
            lambda: settled("add", 1, {**ADD, "BLOCK": "f32[3]"}),
            r"^add: argument BLOCK: got a buffer, expected a const",
        ),
        (lambda: settled("typed", 1, {"TYPE": "tl.float17"}), r"triton\.language has no 'float17'"),
        (lambda: settled("add", "cdiv(k,BLOCK)", ADD), r"^grid 'cdiv\(k,BLOCK\)': unknown name 'k'; known: "),
        (
            lambda: settled("nothing", 1, ADD),
            r"no kernel named 'nothing'; it holds: add, softmax, matmul, typed, total, ",
        ),
        (lambda: load(FILE, arch="sm_80"), r"several kernels; name one with --entry: add, softmax"),
    ],
)
def test_launches_that_do_not_fit(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@needs_triton
@pytest.mark.parametrize(
    ("entry", "args", "line", "message"),
    [
        ("wrong_name", {"x": "f32[64]", "BLOCK": 64}, "tl.store(x + i, no_such_name)", "no_such_name is not defined"),
        ("wrong_inside", {"x": "f32[64]", "BLOCK": 64}, "tl.static_assert(size", "a small size"),
        ("add", {**ADD, "BLOCK": 60}, "i = tl.program_id(0) * BLOCK", "must be a power of 2"),
        ("add", {**ADD, "num_warps": 3}, "", "num_warps must be a power of 2"),
    ],
)
def test_tritons_errors_name_the_line(entry: str, args: Mapping[str, Any], line: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        settled(entry, 1, args)
    place, _, reason = str(caught.value).partition(": error: ")
    assert message in reason
    assert "\n" not in reason
    if line:
        assert place.startswith(f"{FILE}:")
        assert line in LINES[int(place.rpartition(":")[2]) - 1]
    else:
        assert place == str(FILE)


@needs_triton
def test_block_and_shared_memory_are_tritons() -> None:
    for said, message in (({"block": 64}, "add has blocks of 128 threads"), ({"shared": 9}, "bytes of shared memory")):
        with pytest.raises(UsageError, match=message):
            drywarp.analyze(FILE, entry="add", grid=1, args=ADD, **said)  # type: ignore[arg-type]


@needs_triton
def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noisy.py"
    path.write_text(
        "import triton, triton.language as tl\nprint('hello')\nSIZE = print('size') or 4\n"
        "@triton.jit\ndef k(x, N: tl.constexpr = SIZE):\n    tl.store(x, N)\n"
    )
    answer = drywarp.analyze(path, grid=1, args={"x": "i32[4]"})
    assert answer.kernel == "k"
    assert tuple(capfd.readouterr()) == ("", "")


def test_without_triton_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "triton" else find(name))
    with pytest.raises(
        ToolError, match=r"triton_kernels\.py: a Triton kernel needs Triton: pip install 'drywarp\[triton\]'"
    ):
        load(FILE, arch="sm_80", entry="add")


def test_importing_drywarp_imports_no_triton() -> None:
    import subprocess
    import sys

    code = (
        "import sys, drywarp, drywarp.analysis.stages; "
        "sys.exit(any(m in sys.modules for m in ('triton', 'numba_cuda', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_triton
@pytest.mark.parametrize("config", ["best", "which"])
def test_rows_of_a_table_take_a_configuration(config: str, tmp_path: Path) -> None:
    """A number from a column, or the one that is predicted to be the fastest; the grid has its constants."""
    (tmp_path / "measured.csv").write_text("n,which,time_us\n128,1,5\n", encoding="utf-8")
    args = {"a": "f16[n,n]", "b": "f16[n,n]", "c": "f16[n,n]", "m": "n", "n": "n", "k": "n", "ACT": ""}
    report = drywarp.validate(
        tmp_path / "measured.csv", kernel=FILE, entry="matmul", grid="cdiv(m,M),cdiv({n},N)", args=args, macros=[],
        config=config, models=["pipeline"], jobs=1,
    )  # fmt: skip
    whole = {**dict.fromkeys("abc", "f16[128,128]"), **dict.fromkeys("mnk", 128), "ACT": ""}
    one = drywarp.analyze(
        FILE, entry="matmul", grid="cdiv(m,M),cdiv(n,N)", args=whole, config=config.replace("which", "1")
    )
    assert report.rows[0].times["pipeline"] == pytest.approx(one.time_s)
