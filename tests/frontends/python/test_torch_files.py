"""Python files that import torch and modules of their own project: run by need, without torch, for the named GPU."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from drywarp.analysis.settle import settle, stated_launch
from drywarp.errors import CompileError, InputFileError, UsageError
from drywarp.execution.emulator import emulate
from drywarp.frontends.load import load
from drywarp.frontends.python.execution import Surroundings
from drywarp.frontends.python.isolation import Unknown, UnknownValue
from drywarp.hardware import load_gpu

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed: pip install 'drywarp[triton]'"
)


def written(folder: Path, files: Mapping[str, str] | None = None, **named: str) -> Path:
    """Files of a folder, by path or by name alone; the path of the last one."""
    for name, text in {**(files or {}), **{f"{name}.py": text for name, text in named.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path


def defined(path: Path, name: str = "k", gpu: str | None = "a100") -> Any:
    return Surroundings(path, ast.parse(path.read_text()), load_gpu(gpu) if gpu else None).kernel(name)


def value(folder: Path, text: str, gpu: str | None = "a100") -> Any:
    return defined(written(folder, program=f"import torch\nk = {text}\n"), gpu=gpu)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.cuda.get_device_capability()", (8, 0)),
        ("torch.cuda.get_device_properties(0).multi_processor_count", 108),
        ("torch.cuda.get_device_properties('cuda').shared_memory_per_block_optin", 166912),
        ("getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), 'warp_size', 64)", 32),
        ("'A100' in torch.cuda.get_device_name(0)", True),
        ("(torch.cuda.is_available(), torch.cuda.device_count(), torch.xpu.is_available())", (True, 1, False)),
        ("(hasattr(torch, 'npu'), torch.version.hip)", (False, None)),
        ("(torch.are_deterministic_algorithms_enabled(), torch.is_autocast_enabled('cuda'))", (False, False)),
        ("torch.finfo(torch.float16).max", 65504.0),
        ("torch.finfo(torch.bfloat16).eps", 0.0078125),
        ("torch.iinfo(torch.int8).min", -128),
        ("{torch.float16: 'h', torch.float32: 's'}[torch.half]", "h"),
        ("str(torch.bfloat16)", "torch.bfloat16"),
        ("torch.device('cuda', 0).type", "cuda"),
        ("isinstance(3, torch.Tensor)", False),
    ],
)
def test_the_stand_in_answers_for_the_named_gpu(tmp_path: Path, text: str, expected: object) -> None:
    assert value(tmp_path, text) == expected


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_limits_of_types_are_those_of_numpy(tmp_path: Path, kind: str) -> None:
    found, exact = value(tmp_path, f"torch.finfo(torch.{kind})"), np.finfo(kind)
    assert (found.min, found.max, found.eps, found.tiny) == (exact.min, exact.max, exact.eps, exact.tiny)
    assert found.bits == exact.bits


def test_each_gpu_gets_its_own_answer(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        program="import torch\nif torch.cuda.get_device_capability() >= (9, 0):\n    k = 'new'\nelse:\n    k = 'old'\n",
    )
    assert [defined(path, gpu=gpu) for gpu in ("a100", "h100", "v100")] == ["old", "new", "old"]


WRAPPED = """
import functools
import torch, torch.nn.functional as F
from torch import Tensor, nn
from torch.amp import custom_fwd

def guarded(function):
    @functools.wraps(function)
    def inner(*values): return function(*values)
    return inner

class Layer(nn.Module): WIDTH = 8
class Step(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, x: Tensor) -> "torch.Tensor": return x

