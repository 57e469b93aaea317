"""What a mangled symbol says of a kernel: its name, template arguments and the types of its parameters.

The C++ library's own demangler reads it; without one, symbols stay as they are.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ...kernel.kernel import Parameter
from ...kernel.launch.values import number_code
from ..cuda.source import Declared, parameters_of


@cache
def _library() -> Any:
    try:
        found = ctypes.CDLL("libstdc++.so.6")  # Numba needs it too
    except OSError:
        return None
    found.__cxa_demangle.restype = ctypes.c_void_p
    return found


def demangled(symbol: str) -> str:
    """The declaration that a C++ symbol stands for, such as ``void saxpy<float>(float, float*)``; others unchanged."""
    library = _library() if symbol.startswith("_Z") else None
    if library is None:
        return symbol
    status = ctypes.c_int()
    text = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not text:
        return symbol
    try:
        return ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def without_parameters(signature: str) -> str:
    """The name without return type and parameters: `f<(int)4>` for `void f<(int)4>(float*)`."""
    opening = _opening(signature)
    depth, start = 0, 0
    for at, char in enumerate(signature[:opening]):
        if char == " " and depth == 0:
            start = at + 1
        depth += (char in "<(") - (char in ">)")
    return signature[start:opening]


def _opening(signature: str) -> int:
    """Where the parameters begin; the length if there are none."""
    depth = 0
    for at, char in enumerate(signature):
        if char == "(" and depth == 0 and at and signature[at - 1] not in "<, ":
            return at
        depth += (char in "<(") - (char in ">)")
    return len(signature)


def declared_types(symbol: str) -> tuple[Declared, ...]:
    """The parameters of a C++ function by its symbol, without names; empty for other symbols."""
    signature = demangled(symbol)
    if signature == symbol:
        return ()
    listed = signature[_opening(signature) + 1 : signature.rfind(")")]
    # Pointers to arrays and functions need a name to be read as such: `float (*) [32]`.
    return tuple(parameters_of(re.sub(r"\(([*&])\)", r"(\1_)", listed)))


def with_types(parameters: Sequence[Parameter], symbol: str) -> tuple[Parameter, ...]:
    """The parameters of machine code with the types that the kernel's symbol states.

    Integers of eight bytes, and pointers to them, stay without a type: they may be textures or other handles. So do
    pointers to pointers, whose elements are addresses.
    """
    declared = declared_types(symbol)
    if len(declared) != len(parameters):
        return tuple(parameters)
    return tuple(
        replace(parameter, type="" if _is_opaque(one) else one.type, pointer=one.pointer)
        for parameter, one in zip(parameters, declared, strict=True)
    )


def _is_opaque(declared: Declared) -> bool:
    return declared.depth > 1 or number_code(declared.type).lower() == "<q"
