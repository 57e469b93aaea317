"""From option values as typed to the API's types."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ..errors import InputFileError, UsageError


def kernel_source(name: str) -> str | Path:
    """The path of a kernel's file, or for ``-`` the text on standard input. Raises UsageError if that is not text."""
    if name != "-":
        return Path(name)
    try:
        return sys.stdin.buffer.read().decode("utf-8") + "\n"
    except UnicodeDecodeError:
        raise UsageError("standard input: not text (expected CUDA C++ source or PTX)") from None


def check_positive(value: float | None, option: str) -> None:
    """Raise UsageError if a number is given that is not positive and finite."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option} {value:g}: expected a positive number")


def parse_clock(text: str | None) -> float | str | None:
    """A clock in MHz, or the name of one in the GPU file. Raises UsageError for an invalid number."""
    try:
        mhz = None if text is None else float(text)
    except ValueError:
        return text
    check_positive(mhz, "--clock")
    return mhz


def pairs(texts: list[str] | None, option: str, value_needed: bool = True) -> dict[str, str]:
    """The values of a repeated `NAME=VALUE` option, by name."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or (value_needed and not equals):
            raise UsageError(f"{option} {text!r}: expected NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} {text!r}: {name} is given twice")
        pairs[name] = value
    return pairs


def argument_file(name: str | None) -> dict[str, Any]:
    """The arguments in a TOML file, by name: strings as on the command line, numbers, lists of numbers, tables.

    Raises InputFileError that names the file for anything else.
    """
    if name is None:
        return {}
    from ..support.folders import read_toml

    given = read_toml(Path(name), "a TOML file of arguments, as in n = 4096")
    return {argument: _argument_text(value, f"{name}: {argument}") for argument, value in given.items()}


def _argument_text(value: Any, place: str) -> Any:
    if isinstance(value, bool | int | float | str):
        return str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        return ",".join(map(str, value))
    if isinstance(value, dict):  # the fields of a structure, read by its layout
        return value
    raise InputFileError(f"{place}: expected a number, a string such as 'f32[64]:ones', a list of numbers, or a table")


def parse_percent(text: str | None, option: str) -> float | None:
    """`5%` as the fraction 0.05; the percent sign is required, so that 0.05 and 5 cannot be confused."""
    if text is None:
        return None
    try:
        value = float(text.removesuffix("%")) if text.endswith("%") else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{option} {text!r}: expected a percentage such as 5%")
    return value / 100


def numbers_by_name(texts: list[str] | None, option: str) -> dict[str, float]:
    """The values of a repeated option such as `a100=1.2`, by name."""
    found = {}
    for name, value in pairs(texts, option).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"{option} {name}={value}: expected a number, as in a100=1.2") from None
    return found


def launch_values(text: str | None, option: str) -> dict[str, Any]:
    """Parse launch options, as in a launch comment (`--grid 64 -D TILE=16`), into the API's launch arguments."""
    if text is None:
        return {}
    from ..frontends.loaded import launch_options

    return launch_options(text, option).stated()


def parse_trips(texts: list[str] | None) -> dict[str, int]:
    """Trip counts by loop, from `L1=64` or `file.cu:21=64`."""
    found = {}
    for name, value in pairs(texts, "--trip").items():
        if not value.isdecimal():
            raise UsageError(f"--trip {name}={value}: expected a whole number, as in L1=64 or file.cu:21=64")
        found[name] = int(value)
    return found


def parse_shares(texts: list[str] | None) -> dict[str, float]:
    """Taken fractions by line, from `21=0.25` or `file.cu:21=0.25`."""
    found = {}
    for name, value in pairs(texts, "--taken").items():
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"--taken {name}={value}: expected a fraction between 0 and 1, as in 21=0.25") from None
    return found


def parse_blocks(text: str | None) -> int | list[int] | Literal["all"] | None:
    """A number of blocks to sample, `all`, or several indices."""
    if text is None:
        return None
    if text == "all":
        return "all"
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or (len(numbers) == 1 and numbers[0] < 1):
        raise UsageError(f"--blocks {text!r}: expected a number of blocks, all, or indices such as 0,5,9")
    return numbers[0] if len(numbers) == 1 else numbers


def parse_occupancies(text: str | None) -> Sequence[int] | None:
    """`8,16` as listed; `8-64` as every number in the range; only multiples of the block size are used."""
    if text is None:
        return None
    try:
        if "-" in text:
            first, last = (int(part) for part in text.split("-"))
            return range(first, last + 1)
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--occupancy {text!r}: expected numbers of warps, as in 8,16,32 or 8-64") from None
