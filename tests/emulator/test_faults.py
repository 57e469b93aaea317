"""Kernels that do what they must not: each is told in one line, with the place and the thread."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from drywarp.errors import EmulationError, EmulationLimitError, UnsupportedInstructionError, UsageError
from drywarp.execution.emulator import Limits
from drywarp.frontends.cuda.compile import compile_cuda
from tests.effort import first

from .support import ARCHES, run

pytestmark = pytest.mark.parametrize("arch", first(ARCHES))
FLOATS = np.zeros(100, np.float32)


def message(error: pytest.ExceptionInfo[Exception]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_store_beyond_a_buffer(arch):
    source = """extern "C" __global__ void k(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 1;
}"""
    with pytest.raises(EmulationError) as error:
        run(source, 4, 32, FLOATS, 128, arch=arch)
    text = message(error)
    assert re.search(r"k at 0x[0-9a-f]{4} \(.*<source>:4\): global store of 4 bytes out of bounds", text)
    assert "at address 0x7f0000000190, block (3, 0, 0) thread (4, 0, 0)" in text
    assert text.endswith("just past the end of out (400 bytes)")


def test_load_before_a_buffer_names_the_nearest(arch):
    source = """extern "C" __global__ void k(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + b[(int)threadIdx.x - 3];
}"""
    with pytest.raises(EmulationError, match=r"12 bytes \(3 elements of f32\) before the start of b \(400 bytes\)"):
        run(source, 1, 32, FLOATS, FLOATS, FLOATS, arch=arch)


FAR = """extern "C" __global__ void k(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x * 8192] + b[threadIdx.x];
}"""
EDGE = """extern "C" __global__ void k(const float* a, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + a[threadIdx.x + 3];
}"""


@pytest.mark.parametrize("bytes_off", [1 << 16, 1 << 24, -(1 << 24)])
def test_the_buffer_whose_pointer_the_address_is_computed_from_is_named(arch, bytes_off):
    """However far away, and whatever lies there; an index that is loaded from another buffer counts for nothing."""
    source = """extern "C" __global__ void k(const float* a, const int* index, float* b, long long n) {
  float* to = b + index[threadIdx.x] + n;
  if (threadIdx.x == 7) to[threadIdx.x] = a[threadIdx.x];
}"""
    where = r"before the start of b" if bytes_off < 0 else r"beyond the end of b"
    with pytest.raises(EmulationError, match=rf"store of 4 bytes out of bounds .* {where} \(400 bytes\)$"):
        run(source, 1, 32, FLOATS, np.zeros(100, np.int32), FLOATS, np.int64(bytes_off // 4), arch=arch)


def test_between_two_buffers_that_the_pointer_may_be_of_both_are_named(arch):
    source = """extern "C" __global__ void k(const float* a, const float* b, float* out, int n) {
  out[threadIdx.x] = (n ? a : b)[threadIdx.x + (n << 14)];
}"""
    with pytest.raises(EmulationError, match=r"of b \(400 bytes\), 65136 bytes beyond the end of a \(400 bytes\)"):
        run(source, 1, 32, FLOATS, FLOATS, FLOATS, 1, arch=arch, limits=Limits(strict=True))


def test_reads_within_the_page_are_served_and_told(arch):
    ones = np.ones(100, np.float32)
    found = run(EDGE, 1, 100, ones, FLOATS, arch=arch)
    assert found.buffer("out").tolist() == [2.0] * 97 + [1.0] * 3
    (note,) = [note for note in found.profile.notes if "beyond" in note]
    assert re.search(r"<source>:2\): load reads up to 12 bytes beyond the end of a \(400 bytes\)", note)
    assert "--strict" in note


def test_far_reads_within_the_page_are_zeros(arch):
    ones = np.ones(100, np.float32)
    found = run(FAR, 1, 32, ones, ones, FLOATS, arch=arch)
    assert found.buffer("out").tolist()[:32] == [2.0] + [1.0] * 31


def test_a_buffer_much_too_small_is_doubted(arch):
    profile = run(FAR, 1, 32, FLOATS, FLOATS, FLOATS, arch=arch).profile
    (doubt,) = profile.doubts
    assert doubt.startswith("a is probably too small: ")
    assert f"{31 * 32768 + 4 - 400} bytes beyond the end of a (400 bytes)" in doubt
    assert not run(EDGE, 1, 100, FLOATS, FLOATS, arch=arch).profile.doubts


def test_a_pointer_that_moves_on_to_another_buffer_is_served_there(arch):
    source = """extern "C" __global__ void k(const float* a, const float* b, float* out, int n) {
  const float* from = a;
#pragma unroll 1
  for (int i = 0; i < n; ++i, from = b) out[threadIdx.x] += from[threadIdx.x + 3];
}"""
    big = np.ones(3 << 19, np.float32)
    found = run(source, 1, 100, FLOATS, big[:100], FLOATS, 2, arch=arch)
    assert [note.split(": ")[0] for note in found.profile.notes if "beyond" in note]
    assert not found.profile.doubts


def test_both_engines_serve_alike(arch):
    made = [
        run(EDGE, 2, 64, np.arange(100, dtype=np.float32), np.zeros(100, np.float32), arch=arch, compiled=c)
        for c in (True, False)
    ]
    assert made[0].buffer("out").tolist() == made[1].buffer("out").tolist()
    assert made[0].profile.notes == made[1].profile.notes


def test_strict_refuses_them(arch):
    with pytest.raises(EmulationError, match=r"just past the end of a \(400 bytes\)"):
        run(EDGE, 1, 100, FLOATS, FLOATS, arch=arch, limits=Limits(strict=True))


def test_reads_beyond_the_page_name_the_buffer_of_the_pointer(arch):
    source = EDGE.replace("threadIdx.x + 3", "threadIdx.x * 8192")
    with pytest.raises(EmulationError, match=r"load of 4 bytes out of bounds .* beyond the end of a \(400 bytes\)"):
        run(source, 1, 96, FLOATS, FLOATS, arch=arch)


def test_a_store_is_never_served(arch):
    source = 'extern "C" __global__ void k(float* out) { out[threadIdx.x + 1] = 1; }'
    with pytest.raises(EmulationError, match="store of 4 bytes out of bounds"):
        run(source, 1, 100, FLOATS, arch=arch)


def test_null_pointer(arch):
    source = 'extern "C" __global__ void k(float* out, long long off) { out[off - (long long)out / 4] = 1; }'
    with pytest.raises(
        EmulationError, match=r"global store of 4 bytes out of bounds at address 0x0,.*: a null pointer$"
    ):
        run(source, 1, 1, FLOATS, np.int64(0), arch=arch)


def test_atomic_out_of_bounds(arch):
    source = 'extern "C" __global__ void k(int* out) { atomicAdd(&out[threadIdx.x * 2], 1); }'
    with pytest.raises(EmulationError, match=r"global atomic of 4 bytes .* thread \(25, 0, 0\): just past the end"):
        run(source, 1, 32, np.zeros(50, np.int32), arch=arch)


def test_shared_memory_out_of_bounds(arch):
    source = """extern "C" __global__ void k(int* out, int n) {
  extern __shared__ int s[];
  s[threadIdx.x + n] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}"""
    with pytest.raises(EmulationError) as error:
        run(source, 1, 32, np.zeros(32, np.int32), 1, arch=arch, dynamic_shared=128)
    assert re.search(r"shared store of 4 bytes out of bounds .* thread \(31, 0, 0\)", message(error))
    assert "bytes of shared memory" in message(error)


def test_misaligned_vector_load(arch):
    source = 'extern "C" __global__ void k(const char* a, int4* out) { *out = *(const int4*)(a + 8 * threadIdx.x); }'
    with pytest.raises(EmulationError, match=r"misaligned global load of 16 bytes .* thread \(1, 0, 0\)"):
        run(source, 1, 2, np.zeros(64, np.int8), np.zeros(4, np.int32), arch=arch)


def test_misaligned_shared_store(arch):
    source = """extern "C" __global__ void k(int* out, int at) { __shared__ char s[64];
  *(int*)(s + at) = 7; __syncthreads(); out[0] = s[8]; }"""
    with pytest.raises(EmulationError, match="misaligned shared store of 4 bytes"):
        run(source, 1, 1, np.zeros(1, np.int32), 6, arch=arch)


@pytest.mark.parametrize("width", [2, 4, 8])
def test_misaligned_constant_load(arch, width):
    """An index of the thread's own, and one that all share."""
    kind = {2: "short", 4: "int", 8: "long long"}[width]
    bank = "__constant__ __align__(16) char table[256];"
    body = f"const {kind}* p = (const {kind}*)(table + at); out[threadIdx.x] = *p;"
    of_thread = f'{bank} extern "C" __global__ void k(long long* out, int at) {{ at *= threadIdx.x; {body} }}'
    of_all = f'{bank} extern "C" __global__ void k(long long* out, int at) {{ {body} }}'
    table = {"table": np.arange(256, dtype=np.uint8)}
    out = np.zeros(4, np.int64)
    for source, thread in ((of_thread, 1), (of_all, 0)):
        expected = rf"misaligned constant load of {width} bytes at address c\[0x3\]\[.*\], .* thread \({thread}, 0, 0\)"
        with pytest.raises(EmulationError, match=expected):
            run(source, 1, 4, out, width // 2 + 16 * (thread == 0), arch=arch, constants=table)
        found = run(source, 1, 4, out, 2 * width, arch=arch, constants=table).buffer("out")
        first = 2 * width * np.arange(4) if thread else np.full(4, 2 * width)
        words = [int.from_bytes(bytes(range(at, at + width)), "little", signed=True) for at in first.tolist()]
        np.testing.assert_array_equal(found, words)


def test_an_endless_loop_stops_at_the_limit_of_lane_steps_and_is_named(arch):
    source = """extern "C" __global__ void k(volatile int* flag, int* out) {
  int n = 0;
  while (*flag == 0)
    n += 1;
  *out = n;
}"""
    with pytest.raises(EmulationLimitError) as error:
        run(source, 1, 64, np.zeros(1, np.int32), np.zeros(1, np.int32), arch=arch, limits=Limits(100_000))
    assert re.search(
        r"stopped after 100,000 lane steps in the loop that starts at 0x[0-9a-f]{4} \(lines 3-4 of", message(error)
    )


def test_unsupported_opcode_is_refused_only_when_reached(arch):
    source = """extern "C" __global__ void k(int* out, int on) {
  if (on) out[threadIdx.x] = __popc(threadIdx.x + on);
}"""
    kernel = compile_cuda(source, arch=arch)
    changed = tuple(
        dataclasses.replace(i, opcode="QQQ", modifiers=("X7",), text="QQQ.X7 R1, R2") if i.opcode == "POPC" else i
        for i in kernel.instructions
    )
    assert changed != kernel.instructions
    kernel = dataclasses.replace(kernel, instructions=changed)
    run(kernel, 1, 32, np.zeros(32, np.int32), 0, arch=arch)
    with pytest.raises(UnsupportedInstructionError) as error:
        run(kernel, 1, 32, np.zeros(32, np.int32), 1, arch=arch)
    pc = next(i.pc for i in changed if i.opcode == "QQQ")
    assert f"k at {pc:#06x} (" in message(error)
    assert "<source>:2): QQQ.X7 is not supported by the emulator (opcode)" in message(error)


def test_unsupported_modifier_is_named(arch):
    kernel = compile_cuda('extern "C" __global__ void k(int* o) { o[0] = __popc(threadIdx.x); }', arch=arch)
    changed = tuple(
        dataclasses.replace(i, modifiers=("WEIRD",)) if i.opcode == "POPC" else i for i in kernel.instructions
    )
    with pytest.raises(UnsupportedInstructionError, match=r"POPC\.WEIRD .* \(modifier \.WEIRD\)"):
        run(dataclasses.replace(kernel, instructions=changed), 1, 1, np.zeros(1, np.int32), arch=arch)


def test_deadlock_at_a_barrier_names_who_waits(arch):
    source = """extern "C" __global__ void k(int* out) {
  if (threadIdx.x < 64)
    asm volatile("bar.sync 1, 96;");
  out[threadIdx.x] = 1;
}"""
    with pytest.raises(EmulationError) as error:
        run(source, 1, 96, np.zeros(96, np.int32), arch=arch)
    text = message(error)
    assert "deadlock, no warp can run: 2 warps wait at 0x" in text
    assert "<source>:3) for other warps of its block at a barrier" in text


def test_trap(arch):
    source = 'extern "C" __global__ void k(int* o) { if (threadIdx.x == 5) asm("trap;"); o[threadIdx.x] = 1; }'
    with pytest.raises(EmulationError, match=r"trap by block \(0, 0, 0\) thread \(5, 0, 0\)"):
        run(source, 1, 32, np.zeros(32, np.int32), arch=arch)


def test_stack_overflow_is_a_local_access_out_of_bounds(arch):
    source = """__device__ __noinline__ int down(int n) { volatile int a[8]; a[n & 7] = n;
  return n == 0 ? 0 : down(n - 1) + a[n & 7]; }
extern "C" __global__ void k(int* o, int n) { o[threadIdx.x] = down(n); }"""
    assert run(source, 1, 32, np.zeros(32, np.int32), 10, arch=arch).buffer("o")[3] == 55
    with pytest.raises(EmulationError, match=r"local store of .* bytes out of bounds"):
        run(source, 1, 32, np.zeros(32, np.int32), 100000, arch=arch)


def test_arguments_that_do_not_fit(arch):
    source = 'extern "C" __global__ void k(int* o, int n) { o[n] = n; }'
    ints = np.zeros(4, np.int32)
    with pytest.raises(UsageError, match="k takes 2 arguments, the launch gives 1"):
        run(source, 1, 1, ints, arch=arch)
    with pytest.raises(UsageError, match="argument n: 8 bytes given, the parameter takes 4"):
        run(source, 1, 1, ints, np.int64(2), arch=arch)
    with pytest.raises(UsageError, match=r"constant c: no such variable in k \(it has none\)"):
        run(source, 1, 1, ints, 2, arch=arch, constants={"c": ints})
    with pytest.raises(UsageError, match="block"):
        run(source, 3, 1, ints, 2, arch=arch, blocks=[0, 3])
    assert run(source, 1, 1, ints, 2, arch=arch).buffer("o").tolist() == [0, 0, 2, 0]
    with pytest.raises(UsageError, match=r"no buffer 'q' .* \(there are: o\)"):
        run(source, 1, 1, ints, 2, arch=arch).buffer("q")


def test_callers_arrays_are_not_written(arch):
    mine = np.zeros(32, np.int32)
    source = 'extern "C" __global__ void k(int* o) { o[threadIdx.x] = 5; }'
    assert run(source, 1, 32, mine, arch=arch).buffer("o").sum() == 160
    assert mine.sum() == 0
