"""Kernels become the machine code that is meant, on every architecture; one that does not is an error with its name."""

from __future__ import annotations

import pytest

from drywarp.experiments.calibrate import dram as l2_size
from drywarp.experiments.calibrate.chains import for_architecture
from drywarp.experiments.calibrate.device import ENTRY, Program
from drywarp.experiments.calibrate.journal import (
    SPARE,
    WrongCodeError,
    check_loop,
    cycles_between_loads,
    loop_of,
    waits_for_result,
)
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.kernel import Kernel
from tests.effort import first

LENGTH = 16
OTHERS = (
    ("tensor", "TYPE_FP64", {"DMMA": 1}, 3, 80),
    ("shared", "OP_LDS", {"LDS": 1}, 0, 75),
    ("shared", "OP_STS", {"STS": 1}, 0, 75),
    ("shared", "OP_ATOMS", {"ATOMS": 1}, 0, 75),
    ("cached", "OP_LDG", {"LDG": 1}, 0, 75),
    ("cached", "OP_STG", {"STG": 1}, 0, 75),
    ("cached", "OP_ATOMG", {"ATOMG": 1}, 0, 75),
    ("mix", "THREE", {"FFMA": 1, "SHF": 1, "HADD2": 1}, 0, 75),
    ("chase", 'CACHE="cg"', {"LDG": 1}, 10, 75),
)


def compiled(template: str, macro: str, arch: str) -> tuple[Program, Kernel]:
    name, _, value = macro.partition("=")
    program = Program(template, ((name, value), ("LENGTH", str(LENGTH))))
    options = CudaOptions(dict(program.defines))
    return program, compile_cuda(program.path, arch=arch, entry=ENTRY, options=options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", first(["sm_80", "sm_75", "sm_86", "sm_89", "sm_90"]))
def test_every_kernel_is_what_was_meant(arch: str) -> None:
    for operation in for_architecture(arch):
        program, kernel = compiled("chain", operation.macro, arch)
        wanted = {name: count * LENGTH for name, count in operation.opcodes}
        check_loop(kernel, program, wanted, SPARE + operation.others * LENGTH)
    for template, macro, opcodes, others, oldest in OTHERS:
        if int(arch.removeprefix("sm_")) >= oldest:
            program, kernel = compiled(template, macro, arch)
            wanted = {name: count * LENGTH for name, count in opcodes.items()}
            check_loop(kernel, program, wanted, SPARE + others * LENGTH)


@pytest.mark.parametrize("arch", first(["sm_80", "sm_75", "sm_86", "sm_89", "sm_90"]))
def test_kernels_with_a_loop_of_their_own_are_what_was_meant(arch: str) -> None:
    program, kernel = compiled("random", "PLAIN", arch)
    check_loop(kernel, program, {"LDG": LENGTH}, 8 * LENGTH)
    program, kernel = compiled("latency", "PLAIN", arch)
    check_loop(kernel, program, {"LDG": 8}, 60)
    # Between the timed load and the second clock, something waits for what was loaded.
    loop = loop_of(kernel)
    timed = max(n for n, i in enumerate(loop) if i.opcode == "LDG")
    clock = next(n for n, i in enumerate(loop) if n > timed and i.opcode == "CS2R")
    assert any(i.control.wait_mask >> loop[timed].control.write_barrier & 1 for i in loop[timed + 1 : clock])
    program, kernel = compiled("sweep", "PLAIN", arch)
    check_loop(kernel, program, {"LDG": l2_size.UNROLLED}, 12 * l2_size.UNROLLED)


def test_a_chain_that_became_something_else_is_an_error_with_the_kernels_name() -> None:
    program, kernel = compiled("chain", "OP_FFMA", "sm_80")
    with pytest.raises(WrongCodeError, match=r"chain\.cu \(OP_FFMA, LENGTH=16\) on sm_80: expected 17 FFMA .* got 16"):
        check_loop(kernel, program, {"FFMA": LENGTH + 1})
    with pytest.raises(WrongCodeError, match="extra instructions in the loop: 16 FFMA"):
        check_loop(kernel, program, {"IADD3": 1}, at_most=3)


def test_scoreboards_and_distances_are_told_apart() -> None:
    assert waits_for_result(compiled("chain", "OP_MUFU", "sm_80")[1], "MUFU")
    assert not waits_for_result(compiled("chain", "OP_FFMA", "sm_80")[1], "FFMA")


def test_distances_between_loads_are_those_of_the_code() -> None:
    _, kernel = compiled("chase", 'CACHE="cg"', "sm_80")
    between = cycles_between_loads(kernel, "LDG")
    stalls = sum(max(i.control.stall, 1) for i in loop_of(kernel)) / LENGTH
    assert 8 < between < stalls
