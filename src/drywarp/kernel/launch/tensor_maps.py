"""User syntax for tensor maps, and the maps that the driver accepts (`cuTensorMapEncodeTiled` and `…Im2col`).

tensormap(box=128x64,swizzle=128):f16[4096,4096]:random
tensormap(box=64x64):C          another view of the buffer of argument C
tensormap(box=128x64,lower=-1x-1,upper=-1x-1):f16[8,56,56,64]          im2col: 128 pixels of 64 channels
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import UsageError
from ..kernel import Parameter
from .launch import DTYPES, MAP_BYTES, SWIZZLES, Buffer, TensorMap, array_buffer

EXAMPLE = "tensormap(box=64x64,swizzle=128):f16[4096,4096]:random"
MAP_TYPES = ("CUtensorMap", "CUtensorMap_st")
_TEXT = re.compile(r"^tensormap\(([^()]*)\):(.+)$", re.S)
_NAME = re.compile(r"^[A-Za-z_]\w*(?:(?:\[\d+\])?\.[A-Za-z_]\w*)*$")
"""An argument, or a field of one."""
_EXTENTS = {"box": "box", "shape": "shape", "strides": "strides", "step": "element_strides"}
_CORNERS = ("lower", "upper")
"""Fields of `TensorMap` for the options that list extents."""
_MOST_DIMENSIONS, _LARGEST_BOX, _LARGEST_STEP = 5, 256, 8
_PIECE = 16
"""Alignment in bytes of a row of a box, and of the distance between rows in memory."""
_MOST_PIXELS = 1024
_FARTHEST = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}
"""How far below zero a corner of an im2col map of so many dimensions may lie; above zero, one less."""


def tensor_map(
    tensor: Any,
    *,
    box: Sequence[int],
    swizzle: int = 0,
    shape: Sequence[int] = (),
    strides: Sequence[int] = (),
    step: Sequence[int] = (),
    nan: bool = False,
    lower: Sequence[int] = (),
    upper: Sequence[int] = (),
) -> TensorMap:
    """Create a tensor map over a NumPy array, or over the buffer of another argument, given by name.

    Extents are in NumPy order, the fastest dimension last. `shape` and `strides` (in elements, of all dimensions but
    the last) view the buffer as a different tensor; `step` is the element strides of a box. `lower` and `upper`
    make it an im2col map (see `TensorMap`). Raises UsageError for anything that the driver would reject; a map of
    another argument is checked when the launch is created.
    """
    buffer = array_buffer(tensor) if isinstance(tensor, np.ndarray) else tensor if isinstance(tensor, Buffer) else None
    name = tensor if isinstance(tensor, str) and _NAME.match(tensor) else ""
    if buffer is None and not name:
        raise UsageError(f"tensor map: got {tensor!r}, expected an array or the name of another argument")
    made = TensorMap(buffer, name, tuple(box), tuple(shape), tuple(strides), tuple(step), int(swizzle), bool(nan))
    made = replace(made, lower=tuple(lower), upper=tuple(upper))
    return made if buffer is None else completed(made, buffer, "tensor map")


def given_map(
    parameter: Parameter, value: Any, place: str, buffer_of: Callable[[Any, str], Buffer | None]
) -> TensorMap | None:
    """The value as a tensor map; None if it is something else that the parameter may take.

    `buffer_of` parses a buffer. Raises UsageError naming `place`.
    """
    given = value if isinstance(value, TensorMap) else None
    if isinstance(value, str):
        given = _parsed(value.strip(), place, buffer_of)
    wanted = parameter.type.split("::")[-1] in MAP_TYPES and not parameter.pointer
    if given is None:
        if wanted:
            raise UsageError(f"{place}: got {value!r}, expected a tensor map, as in {EXAMPLE}")
        return None
    if parameter.pointer or parameter.size != MAP_BYTES:
        raise UsageError(f"{place}: got a tensor map, which is {MAP_BYTES} bytes passed by value")
    return given


def _parsed(text: str, place: str, buffer_of: Callable[[Any, str], Buffer | None]) -> TensorMap | None:
    match = _TEXT.match(text)
    if match is None:
        if re.match(r"^tensormap\b", text):
            raise UsageError(f"{place}: {text!r}: expected {EXAMPLE}")
        return None
    said: dict[str, Any] = {}
    for option in filter(None, (part.strip() for part in match[1].split(","))):
        name, equals, number = option.partition("=")
        if name == "nan" and not equals:
            said["nan"] = True
        elif name == "swizzle" and number.isdecimal():
            said[name] = int(number)
        elif name in _EXTENTS and re.fullmatch(r"\d+(x\d+)*", number):
            said[_EXTENTS[name]] = tuple(int(part) for part in number.split("x"))
        elif name in _CORNERS and re.fullmatch(r"-?\d+(x-?\d+)*", number):
            said[name] = tuple(int(part) for part in number.split("x"))
        else:
            raise UsageError(
                f"{place}: tensor map option {option!r}: expected box=64x64 or step=1x1 (in elements), swizzle=128 "
                "(in bytes, default 0), shape=4096x4096 or strides=4096 (in elements, default: the buffer's), nan, "
                "or for im2col lower=-1x-1 and upper=-1x-1 (in pixels)"
            )
    if "box" not in said:
        raise UsageError(f"{place}: {text!r}: no box; expected {EXAMPLE}")
    name = match[2].strip()
    if _NAME.match(name):
        return TensorMap(None, name, **said)
    buffer = buffer_of(name, place)
    if buffer is None:
        raise UsageError(f"{place}: {text!r}: expected a buffer or the name of an argument, as in {EXAMPLE}")
    return completed(TensorMap(buffer, "", **said), buffer, place)


def completed(made: TensorMap, buffer: Buffer, place: str) -> TensorMap:
    """The map with its defaults filled in from the buffer. Raises UsageError for anything that the driver rejects."""
    shape = made.shape or buffer.shape
    rank, width = len(shape), DTYPES[buffer.dtype][1]

    def need(holds: bool, expected: str) -> None:
        if not holds:
            raise UsageError(f"{place}: {expected}")

    def listed(extents: tuple[int, ...]) -> str:
        return "x".join(map(str, extents))

    need(1 <= rank <= _MOST_DIMENSIONS, f"a tensor of {rank} dimensions: expected 1 to {_MOST_DIMENSIONS}")
    need(min(shape) >= 1 and max(shape) <= 1 << 32, f"shape {listed(shape)}: expected extents of 1 to 2³²")
    if made.lower or made.upper:
        _check_columns(made, rank, need)
    else:
        need(len(made.box) == rank, f"box {listed(made.box)}: expected {rank} extents, as the tensor has")
        box_fits = all(1 <= extent <= _LARGEST_BOX for extent in made.box)
        need(box_fits, f"box {listed(made.box)}: expected extents of 1 to {_LARGEST_BOX}")
    row = made.box[-1] * width
    need(row % _PIECE == 0, f"box {listed(made.box)}: {row} bytes in a row, expected a multiple of {_PIECE}")
    need(made.swizzle in SWIZZLES, f"swizzle {made.swizzle}: expected one of {', '.join(map(str, SWIZZLES))}")
    need(
        not made.swizzle or row <= made.swizzle,
        f"box {listed(made.box)}: {row} bytes in a row, expected at most the swizzle's {made.swizzle}",
    )
    steps = made.element_strides or (1,) * rank
    step_fits = len(steps) == rank and all(1 <= step <= _LARGEST_STEP for step in steps)
    need(step_fits, f"step {listed(steps)}: expected {rank} numbers of elements, 1 to {_LARGEST_STEP}")
    strides = made.strides or tuple(int(np.prod(shape[axis + 1 :])) for axis in range(rank - 1))
    need(len(strides) == rank - 1, f"strides {listed(strides)}: expected {rank - 1} in elements, all but the last")
    apart = tuple(stride * width for stride in strides)
    need(all(gap % _PIECE == 0 for gap in apart), f"rows {listed(apart)} bytes apart: expected multiples of {_PIECE}")
    need(max(apart, default=0) < 1 << 40, f"rows {listed(apart)} bytes apart: expected less than 2⁴⁰")
    last = sum((extent - 1) * stride for extent, stride in zip(shape, (*strides, 1), strict=True)) + 1
    need(last <= buffer.count, f"the tensor needs {last} elements, but its buffer has {buffer.count}")
    need(not made.nan or buffer.dtype in ("f16", "bf16", "f32", "f64"), f"nan: {buffer.dtype} has no NaN")
    return replace(made, shape=shape, strides=strides, element_strides=steps, dtype=buffer.dtype)


def _check_columns(made: TensorMap, rank: int, need: Callable[[bool, str], None]) -> None:
    """What the driver asks of an im2col map (CUDA driver API 13, `cuTensorMapEncodeIm2col`)."""
    box = "x".join(map(str, made.box))
    need(rank in _FARTHEST, f"an im2col map of {rank} dimensions: expected 3 to 5")
    fits = len(made.box) == 2 and 1 <= made.box[0] <= _MOST_PIXELS and 1 <= made.box[1] <= _LARGEST_BOX
    need(fits, f"box {box}: expected 1 to {_MOST_PIXELS} pixels x 1 to {_LARGEST_BOX} channels, as in box=128x64")
    for name, corner in made.corners:
        most = _FARTHEST[rank]
        near = len(corner) == rank - 2 and all(-most <= part < most for part in corner)
        text = "x".join(map(str, corner)) or "missing"
        need(near, f"{name} {text}: expected {rank - 2} numbers of pixels, {-most} to {most - 1}")
