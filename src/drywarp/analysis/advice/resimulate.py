"""What what-ifs are based on: reuse of sectors, register steps, and resimulation."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ...errors import UsageError
from ...hardware.occupancy import OccupancyLimits, occupancy
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch
from ...kernel.profile import SPACE_GLOBAL
from ...memory.table import active_lanes
from ...models.base import Prediction
from ...models.pipeline import limiter, utilization
from ...pipeline.blocks import share_of
from ...pipeline.extrapolate import CURVE_BUDGET, instructions, simulate
from ...support.folders import thread_count
from .case import Setting

MOST_ROWS = 1 << 16
"""Accesses of one block that are examined."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Sectors that a block requests, how many of them are distinct, and the instructions that load them."""

    requested: float
    distinct: int
    instructions: tuple[int, ...]

    @property
    def times(self) -> float:
        """How often each sector is requested on average."""
        return self.requested / self.distinct if self.distinct else 0.0


def reuse_by_buffer(setting: Setting) -> dict[str, Reuse]:
    """Reuse by parameter name, in the sampled block with the largest weight; the empty name is for other data."""
    profile, log, table = setting.profile, setting.profile.accesses, setting.requests
    loads = np.array([bool(i.memory and i.memory.kind in ("load", "copy")) for i in setting.instructions])
    if not len(log) or not loads.any():
        return {}
    block = max(range(len(profile.blocks)), key=lambda n: profile.blocks[n].weight)
    loaded = (table.sample == block) & loads[table.instruction] & (table.space == SPACE_GLOBAL) & (table.units > 0)
    rows = np.flatnonzero(loaded[table.number])[:MOST_ROWS]
    if not len(rows):
        return {}
    size = 32 if setting.gpu.machine_code is not None else setting.gpu.memory.sector_bytes
    addresses, active = active_lanes(log, rows)
    starts = sorted((start, name) for name, (start, _) in profile.allocations.items())
    found: dict[str, Reuse] = {}
    first = np.where(active, addresses, np.iinfo(np.int64).max).min(axis=1)
    owner = np.searchsorted(np.array([start for start, _ in starts], dtype=np.int64), first, side="right") - 1
    for number in np.unique(owner).tolist():
        mine = owner == number
        distinct = np.unique(addresses[mine][active[mine]] // size)
        instructions = np.unique(log.instruction[rows[mine]])
        found[starts[number][1] if number >= 0 else ""] = Reuse(
            float(table.units[table.number[rows[mine]]].sum()), len(distinct), tuple(instructions.tolist())
        )
    return found


# The register caps at which one more block fits on an SM.

FEWEST = 16
"""The lowest cap that the compiler accepts."""


def register_steps(limits: OccupancyLimits, kernel: Kernel, launch: Launch, most: int) -> dict[int, int]:
    """For each number of blocks per SM above the current one, up to `most`: the highest register cap that allows it."""
    shared = kernel.resources.shared_bytes + launch.dynamic_shared
    scalar = kernel.resources.scalar_registers

    def blocks(registers: int) -> int:
        try:
            return occupancy(limits, registers, shared, launch.threads_per_block, scalar).blocks_per_sm
        except UsageError:
            return 0

    now = blocks(kernel.resources.registers)
    steps: dict[int, int] = {}
    for registers in range(kernel.resources.registers - 1, FEWEST - 1, -1):
        fit = min(blocks(registers), most)
        if fit > max(steps, default=now):
            steps[fit] = registers
    return steps


# A setting simulated at the launch's occupancy: its time and what limits it.

BUDGET, ESTIMATED = CURVE_BUDGET, 1_000_000
"""Warp instructions that one what-if may simulate, as for a point of the curve; and the smaller budget for estimates
if the launch exceeds the first."""

ALL_TOGETHER, AT_LEAST = 4_000_000, 3
"""Warp instructions that all what-ifs of an answer may simulate together without `--advice`, and how many what-ifs are
always simulated."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Time in SM cycles and in seconds, and the limiter."""

    cycles: float
    time_s: float
    limiter: str


def budget_for(setting: Setting) -> int:
    """Warp instructions that one what-if of this kernel may simulate."""
    return BUDGET if _total(setting) <= BUDGET else ESTIMATED


def affordable(setting: Setting) -> int:
    """How many what-ifs an answer may simulate without `--advice`."""
    return max(AT_LEAST, ALL_TOGETHER // max(1, min(_total(setting), budget_for(setting))))


def _total(setting: Setting) -> int:
    return instructions(setting.costed, share_of(setting.costed, setting.costed.blocks_per_sm).blocks)


def resimulate(setting: Setting, budget: int = BUDGET, full: bool = False) -> Outcome:
    """One simulation at the launch's own occupancy, without stall reasons."""
    costed = setting.costed
    result = simulate(costed, share_of(costed, costed.blocks_per_sm), budget, stalls=False, full=full)
    cycles = result.cycles * setting.part
    return Outcome(cycles, costed.duration_s(cycles), limiter(utilization(costed, result)))


def baseline(setting: Setting, prediction: Prediction, budget: int = BUDGET, full: bool = False) -> Outcome:
    """The unchanged kernel: the prediction itself if what-ifs are simulated as precisely, else simulated like them."""
    if full or _total(setting) <= budget:
        return Outcome(prediction.cycles, prediction.time_s, prediction.limiter)
    return resimulate(setting, budget)


def resimulate_all(settings: Sequence[Setting], budget: int = BUDGET, full: bool = False) -> list[Outcome]:
    """Each setting's outcome; the compiled loop runs on all cores."""
    with ThreadPoolExecutor(thread_count()) as threads:
        return list(threads.map(lambda setting: resimulate(setting, budget, full), settings))