@torch.library.custom_op("mine::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor: return x + 1

@torch.compile
@guarded
@torch.no_grad()
@torch.compiler.disable(recursive=False)
def k(x): return op(x) * Layer.WIDTH + Step.forward(None, 1)
"""


def test_decorators_and_base_classes_stand_aside(tmp_path: Path) -> None:
    assert defined(written(tmp_path, program=WRAPPED))(2) == 25


def test_what_only_torch_could_tell_is_named_and_not_guessed(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        program="import torch\n"
        "try:\n    SIZE = 4 if torch.cuda.memory_allocated() > 9 else 8\nexcept Exception:\n    SIZE = 16\n"
        "USED = SIZE * 2\nFREE = 3\nk = USED + 1\ndef other(): return FREE\n",
    )
    assert defined(path, "other")() == 3
    with pytest.raises(
        InputFileError, match=r"program\.py:3: kernel k needs torch\.cuda\.memory_allocated\(…\), which on"
    ):
        defined(path)
    with pytest.raises(InputFileError, match=r"kernel k needs torch\.cuda\.get_device_name\(…\), which only PyTorch"):
        value(tmp_path, "torch.cuda.get_device_name()", gpu=None)


def test_unknown_values_pass_through_but_decide_nothing() -> None:
    unknown = Unknown("a.b", "which is far away")
    assert repr((unknown.c(1)[2] + 3 > 4) | 5) == "<unknown: a.b.c(…)[…]>"
    assert unknown.said("f.py:1", "k") == "f.py:1: kernel k needs a.b, which is far away"

    class Derived(unknown):  # type: ignore[misc, valid-type]
        pass

    assert Derived().__class__.__mro__ == (Derived, object)
    for decision in (bool, int, float, len, list, str, lambda u: u == 1 or 2, lambda u: 1 in u, lambda u: [1][u]):
        with pytest.raises(UnknownValue, match=r"needs a\.b, which is far away"):
            decision(unknown)


def test_an_absent_module_matters_only_where_its_value_does(tmp_path: Path) -> None:
    text = (
        "import absent_einops\nfrom absent_einops.layers import rearrange as turn\n"
        "try:\n    import absent_fused\nexcept ImportError:\n    absent_fused = None\n"
        "LIMIT = absent_einops.limit(3)\n"
        "def flat(x): return turn(x)\n"
        "def k(): return flat, absent_fused, LIMIT\n"
        "@absent_einops.register\ndef bad(): pass\n"
    )
    path = written(tmp_path, program=text)
    assert defined(path)()[1] is None
    with pytest.raises(
        InputFileError, match=r"program\.py:1: kernel bad needs the module 'absent_einops', which is not"
    ):
        defined(path, "bad")


PROJECT = {
    "kit/__init__.py": "from .sizes import *\nfrom .clean import clean\nraise SystemExit('the whole package ran')\n",
    "kit/sizes.py": "import absent_thing\nWIDE = 64\nWORSE = 1 / 0\ndef settings(n): return WIDE * n\n",
    "kit/clean.py": "from . import sizes\nfrom .sizes import WIDE as W\ndef clean(n): return W + sizes.settings(n)\n",
    "kit/ops/__init__.py": "",
    "kit/ops/kernel.py": (
        "import kit\nfrom kit import clean, settings\nfrom ..sizes import WIDE\nfrom kit.clean import clean as same\n"
        "k = (clean(1), kit.settings(2), settings(3), WIDE, same is clean)\n"
    ),
}


def test_modules_of_a_project_run_only_where_they_are_needed(tmp_path: Path) -> None:
    assert defined(written(tmp_path, PROJECT)) == (128, 128, 192, 64, True)
    assert not {name for name in sys.modules if name.partition(".")[0] in ("kit", "torch")}


def test_relative_imports_lead_to_the_files_folder_without_a_package(tmp_path: Path) -> None:
    near, far = "from .near import A\nfrom ..far import B\nk = A + B\n", "B = 2\n"
    path = written(tmp_path, {"top/far.py": far, "top/inner/near.py": "A = 1\n", "top/inner/kernel.py": near})
    assert defined(path) == 3
    with pytest.raises(InputFileError, match=r"kernel\.py:1: kernel k needs the name .\.gone\.A., which no file"):
        defined(written(tmp_path, {"top/inner/kernel.py": "from .gone import A\nk = A\n"}))


def test_modules_that_need_each_other_are_defined(tmp_path: Path) -> None:
    one = "from two import B\nA = 1\nk = A + B\n"
    assert defined(written(tmp_path, two="from one import A\nB = A + 1\n", one=one)) == 3


def test_an_imported_torch_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", real)
    before = list(sys.meta_path), list(sys.path)
    assert value(tmp_path, "torch.float16.name") == "float16"
    assert sys.modules["torch"] is real
    assert (list(sys.meta_path), list(sys.path)) == before


KERNELS = """
import operator
import torch
import triton
import triton.language as tl
from packaging.version import Version
from absent_zoo.utils import Version as Also
from .helpers import TYPES, guarded, squashed

if Version(triton.__version__) >= Version("3.0.0") and Also(triton.__version__) >= Also("3.0.0"):
    from triton.language.extra.libdevice import rsqrt
else:
    from triton.language.math import rsqrt
DEVICE = triton.runtime.driver.active.get_active_torch_device()
SMS = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)["multiprocessor_count"]
LARGE = tl.constexpr(torch.cuda.get_device_properties(0).shared_memory_per_block_optin > 150000)

