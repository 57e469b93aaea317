"""Triton's autotuner with our hook: what is pruned, and that the rest is Triton's own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import drywarp
from drywarp.errors import UsageError

triton = pytest.importorskip("triton", reason="Triton is not installed: pip install 'drywarp[triton]'")

from drywarp.experiments.tuners.triton import Predictor, as_argument, predicted  # noqa: E402

FOLDER = Path(__file__).parents[2] / "examples/tuners"


@dataclass(frozen=True)
class Dtype:
    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


class Tensor:
    """What of a PyTorch tensor the hook and Triton look at."""

    def __init__(self, *shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None) -> None:
        self.shape, self.dtype = shape, Dtype(dtype)
        self._strides = strides or tuple(int(np.prod(shape[n + 1 :])) for n in range(len(shape)))

    def data_ptr(self) -> int:
        return 0

    def stride(self) -> tuple[int, ...]:
        return self._strides


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Recorder:
    """Stands below the autotuner, where a GPU would be: keeps what would have been run."""

    def __init__(self, fn: Any) -> None:
        self.fn, self.ran = fn, []

    def run(self, *args: Any, **kwargs: Any) -> None:
        self.ran.append(kwargs)


def launched(kernel: Any, *args: Any, grid: Any, **kwargs: Any) -> tuple[list[str], Recorder]:
    """One launch through the autotuner's own `run`, each measurement being a wait of the same length."""
    recorder = Recorder(kernel.fn)
    kernel.fn = recorder
    kernel._do_bench = lambda call, quantiles: (call(), [1.0, 1.0, 1.0])[1]
    kernel.run(*args, grid=grid, warmup=False, **kwargs)
    return [str(config) for config in getattr(kernel, "configs_timings", {})], recorder


def softmax_grid(meta: Any) -> tuple[int]:
    return (triton.cdiv(512, meta["ROWS"]),)


@pytest.fixture
def softmax() -> Iterator[Any]:
    yield example("softmax_triton").softmax
    sys.modules.pop("softmax_triton")


def test_only_what_is_predicted_fastest_is_measured(softmax: Any) -> None:
    x, y = Tensor(512, 1000), Tensor(512, 1000)
    measured, recorder = launched(softmax, x, y, 512, 1000, grid=softmax_grid, BLOCK=1024)
    hook = softmax.early_config_prune
    assert len(hook.times_s) == 8
    assert not hook.reasons
    best = sorted(hook.times_s, key=lambda place: hook.times_s[place])[:2]
    assert measured == [str(softmax.configs[place]) for place in best]
    # Twice in measurements, and once for good.
    assert [run["ROWS"] for run in recorder.ran] == [softmax.configs[p].kwargs["ROWS"] for p in (*best, best[0])]


def test_times_are_those_of_an_analysis_of_each_configuration(softmax: Any) -> None:
    launched(softmax, Tensor(512, 1000), Tensor(512, 1000), 512, 1000, grid=softmax_grid, BLOCK=1024)
    args = {"x": "f32[512000]:random", "y": "f32[512000]:random", "rows": 512, "columns": 1000, "BLOCK": 1024}
    for place in (0, 5):
        answer = drywarp.analyze(
            FOLDER / "softmax_triton.py", gpu="a100", grid="cdiv(rows,ROWS)", args=args, config=place, warm_l2=True
        )
        assert softmax.early_config_prune.times_s[place] == pytest.approx(answer.time_s, rel=1e-9)


def test_matrix_product() -> None:
    module = example("matmul_triton")
    kernel, size = module.matmul, 128
    kernel.configs = [c for c in kernel.configs if c.kwargs["TILE_N"] == 32 and c.num_warps == 4]
    half = [Tensor(size, size, dtype="float16") for _ in range(3)]

    def grid(meta: Any) -> tuple[int]:
        return (triton.cdiv(size, meta["TILE_M"]) * triton.cdiv(size, meta["TILE_N"]),)

    measured, _ = launched(kernel, *half, size, size, size, grid=grid)
    assert len(kernel.early_config_prune.times_s) == len(kernel.configs) == len(measured) == 4
    # 128 rows a block leave four blocks to 108 SMs, and four times the work to each.
    slowest = max(kernel.early_config_prune.times_s.items(), key=lambda item: item[1])[0]
    assert kernel.configs[slowest].kwargs["TILE_M"] == 128
    sys.modules.pop("matmul_triton")


