"""Kernels with random damage, emulated: whatever they do, the core stays within its arrays.

    python -m tests.emulator.damaged FIRST COUNT

Registers, immediates, offsets, targets, predicates, operands and whole instructions of compiled examples are exchanged
for others. Whether the core strays shows where it is built with sanitizers (`tests/core/test_builds.py`), or in the
worst case as a crash.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from drywarp.errors import DrywarpError
from drywarp.execution.emulator import Limits
from drywarp.execution.emulator.run import emulate
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.instruction import Instruction, Label
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNELS = ("tiled_matmul", "histogram", "integer_division", "half2", "softmax", "double_precision", "reduction")
NUMBERS = (0, 1, 4, 7, 31, 32, 100, 254, 255, 4096, -1, -4, 2**31 - 1, 2**31, 2**32 - 1, 2**40)
LIMITS = Limits(lane_steps=3_000_000, accesses=200_000)


@cache
def compiled(name: str) -> Kernel:
    return compile_cuda(EXAMPLES / f"{name}.cu", arch="sm_80")


def _number(rng: np.random.Generator, old: int) -> int:
    if rng.random() < 0.5:
        return int(old) + int(rng.integers(-8, 9))
    return int(rng.choice(NUMBERS))


def _operand(rng: np.random.Generator, operand: Any, code: tuple[Instruction, ...]) -> Any:
    """An operand with one of its numbers or flags changed."""
    if isinstance(operand, Label):
        return replace(operand, target=16 * int(rng.integers(-1, len(code) + 2)))
    name = str(rng.choice([field.name for field in fields(operand)]))
    old = getattr(operand, name)
    if isinstance(old, bool):
        return replace(operand, **{name: not old})
    if isinstance(old, int):
        number = _number(rng, old)
        return replace(operand, **{name: number % 256 if name == "index" else number})
    return operand


def _changed(rng: np.random.Generator, code: tuple[Instruction, ...], at: int) -> Instruction:
    one, other = code[at], code[int(rng.integers(len(code)))]
    kind = rng.random()
    if kind < 0.1:
        return replace(other, pc=one.pc)
    if kind < 0.2:
        return replace(one, guard=other.guard)
    if kind < 0.3:
        return replace(one, modifiers=one.modifiers[1:] if rng.random() < 0.5 else other.modifiers)
    if not one.operands:
        return one
    operands = list(one.operands)
    place = int(rng.integers(len(operands)))
    mine = operands[place]
    operands[place] = (
        other.operands[int(rng.integers(len(other.operands)))]
        if kind < 0.4 and other.operands
        else _operand(rng, mine, code)
    )
    return replace(one, operands=tuple(operands))


def damaged(rng: np.random.Generator, kernel: Kernel) -> Kernel:
    """The kernel with one to four instructions changed."""
    code = kernel.instructions
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(code)))
        code = (*code[:at], _changed(rng, code, at), *code[at + 1 :])
    return replace(kernel, instructions=code)


def _element(pointed: str) -> str:
    """The elements of a buffer: floats of some kind, else integers."""
    kinds = {"double": "f8", "float": "f4", "half": "f2", "char": "u1", "long": "i8"}
    return next((kind for name, kind in kinds.items() if name in pointed), "i4")


def outcome(seed: int) -> str:
    """What became of one damaged kernel: `ran`, or the name of the error."""
    rng = np.random.default_rng(seed)
    kernel = compiled(KERNELS[seed % len(KERNELS)])
    arguments: dict[str, Any] = {}
    for parameter in kernel.parameters:
        # Small buffers, so that a wrong address is outside them.
        name = parameter.name or ""
        arguments[name] = np.zeros(4096, _element(parameter.type)) if parameter.pointer else 64
    try:
        launch = make_launch(kernel, (3, 2, 1), (64, 1, 1), arguments)
        emulate(damaged(rng, kernel), launch, blocks="all", limits=LIMITS)
    except DrywarpError as error:
        return type(error).__name__
    except Exception as error:  # an instruction that no frontend would make
        return f"({type(error).__name__})"
    return "ran"


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    found = Counter(outcome(seed) for seed in range(first, first + count))
    for name, times in found.most_common():
        print(f"{times:6} {name}")


if __name__ == "__main__":
    main()
