"""Whatever the code does, there is an answer: recursion, computed branches, locks, endless loops, odd opcodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drywarp.execution.symbolic import INSTRUCTION_SETS, assume_launch, static_profile
from drywarp.execution.symbolic.instruction_sets import instruction_set
from drywarp.execution.symbolic.walk import Effort
from drywarp.kernel.kernel import Kernel, Parameter, Resources
from tests.effort import first
from tests.listing import code
from tests.symbolic.kernels import ROOT, compiled, example, follow

RECURSION = """
__device__ __noinline__ int walk(const int* tree, int at) {
  if (at < 0) return 0;
  return tree[at] + walk(tree, tree[at + 1]) + walk(tree, tree[at + 2]);
}
__global__ void recursion(const int* tree, int* out) { out[threadIdx.x] = walk(tree, threadIdx.x); }
"""
SWITCH = """
__global__ void machine(const int* program, int* out) {
  int a = threadIdx.x;
#pragma unroll 1
  for (int pc = 0; pc < 9; ++pc)
    switch (program[pc * 32 + threadIdx.x]) {
      case 0: a += 3; break;
      case 1: a *= 7; break;
      case 2: a = __popc(a); break;
      case 3: a ^= out[a & 31]; break;
      case 4: a = __brev(a); break;
      case 5: a = a / (pc + 1); break;
      case 6: out[a & 31] = a; break;
      case 7: a = __clz(a) + pc; break;
      case 8: a = atomicAdd(out, a); break;
    }
  out[threadIdx.x] = a;
}
"""
POINTERS = """
__device__ __noinline__ float first(float x) { return sinf(x) * 3.0f; }
__device__ __noinline__ float second(float x) { return x * x + 1.0f; }
__device__ float (*const table[])(float) = {first, second};
__global__ void pointers(const int* which, float* x) { x[threadIdx.x] = table[which[threadIdx.x]](x[threadIdx.x]); }
"""
LOCK = """
__global__ void lock(int* mutex, int* value) {
  while (atomicCAS(mutex, 0, 1) != 0) {}
  value[0] += threadIdx.x;
  __threadfence();
  atomicExch(mutex, 0);
}
"""
ENDLESS = """
__global__ void forever(volatile int* flag, int* out) {
  for (;;) { out[threadIdx.x] = flag[0]; }
}
"""
BREAKS = """
__global__ void breaks(const float* x, float* y, int n) {
  float best = 0;
  for (int i = 0; i < n; ++i) {
    float v = x[i * 64 + threadIdx.x];
    if (v < 0) continue;
    for (int k = 0; k < 64; ++k) {
      v = v * v + x[k];
      if (v > 4.0f) break;
      if (v == 3.0f) goto out;
    }
    best = fmaxf(best, v);
  }
out:
  y[threadIdx.x] = best;
}
"""


@pytest.mark.parametrize("arch", first(["sm_80", "sm_75", "sm_90", "sm_120"]))
@pytest.mark.parametrize(
    "source", [RECURSION, SWITCH, POINTERS, LOCK, ENDLESS, BREAKS],
    ids=["recursion", "switch", "pointers", "lock", "endless", "breaks"],
)  # fmt: skip
def test_odd_control_flow_gets_an_answer(source: str, arch: str) -> None:
    found = follow(source, arch=arch)
    profile = found.profile
    assert profile.executions().sum() > 0
    assert profile.notes == ()
    assert sum(block.weight for block in profile.blocks) == pytest.approx(profile.launch.blocks)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("tcgen05_tile", ("128x256x16", "F16")),
        ("tcgen05_pair", ("256x256x16", "F16")),
        ("tcgen05_fp4", ("128x128x64", "E2M1")),
    ],
)
def test_shapes_of_products_in_tensor_memory_come_from_the_code(name: str, shape: tuple[str, str]) -> None:
    """Its allocation, loads and products have no values here, and still count; a pair's products by its first block."""
    kernel, _ = example(ROOT / "examples" / "blackwell" / f"{name}.cu", "sm_100a")
    given = assume_launch(kernel)
    given = replace(given, launch=replace(given.launch, grid=(148, 1, 1), cluster=kernel.resources.cluster))
    found = static_profile(kernel, given)
    classes = {kernel.instructions[i].class_ for i in np.flatnonzero(found.profile.executions())}
    assert {"tcgen05", "tensor_load", "mbarrier"} <= classes
    profile = found.profile
    assert set(profile.products.values()) == {shape}
    assert profile.kernel.resources.tensor_columns == 512
    assert not any("products" in doubt for doubt in profile.doubts)
    multiplies = [n for n, i in enumerate(kernel.instructions) if i.opcode in ("UTCHMMA", "UTCOMMA")]
    counts = profile.thread_instructions[:, multiplies].sum(axis=1)
    leads = [block.linear % 2 == 0 or name != "tcgen05_pair" for block in profile.blocks]
    assert ((counts > 0) == leads).all()