def configs():
    counts = (2, 4) if torch.cuda.get_device_capability()[0] < 9 else (8,)
    return [triton.Config({"BLOCK": b}, num_warps=w, pre_hook=guarded) for b in (64, 256) for w in counts]

def keep(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] <= named_args["n"] and kwargs["ROWS"] == SMS]

@triton.autotune(configs(), key=["n"], prune_configs_by={"early_config_prune": keep})
@triton.heuristics({"SCALED": lambda args: args["scale"] is not None, "HALF": lambda a: a["x"].dtype == torch.float16})
@triton.jit
def normalized(x, out, scale, n, ROWS: tl.constexpr, SCALED: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + column, mask=column < n, other=0.0).to(tl.float32)
    y = v * rsqrt(tl.sum(v * v) / n + 1.0)
    if SCALED:
        y *= tl.load(scale + column, mask=column < n)
    if LARGE:
        y = squashed(y)
    tl.store(out + tl.program_id(0) * n + column, y, mask=column < n)

@triton.jit
def as_before(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, tl.math.tanh(v) + tl.libdevice.tanh(v) + tl.extra.cuda.libdevice.pow(v, 2.0))

@triton.jit
def blocks(x, out, n, BLOCK: tl.constexpr):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(out + tl.arange(0, BLOCK), tl.load(p) * tl.math.rsqrt(4.0))

UNKNOWABLE = tl.constexpr(torch.cuda.memory_reserved())

@triton.autotune([triton.Config({"BLOCK": UNKNOWABLE.value}), triton.Config({"BLOCK": 4})], key=[])
@triton.jit
def sized(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)

@triton.jit
def depends(x, BLOCK: tl.constexpr):
    if UNKNOWABLE > 4:
        tl.store(x, 1.0)
"""
HELPERS = """
import torch, einops_that_is_absent
import triton
import triton.language as tl
from einops_that_is_absent import rearrange
TYPES = {torch.float32: tl.float32}
torch.backends.cuda.matmul.allow_tf32 = True

def guarded(function, *more): return function

