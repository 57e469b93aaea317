"""Data that a block loads again and again, from global or from shared memory."""

from __future__ import annotations

from ..case import Case
from ..reuse import Reuse, reuse_by_buffer
from ..setting import Setting
from ..whatifs.base import WhatIf
from ..whatifs.fewer import lighter
from ..whatifs.loaded_once import loaded_once
from .base import Documentation, Suspicion, register

_LEAST_TIMES, _LEAST_READS = 2.0, 4.0
_LEAST_USE, _LEAST_STALLS = 0.6, 0.25
_TILED, _LEAST_WORDS = 0.25, 0.5
"""The share of the loads that a tile of four by four results leaves; words per operation that such a tile has."""


@register
class RedundantLoads:
    """How often a block asks for each sector, and how often values in shared memory are read."""

    name = "redundant-loads"
    title = "a block loads the same data several times"
    documentation = Documentation(
        what="Finds buffers in global memory of which a block asks for each sector several times, and values in "
        "shared memory that are read four times or more while the load-store unit is busy with that.",
        why="Every request beyond the first takes a place in the load-store unit, which all partitions share, and "
        "moves bytes that the block has had before: through the L1 where they are still there, else from the "
        "L2 or from DRAM.",
        evidence="Sectors that a sampled block asks for, over the distinct ones among them, by buffer; or words loaded "
        "from shared memory over words stored there. For global memory the gain is that of simulating each "
        "sector fetched once per block and found in the L1 from then on. Where the load-store unit is busy, "
        "in both cases, these loads take a quarter of its time, which is what a tile of four by four results "
        "per thread leaves.",
        change="From global memory: load a tile into shared memory once, and let all threads of the block read it "
        "there. From shared memory: let each thread compute a tile of results (4x4, 8x8), so that a value "
        "loaded into a register serves a whole row or column of it; loads of 16 bytes save instructions as "
        "well.",
        before="for (int k = 0; k < 16; ++k) sum += a[ty][k] * b[k][tx];        // 2 loads per FMA",
        after="for (int k = 0; k < 16; ++k) {\n"
        "  float a0 = a[ty][k], a1 = a[ty + 16][k], b0 = b[k][tx], b1 = b[k][tx + 16];\n"
        "  s00 += a0 * b0; s01 += a0 * b1; s10 += a1 * b0; s11 += a1 * b1;  // 1 load per FMA\n"
        "}",
    )

    def look(self, case: Case) -> Suspicion | None:
        """Shared memory where its loads are most of what the load-store unit does, else global memory."""
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
                    f"each value in shared memory is read {reads:.0f} times; the load-store unit is in use {busy:.0%}",
                    "compute a tile of results per thread, so that values stay in registers; load 16 bytes at a time",
                    busy * (1 - _TILED),
                )
        found = {name: use for name, use in reuse_by_buffer(setting).items() if use.times >= _LEAST_TIMES}
        far = max(busy * (1 - _TILED) if full else 0.0, case.use("dram"), case.stall_share("long_scoreboard"))
        return self._global(setting, found, full, far / 2) if found else None

    @staticmethod
    def _global(setting: Setting, found: dict[str, Reuse], full: bool, weight: float) -> Suspicion:
        order = sorted(found, key=lambda name: -found[name].requested * (1 - 1 / found[name].times))
        times = {index: use.times for use in found.values() for index in use.instructions}
        said = ", ".join(f"{name or 'some data'} {found[name].times:.0f} times" for name in order[:3])
        return Suspicion(
            _once_and_lighter(times) if full else loaded_once(times),
            setting.places(index for name in order for index in found[name].instructions),
            f"a block asks for each sector several times: {said}",
            "keep a tile of it in shared memory, or reuse it from registers",
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
    """Bytes that lanes load from shared memory over those that they put there."""
    counts = setting.profile.thread_instructions.sum(axis=0)
    moved = {"load": 0.0, "put": 0.0}
    for index, ins in enumerate(setting.profile.kernel.instructions):
        if ins.memory and ins.memory.space == "shared" and ins.memory.kind in ("load", "store"):
            moved["load" if ins.memory.kind == "load" else "put"] += float(counts[index] * ins.memory.width)
        elif ins.memory and ins.memory.kind == "copy":
            moved["put"] += float(counts[index] * ins.memory.width)
    return moved["load"] / moved["put"] if moved["put"] else 0.0


def words_per_operation(setting: Setting) -> float:
    """Words that lanes load from shared memory over their floating-point operations; infinite where there are none."""
    counts = setting.profile.thread_instructions.sum(axis=0)
    loads = {n: setting.instructions[n].memory for n in setting.indices("shared_load")}
    words = sum(float(counts[n]) * memory.width / 4 for n, memory in loads.items() if memory)
    operations = sum(float(counts[n]) for n in setting.indices("fp32", "fp16", "fp64"))
    return float(words) / operations if operations else float("inf")
