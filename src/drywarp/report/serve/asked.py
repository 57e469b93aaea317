"""The requests that the page may send, and their limits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError

MOST_BODY = 512 * 1024
"""Maximum bytes of a request."""

MOST_SOURCE = 256 * 1024
"""Maximum characters of a pasted kernel."""

MOST_LAUNCH = 8 * 1024
"""Maximum characters of the launch options."""

MOST_EVENTS = 20_000
"""Maximum issues in the execution profile, which covers one wave."""

MOST_LOG = 20_000
"""Maximum characters shown of a compiler log."""

MOST_AT_ONCE = 8
"""Maximum concurrent connections; more are refused."""

READ_SECONDS = 10.0
"""Seconds within which a complete request must arrive."""

MOVE_SECONDS = 60.0
"""Time limit of one slider move, in seconds."""

MEMORY_BYTES = 32 * 2**30
"""Maximum address space of the process that compiles, emulates and simulates."""

LEAST_FACTOR, MOST_FACTOR = 0.05, 20.0
"""The range of factors for λ and Λ."""


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """Limits set on the command line: lane steps of the emulation, as for `analyze`, and seconds per analysis.

    If an analysis takes longer, its process is killed.
    """

    lane_steps: int = 2_000_000_000
    analysis_seconds: float = 300.0


# Validation of requests: JSON objects with values of the right type and size.

MOST_NAMES = 64
"""Maximum sliders that one request may name."""


@dataclass(frozen=True, slots=True)
class Analyse:
    """A kernel to compile, emulate and simulate: its source, a GPU's name, and launch options as text."""

    source: str
    gpu: str
    launch: str = ""


@dataclass(frozen=True, slots=True)
class Resimulate:
    """A slider move for the kernel of analysis `number`.

    `occupancy` is in warps per SM (None: the launch's own); `lambda_factors` are by subsystem, `latency_factors` by
    group (see `change`). `settled` requests the exact result with curve and events; otherwise only the time.
    """

    number: int
    occupancy: int | None
    lambda_factors: Mapping[str, float]
    latency_factors: Mapping[str, float]
    settled: bool


def read_request(verb: str, body: bytes) -> Analyse | Resimulate:
    """Parse the body of a POST to `verb`. Raises UsageError that states what was expected."""
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
        raise UsageError(f"{name}: expected a string")
    if len(value) > most:
        raise UsageError(f"{name}: {len(value):,} characters, expected at most {most:,}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UsageError(f"{name}: expected valid Unicode")
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
