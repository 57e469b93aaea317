"""Kernels compiled once, and what the static mode and the emulator say of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from drywarp.execution.symbolic import Hints, StaticProfile, assume_launch, static_profile
from drywarp.execution.symbolic.walk import Effort
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.loaded import LaunchComment, launch_comment
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Dim3, Launch
from drywarp.kernel.profile import Profile

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.cu"))


@cache
def compiled(source: str, arch: str = "sm_80", entry: str | None = None) -> Kernel:
    """A kernel of some source text."""
    return compile_cuda(source, arch=arch, entry=entry)


@cache
def example(path: Path, arch: str = "sm_80") -> tuple[Kernel, LaunchComment]:
    """An example and what its comment says of the launch."""
    comment = launch_comment(path.read_text(), path.name)
    return compile_cuda(path, arch=arch, options=CudaOptions(comment.defines)), comment


def follow(
    source: str,
    *,
    grid: Dim3 | None = (4, 1, 1),
    block: Dim3 | None = (64, 1, 1),
    arch: str = "sm_80",
    hints: Hints | None = None,
    **scalars: int,
) -> StaticProfile:
    """The static mode on source text; scalar arguments by name, all else assumed."""
    from drywarp.kernel.launch.arguments import bind_arguments

    kernel = compiled(source, arch)
    launch = assume_launch(kernel, grid=grid, block=block, arguments=bind_arguments(kernel, scalars))
    return static_profile(kernel, launch, hints=hints)


def executions_by_line(found: StaticProfile, opcode: str) -> dict[int, float]:
    """Warp-level executions of an opcode over the grid, summed by source line."""
    total: dict[int, float] = {}
    counts = found.profile.executions()
    for instruction, count in zip(found.profile.kernel.instructions, counts, strict=True):
        if instruction.opcode == opcode and instruction.source:
            total[instruction.source.line] = total.get(instruction.source.line, 0.0) + float(count)
    return total


def iteration_by_iteration(kernel: Kernel, launch: Launch | None = None, hints: Hints | None = None) -> StaticProfile:
    """The static mode without going forward over iterations that repeat."""
    return static_profile(kernel, launch, hints=hints, effort=Effort(steps=1 << 40, forward=False))


def assert_same_profile(one: Profile, other: Profile) -> None:
    """Two profiles say the same of paths, counts and every access."""
    assert [b.paths for b in one.blocks] == [b.paths for b in other.blocks]
    assert len(one.paths) == len(other.paths)
    for path, same in zip(one.paths, other.paths, strict=True):
        assert np.array_equal(path.blocks, same.blocks)
        assert np.allclose(path.lanes, same.lanes)
    assert one.steps == other.steps
    assert np.array_equal(one.thread_instructions, other.thread_instructions)
    log, same_log = one.accesses, other.accesses
    for name in ("instruction", "warp", "order", "base", "space"):
        assert np.array_equal(getattr(log, name), getattr(same_log, name)), name
    assert np.array_equal(log.offsets[log.pattern], same_log.offsets[same_log.pattern])
    assert np.array_equal(log.masks[log.pattern], same_log.masks[same_log.pattern])
