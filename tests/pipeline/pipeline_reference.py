"""A slow simulator of the same meaning, for comparison: it steps through time, one tick after another.

At each tick it tries, as long as anything can issue, every warp of every partition against the full
list of conditions, all read from histories; nothing is cached and no event is predicted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from drywarp.pipeline.blocks import Share, type_order
from drywarp.workload.cost import SYNC_AT_END, SYNC_AWAITS, SYNC_SIGNALS, CostedNode, CostedPath, CostedWorkload


@dataclass
class Warp:
    slot: int
    block: int
    order: int
    path: CostedPath
    program: list[int]
    launched: int
    next: int = 0
    issued_at: dict[int, int] = field(default_factory=dict)
    done_at: dict[int, int] = field(default_factory=dict)
    read_at: dict[int, int] = field(default_factory=dict)
    last: int = -1
    at_barrier: int = -1
    awaits: tuple[int, int] | None = None
    """The position that it stands at for a phase, and the phase."""
    awaited: set[int] = field(default_factory=set)
    event: int = 0

    def node(self, position: int) -> CostedNode:
        return self.path.nodes[self.program[position]]

    def finished_issuing(self) -> bool:
        return len(self.issued_at) == len(self.program) and self.at_barrier < 0 and self.awaits is None

    def end(self) -> int | None:
        if not self.finished_issuing():
            return None
        return max([self.launched, *self.done_at.values(), *self.issued_at.values()])


class Reference:
    """Run a share; `rows` then holds (warp, block, path's node, position, issue, completion)."""

    def __init__(self, workload: CostedWorkload, share: Share) -> None:
        self.w, self.share = workload, share
        lengths = [sum(workload.paths[path].length for path in t.paths) for t in workload.block_types]
        self.kinds = [int(k) for k in type_order([t.weight for t in workload.block_types], share.blocks, lengths)]
        self.blocks: dict[int, list[Warp]] = {}
        self.slot_of: dict[int, int] = {}
        self.free_at = dict.fromkeys(range(share.resident), 0)
        self.next_block = 0
        self.not_sooner = 0
        self.issues: list[tuple[int, Warp, int]] = []
        self.level_free: dict[tuple[int, int], int] = {}
        self.resource_last: dict[tuple[int, int], tuple[int, int]] = {}
        self.holders: dict[tuple[int, int], list[int]] = {}
        self.signalled: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        """By block and phase when its signals come."""
        self.partition_last: dict[int, tuple[int, Warp]] = {}
        self.valve: dict[int, int] = {}
        """Until when a partition issues nothing."""
        self.banks: dict[tuple[int, int], int] = {}
        """By partition and bank of the register file, until when that is taken."""
        self.served_at: dict[int, int] = {}
        self.rows: list[list[int]] = []
        self.taken: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        """Per resource the ticks in which it takes no instruction."""
        self.total = 0
        self.drained: int | None = None
        """When the first block has ended after the last one's start."""
        self.last_launch = 0

    def run(self) -> int:
        tick = 0
        while True:
            self._settle(tick)
            while self._one_issue(tick):
                self._settle(tick)
            for resource in self.resource_last:
                if not self._takes(resource, tick):
                    self.taken[resource].add(tick)
            if not self.slot_of and self.next_block == self.share.blocks:
                return self.total
            tick += 1
            assert tick < 100_000, "the reference does not end"

    def _settle(self, tick: int) -> None:
        self._barriers(tick)
        self._phases()
        self._blocks(tick)

    def _blocks(self, tick: int) -> None:
        """End blocks whose warps have all ended by now, and start waiting ones where there is room."""
        changed = True
        while changed:
            changed = False
            for block, slot in list(self.slot_of.items()):
                ends = [warp.end() for warp in self.blocks[block]]
                if all(end is not None and end <= tick for end in ends):
                    self.total = max(self.total, *(end for end in ends if end is not None))
                    del self.slot_of[block]
                    self.free_at[slot] = max(e for e in ends if e is not None) + self.w.launch_ticks
                    if self.drained is None and self.next_block == self.share.blocks and tick > self.last_launch:
                        self.drained = tick
                    changed = True
            for slot in sorted(self.free_at, key=lambda slot: (self.free_at[slot], slot)):
                if max(self.free_at[slot], self.not_sooner) <= tick and self.next_block < self.share.blocks:
                    self._launch(slot, tick)
                    changed = True
                    break  # a block without instructions makes room again at once

    def _launch(self, slot: int, tick: int) -> None:
        del self.free_at[slot]
        self.not_sooner = tick + self.w.launch_interval_ticks
        self.last_launch = tick
        block, per = self.next_block, self.w.warps_per_block
        self.next_block += 1
        self.slot_of[block] = slot
        self.blocks[block] = [
            Warp(slot * per + i, block, block * per + i, self.w.paths[p], list(self.w.paths[p].expand()), tick)
            for i, p in enumerate(self.w.block_types[self.kinds[block]].paths)
        ]

    def _barriers(self, tick: int) -> None:
        for block in self.slot_of:
            warps = self.blocks[block]
            waiting = [warp for warp in warps if warp.at_barrier >= 0]
            others = [warp for warp in warps if warp.at_barrier < 0]
            if waiting and all((end := warp.end()) is not None and end <= tick for warp in others):
                for warp in waiting:
                    position, warp.at_barrier = warp.at_barrier, -1
                    warp.done_at[position] = tick + warp.node(position).latency_ticks

    def _phases(self) -> None:
        for block in self.slot_of:
            warps = self.blocks[block]
            for warp in warps:
                if warp.awaits is not None:
                    position, phase = warp.awaits
                    signals = self.signalled[block, phase]
                    if len(signals) == sum(w.path.signals[phase] for w in warps if phase < len(w.path.signals)):
                        warp.awaits = None
                        opens = max([warp.issued_at[position], *signals])
                        warp.done_at[position] = opens + warp.node(position).latency_ticks

    def resource(self, subsystem: int, partition: int) -> tuple[int, int]:
        return subsystem, partition if self.w.subsystems[subsystem].scope == "partition" else -1

    def _position(self, warp: Warp, tick: int) -> int | None:
        """The position in the warp's program that can issue now as far as the warp itself goes."""
        if warp.at_barrier >= 0 or warp.awaits is not None or len(warp.issued_at) == len(warp.program):
            return None
        # A constant is looked for once all else is there.
        then = tick - warp.node(warp.next).miss_ticks if self.w.in_order else tick
        if then < warp.launched:
            return None
        if warp.last >= 0:
            before = warp.node(warp.last)
            if then < warp.issued_at[warp.last] + before.stall_ticks:
                return None
            if (before.barrier or warp.last in warp.awaited) and then < warp.done_at[warp.last]:
                return None
        if self.w.in_order:
            position = warp.next
            ready = self._in_order_ready(warp, position, then)
            return position if ready and self._machine_ready(warp, position, tick) else None
        for position in range(len(warp.program)):
            if position in warp.issued_at or not self._dataflow_ready(warp, position, tick):
                continue
            if self._machine_ready(warp, position, tick):
                return position
        return None

    def _in_order_ready(self, warp: Warp, position: int, tick: int) -> bool:
        for slot in warp.node(position).waits:
            for earlier in warp.issued_at:
                writer = warp.node(earlier)
                if writer.sets == slot and tick < warp.done_at[earlier]:
                    return False
                if writer.sets_read == slot and tick < warp.read_at[earlier]:
                    return False
        return True

    def _dataflow_ready(self, warp: Warp, position: int, tick: int) -> bool:
        node = warp.node(position)
        if node.barrier and any(earlier not in warp.issued_at for earlier in range(position)):
            return False
        for earlier in range(position):
            if warp.node(earlier).barrier and not (earlier in warp.done_at and warp.done_at[earlier] <= tick):
                return False
        for slot in node.waits:
            for earlier in reversed(range(position)):
                writer = warp.node(earlier)
                if slot in (writer.sets, writer.sets_read):
                    if earlier not in warp.issued_at:
                        return False
                    if writer.sets == slot and not (earlier in warp.done_at and warp.done_at[earlier] <= tick):
                        return False
                    if writer.sets_read == slot and tick < warp.read_at[earlier]:
                        return False
                    break
        return True

    def _machine_ready(self, warp: Warp, position: int, tick: int) -> bool:
        node, partition = warp.node(position), warp.slot % self.w.partitions
        if tick < self.valve.get(partition, 0):
            return False
        resource = self.resource(node.subsystem, partition)
        # One that queues for its own subsystem does so as a visit, and issues whatever that is doing.
        return node.queued or (tick >= self.level_free.get(resource, 0) and self._takes(resource, tick))

    def _takes(self, resource: tuple[int, int], tick: int) -> bool:
        if resource in self.resource_last and tick < sum(self.resource_last[resource]):
            return False
        limit = self.w.subsystems[resource[0]].outstanding
        return not limit or sum(done > tick for done in self.holders.get(resource, [])) < limit

    def _one_issue(self, tick: int) -> bool:
        picks = []
        for partition in range(self.w.partitions):
            feasible = []
            for block in self.slot_of:
                for warp in self.blocks[block]:
                    if warp.slot % self.w.partitions == partition:
                        position = self._position(warp, tick)
                        if position is not None:
                            feasible.append((warp, position))
            if feasible:
                picks.append(self._pick(partition, feasible))
        if not picks:
            return False
        # Partitions that want the same subsystem at the same tick take turns: who was served longest ago goes first.
        warp, position = min(picks, key=lambda pick: self._served(pick[0].slot % self.w.partitions))
        self._issue(warp, position, tick)
        return True

    def _served(self, partition: int) -> int:
        """When a subsystem of all partitions last took an instruction of this one."""
        return self.served_at.get(partition, -1)

    def _pick(self, partition: int, feasible: list[tuple[Warp, int]]) -> tuple[Warp, int]:
        last = self.partition_last.get(partition)
        policy = self.w.policy
        if policy.startswith("greedy"):
            for pick in feasible:
                if last is not None and pick[0] is last[1] and pick[0].node(pick[0].last).stays:
                    return pick
        if policy.endswith("round_robin"):
            later = [pick for pick in feasible if last is not None and pick[0].slot > last[1].slot]
            return min(later or feasible, key=lambda pick: pick[0].slot)
        choose = max if policy.endswith("youngest") else min
        return choose(feasible, key=lambda pick: pick[0].order)

    def _issue(self, warp: Warp, position: int, tick: int) -> None:
        node, partition = warp.node(position), warp.slot % self.w.partitions
        first = [self.blocks.get(block) for block in range(self.share.full)]
        tail = all(
            warps is not None and all((end := other.end()) is not None and end <= tick for other in warps)
            for warps in first
        )
        start = tick
        for level in node.levels:
            resource = self.resource(level.subsystem, partition)
            begins = max(start, self.level_free.get(resource, 0), sum(self.resource_last.get(resource, (0, 0))))
            self.level_free[resource] = begins + (level.tail_ticks if tail else level.lambda_ticks)
            start = begins if level.queues else start
        completion = start + node.latency_ticks
        if node.async_result:
            completion = start if node.levels else tick + node.lambda_ticks
        warp.issued_at[position] = tick
        warp.read_at[position] = tick + node.read_ticks
        warp.last = position
        warp.next += 1
        resource = self.resource(node.subsystem, partition)
        if not node.queued:
            self.holders.setdefault(resource, []).append(completion)
            self.resource_last[resource] = (tick, node.lambda_ticks)
        self.partition_last[partition] = (tick, warp)
        self.valve[partition] = self._read(node, partition, tick) + self.w.issue_ticks * node.issues + node.held_ticks
        if self.w.subsystems[node.subsystem].scope != "partition":
            self.served_at[partition] = tick
        if node.barrier:
            warp.at_barrier = position
        else:
            warp.done_at[position] = completion
        if node.sync:
            self._meet(warp, position, tick, completion)
        self.rows.append([warp.slot, warp.block, warp.program[position], position, tick])

    def _read(self, node: CostedNode, partition: int, tick: int) -> int:
        """When the instruction has what it reads of the register file for certain: not before all fits its window."""
        begins, reads = tick, node.register_ticks
        rival = (self.w.bank_rival, partition)
        if self.w.bank_rival >= 0 and tick < max(self.level_free.get(rival, 0), sum(self.resource_last.get(rival, ()))):
            reads = tuple(ticks + round(ticks * self.w.beside_rival) for ticks in reads)  # type: ignore[assignment]
        while True:
            ends = [
                max(begins, self.banks.get((partition, bank), 0)) + ticks if ticks else begins
                for bank, ticks in enumerate(reads)
            ]
            if all(end <= begins + max(self.w.read_window_ticks, n) for end, n in zip(ends, reads, strict=True) if n):
                break
            begins += 1
        for bank, ticks in enumerate(reads):
            if ticks:
                self.banks[partition, bank] = ends[bank]
        return begins

    def _meet(self, warp: Warp, position: int, tick: int, completion: int) -> None:
        """Signal phases, and come to await one."""
        node, events = warp.node(position), warp.path.events
        at = tick
        if node.sync & SYNC_AT_END:
            at = completion
            if node.after >= 0:
                at = max([at, *self._written(warp, node.after)])
        count = events[warp.event]
        phases = events[warp.event + 1 : warp.event + 1 + count]
        warp.event += 1 + count
        assert node.sync & SYNC_SIGNALS or not phases
        for phase in phases:
            self.signalled[warp.block, phase].append(at)
        if node.sync & SYNC_AWAITS:
            awaited = events[warp.event]
            warp.event += 1
            if awaited >= 0:
                warp.awaits = (position, awaited)
                warp.awaited.add(position)

    def _written(self, warp: Warp, slot: int) -> list[int]:
        """When what the warp has issued so far into a slot is there, the instruction that issues now included."""
        there = []
        for position in warp.issued_at:
            if warp.node(position).sets == slot:
                there.append(warp.done_at[position])
            if warp.node(position).sets_read == slot:
                there.append(warp.read_at[position])
        return there
