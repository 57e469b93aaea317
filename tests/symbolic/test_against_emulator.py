"""With all of the launch given, the static mode counts what the emulator counts, wherever data decide nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.request import Options
from drywarp.execution.emulator import emulate
from drywarp.execution.symbolic import Hints, assume_launch, static_profile
from drywarp.kernel.launch.arguments import make_launch, parse_dim3
from drywarp.kernel.launch.launch import Launch
from tests.effort import first, some
from tests.symbolic.kernels import EXAMPLES, example

DATA_DEPENDENT = {
    "histogram": {"shared": (0.2, 1.0)},
    "vabs": dict.fromkeys(("stores", "DRAM", "L2"), (0.95, 1.05)),
}
"""Figures that data decide, and between which ratios of static to emulated they are allowed to lie."""

DATA_DEPENDENT_LANES = {"vabs"}
"""Where data decide how many lanes of a warp do something, though every warp does it."""


def launch_of(path: Path, arch: str = "sm_80") -> Launch:
    kernel, comment = example(path, arch)
    assert comment.grid
    assert comment.block
    grid, block = parse_dim3(comment.grid, "grid"), parse_dim3(comment.block, "block")
    return make_launch(kernel, grid, block, comment.arguments, dynamic_shared=int(comment.shared or 0))


@pytest.mark.parametrize("arch", first(["sm_80", "sm_75", "sm_90", "sm_120"]))
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_instruction_counts_are_those_of_the_emulator(path: Path, arch: str) -> None:
    kernel, _ = example(path, arch)
    launch = launch_of(path, arch)
    # Costly ones, and those that the emulator samples by chance, by two blocks.
    blocks = [0, 7] if path.stem in ("histogram", "collatz", "pointer_chase", "integer_division") else None
    static = static_profile(kernel, launch, blocks=blocks).profile
    emulated = emulate(kernel, launch, blocks=blocks).profile
    assert np.array_equal(static.executions(), emulated.executions())
    assert static.steps == emulated.steps
    if path.stem not in DATA_DEPENDENT_LANES:
        unguarded = np.array([i.guard is None for i in kernel.instructions])
        lanes = [p.thread_instructions.sum(axis=0)[unguarded] for p in (static, emulated)]
        assert np.array_equal(*lanes)


@pytest.mark.parametrize("path", some(EXAMPLES, 6), ids=lambda p: p.stem)
def test_memory_figures_are_those_of_the_emulator(path: Path) -> None:
    if path.stem == "texture_filter":
        pytest.skip("the static mode does not follow texels, and says so")
    static = prepare_kernel(path, options=Options(static=True)).behaviour
    emulated = prepare_kernel(path).behaviour
    loose = DATA_DEPENDENT.get(path.stem, {})
    for name, figure in (
        ("loads", "global_load_sectors"),
        ("stores", "global_store_sectors"),
        ("shared", "shared_wavefronts"),
        ("DRAM", "dram_bytes"),
        ("L1", "l1_hit_rate"),
        ("L2", "l2_hit_rate"),
    ):
        mine, theirs = getattr(static, figure), getattr(emulated, figure)
        if name in loose:
            low, high = loose[name]
            assert low <= mine / theirs <= high
        else:
            assert mine == pytest.approx(theirs), name


@pytest.mark.parametrize(
    ("name", "trips"),
    [("tiled_matmul", {"L1": 16}), ("softmax", {"L1": 4, "L2": 4, "L3": 4}), ("pointer_chase", {"L1": 64})],
)
def test_counts_with_stated_trips_and_no_arguments(name: str, trips: dict[str, int]) -> None:
    path = next(p for p in EXAMPLES if p.stem == name)
    kernel, _ = example(path)
    whole = launch_of(path)
    launch = assume_launch(kernel, grid=whole.grid, block=whole.block)
    stated = static_profile(kernel, launch, hints=Hints(trips)).profile.executions()
    assert stated.sum() == pytest.approx(emulate(kernel, whole).profile.executions().sum(), rel=2e-3)
