"""The mapper of the analysis paper's experiments: every access to a space behaves like the mean one.

Lemeire, Cornelis, Konstantinidis, "Analysis of the analytical performance models for GPUs", §6.3: R, bytes moved to and
from DRAM over bytes that global accesses ask for, splits them between L2 and DRAM; D, the bank conflict degree,
multiplies shared accesses. Both come from a profiler or from the emulated behaviour. If a profiler also reports the L1
hit rate, that share of the loads stays in the L1, which the paper's GPUs lacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, Profile
from .behaviour import AccessBehaviour, MemoryBehaviour

METHOD = "averaged"
"""How memory is modelled when averages are used: those of a profile if there is one."""


_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_LOCAL = "l1tex__t_{}_pipe_lsu_mem_local_op_{}.sum"
_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_SHARED_REQUESTS = "smsp__inst_executed_op_shared_{}.sum"
_WORDS = {"load": "ld", "store": "st"}
Key = tuple[int, str]


@dataclass(frozen=True)
class MemoryAverages:
    """What a profile reports about memory; None where it gives nothing.

    `units` maps (space, ``load`` or ``store``) to sectors or wavefronts of the whole grid; `l1_hit` and `l2_hit` are
    fractions; `dram_read` and `dram_write` sectors of the whole grid.
    """

    units: Mapping[Key, float]
    l1_hit: float | None
    l2_hit: float | None
    dram_read: float | None
    dram_write: float | None

    @property
    def said(self) -> tuple[str, ...]:
        """The reported values, in words."""
        spaces = {SPACE_GLOBAL: "global", SPACE_LOCAL: "local", SPACE_SHARED: "shared"}
        words = [f"{spaces[space]} {kind}s" for space, kind in self.units]
        figures = (("L1 hit rate", self.l1_hit), ("L2 hit rate", self.l2_hit), ("DRAM reads", self.dram_read))
        return tuple(words + [name for name, value in figures if value is not None])


def averages_from(metrics: Mapping[str, float], sector_bytes: int) -> MemoryAverages:
    """The averages that a profile's metrics give."""
    units: dict[Key, float] = {}
    for space, family in ((SPACE_GLOBAL, _GLOBAL), (SPACE_LOCAL, _LOCAL)):
        for kind, word in _WORDS.items():
            if (value := metrics.get(family.format("sectors", word))) is not None:
                units[space, kind] = value
    for kind, word in _WORDS.items():
        if (value := metrics.get(_SHARED.format(word))) is not None:
            units[SPACE_SHARED, kind] = value
    return MemoryAverages(
        units=units,
        l1_hit=_fraction(metrics.get("l1tex__t_sector_hit_rate.pct")),
        l2_hit=_fraction(metrics.get("lts__t_sector_hit_rate.pct")),
        dram_read=_sectors(metrics, "read", sector_bytes),
        dram_write=_sectors(metrics, "write", sector_bytes),
    )


def _fraction(percent: float | None) -> float | None:
    return None if percent is None else min(max(percent / 100, 0.0), 1.0)


def _sectors(metrics: Mapping[str, float], way: str, sector_bytes: int) -> float | None:
    sectors = metrics.get(f"dram__sectors_{way}.sum")
    moved = metrics.get(f"dram__bytes_{way}.sum")
    return sectors if sectors is not None else None if moved is None else moved / sector_bytes


def averaged(profile: Profile, behaviour: MemoryBehaviour, sector_bytes: int, said: MemoryAverages) -> MemoryBehaviour:
    """`behaviour` with every access like the mean one of its space and kind; values in `said` take precedence."""
    kinds = {i: _kind(profile, i) for i in behaviour.accesses}
    groups: dict[Key, list[int]] = {}
    for index, access in behaviour.accesses.items():
        groups.setdefault((access.space, kinds[index]), []).append(index)
    reads = _total(said.dram_read, behaviour.dram_read_bytes / sector_bytes)
    writes = _total(said.dram_write, behaviour.dram_write_bytes / sector_bytes)
    # Atomics read and write at the L2; the paper's R covers loads and stores only.
    far = {key for key in groups if key[0] != SPACE_SHARED and key[1] in ("load", "copy", "store")}
    atomics = [i for key, indices in groups.items() if key[0] != SPACE_SHARED and key not in far for i in indices]
    left = {
        False: max(0.0, reads - _sum(behaviour, atomics, "dram_read")),
        True: max(0.0, writes - _sum(behaviour, atomics, "dram_write")),
    }
    units = {key: said.units.get(key, _sum(behaviour, indices, "units")) for key, indices in groups.items()}
    asked = {way: sum(units[key] for key in far if (key[1] == "store") == way) for way in (False, True)}
    accesses: dict[int, AccessBehaviour] = {}
    for key, indices in groups.items():
        executions = sum(behaviour.accesses[i].executions for i in indices)
        was = _sum(behaviour, indices, "units")
        grown = units[key] / was if was else 1.0
        units_each, lines, passes = (
            _sum(behaviour, indices, name) / executions * grown for name in ("units", "lines", "passes")
        )
        store = key[1] == "store"
        ratio = left[store] / asked[store] if asked[store] else 0.0
        hit = 0.0
        if key[1] in ("load", "copy") and key in far:
            emulated = _sum(behaviour, indices, "units", "l1_hit") / was if was else 0.0
            hit = _total(said.l1_hit, emulated)
        if key in far:
            read, written = (0.0, units_each * ratio) if store else (units_each * ratio, 0.0)
        else:
            read, written = (_sum(behaviour, indices, way) / executions for way in ("dram_read", "dram_write"))
        missed = units_each * (1 - hit)
        for index in indices:
            old = behaviour.accesses[index]
            accesses[index] = replace(
                old,
                units=units_each,
                lines=lines,
                passes=passes,
                l1_hit=hit,
                l2_hit=min(max(1 - (written if store else read) / missed, 0.0), 1.0) if missed else 1.0,
                dram_read=read,
                dram_write=written,
            )
    return replace(
        behaviour,
        accesses=accesses,
        global_load_sectors=units.get((SPACE_GLOBAL, "load"), 0.0) + units.get((SPACE_GLOBAL, "copy"), 0.0),
        global_store_sectors=units.get((SPACE_GLOBAL, "store"), 0.0),
        shared_wavefronts=sum(value for key, value in units.items() if key[0] == SPACE_SHARED),
        l1_hit_rate=behaviour.l1_hit_rate if said.l1_hit is None else said.l1_hit,
        l2_hit_rate=behaviour.l2_hit_rate if said.l2_hit is None else said.l2_hit,
        dram_read_bytes=reads * sector_bytes,
        dram_write_bytes=writes * sector_bytes,
        method=METHOD,
    )


NOTHING_SAID = MemoryAverages({}, None, None, None, None)
"""Averages of the emulated behaviour only."""


def _kind(profile: Profile, index: int) -> str:
    memory = profile.kernel.instructions[index].memory
    return memory.kind if memory else "load"


def _sum(behaviour: MemoryBehaviour, indices: list[int], name: str, times: str = "") -> float:
    found = (behaviour.accesses[i] for i in indices)
    return float(sum(getattr(a, name) * (getattr(a, times) if times else 1.0) * a.executions for a in found))


def _total(said: float | None, found: float) -> float:
    return found if said is None else said
