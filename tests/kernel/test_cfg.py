"""The control-flow graph: blocks partition the code, dominators and loops are what their definitions say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drywarp.kernel import cfg
from drywarp.kernel.cfg import ControlFlowGraph, Loop, build_cfg, jump_target, kept_for
from drywarp.kernel.instruction import Instruction
from tests.effort import examples
from tests.listing import code


@st.composite
def random_code(draw: st.DrawFn) -> tuple[str, ...]:
    """Labelled blocks that end in a fall-through, a jump, a conditional jump or an exit."""
    count = draw(st.integers(1, 10))
    lines = []
    for block in range(count):
        lines.append(f".L_{block}:")
        lines += ["IADD3 R0, R0, 0x1, RZ"] * draw(st.integers(0, 2))
        target = draw(st.integers(0, count - 1))
        both, jump = f"@P0 BRA `(.L_{target})", f"BRA `(.L_{target})"
        lines.append(draw(st.sampled_from([both, both, both, jump, jump, "EXIT", "@P0 EXIT", "BAR.SYNC 0x0", "NOP"])))
    # The parser takes NOPs at the end for padding.
    return (*lines, "EXIT")


# Two cycles with two entries each: one pass over the blocks does not find the dominators.
IRREDUCIBLE = (
    *("@P0 BRA `(.L_5)", "BRA `(.L_4)"),  # 0, 1
    *(".L_1:", "BRA `(.L_2)", ".L_2:", "@P0 BRA `(.L_1)", "BRA `(.L_3)"),  # 2, 3, 4
    *(".L_3:", "BRA `(.L_2)"),  # 5
    *(".L_4:", "@P0 BRA `(.L_3)", "BRA `(.L_2)"),  # 6, 7
    *(".L_5:", "BRA `(.L_1)", "EXIT"),  # 8, 9
)

ENTERED_BY_DEAD_CODE = (
    *(".L_0:", "MOV R0, RZ", ".L_1:", "@P0 BRA `(.L_0)", "EXIT"),
    *("MOV R0, RZ", "BRA `(.L_1)", "EXIT"),
)


def reachable(graph: ControlFlowGraph, without: int | None = None) -> set[int]:
    """Blocks that can be reached from the entry when one is taken out."""
    seen: set[int] = set()
    pending = [0] if without != 0 else []
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            pending += [s for s in graph.blocks[block].successors if s != without]
    return seen


def dominators_of(graph: ControlFlowGraph, block: int) -> set[int]:
    """By definition: those without which the block cannot be reached."""
    return {d for d in range(len(graph.blocks)) if block not in reachable(graph, without=d)} | {block}


@given(random_code())
def test_blocks_partition_the_instructions(lines: tuple[str, ...]) -> None:
    instructions = code(*lines)
    graph = build_cfg(instructions)
    assert [i for b in graph.blocks for i in range(b.start, b.end)] == list(range(len(instructions)))
    for block in graph.blocks:
        assert block.end > block.start
        assert {graph.block_of[i] for i in range(block.start, block.end)} == {block.index}
        for index in range(block.start, block.end):
            # Jumps only at the end of a block, and only to the start of one.
            target = jump_target(instructions[index])
            if target is not None:
                assert index == block.end - 1
                assert graph.blocks[graph.block_of[target // 16]].start == target // 16


@settings(max_examples=examples(600, 4))
@given(random_code())
@example(IRREDUCIBLE)
def test_immediate_dominators_against_the_definition(lines: tuple[str, ...]) -> None:
    graph = build_cfg(code(*lines))
    alive = reachable(graph)
    assert graph.dominators[0] == 0
    for block in range(1, len(graph.blocks)):
        immediate = graph.dominators[block]
        if block not in alive:
            assert immediate == -1
            continue
        strict = dominators_of(graph, block) - {block}
        assert immediate in strict
        # All other strict dominators dominate the immediate one.
        assert strict == dominators_of(graph, immediate)


@settings(max_examples=examples(600, 4))
@given(random_code())
@example(ENTERED_BY_DEAD_CODE)
def test_natural_loops_against_the_definition(lines: tuple[str, ...]) -> None:
    graph = build_cfg(code(*lines))
    alive = reachable(graph)
    back = [(b, h) for b in alive for h in graph.blocks[b].successors if h in dominators_of(graph, b)]
    assert {loop.header for loop in graph.loops} == {header for _, header in back}
    for loop in graph.loops:
        # A block is in the loop if it reaches a back edge without passing the header.
        expected = {loop.header}
        for tail in (b for b, h in back if h == loop.header):
            expected |= {b for b in alive if tail in _reaches(graph, b, loop.header)}
        assert loop.blocks == expected
    sizes = [len(loop.blocks) for loop in graph.loops]
    assert sizes == sorted(sizes)


def test_what_follows_from_code_is_found_once() -> None:
    one, other = code("MOV R0, RZ", "EXIT"), code("MOV R0, RZ", "EXIT")
    first, entered = build_cfg(one), build_cfg(one, [16])
    asked: list[str] = []

    def found(instructions: Sequence[Instruction], what: str, graph: ControlFlowGraph = first) -> str:
        return kept_for(instructions, graph, what, lambda: asked.append(what) or what)

    assert [found(one, "a"), found(one, "b"), found(one, "a")] == ["a", "b", "a"]
    assert asked == ["a", "b"]
    assert build_cfg(one) is first
    # Equal code may be marked otherwise later, a list may change, and another graph leads elsewhere.
    assert entered is not first
    assert [found(other, "a"), found(list(one), "a"), found(one, "a", entered)] == ["a"] * 3
    assert asked == ["a", "b", "a", "a", "a"]


def test_what_follows_from_code_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cfg, "MOST_KEPT", 5)
    kept = cfg.Kept()
    codes, asked = [code("MOV R0, RZ", "EXIT") for _ in range(3)], list[int]()
    for number in (0, 1, 0, 2, 0, 1):
        kept.get(codes[number], None, "", lambda: asked.append(number))  # noqa: B023
    # With the third, only two of them have room: the one that was asked for least recently goes.
    assert asked == [0, 1, 2, 1]


def _reaches(graph: ControlFlowGraph, start: int, without: int) -> set[int]:
    seen: set[int] = set()
    pending = [start] if start != without else []
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            pending += [s for s in graph.blocks[block].successors if s != without]
    return seen


def test_straight_code_is_one_block_without_loops() -> None:
    graph = build_cfg(code("MOV R0, R1", "IADD3 R0, R0, R1, RZ", "EXIT"))
    assert [(b.start, b.end, b.successors) for b in graph.blocks] == [(0, 3, ())]
    assert graph.loops == ()


def test_nested_loops() -> None:
    graph = build_cfg(
        code(
            "MOV R0, RZ",  # block 0
            ".L_outer:",
            "MOV R1, RZ",  # block 1
            ".L_inner:",
            "IADD3 R1, R1, 0x1, RZ",  # block 2
            "@P0 BRA `(.L_inner)",
            "@P1 BRA `(.L_outer)",  # block 3
            "EXIT",  # block 4
        )
    )
    inner, outer = graph.loops
    assert inner == Loop(header=2, blocks=frozenset({2}), parent=1)
    assert outer == Loop(header=1, blocks=frozenset({1, 2, 3}), parent=None)
    assert graph.innermost_loop(2) == inner
    assert graph.innermost_loop(3) == outer
    assert graph.innermost_loop(0) is None


def test_two_back_edges_to_one_header_are_one_loop() -> None:
    graph = build_cfg(
        code(
            ".L_head:",
            "IADD3 R0, R0, 0x1, RZ",  # block 0
            "@P0 BRA `(.L_other)",
            "@P1 BRA `(.L_head)",  # block 1: `continue`
            "EXIT",  # block 2
            ".L_other:",
            "@P2 BRA `(.L_head)",  # block 3
            "EXIT",
        )
    )
    assert graph.loops == (Loop(header=0, blocks=frozenset({0, 1, 3}), parent=None),)


def test_a_cycle_with_two_entries_is_no_natural_loop() -> None:
    graph = build_cfg(
        code(
            "@P0 BRA `(.L_b)",
            ".L_a:",
            "MOV R0, RZ",
            ".L_b:",
            "@P1 BRA `(.L_a)",
            "EXIT",
        )
    )
    assert graph.loops == ()


def test_code_after_the_last_exit_stays_without_predecessors() -> None:
    graph = build_cfg(code("EXIT", "MOV R0, RZ", "EXIT"))
    assert len(graph.blocks) == 2
    assert graph.dominators == (0, -1)


def test_a_conditional_branch_by_operand_falls_through_too() -> None:
    # `BRA !P2, L` jumps only where its operand holds, without any guard.
    graph = build_cfg(code("BRA !P2, `(.L_x)", "MOV R0, RZ", ".L_x:", "EXIT"))
    assert graph.blocks[0].successors == (1, 2)


def test_a_call_goes_to_its_function_and_a_return_behind_every_call() -> None:
    graph = build_cfg(
        code(
            "CALL.REL.NOINC `(f)",  # block 0
            "MOV R0, RZ",  # block 1
            "CALL.REL.NOINC `(f)",
            "EXIT",  # block 2
            "f:",
            "RET.REL.NODEC R20 `(k)",  # block 3
        )
    )
    function = graph.block_of[4]
    assert function in graph.blocks[0].successors
    assert graph.blocks[function].successors == (graph.block_of[1], graph.block_of[3])


def test_an_indirect_call_goes_to_the_stated_targets_not_to_its_label() -> None:
    # `CALL.REL R8 (k)`: the label is what the address is relative to.
    lines = ("MOV R0, RZ", "CALL.REL.NOINC R8 `(k)", "EXIT", "RET.REL.NODEC R20 `(k)")
    instructions = code(*lines)
    assert jump_target(instructions[1]) is None
    graph = build_cfg(instructions, indirect_targets=[0x0, 0x30])
    call, function = graph.block_of[1], graph.block_of[3]
    assert graph.blocks[call].successors == (graph.block_of[2], function)
    assert graph.blocks[function].successors == (graph.block_of[2],)
    assert graph.loops == ()


def test_a_jump_table_goes_to_its_listed_targets() -> None:
    graph = build_cfg(
        code(
            'BRX R4 -0x10 (*"BRANCH_TARGETS .L_a,.L_b"*)',
            ".L_a:",
            "EXIT",
            ".L_b:",
            "EXIT",
        )
    )
    assert graph.blocks[0].successors == (1, 2)
