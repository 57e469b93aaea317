"""State that both loops change: subsystems, block slots, partitions, and their records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UsageError
from ..workload.cost import CostedWorkload
from . import columns as col
from .blocks import Share
from .columns import NEVER
from .program import Tables
from .reasons import REASONS, Policy
from .result import PROFILE_COLUMNS, Mark, Recurrence, Ticks

_SHARED = (
    *("homes", "rank", "at_rank", "age", "todo", "slots", "parts", "free", "busy", "changed", "pending"),
    *("pending_from", "warp_ends", "blocks", "stalls", "spells", "newest", "table", "clock"),
)
MACHINE = (
    *("partitions", "launch_ticks", "launch_interval", "per_block", "greedy", "order", "cycle"),
    *("slot_count", "resource_count", "type_count", "width", "spell_room", "issue_room", "accounting"),
    *("reason_count", "block_room", "nodes", "levels", "block_paths", "block_types", *_SHARED),
)
"""The fields of `Machine` in core/native/pipeline.h."""

FIRST_ROWS = 4096
"""Number of blocks for which there is room initially."""

HASHES = 4096
"""Hashes of states remembered at each level: longer periods are not found."""


@dataclass(frozen=True, slots=True)
class Steady:
    """How a steady state is looked for.

    `limit` is the maximum number of instructions to simulate individually; `least_gain` is how many a jump must save;
    loops with at least `long_loop` iterations are watched; `sparing` is how many words of the state description may be
    written per instruction. The run's progress is recorded about every `mark` instructions (0: never).
    """

    limit: int = NEVER
    least_gain: int = 4000
    long_loop: int = 8
    sparing: int = 2
    mark: int = 0


@dataclass
class State:
    """State apart from the warps' own. `jumped` instructions were not simulated individually."""

    share: Share
    per_block: int
    clock: Ticks
    free: Ticks
    busy: Ticks
    changed: Ticks
    pending: Ticks
    pending_from: Ticks
    slots: Ticks
    parts: Ticks
    homes: Ticks
    rank: Ticks
    at_rank: Ticks
    cycle: int
    most_issue_ticks: int
    warp_ends: Ticks
    blocks: Ticks
    stalls: Ticks
    spells: Ticks
    newest: Ticks
    table: Ticks
    watch: Ticks
    seen: Ticks
    jumped: int = 0
    recurrences: list[Recurrence] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @classmethod
    def fresh(
        cls,
        workload: CostedWorkload,
        tables: Tables,
        share: Share,
        rows: int,
        stalls: bool,
        cycle: int,
        spells: int,
        steady: Steady | None,
    ) -> State:
        """The state before the first tick; `rows` is the number of issues to record."""
        resources = tables.resources * workload.partitions
        limits = [s.outstanding for s in workload.subsystems for _ in range(workload.partitions)]
        limits += [0] * (resources - len(limits))
        resident = min(share.resident, share.blocks)
        warps = resident * workload.warps_per_block
        if warps > (1 << col.PRIORITY_BITS):
            raise UsageError(f"{warps} concurrent warps on one SM: expected at most {(1 << col.PRIORITY_BITS)}")
        clock = np.zeros(col.CLOCK_COLUMNS, dtype=np.int64)
        clock[[col.TOTAL, col.FULL, col.FULL_LEFT]] = share.blocks, share.full, share.full
        clock[col.LIMIT] = min(steady.limit, steady.mark or NEVER) if steady else NEVER
        slots = np.zeros((resident, col.SLOT_COLUMNS), dtype=np.int64)
        slots[:, col.SEQUENCE] = -1
        parts = np.zeros((workload.partitions, col.PARTITION_COLUMNS), dtype=np.int64)
        parts[:, col.NEXT] = NEVER
        parts[:, [col.CANDIDATE, col.LAST, col.GREEDY, col.SERVED]] = -1
        row, part = np.divmod(np.arange(warps, dtype=np.int64), workload.partitions)
        slot_of, width = np.arange(warps) // workload.warps_per_block, -(-warps // workload.partitions)
        noted = min(share.blocks, max(FIRST_ROWS, resident))
        watch_levels = tables.loop_levels + 1 if steady else 0
        watch = np.zeros((watch_levels, col.WATCH_COLUMNS), dtype=np.int64)
        watch[:, col.SPARING] = steady.sparing if steady else 1
        return cls(
            share=share,
            per_block=workload.warps_per_block,
            clock=clock,
            free=np.zeros(resources, dtype=np.int64),
            busy=np.zeros(resources, dtype=np.int64),
            changed=np.zeros(resources, dtype=np.int64),
            pending=np.zeros(sum(limits), dtype=np.int64),
            pending_from=np.cumsum([0, *limits], dtype=np.int64),
            slots=slots,
            parts=parts,
            homes=np.stack([part, row, part * width + row, slot_of], axis=1),
            rank=np.zeros((workload.partitions, width), dtype=np.int64),
            at_rank=np.arange(warps, dtype=np.int64),
            cycle=cycle,
            most_issue_ticks=int(tables.nodes[:, col.ISSUE_TICKS].max(initial=0)),
            warp_ends=np.full(noted * workload.warps_per_block, -1, dtype=np.int64),
            blocks=np.zeros((noted, col.BLOCK_COLUMNS), dtype=np.int64),
            stalls=np.zeros((len(tables.nodes) if stalls else 0, len(REASONS)), dtype=np.int64),
            spells=np.zeros((resources, spells, col.SPELL_COLUMNS), dtype=np.int64),
            newest=np.zeros(resources, dtype=np.int64),
            table=np.zeros((rows, len(PROFILE_COLUMNS)), dtype=np.int64),
            watch=watch,
            seen=np.zeros((watch_levels, HASHES, 2), dtype=np.int64),
        )

    def busy_until(self, tick: int) -> Ticks:
        """Ticks before `tick` in which each resource was busy, if nothing was sent to it later: not what it still has
        to do then."""
        until: Ticks = self.busy - np.maximum(0, self.free - tick)
        return until

    def valves_after(self, tick: int) -> int:
        """For how many ticks after `tick` the valves of all partitions together are still shut by their last issue."""
        return int(np.clip(self.parts[:, col.VALVE] - tick, 0, self.most_issue_ticks).sum())

    @property
    def words(self) -> int:
        """The maximum number of words that describe the state, without the warps' own."""
        return len(self.slots) * 7 + 2 + len(self.parts) * 6 + len(self.free) + len(self.pending)

    def machine(self, workload: CostedWorkload, tables: Tables, policy: Policy, kinds: Ticks) -> dict[str, Any]:
        """The fields of `MACHINE`, without those of the warps."""
        return {
            "partitions": workload.partitions,
            "launch_ticks": workload.launch_ticks,
            "launch_interval": workload.launch_interval_ticks,
            "greedy": policy.greedy,
            "order": policy.order,
            "slot_count": len(self.slots),
            "resource_count": len(self.free),
            "type_count": len(kinds),
            "width": self.rank.shape[1],
            "spell_room": self.spells.shape[1],
            "issue_room": len(self.table),
            "accounting": len(self.stalls) > 0,
            "reason_count": len(REASONS),
            "block_room": len(self.blocks),
            "nodes": tables.nodes,
            "levels": tables.levels,
            "block_paths": tables.block_paths,
            "block_types": kinds,
            "per_block": self.per_block,
            "cycle": self.cycle,
            **{name: getattr(self, name) for name in _SHARED if name not in ("age", "todo")},
        }

    def make_rows(self) -> None:
        """Make room to record more blocks."""
        more = min(len(self.blocks), int(self.clock[col.TOTAL]) - len(self.blocks))
        self.blocks = np.concatenate([self.blocks, np.zeros((more, col.BLOCK_COLUMNS), dtype=np.int64)])
        ends = np.full(more * self.per_block, -1, dtype=np.int64)
        self.warp_ends = np.concatenate([self.warp_ends, ends])

    def shift(self, ticks: int) -> None:
        """Shift everything by this much."""
        self.slots[:, [col.LAST_ARRIVAL, col.ENDS]] += ticks
        self.parts[:, [col.VALVE, col.SERVED]] += ticks
        banks = self.parts[:, col.EVEN_FREE : col.ODD_FREE + 1]
        banks[banks > 0] += ticks
        for known in (
            self.slots[:, col.ROOM],
            self.parts[:, col.NEXT],
            self.parts[:, col.OTHERS],
            self.clock[col.NEXT_ROOM : col.NEXT_ROOM + 1],
        ):
            known[known < NEVER] += ticks
        self.parts[:, col.STALE] = 1
        self.free += ticks
        self.pending += ticks
        self.spells[:, :, col.SPELL_START] += ticks
        self.clock[[col.FULL_END, col.NOW, col.NOT_SOONER]] += ticks

    def forget(self) -> None:
        """Stop awaiting a hash at every level."""
        self.watch[:, col.AWAITED] = 0
