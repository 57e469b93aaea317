"""A stand-in for PyTorch while a kernel's file is executed: types, decorators and constants, and the named GPU.

Executing the part of a file that defines a kernel takes no tensor, so that torch need not be installed; where it is, it
is not used either, as its GPU is another. What only a computation could give is `Unknown`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ...hardware import Gpu
from ...support.by_name import version_of
from .isolation import Unknown
from .triton_values import Dtype, capability

VERSION = "2.9.0"
"""The version that the stand-in gives itself where no torch is installed."""

_REASON = "which only PyTorch itself could tell"
_INTEGERS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FLOATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
"""Bits of exponent and mantissa."""
_OTHER = "bool complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()
_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32", "long": "int64",
    "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip

_DECORATORS = frozenset(
    "compile no_grad enable_grad inference_mode compiler.disable compiler.allow_in_graph _dynamo.disable fx.wrap "
    "_dynamo.allow_in_graph _disable_dynamo jit.script jit.ignore jit.unused jit.export jit.script_if_tracing "
    "amp.custom_fwd amp.custom_bwd cuda.amp.custom_fwd cuda.amp.custom_bwd library.custom_op library.triton_op "
    "library.wrap_triton library.register_fake library.impl _library.triton_op _library.wrap_triton "
    "autograd.function.once_differentiable".split()
)
"""What returns the function that it decorates, as far as a kernel can see."""

_ABSENT = ("npu", "mlu", "musa", "hpu", "gcu", "sdaa")  # devices that packages other than torch add to it
_CLASSES = "Tensor Size Generator nn.Module nn.Parameter autograd.Function cuda.Stream cuda.Event".split()


class _Base:
    """What classes of a program derive from; none of these has an instance here."""


@dataclass(frozen=True)
class Device:
    """`torch.device`: a type and a number."""

    type: str
    index: int | None = None


def _device(name: object = "cuda", index: int | None = None) -> Device:
    kind, _, number = str(name).partition(":")
    return Device(kind, int(number) if number else index) if kind.isalpha() else Device("cuda", int(kind))


class _Same:
    """A decorator, with or without arguments, that gives back its function; as a context it does nothing."""

    def __call__(self, *values: Any, **named: Any) -> Any:
        given = (value for value in (*values, *named.values()) if callable(value) and not isinstance(value, Unknown))
        return next(given, self)

    def __enter__(self, *error: object) -> None:
        """`with torch.no_grad():`, and the end of it."""

    __exit__ = __enter__


def _finfo(dtype: Dtype) -> Any:
    if dtype.name not in _FLOATS:
        return Unknown(f"torch.finfo({dtype})", _REASON)
    exponent, mantissa = _FLOATS[dtype.name]
    most, tiny = math.ldexp(2.0 - 2.0**-mantissa, 2 ** (exponent - 1) - 1), math.ldexp(1.0, 2 - 2 ** (exponent - 1))
    return _Facts("torch.finfo", min=-most, max=most, eps=2.0**-mantissa, tiny=tiny, bits=1 + exponent + mantissa)


def _iinfo(dtype: Dtype) -> Any:
    bits, signed = _INTEGERS.get(dtype.name, 0), dtype.name.startswith("int")
    low = -(2 ** (bits - 1)) if signed else 0
    return _Facts("torch.iinfo", min=low, max=low + 2**bits - 1, bits=bits) if bits else Unknown(str(dtype), _REASON)


class _Facts:
    """Named values; any other is unknown."""

    def __init__(self, what: str, **values: Any) -> None:
        vars(self).update(values, _what=what)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"{self._what}.{name}", "which the named GPU's file does not state")


def _properties(gpu: Gpu) -> _Facts:
    """`torch.cuda.get_device_properties`, as far as the GPU's file states them."""
    (major, minor), limits, memory = capability(gpu), gpu.occupancy, gpu.memory
    known = {"name": gpu.title, "major": major, "minor": minor, "warp_size": limits.warp_size}
    known |= {"total_memory": memory.dram.bytes} if memory.dram.bytes else {}
    return _Facts(
        "torch.cuda.get_device_properties(…)",
        **known,
        multi_processor_count=gpu.device.sm_count,
        max_threads_per_multi_processor=limits.max_threads_per_sm,
        regs_per_multiprocessor=limits.registers_per_sm,
        shared_memory_per_block=limits.shared_bytes_per_block_default,
        shared_memory_per_block_optin=limits.shared_bytes_per_block_optin,
        shared_memory_per_multiprocessor=limits.shared_bytes_per_sm,
        L2_cache_size=memory.l2.bytes,
    )


def torch_values(gpu: Gpu | None) -> dict[str, Any]:
    """What the stand-in knows, by name below `torch`; without a GPU, nothing about one."""
    known: dict[str, Any] = {name: Dtype(name) for name in (*_INTEGERS, *_FLOATS, *_OTHER)}
    known |= {name: known[meant] for name, meant in _ALIASES.items()}
    known |= dict.fromkeys(_DECORATORS, _Same())
    known |= {name: type(name.rpartition(".")[2], (_Base,), {}) for name in _CLASSES}
    known |= {"inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e, "finfo": _finfo, "iinfo": _iinfo}
    known |= {"device": _device, "dtype": Dtype, "__version__": version_of("torch") or VERSION}
    known |= {"version.hip": None, "version.xpu": None, "cuda.is_available": lambda: True}
    known |= {"xpu.is_available": lambda: False, "backends.mps.is_available": lambda: False}
    # Settings of PyTorch, at their defaults.
    known |= {"are_deterministic_algorithms_enabled": lambda: False, "is_grad_enabled": lambda: True}
    known |= {"is_autocast_enabled": lambda *device: False}
    known |= {"cuda.device_count": lambda: 1, "cuda.current_device": lambda: 0}
    if gpu is not None:
        facts = _properties(gpu)
        known["cuda.get_device_properties"] = lambda device=None: facts
        known["cuda.get_device_name"] = lambda device=None: gpu.title
        known["cuda.get_device_capability"] = lambda device=None: capability(gpu)
        known["cuda.is_bf16_supported"] = lambda *options, **more: capability(gpu) >= (8, 0)
    return known


class TorchModule(ModuleType):
    """`torch`, or a module below it."""

    def __init__(self, name: str, known: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        vars(self)["_known"] = known

    def __getattr__(self, name: str) -> Any:
        dotted = f"{self.__name__}.{name}".partition(".")[2]
        if dotted in self._known:
            return self._known[dotted]
        if name.startswith("__") or dotted in _ABSENT:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if any(one.startswith(f"{dotted}.") for one in self._known):
            return TorchModule(f"torch.{dotted}", self._known)
        return Unknown(f"torch.{dotted}", _REASON)
