"""The memory that a program shares with drywarp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.execution.emulator.memory import DeviceMemory
from drywarp.kernel.launch.textures import texture
from drywarp.program.heap import START, Heap

from ..effort import examples

MIB = 1 << 20


@pytest.fixture
def heap() -> Heap:
    return Heap(64 * MIB)


def view_of(heap: Heap) -> DeviceMemory:
    """What a launch sees, and writes to."""
    return DeviceMemory([], b"", 0, (), False, heap.image(0, {}))


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.tuples(st.integers(1, MIB), st.booleans()), max_size=30))
def test_allocations_never_overlap_and_hold_zeros(asked: list[tuple[int, bool]]) -> None:
    heap = Heap(64 * MIB)
    held = []
    for size, keep in asked:
        made = heap.allocate(size, "device")
        assert made is not None
        assert not heap.view(made.start, size).any()
        heap.view(made.start, size)[:] = 0xFF
        if keep:
            held.append(made)
        else:
            assert heap.free(made.start) is made
            assert heap.at(made.start) is None
    ends = [START, *(one.end for one in heap.allocations)]
    assert all(one.start >= end for one, end in zip(heap.allocations, ends, strict=False))
    assert [heap.at(one.end - 1) for one in held] == held
    assert heap.used[0] == sum(one.size for one in held)
    heap.close()


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_an_allocation_lies_at_the_lowest_address_with_room(data: st.DataObject) -> None:
    """As found by looking at all: what is held, and the 64 allocations that were freed last."""
    gap, heap = 1 << 16, Heap(4 << 30)
    held: list[Any] = []
    freed: list[Any] = []
    for _ in range(data.draw(st.integers(1, 150))):
        if held and data.draw(st.integers(0, 2)):
            one = held.pop(data.draw(st.integers(0, len(held) - 1)))
            heap.free(one.start)
            freed = [*freed, one][-64:]
            continue
        size = data.draw(st.sampled_from([1, 100, 512, 4096, gap, gap + 1, 3 * gap, MIB, 5 * MIB]))
        lowest = START
        for other in sorted([*held, *freed], key=lambda each: each.start):
            if lowest + size + gap <= other.start:
                break
            lowest = -(-(other.end + gap) // 512) * 512
        made = heap.allocate(size, "device")
        assert made is not None
        assert made.start == lowest
        held.append(made)
    assert heap.used[0] == sum(one.size for one in held)
    heap.close()


def test_the_devices_memory_is_limited_but_not_the_hosts(heap: Heap) -> None:
    assert heap.allocate(64 * MIB + 1, "device") is None
    assert heap.allocate(64 * MIB, "device") is not None
    assert heap.allocate(1, "managed") is None
    assert heap.allocate(MIB, "pinned") is not None
    assert heap.free(START + 1) is None


def test_addresses_that_were_freed_are_given_out_again_when_no_others_are_left(heap: Heap) -> None:
    for _ in range(10):
        made = heap.allocate(60 * MIB, "device")
        assert made is not None
        heap.free(made.start)


def test_a_launch_changes_nothing_until_its_results_are_taken_over(heap: Heap) -> None:
    first, second = heap.allocate(10_000, "device"), heap.allocate(10_000, "device")
    assert first is not None
    assert second is not None
    heap.view(first.start, 3)[:] = 7
    memory = view_of(heap)
    there = memory.views[1][second.start - memory.start :]
    assert memory.views[1][first.start - memory.start] == 7
    there[5_000] = 9
    assert not heap.view(second.start, second.size).any()
    before = first.version, second.version
    (change,) = heap.take_over(memory)
    assert (change.start, first.version) == (second.start, before[0])
    assert second.version == change.version != before[1]
    assert heap.view(second.start, second.size)[4_999:5_002].tolist() == [0, 9, 0]
    assert second.written
    assert not first.written


def test_equal_versions_are_equal_bytes(heap: Heap) -> None:
    made = heap.allocate(4096, "device")
    assert made is not None
    new = heap.state()
    memory = view_of(heap)
    memory.views[1][made.start - memory.start] = 1
    changes = heap.take_over(memory)
    changed = heap.state()
    assert changed != new
    # Written anew with the same bytes, it is what it was.
    memory = view_of(heap)
    memory.views[1][made.start - memory.start] = 1
    assert heap.take_over(memory) == []
    assert heap.state() == changed
    heap.view(made.start, 1)[:] = 0
    made.version = 0
    heap.repeat(changes)
    assert heap.view(made.start, 1)[0] == 1
    assert heap.state() == changed


def test_what_the_host_writes_is_seen(heap: Heap) -> None:
    made = heap.allocate(100, "managed")
    assert made is not None
    before = heap.state()
    heap.view(made.start, 100)[50] = 1
    after = heap.state()
    assert after != before
    heap.view(made.start, 100)[50] = 0
    assert heap.state() == before
    heap.allocate(65 * MIB, "pinned")
    assert heap.state() is None


def test_neighbours_on_one_page_keep_their_bytes(heap: Heap) -> None:
    made = [heap.allocate(100, "device") for _ in range(3)]
    memory = view_of(heap)
    for number, one in enumerate(made):
        assert one is not None
        memory.views[1][one.start - memory.start :][:100] = number
    heap.take_over(memory)
    content = [np.unique(heap.view(one.start, 100)).tolist() for one in made if one]
    assert content == [[0], [1], [2]]


def test_launches_do_not_see_objects_over_memory_that_was_freed(heap: Heap) -> None:
    held = [heap.allocate(4096, "device") for _ in range(2)]
    for number, made in enumerate(held, 1):
        assert made is not None
        heap.objects[number] = texture("f32[32,32]"), made.start
    assert [handle for handle, _, _ in heap.image(0, {}).objects] == [1, 2]
    assert held[0] is not None
    heap.free(held[0].start)
    assert [handle for handle, _, _ in heap.image(0, {}).objects] == [2]