@pytest.mark.parametrize(("top_k", "left"), [(1, 1), (3, 3), (100, 8), (0.25, 2), (0.01, 1), (1.0, 8)])
def test_a_number_or_a_share_is_kept(softmax: Any, top_k: float, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = Predictor(lambda: softmax, top_k=top_k)
    monkeypatch.setattr(hook, "time_of", lambda arguments, grid: arguments["num_warps"] * arguments["ROWS"])
    kept = hook(softmax.configs, {"rows": 4}, grid=(1,))
    assert len(kept) == left
    products = [config.num_warps * config.kwargs["ROWS"] for config in kept]
    assert products == sorted(c.num_warps * c.kwargs["ROWS"] for c in softmax.configs)[:left]


def test_what_cannot_be_predicted_is_left_as_it_is_with_one_line(softmax: Any) -> None:
    hook = Predictor(lambda: softmax)
    with pytest.warns(
        RuntimeWarning, match="no configuration can be predicted, all are kept: .*no value for y"
    ) as said:
        kept = hook(softmax.configs, {"x": Tensor(4, 4)}, rows=4, columns=4, BLOCK=4, grid=(4,))
    assert kept == softmax.configs
    assert "\n" not in str(said[0].message)
    with pytest.warns(RuntimeWarning, match="a tensor of torch.complex64: expected one of"):
        assert hook(softmax.configs, {"x": Tensor(4, dtype="complex64")}, grid=(4,)) == softmax.configs
    with pytest.warns(RuntimeWarning, match="no grid"):
        assert hook(softmax.configs, {"x": Tensor(4)}) == softmax.configs


def test_one_configuration_that_cannot_run_is_passed_over(softmax: Any) -> None:
    impossible = triton.Config({"ROWS": 3}, num_warps=4)
    hook = Predictor(lambda: softmax, top_k=5)
    x, y = Tensor(8, 64), Tensor(8, 64)
    named = {"x": x, "y": y, "rows": 8, "columns": 64}
    kept = hook([impossible, *softmax.configs[:2]], named, BLOCK=64, grid=lambda meta: (triton.cdiv(8, meta["ROWS"]),))
    assert impossible not in kept
    assert len(kept) == 2
    assert "power of 2" in hook.reasons[0]


def test_tensors_are_buffers_as_long_as_what_they_reach() -> None:
    plain = as_argument(Tensor(4, 5))
    assert (plain.dtype, plain.shape, plain.fill) == ("f32", (20,), "random")
    view = as_argument(Tensor(4, 5, dtype="bfloat16", strides=(100, 2)))
    assert (view.dtype, view.shape) == ("bf16", (309,))
    assert as_argument(7) == 7


class OnGpu(Tensor):
    """Part of a memory of numbers; `cpu` gives the values in the tensor's order, as PyTorch's does."""

    memory = np.arange(6, dtype=np.int64)

    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> OnGpu:
        return type(self)(*shape, dtype=self.dtype.name, strides=strides)

    def cpu(self) -> Any:
        steps = tuple(step * self.memory.itemsize for step in self.stride())
        return np.lib.stride_tricks.as_strided(self.memory, self.shape, steps).copy()


class FlagsOnGpu(OnGpu):
    memory = np.array([True, False, True])


def test_whole_numbers_are_copied_as_they_lie_in_memory() -> None:
    assert as_argument(OnGpu(6, dtype="int64")).tolist() == [0, 1, 2, 3, 4, 5]
    assert as_argument(OnGpu(1 << 40, dtype="int64")).fill == "zeros"
    # A column of three rows of two, and the transposed of two rows of three.
    assert as_argument(OnGpu(3, dtype="int64", strides=(2,))).tolist() == [0, 1, 2, 3, 4]
    assert as_argument(OnGpu(3, 2, dtype="int64", strides=(1, 3))).tolist() == [0, 1, 2, 3, 4, 5]
    assert as_argument(OnGpu(3, 0, dtype="int64", strides=(1, 1))).size == 0
    flags = as_argument(FlagsOnGpu(2, dtype="bool", strides=(2,)))
    assert (flags.dtype, flags.tolist()) == (np.uint8, [1, 0, 1])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"top_k": 0}, "top_k=0: expected a number"),
        ({"top_k": 1.5}, "top_k=1.5: expected a number"),
        ({"gpu": "nosuch"}, "nosuch"),
    ],
)
def test_wrong_options_give_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        predicted(lambda: None, **given)


def test_the_kernel_itself_is_not_what_is_expected(softmax: Any) -> None:
    with pytest.raises(UsageError, match="expected a function that returns the kernel"):
        predicted(softmax)
