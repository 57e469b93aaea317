"""Option values as users type them, turned into what the API takes."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Literal

from ..errors import UsageError


def read_stdin() -> str:
    """CUDA C++ or PTX from standard input. Raises UsageError for what is no text."""
    try:
        return sys.stdin.buffer.read().decode("utf-8") + "\n"
    except UnicodeDecodeError:
        raise UsageError("standard input: not text (expected CUDA C++ source or PTX)") from None


def check_positive(value: float | None, option: str) -> None:
    """Raise UsageError where a number is given that is not positive and finite."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option} {value:g}: expected a positive number")


def pairs(texts: list[str] | None, option: str, value_needed: bool = True) -> dict[str, str]:
    """`NAME=VALUE` texts of a repeated option."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or (value_needed and not equals):
            raise UsageError(f"{option} {text!r}: expected NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} {text!r}: {name} is given twice")
        pairs[name] = value
    return pairs


def parse_percent(text: str | None, option: str) -> float | None:
    """`5%` as the fraction 0.05; the sign is needed, so that 0.05 and 5 are not taken for one another."""
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
    """`a100=1.2` of a repeated option."""
    found = {}
    for name, value in pairs(texts, option).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"{option} {name}={value}: expected a number, as in a100=1.2") from None
    return found


def launch_values(text: str | None, option: str) -> dict[str, Any]:
    """What stands in a launch comment (`--grid 64 -D TILE=16`) as what the API takes of a launch."""
    if text is None:
        return {}
    from ..frontends.comment import launch_options

    said = launch_options(text, option)
    values: dict[str, Any] = {
        "entry": said.entry,
        "grid": said.grid,
        "block": said.block,
        "shared": None if said.shared is None else int(said.shared),
        "std": said.std,
        "config": said.config,
        "args": said.arguments,
        "constants": said.constants,
        "defines": said.defines,
    }
    return {key: value for key, value in values.items() if value not in (None, {})}


def parse_trips(texts: list[str] | None) -> dict[str, int]:
    """`L1=64`, `file.cu:21=64` of a repeated option."""
    found = {}
    for name, value in pairs(texts, "--trip").items():
        if not value.isdecimal():
            raise UsageError(f"--trip {name}={value}: expected a whole number, as in L1=64 or file.cu:21=64")
        found[name] = int(value)
    return found


def parse_shares(texts: list[str] | None) -> dict[str, float]:
    """`21=0.25`, `file.cu:21=0.25` of a repeated option."""
    found = {}
    for name, value in pairs(texts, "--taken").items():
        try:
            found[name] = float(value)
        except ValueError:
            raise UsageError(f"--taken {name}={value}: expected a share between 0 and 1, as in 21=0.25") from None
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
    """`8,16` as it stands; `8-64` as every number between, of which the whole blocks are taken."""
    if text is None:
        return None
    try:
        if "-" in text:
            first, last = (int(part) for part in text.split("-"))
            return range(first, last + 1)
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--occupancy {text!r}: expected numbers of warps, as in 8,16,32 or 8-64") from None
