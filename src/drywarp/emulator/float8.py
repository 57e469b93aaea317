"""The two 8-bit floating-point types: E4M3 (no infinity, one NaN) and E5M2 (as IEEE's)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

_FORMS = {"E4M3": (4, 3, 7), "E5M2": (5, 2, 15)}
"""Exponent bits, mantissa bits, bias."""


@cache
def _table(name: str) -> npt.NDArray[np.float32]:
    """The numbers of all 256 bit patterns."""
    exponent_bits, mantissa_bits, bias = _FORMS[name]
    bits = np.arange(256)
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = (bits & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    if name == "E4M3":
        values[bits & 0x7F == 0x7F] = np.nan
    else:
        top = exponent == 31
        values[top] = np.where(mantissa[top] == 0, np.inf, np.nan)
    return np.where(bits >= 128, -values, values).astype(np.float32)


def float8_to_single(bits: Any, name: str) -> npt.NDArray[np.float32]:
    """Numbers of bit patterns (uint8) of ``E4M3`` or ``E5M2``."""
    return np.asarray(_table(name)[bits])
