"""Blocks that steer by what other blocks of the launch write: said first, with a band to match."""

from __future__ import annotations

import json

import numpy as np
import pytest

import drywarp
from drywarp.cli.main import run
from drywarp.models.base import UNKNOWN_LIMIT
from drywarp.report.html.page import html_page

BLOCKS, THREADS = 64, 128
COUNT = BLOCKS * THREADS

RANKING = """extern "C" __global__ void f(int* next, int* rank) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  while (next[i] >= 0 && next[next[i]] >= 0) {
    rank[i] += rank[next[i]];
    next[i] = next[next[i]];
  }
}"""
QUEUE = """extern "C" __global__ void f(int* head, float* x, int n) {
  __shared__ int mine;
  while (true) {
    if (threadIdx.x == 0) mine = atomicAdd(head, 1);
    __syncthreads();
    if (mine >= n) return;
    x[mine * blockDim.x + threadIdx.x] *= 2.0f;
    __syncthreads();
  }
}"""
LOOK_BACK = """extern "C" __global__ void f(volatile int* flag, volatile float* part, float* out) {
  __shared__ float before;
  if (threadIdx.x == 0) {
    float sum = 0;
    if (blockIdx.x) { while (flag[blockIdx.x - 1] == 0) {} sum = part[blockIdx.x - 1]; }
    part[blockIdx.x] = sum + 1;
    __threadfence();
    flag[blockIdx.x] = 1;
    before = sum;
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = before;
}"""
IN_PLACE = """extern "C" __global__ void f(int* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (x[i] > 0) x[i] = x[i] * 2;
  y[x[i] & 1023] = y[i];
}"""
HISTOGRAM = """extern "C" __global__ void f(const int* x, int* bins) {
  atomicAdd(&bins[x[blockIdx.x * blockDim.x + threadIdx.x] & 255], 1);
}"""
VALUES_ONLY = """extern "C" __global__ void f(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 0.5f * (x[i] + x[(i + blockDim.x) % n]);
}"""

TICKET = """extern "C" __global__ void f(int* tickets, float* parts, float* x) {
  __shared__ bool last;
  parts[blockIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1) == gridDim.x - 1;
  __syncthreads();
  if (last) { float sum = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += parts[i]; x[threadIdx.x] = sum; }
}"""
PACKED = """extern "C" __global__ void f(int* count, const float* x, float* out) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (v > 0.5f) out[atomicAdd(count, 1)] = v;
}"""
NEIGHBOURS = """extern "C" __global__ void f(char* flags, float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (flags[i]) x[i] = 1.0f;
  flags[i] = 0;
}"""
QUADS = """extern "C" __global__ void f(int4* a, int* b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int4 v = a[i];
  while (v.x + v.y + v.z + v.w > b[i]) { v.x--; b[i]++; }
  int* words = (int*)a;
  words[(i * 4 + 4 * blockDim.x) % (4 * gridDim.x * blockDim.x) + 2] = i;
}"""
TOGETHER = """#include <cooperative_groups.h>
extern "C" __global__ void f(float* x, int n) {
  auto grid = cooperative_groups::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int turn = 0; turn < 3; turn++) { float v = x[(i + blockDim.x) % n]; grid.sync(); x[i] = v * 0.5f; grid.sync(); }
}"""


def a_list() -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    order = np.random.default_rng(1).permutation(COUNT).astype(np.int32)
    after = np.full(COUNT, -1, np.int32)
    after[order[:-1]] = order[1:]
    return after


NEEDING = {
    "a list ranked by pointer jumping": (RANKING, {"next": a_list(), "rank": f"i32[{COUNT}]:ones"}, 3),
    "a look back": (LOOK_BACK, {"flag": f"i32[{BLOCKS}]", "part": f"f32[{BLOCKS}]", "out": f"f32[{COUNT}]"}, 5),
    "words within wider ones": (QUADS, {"a": f"i32[{4 * COUNT}]:random", "b": f"i32[{COUNT}]:random"}, 3),
}
ALONE = {
    "a queue of work": (QUEUE, {"head": "i32[1]", "x": f"f32[{COUNT}]", "n": BLOCKS}),
    "in place": (IN_PLACE, {"x": f"i32[{COUNT}]:random", "y": f"f32[{COUNT}]"}),
    "a histogram": (HISTOGRAM, {"x": f"i32[{COUNT}]:random", "bins": "i32[256]"}),
    "the block that comes last": (TICKET, {"tickets": "i32[1]", "parts": f"f32[{BLOCKS}]", "x": f"f32[{COUNT}]"}),
    "results packed by a counter": (PACKED, {"count": "i32[1]", "x": f"f32[{COUNT}]:random", "out": f"f32[{COUNT}]"}),
    "bytes side by side": (NEIGHBOURS, {"flags": f"i8[{COUNT}]:random", "x": f"f32[{COUNT}]"}),
    "barriers of the whole grid": (TOGETHER, {"x": f"f32[{COUNT}]:random", "n": COUNT}),
    "values that steer nothing": (VALUES_ONLY, {"x": f"f32[{COUNT}]:random", "n": COUNT}),
}


@pytest.mark.parametrize(("source", "args", "line"), NEEDING.values(), ids=NEEDING)
def test_blocks_that_need_each_other_are_told_first(source: str, args: dict[str, object], line: int) -> None:
    answer = drywarp.analyze(source, gpu="a100", grid=BLOCKS, block=THREADS, args=args)
    (doubt,) = answer.doubts
    assert doubt.startswith("not to be trusted")
    assert f":{line})" in doubt
    assert answer.notes[0] == doubt
    assert answer.limiter == UNKNOWN_LIMIT
    assert "is unknown" in answer.verdict
    assert answer.band is not None
    assert answer.band.low_s < answer.time_s / 100
    assert answer.band.high_s > answer.time_s * 100
    assert answer.to_dict()["doubts"] == [doubt]
    assert doubt[1:] in html_page(answer).replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")


@pytest.mark.parametrize(("source", "args"), ALONE.values(), ids=ALONE)
def test_others_are_not(source: str, args: dict[str, object]) -> None:
    answer = drywarp.analyze(source, gpu="a100", grid=BLOCKS, block=THREADS, args=args)
    assert answer.doubts == ()
    assert answer.limiter != UNKNOWN_LIMIT
    assert "doubts" not in answer.to_dict()


def test_text_counts_and_models_say_it(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "ranking.cu"
    file.write_text(RANKING)
    launch = ["--grid", str(BLOCKS), "--block", str(THREADS)]
    np.save(tmp_path / "next.npy", a_list())
    launch += [f"--arg=next=@{tmp_path / 'next.npy'}", f"--arg=rank=i32[{COUNT}]:ones"]
    assert run(["analyze", str(file), *launch]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Not to be trusted")
    assert text.lower().count("not to be trusted") == 1
    for verb in ("counts", "models", "rank"):
        assert run([verb, str(file), *launch, "--gpu=a100", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        notes = told["gpus"][0]["notes"] if verb == "rank" else told["notes"]
        assert notes[0].startswith("not to be trusted"), verb
