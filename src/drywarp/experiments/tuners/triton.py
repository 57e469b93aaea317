"""Triton: prunes configurations of `triton.autotune` by prediction, through its hook `prune_configs_by`.

    @triton.autotune(configs=[...], key=["m", "n"], prune_configs_by=predicted(lambda: matmul, gpu="a100", top_k=4))
    @triton.jit
    def matmul(...)

Triton then compiles and measures only those four. See docs/tuners.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...analysis.prepare import prepare_kernel
from ...analysis.request import Options
from ...errors import DrywarpError, UsageError
from ...hardware import Gpu, load_gpu
from ...kernel.launch.launch import DTYPES, Buffer
from ...models import get_model
from ..sweep.prune import share_of

MODEL = "pipeline"
_LAUNCH_ONLY = ("grid", "warmup", "stream")
"""What Triton passes besides a kernel's arguments and compiler options."""
_SEEN_BYTES = 1 << 26
"""Integers and flags, which may affect control flow, are copied from the GPU up to this size."""


def predicted(
    kernel: Callable[[], Any], *, gpu: str | Gpu = "a100", top_k: int | float = 0.25, options: Options | None = None
) -> dict[str, Any]:
    """A value for `prune_configs_by`: keeps the `top_k` configurations predicted to be fastest.

    `kernel` returns the decorated function, which is not defined yet at this point: ``lambda: matmul``. `top_k` is a
    number of configurations, or a share up to 1.0, at least one. `gpu` is the GPU that the kernel will run on.
    """
    return {"early_config_prune": Predictor(kernel, gpu=gpu, top_k=top_k, options=options)}


class Predictor:
    """The hook itself: Triton's autotuner calls it with all configurations, and it returns the remaining ones.

    The latest predictions are in `times_s` (seconds) and `reasons` (why there is no prediction), by index in the list.
    If no configuration can be predicted, all are kept, and a warning gives the reason.
    """

    def __init__(
        self,
        kernel: Callable[[], Any],
        *,
        gpu: str | Gpu = "a100",
        top_k: int | float = 0.25,
        options: Options | None = None,
    ) -> None:
        if isinstance(top_k, bool) or not (0 < top_k <= 1 if isinstance(top_k, float) else top_k >= 1):
            raise UsageError(f"top_k={top_k}: expected a number of configurations, or a share such as 0.25")
        if not callable(kernel) or hasattr(kernel, "fn"):
            raise UsageError("kernel: expected a function that returns the kernel, as in lambda: matmul")
        self.kernel, self.top_k = kernel, top_k
        self.gpu = gpu if isinstance(gpu, Gpu) else load_gpu(gpu)
        self.options = options or Options(models=(MODEL,), warm_l2=True, fall_back=False)
        self.times_s: dict[int, float] = {}
        self.reasons: dict[int, str] = {}

    def __call__(self, configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        """The remaining configurations, fastest first. The signature is that of `early_config_prune`."""
        arguments = {**named_args, **{name: v for name, v in kwargs.items() if name not in _LAUNCH_ONLY}}
        try:
            held = {name: as_argument(value) for name, value in arguments.items()}
        except DrywarpError as error:
            return self._unpruned(configs, str(error))
        self.times_s, self.reasons = {}, {}
        for place, config in enumerate(configs):
            try:
                self.times_s[place] = self.time_of({**held, **config.all_kwargs()}, kwargs.get("grid"))
            except DrywarpError as error:
                self.reasons[place] = str(error)
        if not self.times_s:
            return self._unpruned(configs, self.reasons.get(0, "there are none"))
        count = self.top_k if isinstance(self.top_k, int) else share_of(len(configs), self.top_k)
        order = sorted(self.times_s, key=lambda place: self.times_s[place])
        return [configs[place] for place in order[:count]]

    def time_of(self, arguments: Mapping[str, Any], grid: Any) -> float:
        """Predicted seconds of one launch; `arguments` include the configuration's. Raises DrywarpError."""
        if grid is None:
            raise UsageError("no grid: expected a launch as kernel[grid](…)")
        prepared = prepare_kernel(
            _untuned(self.kernel()), gpu=self.gpu, grid=grid, args=arguments, options=self.options
        )
        return float(get_model(self.options.models[0]).predict(prepared.costed, ()).time_s)

    def _unpruned(self, configs: Sequence[Any], reason: str) -> list[Any]:
        self.times_s = {}
        said = " ".join(reason.split())
        warnings.warn(f"drywarp: no configuration can be predicted, all are kept: {said}", RuntimeWarning, stacklevel=3)
        return list(configs)


def as_argument(value: Any) -> Any:
    """A launch argument in drywarp's form. A tensor becomes a buffer of its type that covers its memory range.

    Integers and flags, which may affect control flow, are copied; floating-point data are replaced by random numbers.
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None or not hasattr(value, "data_ptr"):
        return value
    name = str(dtype).rpartition(".")[2]
    kind = _BUFFERS.get(name)
    if kind is None:
        raise UsageError(f"a tensor of {dtype}: expected one of {', '.join(_BUFFERS)}")
    reach = _reach(value)
    if not name.startswith(("float", "bfloat")) and hasattr(value, "cpu") and reach * DTYPES[kind][1] <= _SEEN_BYTES:
        # In memory order, because the kernel gets a pointer and strides, not values in the tensor's order.
        held = np.asarray(value.as_strided((reach,), (1,)).cpu())
        return held.view(np.uint8) if name == "bool" else held
    return Buffer(kind, (max(1, reach),), "random" if name.startswith(("float", "bfloat")) else "zeros")


def _reach(tensor: Any) -> int:
    """Number of elements from a tensor's first to its last in memory, whatever its strides."""
    strides = tensor.stride()
    if 0 in tensor.shape:
        return 0
    return 1 + sum((int(extent) - 1) * abs(int(step)) for extent, step in zip(tensor.shape, strides, strict=True))


def _untuned(kernel: Any) -> Any:
    """The function under `@triton.autotune`, with its heuristics."""
    layer = kernel
    while hasattr(layer, "fn"):
        if hasattr(layer, "configs"):
            return layer.fn
        layer = layer.fn
    return kernel


_BUFFERS = {long: short for short, (long, _) in DTYPES.items()} | {"bool": "u8"}
"""PyTorch's tensor types by name, mapped to drywarp's names."""