def test_products_whose_shape_is_data_are_left_out_and_doubted() -> None:
    source = """
extern "C" __global__ void k(const unsigned* shape, unsigned sums, unsigned long long a, unsigned long long b) {
  asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0;"
    " tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, add; }" :: "r"(sums), "l"(a), "l"(b), "r"(SHAPE));
}"""
    several = "1 << 4 | (blockIdx.x % 2 ? 16 : 8) << 17 | 8 << 24"
    profile = follow(source.replace("SHAPE", several), arch="sm_100a").profile
    assert set(profile.products.values()) == {("128x128x16", "F16")}
    assert profile.doubts == ("some matrix instructions have several shapes: each is costed as its largest one",)
    for shape, doubts in ((f"{1 << 4 | 16 << 17 | 8 << 24}", 0), ("*shape", 1)):
        profile = follow(source.replace("SHAPE", shape), arch="sm_100a").profile
        assert len(profile.doubts) == doubts
        assert set(profile.products.values()) == (set() if doubts else {("128x128x16", "F16")})
        assert all("the time excludes them" in doubt for doubt in profile.doubts)


def test_a_function_that_calls_itself_is_gone_through_once() -> None:
    found = follow(RECURSION)
    calls = [a for a in found.report.assumptions if a.what == "call"]
    assert calls
    assert "recursive" in calls[0].assumed


def test_every_case_of_a_switch_is_as_likely() -> None:
    found = follow(SWITCH)
    assert any("equally likely" in a.assumed for a in found.report.assumptions)
    assert min(path.lanes.min() for path in found.profile.paths) <= 8


def test_a_walk_that_takes_too_long_is_cut_short_and_says_so() -> None:
    source = """
__global__ void slow(float* x) {
  int k = threadIdx.x * 2654435761u;
  while (k != 1) {
    k = k * 1664525 + 1013904223;
    x[k & 1023] = 1;
  }
}
"""
    found = static_profile(compiled(source), effort=Effort(steps=2000))
    assert any("took too long" in note for note in found.profile.notes)


def kernel_of(*lines: str) -> Kernel:
    parameters = (Parameter(0, 0, 8), Parameter(1, 8, 4))
    return Kernel("odd", "odd", "sm_80", code(*lines), parameters, 0x160, Resources(16, 0))


def test_opcodes_that_nobody_knows_are_counted_and_their_results_are_data() -> None:
    kernel = kernel_of(
        "S2R R0, SR_TID.X",
        "MOV R2, c[0x0][0x160]",
        "MOV R3, c[0x0][0x164]",
        "FROBNICATE.WILDLY R4, R0, R0",
        "IMAD.WIDE R6, R4, 0x4, R2",
        "LDG.E R8, [R6.64]",
        "STG.E [R6.64], R8",
        "EXIT",
    )
    found = static_profile(kernel)
    assert found.profile.executions().tolist() == [found.profile.launch.blocks * 8] * 8
    assert {a.known for a in found.report.accesses} == {"data"}


def test_code_without_an_exit_ends() -> None:
    found = static_profile(kernel_of("S2R R0, SR_TID.X", "IADD3 R0, R0, 0x1, RZ"))
    assert (found.profile.executions() > 0).all()


def test_code_that_jumps_to_itself_ends() -> None:
    found = static_profile(kernel_of(".L_x_0:", "IADD3 R0, R0, 0x1, RZ", "BRA `(.L_x_0)"))
    assert found.report.loops[0].trips == 16


def test_an_instruction_set_is_found_by_the_name_of_its_architecture() -> None:
    kernel = kernel_of("EXIT")
    assert instruction_set(kernel) is INSTRUCTION_SETS["sm_"]
    assert np.array_equal(static_profile(kernel).profile.paths[0].blocks, [0])