@triton.jit
def squashed(x): return x / (1 + tl.abs(x))
"""


def run(folder: Path, entry: str, args: Mapping[str, Any], config: int | None = None, gpu: str = "a100") -> np.ndarray:
    path, machine = written(folder, helpers=HELPERS, kernels=KERNELS), load_gpu(gpu)
    said = settle(
        load(path, arch=machine.arch, entry=entry, gpu=machine), machine.arch, grid=1, args=args, config=config
    )
    launch = stated_launch(said.kernel, said.comment, said.grid, said.block, said.args, None, None)
    return emulate(said.kernel, launch, blocks="all").buffer("out")


@needs_triton
@pytest.mark.parametrize(("gpu", "squashed"), [("a100", True), ("rtx3090", False)])
def test_a_kernel_in_the_style_of_a_library(tmp_path: Path, gpu: str, squashed: bool) -> None:
    x, scale = np.linspace(-2, 2, 100, dtype=np.float16), np.linspace(1, 3, 100, dtype=np.float32)
    rows = load_gpu(gpu).device.sm_count
    for given in (scale, None):
        args = {"x": x, "out": np.zeros(100, np.float32), "scale": given, "n": 100, "ROWS": rows}
        # Of four configurations the two with blocks of 64 are left.
        with pytest.raises(
            UsageError, match=r"configuration 2 for these arguments \(early_config_prune\); it keeps: 0, 1"
        ):
            run(tmp_path, "normalized", args | {"x": x[:64]} | {"n": 64}, 2, gpu)
        got = run(tmp_path, "normalized", {**args, "n": 64, "x": x[:64].copy()}, 0, gpu)[:64]
        v = x[:64].astype(np.float64)
        exact = v / np.sqrt((v * v).mean() + 1) * (1 if given is None else scale[:64])
        np.testing.assert_allclose(got, exact / (1 + abs(exact)) if squashed else exact, rtol=1e-3)


@needs_triton
def test_configurations_depend_on_the_gpu(tmp_path: Path) -> None:
    path = written(tmp_path, helpers=HELPERS, kernels=KERNELS)
    listed = {}
    for gpu in ("a100", "h100"):
        machine = load_gpu(gpu)
        kernel = load(path, arch=machine.arch, entry="normalized", gpu=machine).kernel
        listed[gpu] = kernel.configs(machine.arch)  # type: ignore[union-attr]
    assert [text.split(", num_ctas")[0] for text in listed["h100"]] == [
        "BLOCK=64, num_warps=8",
        "BLOCK=256, num_warps=8",
    ]
    assert len(listed["a100"]) == 4


@needs_triton
def test_names_that_moved_are_found(tmp_path: Path) -> None:
    import triton.language as tl

    before = set(vars(tl)), set(vars(tl.math))
    x = np.linspace(0.1, 2, 32, dtype=np.float32)
    got = run(tmp_path, "as_before", {"x": x, "out": np.zeros(32, np.float32), "BLOCK": 32})
    np.testing.assert_allclose(got, 2 * np.tanh(x) + x * x, rtol=1e-5)
    assert (set(vars(tl)), set(vars(tl.math))) == before


@needs_triton
def test_block_pointers_as_far_as_the_installed_triton_has_them(tmp_path: Path) -> None:
    x = np.linspace(0.1, 2, 32, dtype=np.float32)
    args = {"x": x, "out": np.zeros(32, np.float32), "n": 32, "BLOCK": 32}
    if tuple(map(int, importlib.metadata.version("triton").split(".")[:2])) < (3, 9):
        np.testing.assert_allclose(run(tmp_path, "blocks", args), x / 2, rtol=1e-5)
    else:
        with pytest.raises(CompileError, match=r"kernels\.py:\d+: error: Block pointers have been removed"):
            run(tmp_path, "blocks", args)


@needs_triton
def test_a_kernel_that_depends_on_the_unknowable_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"kernel depends needs torch\.cuda\.memory_reserved\(…\), which only PyTorch"):
        run(tmp_path, "depends", {"x": "f32[4]", "BLOCK": 4})
    with pytest.raises(
        UsageError, match=r"its heuristic for SCALED needs a value for scale; give it, as in --arg scale=n"
    ):
        run(tmp_path, "normalized", {"x": "f16[64]", "out": "f32[64]", "n": 64, "ROWS": 108}, 0)
    with pytest.raises(UsageError, match=r"normalized: its early_config_prune keeps no configuration"):
        run(tmp_path, "normalized", {"x": "f16[9]", "out": "f32[9]", "n": 9, "ROWS": 108, "scale": "null"}, 0)
    with pytest.raises(
        UsageError, match=r"choose one with --config N.* 0: BLOCK=<unknown: torch\.cuda\.memory_reserved"
    ):
        run(tmp_path, "sized", {"x": "f32[4]"})
    with pytest.raises(UsageError, match=r"kernel sized needs torch\.cuda\.memory_reserved\(…\), which only PyTorch"):
        run(tmp_path, "sized", {"x": "f32[4]"}, 0)
