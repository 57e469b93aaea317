"""Numbers and buffers as users write them: `4096`, `1.0,2.0`, `f32[1024]:random`, `@file.npy`; or NumPy arrays."""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputFileError, UsageError
from ..kernel import Parameter
from .launch import DTYPES, FILLS, Buffer, Scalar, array_buffer, drawn

_BUFFER = re.compile(r"^(host\s+)?(\w+)\[([^\]]*)\](?::(.+))?$")
_EXPECTED_FILL = (
    "zeros, ones, iota, random, random(low,high), normal(mean,deviation), permutation, a number, or @file.npy"
)
_MOST_BYTES = 1 << 46
"""Size limit of a buffer in bytes: no GPU has a larger address space."""

_SCALARS: dict[str, str] = {
    "bool": "<?", "half": "<e", "__half": "<e", "ptrdiff_t": "<q", "ssize_t": "<q", "size_t": "<Q", "uint": "<I",
    "ushort": "<H", "ulong": "<Q",
    "int8_t": "<b", "int16_t": "<h", "int32_t": "<i", "int64_t": "<q",
    "uint8_t": "<B", "uint16_t": "<H", "uint32_t": "<I", "uint64_t": "<Q",
}  # fmt: skip
_WORDS = {"signed", "unsigned", "char", "short", "int", "long", "float", "double"}
BFLOAT = {"__nv_bfloat16", "nv_bfloat16"}
HALVES = {"half2", "__half2", "nv_bfloat162", "__nv_bfloat162"}
VECTOR = re.compile(r"^(u?(?:char|short|int|long|longlong)|float|double)([1-4])$")
_CODES = {"char": "b", "short": "h", "int": "i", "long": "q", "longlong": "q", "float": "f", "double": "d"}


# Buffers.


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
        raise UsageError(f"{place}: fill {fill!r}: expected {expected}, optionally with seed=N") from None
    if made is not None:
        low, high = made.numbers if made.kind == "random" else (0, count if made.kind == "permutation" else 0)
        if limits is not None and not (limits.min <= low and high <= limits.max + 1):
            raise UsageError(f"{place}: fill {fill!r}: expected numbers from {limits.min} to {limits.max} for {dtype}")
        return fill
    try:
        number = number_of(fill, place)
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


# Numbers passed by value.


def scalar(parameter: Parameter, value: Any, place: str) -> Scalar:
    """A number or several as the bytes of a parameter's type. Raises UsageError naming `place`."""
    name = parameter.type.split("::")[-1]
    if match := VECTOR.match(name):
        code = _CODES[match[1].lstrip("u") or match[1]]
        code = code.upper() if match[1].startswith("u") else code
        return _vector(code, int(match[2]), value, place)
    if name in HALVES and parameter.size == 4:
        return _halves(name, value, place)
    if name == "dim3":
        extents = [
            number_of(part, place) for part in (value.split(",") if isinstance(value, str) else np.atleast_1d(value))
        ]
        if len(extents) > 3:
            raise UsageError(f"{place}: got {len(extents)} numbers, expected one to three, as in 64,32")
        return Scalar(packed("<3I", [*extents, 1, 1][:3], value, place), str(value))
    number = number_of(value, place)
    if name in BFLOAT and parameter.size == 2:
        return Scalar(_bfloat(number, value, place), str(value))
    code = number_code(name)
    if not code or struct.calcsize(code) != parameter.size:
        # An unknown type, such as an enumeration: the number determines the encoding.
        whole = isinstance(number, int)
        signed = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}
        unsigned = {size: code.upper() for size, code in signed.items()}
        code = ((signed if number < 0 else unsigned) if whole else {2: "<e", 4: "<f", 8: "<d"}).get(parameter.size, "")
        if not code:
            spelt = f"{parameter.name or f'arg{parameter.ordinal}'}=u8[{parameter.size}]"
            fields = f"{spelt.partition('=')[0]}={{n=1024}}"
            raise UsageError(
                f"{place}: {parameter.size} bytes passed by value; give its fields, as in {fields}, or all bytes, as "
                f"{spelt} or a .npy file"
            )
    return Scalar(packed(code, [number], value, place), str(value))


def is_number_type(name: str) -> bool:
    """Whether a C++ type takes a number or several: `int`, `float4`, `half2`, `dim3`."""
    name = name.split("::")[-1]
    return bool(number_code(name) or VECTOR.match(name)) or name in HALVES or name in BFLOAT or name == "dim3"


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
        got = f"{len(parts)} number{'s' if len(parts) != 1 else ''}"
        raise UsageError(f"{place}: got {got}, expected {count}, as in {','.join(['1'] * count)}")
    return [number_of(part, place) for part in parts]


def _halves(name: str, value: Any, place: str) -> Scalar:
    numbers = _numbers(2, value, place)
    if "bfloat" in name:
        return Scalar(b"".join(_bfloat(number, value, place) for number in numbers), str(value))
    return Scalar(packed("<2e", numbers, value, place), str(value))


def _vector(code: str, count: int, value: Any, place: str) -> Scalar:
    numbers = _numbers(count, value, place)
    return Scalar(packed(f"<{count}{code}", numbers, value, place), str(value))


def packed(code: str, numbers: list[int | float], value: Any, place: str) -> bytes:
    """Numbers in a format of `struct`. Raises UsageError naming `place` for one that does not fit."""
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
    bits = int.from_bytes(packed("<f", [number], value, place), "little")
    if bits & 0x7F800000 != 0x7F800000:
        bits += 0x7FFF + (bits >> 16 & 1)
    return (bits >> 16).to_bytes(2, "little")


def number_of(value: Any, place: str) -> int | float:
    """A number, or the text of one as in C or Python. Raises UsageError naming `place` for anything else."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return number_of(value.item(), place)
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
    if name in BFLOAT or "bfloat" in name:
        return "bf16", 2
    if match := VECTOR.match(name):
        code = _CODES[match[1].lstrip("u") or match[1]]
        code = code.upper() if match[1].startswith("u") else code
    else:
        code = "e" if name in HALVES else number_code(name)[-1:]
    names = {"e": "f16", "f": "f32", "d": "f64", "?": "u8"}
    size = struct.calcsize(f"<{code}") if code else 1
    return names.get(code) or f"{'u' if code.isupper() or not code else 'i'}{8 * size}", size
