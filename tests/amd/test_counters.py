"""The counters of outstanding accesses, and what waits for what along a path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.isa.amd.registers import counting_of
from drywarp.workload.waitcnt import dependences

from .kernels import committed, kernel_of


@pytest.mark.parametrize(
    ("opcode", "rest", "raises"),
    [
        ("global_load_dword", "v0, v[0:1], off", ("vmcnt",)),
        ("global_store_dword", "v[0:1], v2, off", ("vmcnt",)),
        ("buffer_load_dword", "v0, v1, s[0:3], 0 offen", ("vmcnt",)),
        ("scratch_load_dword", "v0, off, off", ("vmcnt",)),
        ("flat_load_dword", "v0, v[0:1]", ("vmcnt", "lgkmcnt")),
        ("ds_read_b32", "v0, v1", ("lgkmcnt",)),
        ("ds_bpermute_b32", "v0, v1, v2", ("lgkmcnt",)),
        ("s_load_dwordx4", "s[0:3], s[4:5], 0x0", ("lgkmcnt",)),
        ("s_memtime", "s[0:1]", ("lgkmcnt",)),
    ],
)
def test_who_raises_which_counter(opcode: str, rest: str, raises: tuple[str, ...]) -> None:
    counting = counting_of(opcode, rest)
    assert counting is not None
    assert counting.raises == raises


@pytest.mark.parametrize("opcode", ["v_add_f32", "s_mov_b32", "buffer_wbinvl1", "s_barrier", "s_nop"])
def test_who_raises_none(opcode: str) -> None:
    assert counting_of(opcode, "0") is None


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("vmcnt(0)", {"vmcnt": 0}),
        ("vmcnt(3) lgkmcnt(1)", {"vmcnt": 3, "lgkmcnt": 1}),
        ("vmcnt(0) expcnt(0) lgkmcnt(0)", {"vmcnt": 0, "expcnt": 0, "lgkmcnt": 0}),
        ("0", {"vmcnt": 0, "expcnt": 0, "lgkmcnt": 0}),
        # vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8: only vmcnt(17) is below what is full.
        ("0x4f71", {"vmcnt": 17}),
        ("0xcf7f", {}),
    ],
)
def test_what_s_waitcnt_waits_for(text: str, waits: dict[str, int]) -> None:
    counting = counting_of("s_waitcnt", text)
    assert dict(counting.waits if counting else ()) == waits


def test_a_wait_leaves_the_latest_outstanding() -> None:
    kernel = kernel_of(
        """
        global_load_dword v0, v[2:3], off
        global_load_dword v1, v[2:3], off
        ds_read_b32 v4, v5
        s_waitcnt vmcnt(1)
        v_add_f32 v0, v0, v0
        s_waitcnt vmcnt(0) lgkmcnt(0)
        """
    )
    found = dependences(kernel.instructions, build_cfg(kernel.instructions), [0])
    slot = found.sets
    assert sorted(slot) == [0, 1, 2]
    assert found.waits == {3: (slot[0],), 5: tuple(sorted((slot[1], slot[2])))}


CHOICES = ("vmcnt", "lgkmcnt")


@given(
    st.lists(st.one_of(st.sampled_from(CHOICES), st.tuples(st.sampled_from(CHOICES), st.integers(0, 4))), max_size=25)
)
def test_the_waits_of_a_line_of_code_are_those_of_a_queue(steps: list[str | tuple[str, int]]) -> None:
    """Law: on straight code each wait is for exactly the accesses that it makes leave their queue."""
    text = {"vmcnt": "global_load_dword v0, v[2:3], off", "lgkmcnt": "ds_read_b32 v0, v1"}
    lines = [text[step] if isinstance(step, str) else f"s_waitcnt {step[0]}({step[1]})" for step in steps]
    kernel = kernel_of("\n".join(["s_nop 0", *lines]))
    found = dependences(kernel.instructions, build_cfg(kernel.instructions), [0])
    queues: dict[str, list[int]] = {name: [] for name in CHOICES}
    for number, step in enumerate(steps, 1):
        if isinstance(step, str):
            queues[step].append(number)
            continue
        name, most = step
        done = queues[name][: max(len(queues[name]) - most, 0)]
        queues[name] = queues[name][len(done) :]
        assert found.waits.get(number, ()) == tuple(sorted(found.sets[i] for i in done))


def test_the_uses_of_loads_in_compiled_code_wait_for_them() -> None:
    """Each load's result is waited for before it is read, on the path without branches of saxpy."""
    kernel = committed("saxpy-gfx90a")
    cfg = build_cfg(kernel.instructions)
    found = dependences(kernel.instructions, cfg, [block.index for block in cfg.blocks])
    loads = [n for n, i in enumerate(kernel.instructions) if i.memory and i.memory.kind == "load"]
    waited = {slot for slots in found.waits.values() for slot in slots}
    assert {found.sets[n] for n in loads} <= waited
