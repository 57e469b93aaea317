"""Turn arguments as users write them into a `Launch` that matches the kernel's signature.

On the command line and in launch comments: `a=f32[1024,1024]:random`, `n=4096`, `x=@file.npy`, or `v=1.0,2.0` for a
vector type. In Python: NumPy arrays and scalars, or the same texts.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputFileError, UsageError
from ..kernel import Kernel, Parameter, Symbol
from .launch import DTYPES, FILLS, Argument, Buffer, Dim3, Launch, Scalar, Texture, TextureTable, array_buffer, drawn
from .tensor_maps import given_map, resolved
from .textures import SURFACE_TYPES, TEXTURE_TYPES, parse_texture, same_kind, texture_table

_BUFFER = re.compile(r"^(host\s+)?(\w+)\[([^\]]*)\](?::(.+))?$")
_EXPECTED_FILL = (
    "zeros, ones, iota, random, random(low,high), normal(mean,deviation), permutation, a number, or @file.npy"
)
_LARGEST_VALUE = 32
"""Size in bytes of the largest type that a single value can fill: four doubles."""
_MOST_BYTES = 1 << 46
"""Size limit of a buffer in bytes: no GPU has a larger address space."""

_SCALARS: dict[str, str] = {
    "bool": "<?", "half": "<e", "__half": "<e", "ptrdiff_t": "<q", "ssize_t": "<q", "size_t": "<Q", "uint": "<I",
    "int8_t": "<b", "int16_t": "<h", "int32_t": "<i", "int64_t": "<q",
    "uint8_t": "<B", "uint16_t": "<H", "uint32_t": "<I", "uint64_t": "<Q",
}  # fmt: skip
_WORDS = {"signed", "unsigned", "char", "short", "int", "long", "float", "double"}
_BFLOAT = {"__nv_bfloat16", "nv_bfloat16"}
_HALVES = {"half2", "__half2", "nv_bfloat162", "__nv_bfloat162"}
_NULL = {"0", "null", "nullptr", "NULL"}
_VECTOR = re.compile(r"^(u?(?:char|short|int|long|longlong)|float|double)([1-4])$")
_VECTOR_CODES = {"char": "b", "short": "h", "int": "i", "long": "q", "longlong": "q", "float": "f", "double": "d"}


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
        known = number_code(parameter.type.split("::")[-1]) or _VECTOR.match(parameter.type)
        if not parameter.pointer and (parameter.size != 8 or known):
            raise UsageError(f"{place}: got a buffer, expected a value, as in {parameter_name(parameter)}=1")
        _check_elements(parameter, buffer, place)
        return buffer
    if parameter.pointer and (value is None or str(value).strip() in _NULL):
        return Scalar(bytes(parameter.size), "null")
    if parameter.pointer:
        raise UsageError(f"{place}: got {value!r}, expected a buffer or null, as in f32[1024]:random or @file.npy")
    return _scalar(parameter, value, place)


def _check_elements(parameter: Parameter, buffer: Buffer, place: str) -> None:
    """Raise UsageError if the element size does not match a pointer's type; byte buffers match any type."""
    name = parameter.type.split("::")[-1]
    code = number_code(name) if parameter.pointer else ""
    size = 2 if parameter.pointer and name in _BFLOAT else struct.calcsize(code) if code else 1
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
    known = number_code(name) or _VECTOR.match(name) or name in _HALVES or name in _BFLOAT
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
    return _scalar(variable, value, place)


def as_buffer(value: Any, place: str) -> Buffer | None:
    """A buffer from an array (NumPy or convertible), a `Buffer` or its text; None for anything else.

    Raises UsageError naming `place` for an invalid text that starts like a buffer.
    """
    if isinstance(value, Buffer):
        return value
    if isinstance(value, np.ndarray) and value.ndim:
        return _held(value, place)
    if not isinstance(value, str):
        return _held(_array(value, place), place) if getattr(value, "shape", ()) else None
    if value.startswith("@"):
        return _held(_load(value[1:], place), place)
    match = _BUFFER.match(value.strip())
    return _parsed_buffer(match, value, place) if match else None


def buffer_of(value: Any, place: str) -> Buffer | None:
    """A buffer from an array, a `Buffer` or its text; None for anything else. Raises UsageError."""
    return as_buffer(value, place)


