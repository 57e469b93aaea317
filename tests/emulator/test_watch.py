"""What a check of a launch finds beside its results: races, unwritten memory, other allocations; and what it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from drywarp.execution.emulator.memory import ARENA_START, DeviceMemory
from drywarp.execution.emulator.sampling import Limits
from drywarp.execution.emulator.session import Session
from drywarp.execution.emulator.tally import Tally
from drywarp.execution.emulator.watch import Problem, Uses, Watch, Written
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.launch.launch import Launch
from tests.effort import first

from .support import argument, dim3, kernels

MEMORY = "a barrier in memory"
ENGINES = pytest.mark.parametrize("compiled", [True, False], ids=["core", "numpy"])
HEAD = 'extern "C" __global__ void k(float* x, float* y, int n) { __shared__ float s[256]; int t = threadIdx.x; '


def problems(
    source: str,
    grid: int,
    block: int,
    *arguments: Any,
    written: int = 1 << 30,
    compiled: bool = True,
    arch: str = "sm_80",
) -> list[Problem]:
    """What is found in a launch whose device memory is written up to some byte of the first buffer."""
    kernel = kernels.kernel(source, arch)
    launch = Launch(dim3(grid), dim3(block), tuple(argument(one) for one in arguments))
    cfg = build_cfg(kernel.instructions, kernel.code_entries)
    noted = Written(ARENA_START, 1 << 31)
    noted.mark(ARENA_START, written)
    watch = Watch(Uses(kernel, cfg), noted, [(ARENA_START, ARENA_START + (1 << 31))])
    Session(kernel, launch, Limits(), compiled, cfg, Tally(), watch=watch).run(range(launch.blocks))
    return watch.problems()


RACES = {
    "no barrier": ("s[t] = x[t]; x[t] = s[n - t]; }", 128, 127, 256),
    "the second barrier of a loop is missing": (
        "for (int i = 0; i < n; i++) { s[t] = x[t + i]; __syncthreads(); x[t] += s[t ^ 32]; } }", 64, 3, None,
    ),
    "written before all have read": (
        "s[t] = x[t]; __syncthreads(); y[t] = s[t ^ 64]; s[t] = 1; y[t] += s[t]; }", 128, 0, None,
    ),
    "two writers": ("s[t & 31] = x[t]; __syncthreads(); y[t] = s[n]; }", 64, 0, 64),
    "set by one thread, then counted by all": (
        "if (t == 40) s[0] = 0; atomicAdd(s, x[t]); __syncthreads(); y[t] = s[0]; }", 64, 0, None,
    ),
    "lanes of a warp": ("volatile float* v = s; v[t] = x[t]; x[t] = v[n - t]; }", 32, 31, 64),
    "a barrier of other warps": (
        "s[t] = x[t]; if (t < 64) asm volatile(\"bar.sync 1, 64;\" ::: \"memory\"); x[t] = s[n - t]; }", 128, 127, None,
    ),
    "branches of a warp": (
        "volatile float* v = s; if (t < n) v[t] = x[t]; else y[t] = v[t - 16] * x[t]; }", 32, 16, None,
    ),
    "copied without a wait for others": (
        "unsigned to = __cvta_generic_to_shared(s + t); asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;"
        " cp.async.wait_all;\" :: \"r\"(to), \"l\"(x + t) : \"memory\"); y[t] = s[n - t]; }", 64, 63, None,
    ),
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("name", first(list(RACES), 6))
def test_races_are_found(name: str, compiled: bool) -> None:
    body, block, n, times = RACES[name]
    x = np.ones(1024, np.float32)
    found = problems(HEAD + body, 2, block, x, x, n, compiled=compiled)
    assert {one.kind for one in found} == {"race"}
    assert found[0].block == (0, 0, 0)
    assert found[0].thread is not None
    assert found[0].thread[0] < block
    assert "with no synchronisation in between" in found[0].text
    if times is not None:
        assert sum(one.count for one in found) == times


PROPER = {
    "barriers on both sides": "for (int i = 0; i < n; i++) { s[t] = x[t + i]; __syncthreads(); x[t] += s[t ^ 32];"
    " __syncthreads(); } }",
    "every thread its own": "s[t] = x[t]; s[t] += s[t] * 2; y[t] = s[t]; }",
    "all read the same": "if (t == 0) s[0] = x[n]; __syncthreads(); y[t] = s[0]; }",
    "counted by all": "if (t == 0) s[0] = 0; __syncthreads(); atomicAdd(s, x[t]); __syncthreads(); y[t] = s[0]; }",
    "lanes of a warp that synchronise": "volatile float* v = s; v[t] = x[t]; __syncwarp(); float z = v[t ^ 5];"
    " __syncwarp(); v[t] = z; __syncwarp(); y[t] = v[t ^ 1]; }",
    "a barrier of half the block": "s[t] = x[t]; if (t < 32 * n) asm volatile(\"bar.sync 1, 64;\" ::: \"memory\");"
    " else asm volatile(\"bar.sync 2, 64;\" ::: \"memory\"); y[t] = s[t ^ 32]; }",
    "neighbouring bytes": "char* c = (char*)s; c[t] = t; __syncthreads(); y[t] = c[n]; c[t + 128] = n; }",
    "early exits": "if (t >= 64) return; s[t] = x[t]; __syncthreads(); y[t] = s[n - t + 61]; }",
    "producers that only arrive": "if (t < 64) { s[t] = x[t]; asm volatile(\"bar.arrive 1, 128;\" ::: \"memory\"); }"
    " else { asm volatile(\"bar.sync 1, 128;\" ::: \"memory\"); y[t] = s[t - 62 - n]; } }",
    "a vote of the block": "s[t] = x[t]; int all = __syncthreads_and(t >= 0); y[t] = s[127 - t] + all * n; }",
    MEMORY: "__shared__ unsigned long long b; unsigned at = __cvta_generic_to_shared(&b); if (t == 0)"
    " asm volatile(\"mbarrier.init.shared.b64 [%0], 128;\" :: \"r\"(at)); __syncthreads();"
    " for (int i = 0; i < n; i++) { s[t] = i; unsigned long long state; unsigned done = 0;"
    " for (int half = 0; half < 2; half++) {"
    " asm volatile(\"mbarrier.arrive.shared.b64 %0, [%1];\" : \"=l\"(state) : \"r\"(at) : \"memory\"); do"
    " asm volatile(\"{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }\""
    " : \"=r\"(done) : \"r\"(at), \"l\"(state) : \"memory\"); while (!done); if (!half) y[t] += s[127 - t]; } } }",
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("name", first(list(PROPER), 8))
def test_what_is_synchronised_is_no_race(name: str, compiled: bool) -> None:
    x = np.ones(1024, np.float32)
    block = 32 if "lanes" in name else 128
    arch = "sm_90" if name == MEMORY else "sm_80"
    assert problems(HEAD + PROPER[name], 2, block, x, x, 2, compiled=compiled, arch=arch) == []


def test_a_barrier_in_memory_before_hopper_leaves_races_open() -> None:
    kernel = kernels.kernel(HEAD + PROPER[MEMORY], "sm_80")
    uses = Uses(kernel, build_cfg(kernel.instructions, kernel.code_entries))
    assert uses.unclear == "its warps wait for each other at barriers in shared memory"


@ENGINES
def test_unwritten_memory_is_told_once_for_each_byte_and_stores_write_it(compiled: bool) -> None:
    source = """extern "C" __global__ void k(float* x, float* y, int n) {
  int t = threadIdx.x; if (t < 50) y[t] = x[t];
  y[t] += 1;
  y[t] += x[t];
}"""
    x = np.ones(64, np.float32)
    found = problems(source, 1, 64, x, x, 0, written=160, compiled=compiled)
    assert {one.kind for one in found} == {"uninitialized"}
    told = {one.where[-2]: (one.count, one.thread) for one in found}
    assert told == {"2": (10, (40, 0, 0)), "3": (14, (50, 0, 0)), "4": (14, (50, 0, 0))}
    texts = {one.text for one in found}
    assert "reads 4 bytes that nothing was written to, at byte 160 of x (256 bytes)" in texts


@ENGINES
def test_an_access_to_another_allocation_than_its_pointers(compiled: bool) -> None:
    source = """extern "C" __global__ void k(float* x, float* y, const int* at, float** p) {
  x[at[threadIdx.x]] = 1;
  y[threadIdx.x] = p[0][0];
}"""
    x = np.ones(64, np.float32)
    memory = DeviceMemory([("a", 0, argument(x)), ("b", 1, argument(x))], b"", 0)
    apart = memory.regions[1].start - memory.regions[0].start
    at = np.arange(32, dtype=np.int32)
    at[7] = apart // 4 + 3
    pointer = np.array([ARENA_START], np.uint64)
    (found,) = problems(source, 1, 32, x, x, at, pointer, compiled=compiled)
    assert (found.kind, found.count, found.thread) == ("other allocation", 1, (7, 0, 0))
    assert "beyond the end of x (256 bytes), at byte 12 of y (256 bytes)" in found.text


def test_marks_are_kept_byte_by_byte() -> None:
    chosen = np.random.default_rng(3)
    noted, plain = Written(0, 4096), np.zeros(4096, bool)
    for _ in range(500):
        to, source, size = (int(n) for n in chosen.integers(0, 1000, 3))
        kind = chosen.integers(0, 3)
        if kind < 2:
            noted.mark(to, size, kind == 1)
            plain[to : to + size] = kind == 1
        elif source >= to + size or to >= source + size:
            noted.copy(to, source, size)
            plain[to : to + size] = plain[source : source + size]
        missing = np.flatnonzero(~plain[source : source + size])
        assert noted.first_unwritten(source, size) == (missing[0] if len(missing) else -1)
    noted.changed(64, np.arange(100) % 3 == 0)
    plain[64:164] |= np.arange(100) % 3 == 0
    assert np.array_equal(np.unpackbits(noted.bits[:512], bitorder="little").astype(bool), plain)
