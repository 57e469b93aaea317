"""What device code calls without holding it: printf, assert, malloc; and traps."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.errors import EmulationError
from drywarp.frontends.cuda.compile import compile_cuda
from tests.effort import first

from .support import run, scalar

pytestmark = pytest.mark.parametrize("arch", first(["sm_75", "sm_80", "sm_90", "sm_120"]))


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.int32)


def test_printf_and_assert_are_left_out_and_named(arch):
    source = """
#include <cstdio>
#include <cassert>
extern "C" __global__ void k(int* o) {
  int t = threadIdx.x;
  if (t == 3) printf("value %d\\n", o[t]);
  assert(t != 5);
  o[t] = t + 1;
}"""
    e = run(source, 1, 32, zeros(32), arch=arch)
    np.testing.assert_array_equal(e.buffer("o"), np.arange(1, 33))
    printf, failed = sorted(e.profile.notes, reverse=True)
    assert printf == "printf was skipped"
    assert failed.startswith("an assertion failed at k at 0x")
    assert failed.endswith("(<source>:7); the run continued")


def test_an_assertion_that_holds_leaves_no_note(arch):
    source = """
#include <cassert>
extern "C" __global__ void k(int* o, int n) { assert(n > 0); o[threadIdx.x] = n; }"""
    assert run(source, 1, 32, zeros(32), 4, arch=arch).profile.notes == ()


def test_memory_from_malloc_and_new(arch):
    source = """
struct Node { int value; Node* next; __device__ Node(int v, Node* n) : value(v), next(n) {} };
extern "C" __global__ void k(int* o) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Node* list = nullptr;
  for (int v = 0; v <= i % 7; ++v) list = new Node(v * i, list);
  int* squares = (int*)malloc((i % 5 + 1) * sizeof(int));
  for (int j = 0; j <= i % 5; ++j) squares[j] = j * j;
  int sum = squares[i % 5];
  free(squares);
  while (list) {
    Node* next = list->next;
    sum += list->value;
    delete list;
    list = next;
  }
  o[i] = sum;
}"""
    e = run(source, 2, 48, zeros(96), arch=arch)
    i = np.arange(96)
    np.testing.assert_array_equal(e.buffer("o"), i * (i % 7) * (i % 7 + 1) // 2 + (i % 5) ** 2)
    assert e.profile.notes == (
        "malloc and free: served from a heap of 8 MiB; free returns nothing to it; both take zero time",
    )


def test_allocations_do_not_overlap_and_end_where_the_heap_does(arch):
    source = """
extern "C" __global__ void k(unsigned long long* o, unsigned long long bytes) {
  o[threadIdx.x] = (unsigned long long)malloc(threadIdx.x == 7 ? 1ull << 40 : bytes + threadIdx.x);
}"""
    kernel = compile_cuda(source, arch=arch)
    for size, expected in ((100, 31), (1 << 20, 7)):
        e = run(kernel, 1, 32, np.zeros(32, np.uint64), scalar(np.uint64(size)))
        o = e.buffer("o")
        got = np.flatnonzero(o)
        assert len(got) == expected
        assert 7 not in got
        assert (o % 16 == 0).all()
        starts = o[got]
        assert (np.diff(starts) >= size + got[:-1].astype(np.uint64)).all()
        assert any("returned null pointers" in note for note in e.profile.notes)


def test_an_access_beyond_the_heap_is_named(arch):
    source = """
extern "C" __global__ void k(int* o) { int* p = (int*)malloc(64); p[threadIdx.x + 3000000] = 1; o[0] = p[1]; }"""
    with pytest.raises(EmulationError, match=r"beyond the end of the device's heap \(8388608 bytes\)"):
        run(source, 1, 1, zeros(1), arch=arch)


def test_clocks_rise_and_a_trap_ends_the_run(arch):
    source = """
extern "C" __global__ void k(int* o, int bad) {
  long long before = clock64();
  __nanosleep(100);
  o[threadIdx.x] = clock64() > before;
  if ((int)threadIdx.x == bad) __trap();
}"""
    e = run(source, 1, 32, zeros(32), -1, arch=arch)
    assert (e.buffer("o") == 1).all()
    assert e.profile.notes == ("the kernel reads a clock; emulated clock values differ from a GPU's",)
    with pytest.raises(EmulationError, match=r"\(<source>:6\): trap by block \(0, 0, 0\) thread \(9, 0, 0\)"):
        run(source, 1, 32, zeros(32), 9, arch=arch)