def _array(value: Any, place: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The data of another library's array, such as a PyTorch tensor on the CPU."""
    try:
        return np.asarray(value)
    except Exception as error:
        raise UsageError(f"{place}: {type(value).__name__} cannot be read as a NumPy array: {error}") from None


def _held(array: np.ndarray[Any, np.dtype[Any]], place: str) -> Buffer:
    try:
        return array_buffer(array)
    except TypeError as error:
        raise UsageError(f"{place}: {error}; expected one of {', '.join(DTYPES)}") from None


def _parsed_buffer(match: re.Match[str], text: str, place: str) -> Buffer:
    host, dtype, extents, fill = bool(match[1]), match[2], match[3], (match[4] or "zeros").strip()
    if dtype not in DTYPES:
        raise UsageError(f"{place}: unknown type {dtype!r} in {text!r}; expected one of {', '.join(DTYPES)}")
    try:
        shape = tuple(int(extent) for extent in extents.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise UsageError(f"{place}: {text!r}: expected positive extents, as in {dtype}[1024,1024]")
    if fill.startswith("@"):
        buffer = _held(_load(fill[1:], place), place)
        if buffer.dtype != dtype or buffer.count != Buffer(dtype, shape).count:
            held = f"{buffer.dtype}[{','.join(map(str, buffer.shape))}]"
            raise UsageError(f"{place}: {fill[1:]} holds {held}, expected {dtype}[{extents}]")
        return Buffer(dtype, shape, "array", buffer.array, host)
    if fill not in FILLS[:-1]:
        fill = _checked_fill(fill, dtype, math.prod(shape), place)
    buffer = Buffer(dtype, shape, fill, host=host)
    if buffer.nbytes > _MOST_BYTES:
        raise UsageError(f"{place}: {buffer.nbytes} bytes exceed any GPU's address space")
    return buffer


def _checked_fill(fill: str, dtype: str, count: int, place: str) -> str:
    """A fill that is drawn at random, or a number in the spelling of Python; it must fit the element type.

    Raises UsageError for anything else.
    """
    limits = None if DTYPES[dtype][0].startswith("float") or dtype == "bf16" else np.iinfo(DTYPES[dtype][0])
    try:
        made = drawn(fill)
    except ValueError as expected:
        raise UsageError(f"{place}: fill {fill!r}: expected {expected}, with seed=N if wanted") from None
    if made is not None:
        low, high = made.numbers if made.kind == "random" else (0, count if made.kind == "permutation" else 0)
        if limits is not None and not (limits.min <= low and high <= limits.max + 1):
            raise UsageError(f"{place}: fill {fill!r}: expected numbers from {limits.min} to {limits.max} for {dtype}")
        return fill
    try:
        number = _number(fill, place)
    except UsageError:
        raise UsageError(f"{place}: unknown fill {fill!r}; expected {_EXPECTED_FILL}") from None
    if limits is None:
        return repr(float(number))
    if not (math.isfinite(number) and number == int(number) and limits.min <= number <= limits.max):
        raise UsageError(
            f"{place}: fill {fill!r}: expected a whole number from {limits.min} to {limits.max} for {dtype}"
        )
    return str(int(number))


def _load(name: str, place: str) -> np.ndarray[Any, np.dtype[Any]]:
    try:
        array: object = np.load(Path(name), allow_pickle=False)
    except FileNotFoundError:
        raise InputFileError(f"{place}: {name}: no such file (expected a NumPy .npy file)") from None
    except (OSError, ValueError, EOFError):
        raise InputFileError(f"{place}: {name}: not a NumPy .npy file") from None
    if not isinstance(array, np.ndarray):
        raise InputFileError(f"{place}: {name}: holds several arrays; expected a NumPy .npy file")
    return array


def _scalar(parameter: Parameter, value: Any, place: str) -> Scalar:
    name = parameter.type.split("::")[-1]
    if match := _VECTOR.match(name):
        code = _VECTOR_CODES[match[1].lstrip("u") or match[1]]
        code = code.upper() if match[1].startswith("u") else code
        return _vector(code, int(match[2]), value, place)
    if name in _HALVES and parameter.size == 4:
        return _halves(name, value, place)
    number = _number(value, place)
    if name in _BFLOAT and parameter.size == 2:
        return Scalar(_bfloat(number, value, place), str(value))
    code = number_code(name)
    if not code or struct.calcsize(code) != parameter.size:
        # An unknown type, such as an enumeration: the number determines the encoding.
        whole = isinstance(number, int)
        signed = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}
        unsigned = {size: code.upper() for size, code in signed.items()}
        code = ((signed if number < 0 else unsigned) if whole else {2: "<e", 4: "<f", 8: "<d"}).get(parameter.size, "")
        if not code:
            spelt = f"{parameter_name(parameter)}=u8[{parameter.size}]"
            raise UsageError(f"{place}: {parameter.size} bytes passed by value; give them as {spelt} or as a .npy file")
    return Scalar(_packed(code, [number], value, place), str(value))


def number_code(name: str) -> str:
    """The `struct` code of a C++ type, its words in any order; empty if it is not a number type."""
    words = name.split()
    if not words or not _WORDS.issuperset(words):
        return _SCALARS.get(name, "")
    letters = {"double": "d", "float": "f", "char": "b", "short": "h", "long": "q"}
    letter = next((letters[word] for word in letters if word in words), "i")
    return "<" + (letter.upper() if "unsigned" in words else letter)


def _numbers(count: int, value: Any, place: str) -> list[int | float]:
    parts = value.split(",") if isinstance(value, str) else list(np.atleast_1d(value))
    if len(parts) != count:
        raise UsageError(f"{place}: got {len(parts)} numbers, expected {count}, as in {','.join(['1'] * count)}")
    return [_number(part, place) for part in parts]


def _halves(name: str, value: Any, place: str) -> Scalar:
    numbers = _numbers(2, value, place)
    if "bfloat" in name:
        return Scalar(b"".join(_bfloat(number, value, place) for number in numbers), str(value))
    return Scalar(_packed("<2e", numbers, value, place), str(value))


def _vector(code: str, count: int, value: Any, place: str) -> Scalar:
    numbers = _numbers(count, value, place)
    return Scalar(_packed(f"<{count}{code}", numbers, value, place), str(value))


def _packed(code: str, numbers: list[int | float], value: Any, place: str) -> bytes:
    if code[-1] not in "efd":
        if any(isinstance(n, float) and not n.is_integer() for n in numbers):
            raise UsageError(f"{place}: got {value}, expected a whole number")
        numbers = [int(n) for n in numbers]
    try:
        return struct.pack(code, *numbers)
    except (struct.error, OverflowError):
        raise UsageError(f"{place}: {value} does not fit into {struct.calcsize(code)} bytes") from None


def _bfloat(number: int | float, value: Any, place: str) -> bytes:
    """The upper half of a float, rounded to nearest even; NaN and infinity stay unchanged."""
    bits = int.from_bytes(_packed("<f", [number], value, place), "little")
    if bits & 0x7F800000 != 0x7F800000:
        bits += 0x7FFF + (bits >> 16 & 1)
    return (bits >> 16).to_bytes(2, "little")


def _number(value: Any, place: str) -> int | float:
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _number(value.item(), place)
    text = str(value).strip()
    if text in ("true", "false"):
        return int(text == "true")
    for convert, spelt in ((lambda s: int(s, 0), text), (float, text), (float, text.removesuffix("f"))):
        try:
            return convert(spelt)
        except ValueError:
            continue
    raise UsageError(f"{place}: got {text!r}, expected a number")


def element_type(parameter: Parameter) -> tuple[str, int]:
    """The key of `DTYPES` for the elements of a pointer, and their size in bytes; bytes for any other type."""
    name = parameter.type.split("::")[-1]
    if name in _BFLOAT or "bfloat" in name:
        return "bf16", 2
    if match := _VECTOR.match(name):
        code = _VECTOR_CODES[match[1].lstrip("u") or match[1]]
        code = code.upper() if match[1].startswith("u") else code
    else:
        code = "e" if name in _HALVES else number_code(name)[-1:]
    names = {"e": "f16", "f": "f32", "d": "f64", "?": "u8"}
    size = struct.calcsize(f"<{code}") if code else 1
    return names.get(code) or f"{'u' if code.isupper() or not code else 'i'}{8 * size}", size
