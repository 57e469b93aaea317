"""Blocks that run in several threads give the answer of one thread, bit by bit, whatever their number.

Also where blocks influence each other, where the answer of one thread is an error, and where it stops at a limit.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from drywarp.errors import DrywarpError
from drywarp.execution.emulator import Limits, emulate, session
from drywarp.execution.emulator.run import run_whole
from drywarp.execution.emulator.sampling import Blocks
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import make_launch
from drywarp.support.folders import use_threads

BLOCKS, THREADS = 150, 256
N = BLOCKS * THREADS
SOURCE = """
extern "C" __global__ void alone(const int* a, int* b) {  // no block sees another
  __shared__ int s[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = a[i];
  __syncthreads();
  int sum = 0;
  for (int k = 0; k <= a[blockIdx.x] % 7; ++k) sum += s[(threadIdx.x * k) & 255];
  if (threadIdx.x % 5) atomicAdd(&s[0], sum);
  __syncthreads();
  b[i] = sum + s[0];
}
__constant__ int table[64];
extern "C" __global__ void looks_up(const int* a, int* b) {  // each lane at another address
  int i = blockIdx.x * 256 + threadIdx.x;
  b[i] = table[a[i] & 63] + table[a[i] & 7];
}
extern "C" __global__ void after(const int* a, int* b) {  // reads what the block before has written
  int i = blockIdx.x * 256 + threadIdx.x;
  b[i] = (i >= 256 ? b[i - 256] : 1) + a[i];
}
extern "C" __global__ void over(const int* a, int* b) {  // the last block wins
  b[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x] + blockIdx.x;
}
extern "C" __global__ void paths(const int* a, int* b) {  // takes other paths, depending on what others have written
  int i = blockIdx.x * 256 + threadIdx.x;
  int turns = i >= 256 ? b[i - 256] & 7 : 3;
  for (int k = 0; k < turns; ++k) turns -= (a[i] >> k) & 1;
  b[i] = turns + (a[i] & 3);
}
extern "C" __global__ void sum(const int* a, int* b) {  // the sums so far, in the order of the blocks
  int i = blockIdx.x * 256 + threadIdx.x;
  b[1 + i] = atomicAdd(b, a[i]);
}
extern "C" __global__ void faulty(const int* a, int* b) {
  int i = blockIdx.x * 256 + threadIdx.x;
  b[blockIdx.x == 77 || blockIdx.x == 140 ? i + (1 << 28) : i] = a[i];
}
"""
MEET = ("after", "over", "paths", "sum")
"""Kernels whose blocks influence each other."""


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    names = ("alone", "looks_up", "faulty", *MEET)
    return {name: compile_cuda(SOURCE, arch="sm_80", entry=name) for name in names}


@pytest.fixture(autouse=True)
def all_cores() -> Any:
    yield
    use_threads(None)


def outcome(kernel: Kernel, threads: int, blocks: Blocks, limits: Limits) -> dict[str, Any]:
    """All that a run leaves behind, or its error."""
    use_threads(threads)
    given = np.random.default_rng(3).integers(0, 1000, N, dtype=np.int32)
    launch = make_launch(kernel, (BLOCKS, 1, 1), (THREADS, 1, 1), {"a": given, "b": f"i32[{N + 1}]:iota"})
    try:
        run = emulate(kernel, launch, blocks=blocks, limits=limits)
    except DrywarpError as error:
        return {"error": str(error)}
    profile, log = run.profile, run.profile.accesses
    return {
        "b": run.buffer("b"),
        "steps": profile.steps,
        "notes": (*profile.notes, *profile.doubts),
        "sampling": repr(profile.sampling),
        "blocks": repr(profile.blocks),
        "paths": [(path.blocks.tolist(), path.lanes.tolist()) for path in profile.paths],
        "lanes": profile.thread_instructions,
        "syncs": profile.syncs,
        "addresses": profile.constant_addresses,
        "constants": profile.constants,
    } | {f"log.{name}": getattr(log, name) for name in ("instruction", "warp", "order", "base", "pattern", "space")} | {
        "offsets": log.offsets, "masks": log.masks,
    }  # fmt: skip


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys(), (one.get("error"), other.get("error"))
    for name, value in one.items():
        equal = np.array_equal(value, other[name]) if isinstance(value, np.ndarray) else value == other[name]
        assert equal, name


@pytest.mark.parametrize("name", ["alone", "looks_up", "faulty", *MEET])
def test_any_number_of_threads_gives_the_same(kernels: dict[str, Kernel], name: str) -> None:
    expected = outcome(kernels[name], 1, "all", Limits())
    assert ("error" in expected) == (name == "faulty")
    for threads in (2, 3, 7):
        same(expected, outcome(kernels[name], threads, "all", Limits()))


@pytest.mark.parametrize("limits", [Limits(lane_steps=200_000), Limits(accesses=1500), Limits(lane_steps=3_000_000)])
@pytest.mark.parametrize("blocks", ["all", None])
@pytest.mark.parametrize("name", ["alone", "looks_up"])
def test_limits_stop_alike(kernels: dict[str, Kernel], limits: Limits, blocks: Blocks, name: str) -> None:
    same(outcome(kernels[name], 1, blocks, limits), outcome(kernels[name], 3, blocks, limits))


def test_kernels_are_run_again_only_where_blocks_meet(
    kernels: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    whether = session.ran_alone
    monkeypatch.setattr(session, "ran_alone", lambda *given: found.append(whether(*given)) or found[-1])
    for name in ("alone", *MEET):
        outcome(kernels[name], 2, "all", Limits())
    # Atomics are never run apart from each other.
    assert found == [True, False, False, False]


def test_later_blocks_see_what_earlier_ones_wrote(kernels: dict[str, Kernel]) -> None:
    def second(threads: int) -> dict[str, Any]:
        use_threads(threads)
        kernel = kernels["after"]
        given = np.arange(N, dtype=np.int32)
        launch = make_launch(kernel, (BLOCKS, 1, 1), (THREADS, 1, 1), {"a": given, "b": f"i32[{N + 1}]:iota"})
        run = session.Session(kernel, launch, Limits())
        run.run(range(10, 20))
        run.run(range(BLOCKS))
        done = run.finish(dict.fromkeys(range(BLOCKS), 1.0), "all", 0.0)
        return {"b": done.buffer("b"), "base": done.profile.accesses.base, "of": run.completed}

    same(second(1), second(3))


@pytest.mark.parametrize("name", ["alone", *MEET])
@pytest.mark.parametrize("way", ["sampled", "all", "whole"])
def test_nothing_waits_for_python_to_look_for_cycles(kernels: dict[str, Kernel], name: str, way: str) -> None:
    """A program has thousands of launches, whose records and memory are larger than Python knows."""
    use_threads(2)
    kernel = kernels[name]
    graph = build_cfg(kernel.instructions, kernel.code_entries)
    launch = make_launch(kernel, (BLOCKS, 1, 1), (THREADS, 1, 1), {"a": f"i32[{N}]:iota", "b": f"i32[{N + 1}]"})

    def once() -> None:
        if way == "whole":
            run_whole(kernel, launch, 1 << 40, graph)
        else:
            emulate(kernel, launch, blocks="all" if way == "all" else None, results=False)

    once()
    gc.collect()
    gc.disable()
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        once()
        gc.collect()
        left = [type(one) for one in gc.garbage if type(one).__module__.startswith(("drywarp", "numpy"))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
