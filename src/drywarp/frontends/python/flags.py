"""Compiler flags as CuPy, PyTorch and PyCUDA take them, as far as they change machine code."""

from __future__ import annotations

from collections.abc import Sequence

from ..cuda import CudaOptions

_VALUED = ("--fmad", "--ftz", "--prec-div", "--prec-sqrt")
_SHORT = {"-fmad": "--fmad", "-ftz": "--ftz", "-prec-div": "--prec-div", "-prec-sqrt": "--prec-sqrt"}


def cuda_options(flags: Sequence[str]) -> CudaOptions:
    """Macros, include folders, standard, register cap and arithmetic flags; all others mean nothing here."""
    defines: dict[str, str] = {}
    includes: list[str] = []
    arithmetic: list[str] = []
    std, registers = None, None
    words = iter([word for flag in flags for word in flag.split()])
    for word in words:
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        if word.startswith("-D"):
            macro, _, meaning = (word[2:] or next(words, "")).partition("=")
            defines[macro] = meaning
        elif word.startswith("-I"):
            includes.append(word[2:] or next(words, ""))
        elif name in ("--std", "-std") and equals:
            std = value
        elif name in ("--maxrregcount", "-maxrregcount"):
            number = value or next(words, "")
            registers = int(number) if number.isdecimal() else registers
        elif name in ("--use_fast_math", "-use_fast_math"):
            arithmetic.append("--use_fast_math")
        elif name in _VALUED and equals:
            arithmetic.append(f"{name}={value}")
    return CudaOptions(defines, tuple(includes), std, registers, tuple(arithmetic))
