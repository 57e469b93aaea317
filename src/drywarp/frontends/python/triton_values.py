"""A user's values as Triton takes them: tensors by type, numbers by value, and its own names."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError
from ...kernel.launch import DTYPES, Buffer
from .values import literal, plain

CPP_TYPES = {
    "i1": "bool", "u1": "bool", "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short",
    "i32": "int", "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long",
    "fp16": "half", "bf16": "__nv_bfloat16", "fp32": "float", "f32": "float", "fp64": "double",
}  # fmt: skip
"""Triton's types of values, as C++ spells what stands in the parameter area."""


@dataclass(frozen=True)
class _Dtype:
    """An element type that prints as PyTorch's does, which is how Triton reads it."""

    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class StandIn:
    """What Triton looks at of a tensor while it compiles: its type, that it is aligned, and its shape."""

    shape: tuple[int, ...]
    dtype: Any

    def data_ptr(self) -> int:
        """Aligned, as every buffer is that a framework or drywarp allocates."""
        return 0

    def ptr_range(self) -> int:
        """Bytes that a pointer reaches (asked on other GPUs than NVIDIA's)."""
        return 0

    def stride(self, dimension: int | None = None) -> Any:
        """Strides in elements, row-major."""
        strides, step = [], 1
        for extent in reversed(self.shape):
            strides.append(step)
            step *= extent
        ordered = tuple(reversed(strides))
        return ordered if dimension is None else ordered[dimension]

    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def element_size(self) -> int:
        """Bytes of an element."""
        return next(size for name, size in DTYPES.values() if name == getattr(self.dtype, "name", str(self.dtype)))


def stand_in(buffer: Buffer) -> StandIn:
    """The stand-in of a buffer."""
    name = DTYPES[buffer.dtype][0]
    return StandIn(buffer.shape, getattr(sys.modules.get("torch"), name, None) or _Dtype(name))


def runtime_value(value: Any, place: str) -> Any:
    """An argument of the launch: a stand-in for a buffer, a number, or None."""
    if isinstance(value, Buffer):
        return stand_in(value)
    found = plain(literal(value))
    if found is None or isinstance(found, bool | int | float):
        return found
    raise UsageError(f"{place}: got {value!r}, expected a buffer, a number or null, as in f32[1024]:random or 16")


def constant_value(value: Any, place: str) -> Any:
    """A `tl.constexpr`: a literal, a name of `triton.language` such as `tl.float16`, or else the text itself."""
    if isinstance(value, Buffer):
        raise UsageError(f"{place}: got a buffer, expected a constant, as in 1024")
    found = plain(literal(value))
    if not isinstance(found, str):
        return found
    head, _, rest = found.removeprefix("triton.language.").rpartition(".")
    if found.startswith(("tl.", "triton.language.")) and (head in ("tl", "")) and rest:
        import triton.language as tl

        if not hasattr(tl, rest):
            raise UsageError(f"{place}: triton.language has no {rest!r}")
        return getattr(tl, rest)
    return found
