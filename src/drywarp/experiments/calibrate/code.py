"""Checks that the compiler produced the intended code, and what its schedule adds to a chain of loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ...errors import DrywarpError
from ...kernel.cfg import build_cfg
from ...kernel.instruction import Instruction
from ...kernel.kernel import Kernel
from .device import Program

SPARE = 12
"""Instructions that a loop may need for itself: counting, comparing, constants."""


class WrongCodeError(DrywarpError):
    """A micro-benchmark was not compiled to the intended machine code."""


def loop_of(kernel: Kernel) -> list[Instruction]:
    """The instructions of the largest loop that holds no other, in order."""
    graph = build_cfg(kernel.instructions)
    outer = {loop.parent for loop in graph.loops}
    loops = [
        [kernel.instructions[i] for b in sorted(loop.blocks) for i in range(graph.blocks[b].start, graph.blocks[b].end)]
        for index, loop in enumerate(graph.loops)
        if index not in outer
    ]
    return max(loops, key=len, default=[])


def check_loop(kernel: Kernel, program: Program, wanted: Mapping[str, int], at_most: int | None = None) -> None:
    """Check that the loop has the wanted count of each opcode (``A|B``: of either) and little else.

    Raises WrongCodeError with the kernel, the architecture, what was expected and what was found. `at_most` is the most
    other instructions that the loop may have; None: what a loop needs for itself.
    """
    loop = loop_of(kernel)
    found = Counter(instruction.opcode for instruction in loop)
    rest = len(loop)
    for names, count in wanted.items():
        there = sum(found[name] for name in names.split("|"))
        # The loop's own counting may use the same opcode.
        if not count <= there <= count + SPARE // 4:
            seen = ", ".join(f"{number} {name}" for name, number in found.most_common(6)) or "no loop"
            raise WrongCodeError(
                f"{program} on {kernel.arch}: expected {count} {names.replace('|', ' or ')} in the loop, got {seen}"
            )
        rest -= there
    spare = SPARE if at_most is None else at_most
    if rest > spare:
        seen = ", ".join(f"{number} {name}" for name, number in found.most_common(6))
        raise WrongCodeError(f"{program} on {kernel.arch}: {rest} extra instructions in the loop: {seen}")


def waits_for_result(kernel: Kernel, opcodes: str) -> bool:
    """Whether these opcodes (``A|B``) in the loop set a scoreboard; otherwise their Λ is a scheduled distance."""
    chain = [i for i in loop_of(kernel) if i.opcode in opcodes.split("|")]
    return any(i.control.write_barrier is not None for i in chain)


def cycles_between_loads(kernel: Kernel, opcode: str) -> float:
    """Mean cycles from the wait for a load's result to the next load, by the compiler's schedule.

    In a chain where each load waits for the previous one, a step takes this much longer than Λ.
    """
    loop = loop_of(kernel)
    loads = [index for index, instruction in enumerate(loop) if instruction.opcode == opcode]
    gaps = [_gap(loop, a, b) for a, b in pairwise(loads)]
    return sum(gaps) / len(gaps)


def _gap(loop: Sequence[Instruction], load: int, following: int) -> int:
    slot = loop[load].control.write_barrier
    for index in range(load + 1, following + 1):
        if slot is not None and loop[index].control.wait_mask >> slot & 1:
            return sum(max(loop[i].control.stall, 1) for i in range(index, following))
    raise WrongCodeError(f"{loop[load].text}: no instruction before the next load waits for it")
