"""Turn arguments as users write them into a `Launch` that matches the kernel's signature.

On the command line and in launch comments: `a=f32[1024,1024]:random`, `n=4096`, `x=@file.npy`, or `v=1.0,2.0` for a
vector type. In Python: NumPy arrays and scalars, or the same texts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import UsageError
from ..kernel import Kernel, Parameter, Symbol
from .launch import DTYPES, Argument, Buffer, Dim3, Launch, Scalar, Texture, TextureTable
from .tensor_maps import given_map, resolved
from .textures import SURFACE_TYPES, TEXTURE_TYPES, parse_texture, same_kind, texture_table
from .values import BFLOAT, HALVES, VECTOR, as_buffer, number_code, scalar

_LARGEST_VALUE = 32
"""Size in bytes of the largest type that a single value can fill: four doubles."""
_NULL = {"0", "null", "nullptr", "NULL"}


def parse_dim3(text: str, what: str) -> Dim3:
    """Parse `64`, `64,32` or `64,32,1` as three extents. Raises UsageError naming `what`."""
    parts = text.split(",")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise UsageError(f"{what} {text!r}: expected one to three positive integers, as in 64,32")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def make_launch(
    kernel: Kernel,
    grid: Dim3,
    block: Dim3,
    arguments: Mapping[str, Any],
    *,
    dynamic_shared: int = 0,
    constants: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Launch:
    """Bind `arguments` (by parameter name, or `argN` for the one at position N from 0) to the kernel's parameters.

    Raises UsageError for an argument that is unknown, missing, or does not match its parameter.
    """
    known = {parameter_name(p): p for p in kernel.parameters}
    arguments = _by_name(kernel, arguments)
    given = bind_arguments(kernel, arguments)
    missing = [name for name in known if name not in arguments]
    if missing:
        hint = f"{missing[0]}=f32[1024]" if known[missing[0]].pointer else f"{missing[0]}=1"
        raise UsageError(f"{kernel.name}: no value for {', '.join(missing)}; give each, as in --arg {hint}")
    if dynamic_shared < 0:
        raise UsageError(f"dynamic shared memory {dynamic_shared}: expected a number of bytes, 0 or more")
    complete = resolved(given, kernel.name)
    values = tuple(complete[name] for name in known)
    return Launch(grid, block, values, dynamic_shared, bind_constants(kernel, constants or {}), seed)


def bind_arguments(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Argument]:
    """The given arguments by name (`argN` if the source has no name).

    Raises UsageError for an argument that is unknown or does not match its parameter.
    """
    known = {parameter_name(p): p for p in kernel.parameters}
    arguments = _by_name(kernel, arguments)
    for name in arguments:
        if name not in known:
            raise UsageError(f"{kernel.name}: no parameter named {name!r}; it takes: {signature(kernel)}")
    return {name: _argument(kernel, known[name], value) for name, value in arguments.items()}


def _by_name(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Rename positional arguments (`arg0`) to parameter names; a parameter with that exact name takes precedence."""
    names = [parameter_name(p) for p in kernel.parameters]
    places = {f"arg{place}": name for place, name in enumerate(names)}
    return {name if name in names else places.get(name, name): value for name, value in arguments.items()}


