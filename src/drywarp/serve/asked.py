"""What the page may ask, checked: JSON objects as values of the right kind and size."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .limits import LEAST_FACTOR, MOST_FACTOR, MOST_LAUNCH, MOST_SOURCE

MOST_NAMES = 64
"""Sliders that one request may name."""


@dataclass(frozen=True, slots=True)
class Analyse:
    """A kernel to compile, emulate and simulate: its source, a GPU's name, and launch options as text."""

    source: str
    gpu: str
    launch: str = ""


@dataclass(frozen=True, slots=True)
class Resimulate:
    """A move of the sliders for the kernel of analysis `number`.

    `occupancy` is warps per SM (None: the launch's own); `lambda_factors` are by subsystem, `latency_factors` by
    group (see `change`). `settled` asks for the exact answer with its curve and events, else for the time alone.
    """

    number: int
    occupancy: int | None
    lambda_factors: Mapping[str, float]
    latency_factors: Mapping[str, float]
    settled: bool


def read_request(verb: str, body: bytes) -> Analyse | Resimulate:
    """The request in the body of a POST to `verb`. Raises UsageError saying what was expected."""
    try:
        given = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise UsageError("the request: expected one JSON object in UTF-8") from None
    if not isinstance(given, dict):
        raise UsageError("the request: expected one JSON object")
    if verb == "analyze":
        _only(given, "source", "gpu", "launch")
        source = _text(given, "source", MOST_SOURCE)
        if not source.strip():
            raise UsageError("source: expected a CUDA kernel")
        return Analyse(source, _text(given, "gpu", 100), _text(given, "launch", MOST_LAUNCH, ""))
    _only(given, "number", "occupancy", "lambda", "latency", "settled")
    occupancy, settled = given.get("occupancy"), given.get("settled", False)
    if not isinstance(settled, bool):
        raise UsageError("settled: expected true or false")
    return Resimulate(
        _whole(given.get("number"), "number"),
        None if occupancy is None else _whole(occupancy, "occupancy"),
        _factors(given.get("lambda", {}), "lambda"),
        _factors(given.get("latency", {}), "latency"),
        settled,
    )


def _only(given: Mapping[str, Any], *known: str) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"the request: unknown {name[:40]!r}; expected {', '.join(known)}")


def _text(given: Mapping[str, Any], name: str, most: int, default: str | None = None) -> str:
    value = given.get(name, default)
    if not isinstance(value, str):
        raise UsageError(f"{name}: expected a text")
    if len(value) > most:
        raise UsageError(f"{name}: {len(value):,} characters, expected at most {most:,}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UsageError(f"{name}: expected a text in Unicode")
    return value


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise UsageError(f"{name}: expected a positive whole number")
    return value


def _factors(given: Any, name: str) -> dict[str, float]:
    if not isinstance(given, dict) or len(given) > MOST_NAMES:
        raise UsageError(f"{name}: expected an object of at most {MOST_NAMES} factors")
    found = {}
    for key, value in given.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or not LEAST_FACTOR <= value <= MOST_FACTOR:
            raise UsageError(f"{name}: {key[:40]}: expected a factor from {LEAST_FACTOR} to {MOST_FACTOR}")
        found[key] = float(value)
    return found
