"""Blocks that draw their work from a counter: sampled ones do a fair share of it."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp import analyze
from drywarp.execution.emulator import Limits, emulate
from drywarp.execution.emulator.skim import Skim
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.dataflow import Dataflow
from drywarp.kernel.draws import NOTE
from drywarp.kernel.launch.arguments import make_launch
from tests.effort import first

from .support import ARCHES, run

TILES, BLOCKS = 100, 12
LOOP = """
extern "C" __global__ void k(const float* x, float* y, int* counter, int tiles) {
  __shared__ int next;
  for (NEXT) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) y[tile * 256 + i] = x[tile * 256 + i] * (tile + 1);
  }
}"""
DRAWN = LOOP.replace("NEXT", "int tile = draw(counter, &next); tile < tiles; tile = draw(counter, &next)")
STATIC = LOOP.replace("NEXT", "int tile = blockIdx.x; tile < tiles; tile += gridDim.x")
SHARED_DRAW = """
__device__ int draw(int* counter, int* next) {
  __syncthreads();
  if (threadIdx.x == 0) *next = atomicAdd(counter, STEP) / STEP;
  __syncthreads();
  return *next;
}
"""
WARP_DRAW = """
__device__ int draw(int* counter, int*) {
  int found = 0;
  if (threadIdx.x % 32 == 0) found = atomicAdd(counter, STEP) / STEP;
  return __shfl_sync(~0u, found, 0);
}
"""


def tiles_done(source: str, threads: int, blocks: object, start: int = 0, arch: str = "sm_80") -> np.ndarray:
    x, y = np.ones(TILES * 256, np.float32), np.zeros(TILES * 256, np.float32)
    done = run(source, BLOCKS, threads, x, y, np.array([start], np.int32), TILES, arch=arch, blocks=blocks)
    return np.flatnonzero(done.buffer("y").reshape(TILES, 256).all(axis=1))


@pytest.mark.parametrize("arch", first(ARCHES))
@pytest.mark.parametrize(("draw", "threads"), [(SHARED_DRAW, 64), (WARP_DRAW, 32)], ids=["shared", "warp"])
@pytest.mark.parametrize("step", [1, 4])
def test_a_sampled_block_does_its_share(arch, draw, threads, step):
    source = draw.replace("STEP", str(step)) + DRAWN
    np.testing.assert_array_equal(tiles_done(source, threads, [5], arch=arch), np.arange(5, TILES, BLOCKS))
    np.testing.assert_array_equal(tiles_done(source, threads, "all", arch=arch), np.arange(TILES))


def test_draws_begin_where_the_counter_stands():
    source = SHARED_DRAW.replace("STEP", "1") + DRAWN
    expected = sorted([*range(40, TILES, BLOCKS), *range(47, TILES, BLOCKS)])
    np.testing.assert_array_equal(tiles_done(source, 64, [0, 7], start=40), expected)


def test_tickets_that_end_no_loop_are_what_they_are():
    """The last block to draw a ticket sums up: sampled blocks draw one after the other."""
    source = """
extern "C" __global__ void k(int* counter, int* found) {
  for (int i = 0; i < 3; ++i)
    if (threadIdx.x == 0) found[blockIdx.x * 3 + i] = atomicAdd(counter, 1);
}"""
    found = run(source, 8, 32, np.zeros(1, np.int32), np.full(24, -1, np.int32), blocks=[2, 6]).buffer("found")
    assert sorted(found[found >= 0].tolist()) == list(range(6))


def test_a_persistent_kernel_takes_as_long_as_with_a_fixed_stride(tmp_path):
    launch = """// drywarp: --grid 216 --block 64 --arg x=f32[1048576] --arg y=f32[1048576]
// drywarp: --arg counter=i32[1] --arg tiles=4096
"""
    answers = []
    for name, source in (("drawn", SHARED_DRAW.replace("STEP", "1") + DRAWN), ("static", STATIC)):
        file = tmp_path / f"{name}.cu"
        file.write_text(launch + source)
        answers.append(analyze(file, gpu="a100"))
    drawn, static = answers
    assert NOTE in drawn.notes
    assert NOTE not in static.notes
    assert not any("not to be trusted" in note for note in drawn.notes)
    assert static.time_s < drawn.time_s < 2 * static.time_s


def test_the_code_of_a_kernel_is_followed_back_once(monkeypatch):
    """A program launches it many times, on other data each time."""
    asked, slice_of = [], Dataflow.slice_of
    monkeypatch.setattr(Dataflow, "slice_of", lambda flow, ends: asked.append(1) or slice_of(flow, ends))
    kernel = compile_cuda(SHARED_DRAW.replace("STEP", "1") + DRAWN, arch="sm_80")
    steps, followed = [], []
    for tiles in (100, 50):
        given = {"x": "f32[25600]", "y": "f32[25600]", "counter": "i32[1]", "tiles": tiles}
        launch = make_launch(kernel, (BLOCKS, 1, 1), (64, 1, 1), given)
        profile = emulate(kernel, launch, results=False).profile
        graph = build_cfg(kernel.instructions, kernel.code_entries)
        assert Skim(profile.kernel, launch, graph, Limits(), graph.loops, profile)([0]) is not None
        steps.append(profile.steps)
        followed.append(len(asked))
    assert steps[0] > 1.5 * steps[1] > 0
    assert followed[0] == followed[1] > 2
