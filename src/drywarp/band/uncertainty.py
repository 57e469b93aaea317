"""How uncertain the parts of a band are: data with a reason for each number (`uncertainty.toml`)."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ..hardware.fact import Fact

WEAK = ("proxy", "inherited", "assumed")
"""Kinds of facts that come from another GPU, or from nowhere."""

Factor = Annotated[float, msgspec.Meta(ge=1)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A factor: the true value lies between 1/value and value times the one used, as often as the level says."""

    value: Factor
    kind: Literal["measured", "derived", "assumed"]
    source: str
    note: str

    @property
    def log(self) -> float:
        """Half the width of the interval on a logarithmic scale."""
        return math.log(self.value)


class Constants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors of a GPU's constants by what they are."""

    bandwidth: Entry
    memory_latency: Entry
    class_latency: Entry
    class_lambda: Entry


class Caches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors of what the memory analysis finds."""

    l1_misses: Entry


class LaunchTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Factors of what a launch takes besides its blocks."""

    kernel_start: Entry
    dependent_blocks: Entry


class ModelError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left when everything else is right."""

    residual: Entry


class Uncertainty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of the file; `level` is the probability that every factor is stated for."""

    level: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    proxy: Constants
    assumed: Constants
    caches: Caches
    launch: LaunchTimes
    model: ModelError

    def of(self, key: str, fact: Fact) -> float:
        """Half the width, on a logarithmic scale, of a constant by its dotted key and kind; 0 where it is firm."""
        sort = sort_of(key)
        if sort is None or fact.kind not in WEAK:
            return 0.0
        found: Entry = getattr(self.assumed if fact.kind == "assumed" else self.proxy, sort)
        return found.log


def sort_of(key: str) -> str | None:
    """Which of the fields of `Constants` a dotted key of a GPU file is; None for what no band scales."""
    section, _, rest = key.partition(".")
    name = rest.rpartition(".")[2]
    if section == "classes":
        return {"lambda": "class_lambda", "latency": "class_latency"}.get(name)
    if key == "device.block_launch_latency":
        return "class_latency"
    if section != "memory" or name == "peak_gbs":
        return None
    if "latency" in name:
        return "memory_latency"
    return "bandwidth" if name.endswith("_gbs") or name.startswith("bytes_per_cycle") else None


@cache
def uncertainty() -> Uncertainty:
    """The packaged data."""
    return msgspec.toml.decode((Path(__file__).parent / "uncertainty.toml").read_bytes(), type=Uncertainty)