def local_bytes(kernel: Kernel, arguments: Mapping[str, Argument]) -> int:
    """Bytes of shared memory per block for the buffers of OpenCL's local pointers, each aligned to 16 bytes."""
    shared = [arguments.get(parameter_name(p)) for p in kernel.parameters if p.space == "shared"]
    return sum(-(-buffer.nbytes // 16) * 16 for buffer in shared if isinstance(buffer, Buffer))


def bind_constants(kernel: Kernel, constants: Mapping[str, Any]) -> dict[str, Argument]:
    """Contents of `__constant__` and `__device__` variables by name. Raises UsageError for an unknown variable."""
    return dict(_constant(kernel, name, value) for name, value in constants.items())


def parameter_name(parameter: Parameter) -> str:
    """The name by which a user sets a parameter; `argN` if the source has no name."""
    return parameter.name or f"arg{parameter.ordinal}"


def signature(kernel: Kernel) -> str:
    """The parameters in readable form: `float* a, int n`."""
    return ", ".join(f"{type_text(p)} {parameter_name(p)}" for p in kernel.parameters) or "none"


def type_text(parameter: Parameter) -> str:
    """The type in readable form: `float*`; its size where the source has no type."""
    base = parameter.type or f"{parameter.size}-byte"
    return base + ("*" if parameter.pointer else "")


def _argument(kernel: Kernel, parameter: Parameter, value: Any) -> Argument:
    place = f"{kernel.name}: argument {parameter_name(parameter)} ({type_text(parameter)})"
    if (tensor := given_map(parameter, value, place, as_buffer)) is not None:
        return tensor
    if (object_ := _object(parameter, value, place)) is not None:
        return object_
    buffer = as_buffer(value, place)
    if (packed := _by_value(parameter, value, buffer)) is not None:
        return packed
    if buffer is not None:
        # Eight bytes of a type that we do not know may well be an address.
        known = number_code(parameter.type.split("::")[-1]) or VECTOR.match(parameter.type)
        if not parameter.pointer and (parameter.size != 8 or known):
            raise UsageError(f"{place}: got a buffer, expected a value, as in {parameter_name(parameter)}=1")
        _check_elements(parameter, buffer, place)
        return buffer
    if parameter.pointer and (value is None or str(value).strip() in _NULL):
        return Scalar(bytes(parameter.size), "null")
    if parameter.pointer:
        raise UsageError(f"{place}: got {value!r}, expected a buffer or null, as in f32[1024]:random or @file.npy")
    return scalar(parameter, value, place)


def _check_elements(parameter: Parameter, buffer: Buffer, place: str) -> None:
    """Raise UsageError if the element size does not match a pointer's type; byte buffers match any type."""
    name = parameter.type.split("::")[-1]
    code = number_code(name) if parameter.pointer else ""
    size = 2 if parameter.pointer and name in BFLOAT else struct.calcsize(code) if code else 1
    given = buffer.nbytes // max(1, buffer.count)
    # Zeros of a larger type are still zeros.
    larger = given > size and buffer.fill == "zeros"
    if size > 1 and given > 1 and given != size and not larger:
        same = [dtype for dtype in DTYPES if Buffer(dtype, (1,)).nbytes == size]
        raise UsageError(
            f"{place}: got {buffer.dtype}[…], whose elements have {given} bytes, expected {size} ({', '.join(same)}), "
            "or u8 for packed data"
        )


def _object(parameter: Parameter, value: Any, place: str) -> Texture | TextureTable | None:
    """The value as one or several textures or surfaces; None if it is something else that the parameter may take."""
    name = parameter.type.split("::")[-1]
    kind = "texture" if name in TEXTURE_TYPES else "surface" if name in SURFACE_TYPES else ""
    if parameter.pointer and kind:
        return texture_table(value, kind, place, as_buffer)
    given = value if isinstance(value, Texture) else None
    if isinstance(value, str):
        given = parse_texture(value, place, as_buffer)
    if given is None:
        if kind and (isinstance(value, Buffer | np.ndarray) or (isinstance(value, str) and as_buffer(value, place))):
            raise UsageError(f"{place}: got a buffer, expected a {kind}, as in {kind}:f32[1024,1024]")
        return None
    if parameter.pointer or parameter.size != 8 or not same_kind(given, name):
        got = "surface" if given.surface else "texture"
        raise UsageError(f"{place}: got a {got}, expected {f'a {kind}' if kind else 'a value or a buffer'}")
    return given


def _by_value(parameter: Parameter, value: Any, buffer: Buffer | None) -> Scalar | None:
    """The bytes of a structure, given as bytes or as a buffer of its size; None for other values."""
    if isinstance(value, bytes | np.void):
        data = value.tobytes() if isinstance(value, np.void) else value
    elif buffer is None or buffer.nbytes != parameter.size or buffer.fill not in ("zeros", "array"):
        return None
    else:
        data = bytes(buffer.nbytes) if buffer.array is None else buffer.array.tobytes()
    name = parameter.type.split("::")[-1]
    # Eight bytes of a type that we do not know may well be an address.
    known = number_code(name) or VECTOR.match(name) or name in HALVES or name in BFLOAT
    address = buffer is not None and parameter.size == 8
    if parameter.pointer or known or address or len(data) != parameter.size:
        return None
    return Scalar(data, value if isinstance(value, str) else f"{len(data)} bytes")


def _constant(kernel: Kernel, name: str, value: Any) -> tuple[str, Argument]:
    """A `__constant__` or `__device__` variable and its content: an array, a value of its type, or a texture."""
    held = {n: s for n, s in kernel.symbols.items() if s.space in ("constant", "global")}
    meant = [n for n in held if n == name] or [n for n in held if n.rpartition("::")[2] == name]
    if len(meant) != 1:
        raise UsageError(
            f"{kernel.name}: no __constant__ or __device__ variable named {name!r}; it has: {', '.join(held) or 'none'}"
        )
    return meant[0], _constant_value(name, held[meant[0]], value)


def _constant_value(name: str, symbol: Symbol, value: Any) -> Argument:
    place = f"constant {name}" + (f" ({symbol.type})" if symbol.type else "")
    pointer = symbol.type.endswith("*")
    variable = Parameter(0, symbol.offset, symbol.size, name, symbol.type.rstrip("*").strip())
    if (object_ := _object(variable, value, place)) is not None:
        return object_
    buffer = as_buffer(value, place)
    if buffer is not None:
        if pointer:
            raise UsageError(f"{place}: got a buffer, but variables that hold pointers are not supported")
        if buffer.nbytes > symbol.size:
            raise UsageError(f"{place}: got {buffer.nbytes} bytes, but the variable has {symbol.size}")
        return buffer
    if symbol.size > _LARGEST_VALUE or symbol.type.endswith("]"):
        raise UsageError(f"{place}: got {value!r}, expected a buffer, as in f32[9]:ones or @file.npy")
    return scalar(variable, value, place)
