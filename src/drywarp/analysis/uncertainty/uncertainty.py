"""The uncertainty of each part of a band: data with a reason for each number (`uncertainty.toml`)."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ...hardware.fact import Fact

WEAK = ("proxy", "inherited", "assumed")
"""Kinds of facts that come from another GPU or have no source."""

Factor = Annotated[float, msgspec.Meta(ge=1)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A factor: the true value lies within 1/value to value times the one used, with the probability `level`."""

    value: Factor
    kind: Literal["measured", "derived", "assumed"]
    source: str
    note: str

    @property
    def log(self) -> float:
        """Half the width of the interval on a logarithmic scale."""
        return math.log(self.value)


class Constants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors for a GPU's constants by kind."""

    bandwidth: Entry
    memory_latency: Entry
    class_latency: Entry
    class_lambda: Entry


class Caches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors for the results of the memory analysis."""

    l1_misses: Entry
    constant_misses: Entry


class MemoryRates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors for the cost of certain kinds of accesses; `host` is for the rate of the bus to host memory."""

    atomics: Entry
    scattered: Entry
    host: Entry


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors for the machine code."""

    operations: Entry


class Sampled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors for the instructions of a grid that too few blocks represent: several alike, or one or different ones."""

    few_alike: Entry
    few_different: Entry


class LaunchTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors for the cost of a launch besides its blocks."""

    kernel_start: Entry
    dependent_blocks: Entry


class ModelError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The error that remains when everything else is right.

    For kernels limited by streaming DRAM, for those with the copy engine or asynchronous products, and for the rest.
    """

    stream: Entry
    asynchronous: Entry
    rest: Entry


class Uncertainty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; `level` is the probability to which every factor refers."""

    level: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    proxy: Constants
    assumed: Constants
    caches: Caches
    accesses: MemoryRates
    code: Code
    sampled: Sampled
    launch: LaunchTimes
    model: ModelError

    def of(self, key: str, fact: Fact) -> float:
        """Logarithmic half-width of a constant by its dotted key and kind; 0 if it is certain."""
        sort = sort_of(key)
        if sort is None or fact.kind not in WEAK:
            return 0.0
        found: Entry = getattr(self.assumed if fact.kind == "assumed" else self.proxy, sort)
        return found.log


def sort_of(key: str) -> str | None:
    """The field of `Constants` for a dotted key of a GPU file; None if no band scales it."""
    section, _, rest = key.partition(".")
    name = rest.rpartition(".")[2]
    if section == "classes":
        return {"lambda": "class_lambda", "latency": "class_latency"}.get(name)
    if section == "device":
        return {"block_launch_latency": "class_latency", "block_launch_interval": "class_lambda"}.get(rest)
    if section != "memory" or name == "peak_gbs":
        return None
    if "latency" in name:
        return "memory_latency"
    return "bandwidth" if name.endswith("_gbs") or name.startswith("bytes_per_cycle") else None


@cache
def uncertainty() -> Uncertainty:
    """The packaged data."""
    return msgspec.toml.decode((Path(__file__).parent / "uncertainty.toml").read_bytes(), type=Uncertainty)
