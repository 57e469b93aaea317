"""What a state is described by: everything that decides how it goes on, and nothing of when it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pipeline_kernels import COMP, MEM, node, workload

from drywarp.pipeline import Share
from drywarp.pipeline.columns import (
    AFTER,
    ARRIVED,
    BEFORE,
    COUNTED,
    DONE,
    ENDS,
    FULL,
    FULL_END,
    FULL_LEFT,
    GREEDY,
    LAST,
    LAST_ARRIVAL,
    NEVER,
    NOTICED,
    NOW,
    PLACE,
    ROOM,
    SEQUENCE,
    VALVE,
    WAITING,
)
from drywarp.pipeline.engine_inorder import InOrder
from drywarp.pipeline.reasons import policy_named
from drywarp.pipeline.simulate import Program
from drywarp.pipeline.state import State, Steady
from drywarp.workload.cost import CostedPath, CostedWorkload, Level, Repeat, Subsystem


def kernel(policy: str = "greedy_then_oldest") -> CostedWorkload:
    """Two warps a block that go round a loop at unlike speeds and meet at a barrier; loads with a further level."""
    load = replace(node(MEM, 2, 300, (), 1), levels=(Level(2, 2000, 1000),))
    slow = (load, node(COMP, 7, 60, (1,), 0), node(COMP, 3, 20, (0,), barrier=True))
    quick = (node(COMP, 5, 40, (0,), 0), node(COMP, 3, 20, (0,), barrier=True))
    paths = (
        CostedPath(slow, (Repeat(1000, (0, 1, 2)),), 2),
        CostedPath(quick, (Repeat(1000, (Repeat(3, (0,)), 1)),), 2),
    )
    work = workload(paths[0], warps_per_block=2, issue_limit=1, policy=policy, partitions=2)
    levels = Subsystem("dram", "sm", upstream=False)
    subsystems = (replace(work.subsystems[0], outstanding=2), work.subsystems[1], levels)
    return replace(work, paths=paths, block_types=(replace(work.block_types[0], paths=(0, 1)),), subsystems=subsystems)


def at_a_moment(work: CostedWorkload, stalls: bool = True) -> tuple[InOrder, State]:
    """In the midst of things: where a state is met again for the first time."""
    program = Program(work, 3)
    state = State.fresh(work, program.tables, Share(3, 9, 5), 0, stalls, 240, 64, Steady(sparing=10**9))
    engine = InOrder(work, program.tables, np.zeros(1, dtype=np.int64), policy_named(work.policy), state)
    assert engine.run() == NOTICED
    return engine, state


def described(engine: InOrder, state: State) -> list[int]:
    return engine.described().tolist()  # type: ignore[no-any-return]


Change = Callable[[InOrder, State], None]

FAR = 10**7


def change(what: str) -> Change:
    """Make one part of the state another."""

    def ready(e: InOrder, s: State) -> None:
        e.ready[e.ready < NEVER] += FAR

    def slot(e: InOrder, s: State) -> None:
        e.slot_ready[0, 1] += FAR

    def reason(e: InOrder, s: State) -> None:
        e.slot_ready[:, 1] += FAR
        e.slot_reason[0, 1] += 1

    def warp(column: int, by: int = FAR) -> Change:
        def add(e: InOrder, s: State) -> None:
            e.warps[:, column] += by

        return add

    def part(column: int, to: int) -> Change:
        def put(e: InOrder, s: State) -> None:
            s.parts[0, column] = to

        return put

    def in_slot(column: int, by: int) -> Change:
        def add(e: InOrder, s: State) -> None:
            s.slots[0, ARRIVED] = 1
            s.slots[0, column] += by

        return add

    def waits(e: InOrder, s: State) -> None:
        e.ready[:] = NEVER
        e.warps[:, WAITING] = 2

    def rank(e: InOrder, s: State) -> None:
        s.slots[:2, SEQUENCE] = s.slots[1::-1, SEQUENCE].copy()

    def full(e: InOrder, s: State) -> None:
        s.clock[FULL] = 1

    def tail(e: InOrder, s: State) -> None:
        s.clock[FULL_LEFT] = 0

    def free(e: InOrder, s: State) -> None:
        s.free[-1] += FAR

    def pending(e: InOrder, s: State) -> None:
        s.pending[0] += FAR

    def room(e: InOrder, s: State) -> None:
        s.slots[0, ROOM] = FAR

    changes: dict[str, Change] = {
        "ready": ready, "slot": slot, "place": warp(PLACE, 1), "done": warp(DONE), "counted": warp(COUNTED),
        "waits": waits, "valve": part(VALVE, FAR), "greedy": part(GREEDY, 5), "arrived": in_slot(ARRIVED, 0),
        "arrival": in_slot(LAST_ARRIVAL, FAR), "ends": in_slot(ENDS, FAR), "rank": rank, "full": full, "tail": tail,
        "free": free, "pending": pending, "room": room, "reason": reason,
    }  # fmt: skip
    return changes[what]


PARTS = "ready slot place done counted waits valve greedy arrived arrival ends rank full tail free pending room".split()


@pytest.mark.parametrize("what", PARTS)
@pytest.mark.parametrize("stalls", [True, False])
def test_every_part_of_the_state_tells(what: str, stalls: bool) -> None:
    engine, state = at_a_moment(kernel(), stalls)
    before = described(engine, state)
    change(what)(engine, state)
    if what == "counted" and not stalls:
        assert described(engine, state) == before  # of the accounts alone
    else:
        assert described(engine, state) != before


def test_what_the_accounts_need_tells_too() -> None:
    """The reason of what is waited for, and the node that issued last where the next may issue within its cycle."""
    engine, state = at_a_moment(kernel())
    change("slot")(engine, state)
    before = described(engine, state)
    engine.slot_reason[0, 1] += 1
    assert described(engine, state) != before
    engine.warps[:, COUNTED] += FAR
    before = described(engine, state)
    engine.warps[:, BEFORE] += 1
    assert described(engine, state) != before


def test_waiting_at_a_barrier_tells() -> None:
    engine, state = at_a_moment(kernel())
    change("waits")(engine, state)
    before = described(engine, state)
    engine.warps[0, AFTER] += FAR
    assert described(engine, state) != before
    engine.warps[0, WAITING] += 1
    assert described(engine, state) != before


@pytest.mark.parametrize("stalls", [True, False])
def test_who_waits_at_the_first_node_has_not_ended(stalls: bool) -> None:
    """Nodes are numbered from 0; -1 is none."""
    engine, state = at_a_moment(kernel(), stalls)
    change("waits")(engine, state)
    words = len(described(engine, state))
    engine.warps[0, WAITING] = 0
    before = described(engine, state)
    assert len(before) == words
    engine.warps[0, AFTER] += FAR
    assert described(engine, state) != before
    engine.warps[0, WAITING] = -1
    assert len(described(engine, state)) < words


def test_the_end_of_the_full_part_tells_in_the_tail() -> None:
    engine, state = at_a_moment(kernel())
    change("tail")(engine, state)
    before = described(engine, state)
    state.clock[FULL_END] += FAR
    assert described(engine, state) != before


def test_who_issued_last_tells_where_warps_take_turns() -> None:
    engine, state = at_a_moment(kernel(policy="loose_round_robin"))
    before = described(engine, state)
    state.parts[0, LAST] += 2
    assert described(engine, state) != before


@pytest.mark.parametrize("stalls", [True, False])
@pytest.mark.parametrize("policy", ["greedy_then_oldest", "loose_round_robin"])
def test_the_time_itself_does_not_tell(policy: str, stalls: bool) -> None:
    engine, state = at_a_moment(kernel(policy=policy), stalls)
    before = described(engine, state)
    for ticks in (1, 12345):
        engine.advance(engine.counters.copy(), 7, ticks)
        state.shift(ticks)
        assert described(engine, state) == before


def test_what_is_past_or_hidden_does_not_tell() -> None:
    engine, state = at_a_moment(kernel(), stalls=False)
    before = described(engine, state)
    engine.slot_ready[engine.slot_ready <= state.clock[NOW]] = 0
    state.free[state.free < state.parts[:, VALVE].min()] -= 3
    late = engine.ready < state.parts[:, VALVE][:, None]
    engine.ready[late] -= 2
    assert described(engine, state) == before
