"""The static mode: completes a launch for a GPU, and derives its profile with the assumptions made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UsageError
from ..frontends.cuda import CudaOptions
from ..frontends.load import load_kernel
from ..frontends.loaded import LaunchComment
from ..hardware import Gpu, load_gpu, occupancy
from ..kernel.kernel import Kernel
from ..kernel.launch.arguments import bind_arguments, bind_constants, cluster_for, local_bytes, parse_dim3
from ..kernel.launch.launch import Dim3
from ..kernel.launch.layout import root_of
from ..kernel.profile import SPACE_GLOBAL, Profile
from .request import Options

if TYPE_CHECKING:
    from ..execution.symbolic import LoopReport, StaticLaunch, StaticReport

WAVES = 4
"""Full waves of blocks in an assumed grid."""

MOST_WARP_STEPS, MOST_SECTORS = 20_000_000, 2_000_000
"""Each block of a wave is followed individually up to this many warp instructions and distinct sectors: seconds."""


def arch_of(gpu: Gpu) -> str:
    """The architecture to compile for. Raises UsageError for a GPU that does not take kernels."""
    if not gpu.code_arch:
        raise UsageError(f"GPU {gpu.name} only takes abstract workloads, not kernels")
    return gpu.code_arch


def always_static(gpu: str | Gpu) -> bool:
    """Whether a GPU's kernels are never emulated: AMD machine code is only followed statically."""
    return (gpu if isinstance(gpu, Gpu) else load_gpu(gpu)).is_amd


def static_launch(
    kernel: Kernel,
    comment: LaunchComment,
    gpu: Gpu,
    grid: int | Sequence[int] | str | None,
    block: int | Sequence[int] | str | None,
    args: Mapping[str, Any] | None,
    shared: int | None,
    constants: Mapping[str, Any] | None,
) -> StaticLaunch:
    """The launch as stated by the caller or the file's comment, with assumptions for the rest."""
    names = {p.name for p in kernel.parameters}
    said = {name: value for name, value in comment.arguments.items() if root_of(name, names) in names or not args}
    given = bind_arguments(kernel, {**said, **(args or {})})
    filled = bind_constants(kernel, {**comment.constants, **(constants or {})})
    dynamic = shared if shared is not None else int(comment.shared) if comment.shared else None
    if dynamic is not None and dynamic < 0:
        raise UsageError(f"dynamic shared memory {dynamic}: expected a number of bytes, 0 or more")
    if local := local_bytes(kernel, given):
        dynamic = (dynamic or 0) + local
    extents = [_extents(grid if grid is not None else comment.grid, "grid")]
    extents.append(_extents(block if block is not None else comment.block, "block"))

    from ..execution.symbolic import assume_launch

    def completed(blocks: int) -> StaticLaunch:
        return assume_launch(
            kernel,
            grid=extents[0],
            block=extents[1],
            arguments=given,
            dynamic_shared=dynamic,
            constants=filled,
            blocks=blocks,
        )

    if extents[0] is not None:
        return completed(1)
    first = completed(1).launch
    shared_bytes = kernel.resources.shared_bytes + first.dynamic_shared
    fits = occupancy(gpu.occupancy, kernel.resources.registers, shared_bytes, first.threads_per_block)
    return completed(WAVES * gpu.device.sm_count * fits.blocks_per_sm)


def in_clusters(kernel: Kernel, made: StaticLaunch, cluster: Dim3 | None) -> StaticLaunch:
    """The launch in clusters of this size, or of the one that the code states; an assumed grid grows to a multiple.

    Raises UsageError as `cluster_for` does.
    """
    grid, size, assumed = made.launch.grid, cluster or kernel.resources.cluster, dict(made.assumed)
    if "grid" in assumed:
        x, y, z = (-(-extent // part) * part for extent, part in zip(grid, size, strict=True))
        grid = x, y, z
        assumed["grid"] = assumed["grid"] if grid == made.launch.grid else f"{','.join(map(str, grid))} blocks"
    launch = replace(made.launch, grid=grid, cluster=cluster_for(kernel, grid, cluster))
    return replace(made, launch=launch, assumed=tuple(assumed.items()))


def _extents(value: int | Sequence[int] | str | None, what: str) -> Dim3 | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) else ",".join(map(str, value))
    return parse_dim3(text, what)


Followed = tuple[Profile, "StaticReport", Callable[[Sequence[int]], Profile | None]]


def static_answer(
    kernel: Kernel, given: StaticLaunch, options: Options, seen: Mapping[int, int] | None = None
) -> Followed:
    """The profile, the assumptions, and a function that follows whole blocks for their addresses.

    `seen` is as in `Hints`. That function returns None if it would exceed `MOST_WARP_STEPS` or `MOST_SECTORS`.
    """
    from ..execution.symbolic import Hints, static_profile

    hints = Hints(trips=options.trips, taken=options.taken, access=options.access, seen=seen or {})
    answer = static_profile(kernel, given, hints=hints, blocks=options.blocks)

    sampled = len(answer.profile.blocks)
    log = answer.profile.accesses
    # Approximate footprint of a request: its distinct 32-byte sectors.
    spread = np.array([len(np.unique(row >> 5)) for row in log.offsets], np.int64)
    sectors = int(spread[log.pattern[log.space == SPACE_GLOBAL]].sum()) if len(spread) else 0

    def whole_blocks(part: Sequence[int]) -> Profile | None:
        share = len(part) / sampled
        if answer.profile.steps * share > MOST_WARP_STEPS or sectors * share > MOST_SECTORS:
            return None
        return static_profile(kernel, given, hints=hints, blocks=list(part)).profile

    return answer.profile, answer.report, whole_blocks


def loops_of(
    source: str | Path,
    *,
    gpu: str | Gpu = "a100",
    entry: str | None = None,
    options: CudaOptions | None = None,
) -> tuple[str, tuple[LoopReport, ...]]:
    """The kernel's name and its loops, named as in `--trip`, without their trip counts."""
    from ..execution.symbolic import list_loops

    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    kernel, _ = load_kernel(source, arch=arch_of(machine), entry=entry, options=options)
    return kernel.name, list_loops(kernel)
