"""The answer for one row, and the disk cache of answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import lru_cache

import msgspec

from ...analysis.emulation_cache import Kept
from ...frontends import cache as disk
from ...hardware import Gpu
from ...models.gpuperf_terms import CHARTED
from ...support.folders import sources_digest


@dataclass(frozen=True)
class Answer:
    """The result of one row; `notes` concern the machine that it ran on."""

    facts: dict[str, int | float | str]
    times: dict[str, float]
    limiters: dict[str, str]
    notes: tuple[str, ...] = ()


# The facts about a predicted row besides times: their column names in files.

BAND_LEVEL, BAND_LOW, BAND_HIGH = "band_level", "band_low_s", "band_high_s"
CLOCK_LOW, CLOCK_HIGH = "band_at_clock_low_s", "band_at_clock_high_s"
BAND = (BAND_LEVEL, BAND_LOW, BAND_HIGH, CLOCK_LOW, CLOCK_HIGH)
"""The band of the primary model's time: its probability, and its ends in seconds over all clocks and at the assumed
clock; empty without a band. Files of earlier versions lack these columns."""
BENEFITS = (*(f"{name}_cycles" for name in CHARTED), "benefits_not_applicable")
"""GPUPerf's benefit chart in cycles of an SM, and why it is missing; empty unless requested."""
SPENT = ("compile_s", "emulate_s", "memory_s", "models_s")
"""Wall time of a row by step; only compilation if its answer was cached."""
FACTS = (
    *("clock_mhz", "registers", "register_cap", "local_bytes", "shared_bytes", "code_instructions", "warps_per_sm"),
    *("occupancy", "occupancy_limited_by", "waves", "warp_instructions", "l1_hit_rate", "l2_hit_rate", "dram_bytes"),
    *("achieved_warps", "busiest", "utilization", *BAND, *SPENT),
)
"""Facts about a kernel and its launch besides times: `register_cap` is 0 if none was needed; `waves` is the number of
blocks over the blocks that the GPU holds at once; `utilization` lists the share of time that each subsystem is busy;
the last four are wall times."""
NOT_APPLICABLE = "not applicable: "
"""Prefix of the limiter of a model that does not apply to a row; the reason follows."""


# A GPU identified by its values.


@lru_cache(maxsize=64)
def values_hash(gpu: Gpu) -> str:
    """A hash of every value of a GPU, because a GPU changed in Python still has its file's hash."""
    values = [repr(getattr(gpu, field.name)) for field in fields(gpu)]
    return hashlib.sha256("\0".join(values).encode()).hexdigest()


# Answers of rows cached on disk: predicted once per machine code, launch, GPU and settings, then read back.
#
# An answer is only cached if its emulation is, so nothing that a time limit cut short. Its name is a hash of everything
# it depends on, including the sources of drywarp.

FOLDER = "answers"
MOST_BYTES = 256 << 20
"""Most bytes of all answers together: some hundred thousand answers."""


def key_of(place: Kept, gpu: Gpu, settings: str) -> str:
    """The name of an answer; empty if the emulation cannot be cached. `settings` is everything else it depends on."""
    if not place.key:
        return ""
    sources = sources_digest(suffixes=(".py", ".toml", ".c", ".h"))
    return hashlib.sha256("\0".join((place.key, values_hash(gpu), settings, sources)).encode()).hexdigest()


def read(key: str) -> Answer | None:
    """The answer that an earlier run cached, else None."""
    data = disk.read(FOLDER, key) if key else None
    try:
        return None if data is None else msgspec.json.decode(data, type=Answer)
    except msgspec.MsgspecError:
        return None


def keep(key: str, answer: Answer) -> None:
    """Cache an answer for later runs; does nothing if that is impossible."""
    if key:
        disk.write(FOLDER, key, msgspec.json.encode(answer), MOST_BYTES)
