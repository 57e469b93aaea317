"""Whole launches: the same results and counts as blocks that are recorded, whatever the number of threads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drywarp.analysis.prepare import LoadedKernel, load
from drywarp.analysis.request import LaunchRequest, Options
from drywarp.execution.emulator import emulate
from drywarp.execution.emulator.run import run_whole
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Launch
from drywarp.support.folders import use_threads

EXAMPLES = Path(__file__).parents[2] / "examples"
CASES = {
    "tiled_matmul.cu": {"grid": "6,6", "args": {"A": "f32[96,96]:random", "B": "f32[96,96]:random", "n": "96"}},
    "transpose_padded.cu": {"grid": "4,4"},
    "collatz.cu": {"grid": "24"},
}  # fmt: skip


def loaded(name: str) -> LoadedKernel:
    return load(LaunchRequest.of(EXAMPLES / name, gpu="a100", **CASES[name]), Options())


@pytest.mark.parametrize("name", list(CASES))
def test_whole_runs_leave_what_recorded_ones_leave(name: str) -> None:
    made = loaded(name)
    assert isinstance(made.launch, Launch)
    recorded = emulate(made.kernel, made.launch, blocks="all")
    digests = set()
    for threads in (1, 2):
        use_threads(threads)
        whole = run_whole(made.kernel, made.launch, 1 << 40)
        assert whole is not None
        digests.add(whole.digest)
        assert whole.warp_instructions == recorded.profile.sampling.estimate  # type: ignore[union-attr]
        for region in whole.memory.regions:
            if region.buffer is not None:
                assert np.array_equal(whole.memory.content(region), recorded.buffer(region.ordinal))
    use_threads(None)
    assert len(digests) == 1
    assert run_whole(made.kernel, made.launch, whole.warp_instructions) is not None


def test_a_limit_ends_the_run() -> None:
    made = loaded("tiled_matmul.cu")
    assert isinstance(made.launch, Launch)
    assert run_whole(made.kernel, made.launch, 100) is None


@pytest.mark.parametrize("blocks", [1, 5000])
def test_a_limit_ends_the_run_within_a_block(blocks: int) -> None:
    """A warp of these takes 10^13 instructions."""
    source = 'extern "C" __global__ void k(long n, long* y) { long s = 0, i = 0;'
    source += " do s = s * 5 ^ i; while (++i < n); *y = s; }"
    kernel = compile_cuda(source, arch="sm_80")
    launch = make_launch(kernel, (blocks, 1, 1), (32, 1, 1), {"n": 1 << 40, "y": np.zeros(1, np.int64)})
    assert run_whole(kernel, launch, 10_000) is None


def test_the_digest_tells_launches_apart_that_do_something_else() -> None:
    made = loaded("tiled_matmul.cu")
    assert isinstance(made.launch, Launch)
    smaller = replace(made.launch, grid=(5, 6, 1))
    found = [run_whole(made.kernel, launch, 1 << 40) for launch in (made.launch, made.launch, smaller)]
    assert [one.digest == found[0].digest for one in found if one and found[0]] == [True, True, False]
