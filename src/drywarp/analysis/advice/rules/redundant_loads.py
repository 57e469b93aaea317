"""Data that a block loads repeatedly, from global or from shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....memory.behaviour import AccessBehaviour
from ..case import Case, Setting
from ..resimulate import Reuse, reuse_by_buffer
from ..whatif import WhatIf, lighter
from .base import Suspicion, rule

# Global data that each block fetches once and then reuses nearby.
#
# As if it were staged in shared memory: each sector leaves the L1 once per block, and all later loads of it hit. They
# still occupy the load-store unit.


def loaded_once(times: Mapping[int, float]) -> WhatIf:
    """`times`: for each load, how often a block requests each sector on average."""

    def apply(setting: Setting) -> Setting | None:
        accesses = {
            index: _once(access, times[index]) if index in times else access
            for index, access in setting.behaviour.accesses.items()
        }
        if accesses == dict(setting.behaviour.accesses):
            return None
        return replace(setting, behaviour=replace(setting.behaviour, accesses=accesses))

    return WhatIf("each sector loaded once per block", "code", apply)


def _once(access: AccessBehaviour, times: float) -> AccessBehaviour:
    to_l2 = access.units * min(1 - access.l1_hit, 1 / times)
    missed = min(access.units * (1 - access.l1_hit) * (1 - access.l2_hit), to_l2)
    return replace(
        access,
        l1_hit=1 - to_l2 / access.units if access.units else 1.0,
        l2_hit=1 - missed / to_l2 if to_l2 else 1.0,
        dram_read=min(access.dram_read, to_l2),
    )


_LEAST_TIMES, _LEAST_READS = 2.0, 4.0
_LEAST_USE, _LEAST_STALLS = 0.6, 0.25
_TILED, _LEAST_WORDS = 0.25, 0.5
"""Share of the loads left with a 4x4 tile of results per thread; least words loaded per operation to suggest one."""


@rule("redundant-loads")
def redundant_loads(case: Case) -> Suspicion | None:
    """Values of shared memory where its loads dominate a busy load-store unit, else sectors of global memory."""
    setting = case.setting
    shared, outside = setting.indices("shared_load"), setting.indices("global_load", "async_copy")
    busy = case.use_by("shared_load")
    waits = case.stall_share("mio_throttle", "lg_throttle", "short_scoreboard")
    full = busy >= _LEAST_USE or waits >= _LEAST_STALLS
    if full and _executed(setting, shared) > _executed(setting, outside):
        reads = reads_per_value(setting)
        if reads >= _LEAST_READS and words_per_operation(setting) >= _LEAST_WORDS:
            return Suspicion(
                lighter(frozenset(shared), _TILED, "a quarter of the loads from shared memory"),
                setting.places(sorted(shared, key=lambda index: -setting.executions[index])),
                f"each shared-memory value is read {reads:.0f} times; the load-store unit is busy {busy:.0%}",
                "compute a tile of results per thread, so that values stay in registers; load 16 bytes at a time",
                busy * (1 - _TILED),
            )
    found = {name: use for name, use in reuse_by_buffer(setting).items() if use.times >= _LEAST_TIMES}
    far = max(busy * (1 - _TILED) if full else 0.0, case.use("dram"), case.stall_share("long_scoreboard"))
    return _global(setting, found, full, far / 2) if found else None


def _global(setting: Setting, found: dict[str, Reuse], full: bool, weight: float) -> Suspicion:
    order = sorted(found, key=lambda name: -found[name].requested * (1 - 1 / found[name].times))
    times = {index: use.times for use in found.values() for index in use.instructions}
    said = ", ".join(f"{name or 'some data'} {found[name].times:.0f} times" for name in order[:3])
    return Suspicion(
        _once_and_lighter(times) if full else loaded_once(times),
        setting.places(index for name in order for index in found[name].instructions),
        f"a block requests each sector several times: {said}",
        "stage a tile of it in shared memory, or reuse it from registers",
        weight,
    )


def _executed(setting: Setting, instructions: list[int]) -> float:
    return sum(setting.executions[index] for index in instructions)


def _once_and_lighter(times: dict[int, float]) -> WhatIf:
    once = loaded_once(times)
    fewer = lighter(frozenset(times), _TILED, "")
    name = f"{once.name}, in a quarter of the loads"
    return WhatIf(name, "code", lambda setting: fewer.apply(once.apply(setting) or setting))


def reads_per_value(setting: Setting) -> float:
    """Bytes that lanes load from shared memory per byte that they store there."""
    counts = setting.profile.thread_instructions.sum(axis=0)
    moved = {"load": 0.0, "put": 0.0}
    for index, ins in enumerate(setting.profile.kernel.instructions):
        if ins.memory and ins.memory.space == "shared" and ins.memory.kind in ("load", "store"):
            moved["load" if ins.memory.kind == "load" else "put"] += float(counts[index] * ins.memory.width)
        elif ins.memory and ins.memory.kind == "copy":
            moved["put"] += float(counts[index] * ins.memory.width)
    return moved["load"] / moved["put"] if moved["put"] else 0.0


def words_per_operation(setting: Setting) -> float:
    """Words that lanes load from shared memory per floating-point operation; infinite if there are no operations."""
    counts = setting.profile.thread_instructions.sum(axis=0)
    loads = {n: setting.instructions[n].memory for n in setting.indices("shared_load")}
    words = sum(float(counts[n]) * memory.width / 4 for n, memory in loads.items() if memory)
    operations = sum(float(counts[n]) for n in setting.indices("fp32", "fp16", "fp64"))
    return float(words) / operations if operations else float("inf")
