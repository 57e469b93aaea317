"""Def-use and scoreboards against each other: the compiler's schedule must cover every dependence we find."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.dataflow import Dataflow
from drywarp.kernel.isa.nvidia.registers import written
from drywarp.kernel.kernel import Kernel
from tests.effort import first, some
from tests.listing import code

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cu"))
MIXED = """
#include <cuda_fp16.h>
__global__ void mixed(double* d, float* f, __half2* h, long long* l, int* i, int n) {
  __shared__ double s[64];
  int t = threadIdx.x;
  s[t & 63] = d[t] * d[t + 1] + sqrt(d[t + 2]);
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    d[t] += s[(t + k) & 63] / (1.0 + k);
    f[t] = __expf(f[t]) + (float)d[t];
    h[t] = __hfma2(h[t], h[t + 1], h[t + 2]);
    l[t] = l[t] * l[t + 1] / (l[t + 2] | 1) + __popcll(l[t + 3]);
    i[t] = i[t] / (i[t + 1] | 1) + __shfl_xor_sync(0xffffffffu, i[t], 1) + (int)f[t];
  }
  float4 v = reinterpret_cast<float4*>(f)[t];
  if (__any_sync(0xffffffffu, v.x > 0)) atomicAdd(&i[0], (int)(v.y + v.z));
  reinterpret_cast<double2*>(d)[t] = make_double2(v.w, v.x);
}
"""


@cache
def compiled(name: str, arch: str) -> tuple[Kernel, Dataflow]:
    source = MIXED if name == "mixed" else next(p for p in EXAMPLES if p.stem == name)
    kernel = compile_cuda(source, arch=arch)
    return kernel, Dataflow(kernel.instructions, build_cfg(kernel.instructions))


everything = pytest.mark.parametrize("name", some(["mixed", *(p.stem for p in EXAMPLES)], 4))
architectures = pytest.mark.parametrize("arch", first(["sm_90", "sm_80"]))


@architectures
@everything
def test_every_register_read_has_a_producer(name: str, arch: str) -> None:
    kernel, flow = compiled(name, arch)
    for index, instruction in enumerate(kernel.instructions):
        for place in flow.accesses[index].reads:
            writers = [p for p in flow.producers[index] if place in flow.accesses[p].writes]
            assert writers, f"{place} of {instruction}"


@architectures
@everything
def test_producers_found_backwards_are_the_same(name: str, arch: str) -> None:
    kernel, flow = compiled(name, arch)
    alone = Dataflow(kernel.instructions, flow.cfg)
    for index, instruction in enumerate(kernel.instructions):
        assert written(instruction) == flow.accesses[index].writes, instruction
        assert alone.producers_of(index) == flow.producers[index], instruction


@architectures
@everything
def test_the_schedule_waits_for_every_variable_latency_producer(name: str, arch: str) -> None:
    """Between a producer with a write barrier and a consumer in its block somebody waits for that barrier."""
    kernel, flow = compiled(name, arch)
    seen = 0
    for index, producers in enumerate(flow.producers):
        for producer in producers:
            barrier = kernel.instructions[producer].control.write_barrier
            if barrier is None or flow.cfg.block_of[producer] != flow.cfg.block_of[index] or producer >= index:
                continue
            between = kernel.instructions[producer + 1 : index + 1]
            assert any(i.control.wait_mask >> barrier & 1 for i in between), kernel.instructions[index]
            seen += 1
    assert seen > 0


@architectures
@everything
def test_dependent_arithmetic_is_four_cycles_apart(name: str, arch: str) -> None:
    kernel, flow = compiled(name, arch)
    for index, producers in enumerate(flow.producers):
        for producer in producers:
            pair = kernel.instructions[producer], kernel.instructions[index]
            if flow.cfg.block_of[producer] != flow.cfg.block_of[index] or producer >= index:
                continue
            if pair[0].class_ in ("fp32", "int", "imad") and pair[0].control.write_barrier is None:
                distance = sum(max(1, i.control.stall) for i in kernel.instructions[producer:index])
                assert distance >= 4, f"{pair[0]} -> {pair[1]}"


@architectures
@everything
def test_scoreboard_waits_name_who_set_them(name: str, arch: str) -> None:
    kernel, flow = compiled(name, arch)
    for index, producers in enumerate(flow.scoreboard_producers):
        mask = kernel.instructions[index].control.wait_mask
        for producer in producers:
            control = kernel.instructions[producer].control
            assert any(b is not None and mask >> b & 1 for b in (control.write_barrier, control.read_barrier))
        if mask:
            assert producers, kernel.instructions[index]


def test_a_guarded_write_does_not_hide_the_one_before() -> None:
    source = "__global__ void f(int* a) { int v = a[0]; if (a[1]) v = a[2]; a[3] = v; }"
    kernel = compile_cuda(source, arch="sm_80")
    flow = Dataflow(kernel.instructions, build_cfg(kernel.instructions))
    store = next(i for i, ins in enumerate(kernel.instructions) if ins.opcode == "STG")
    loads = {kernel.instructions[p].opcode for p in flow.producers[store]}
    assert "LDG" in loads


SPILLS = (
    "MOV R1, c[0x0][0x28]",
    "IADD3 R1, R1, -0x10, RZ",
    "MOV R2, 0x2",
    "MOV R3, 0x3",
    "STL [R1], R2",
    "STL [R1+0x4], R3",
)
WIDE = ("MOV R6, 0x6", "MOV R7, 0x7", "STL.64 [R1+0x8], R6")
AFTER = ("LDL R4, [R1+0x4]", "STG.E [R4.64], R2", "EXIT")


@pytest.mark.parametrize(
    ("lines", "stores"),
    [
        pytest.param((*SPILLS, *WIDE, *AFTER), {"STL [R1+0x4], R3"}, id="only the slot that is read"),
        pytest.param(
            (*SPILLS, *WIDE, "LDL R4, [R1+0xc]", *AFTER[1:]), {"STL.64 [R1+0x8], R6"}, id="the second half of a pair"
        ),
        pytest.param(
            (*SPILLS, "STL [R5], R2", *AFTER), {"STL [R1+0x4], R3", "STL [R5], R2"}, id="a store with an index"
        ),
        pytest.param(
            (*SPILLS, "LDL R4, [R5]", *AFTER[1:]), {"STL [R1], R2", "STL [R1+0x4], R3"}, id="a load with an index"
        ),
        pytest.param(
            (*SPILLS, "IADD3 R1, R1, -0x10, RZ", *AFTER), {"STL [R1], R2", "STL [R1+0x4], R3"}, id="a frame that moves"
        ),
    ],
)
def test_spilled_values_are_followed_slot_by_slot(lines: tuple[str, ...], stores: set[str]) -> None:
    instructions = code(*lines)
    flow = Dataflow(instructions, build_cfg(instructions))
    end = next(k for k, i in enumerate(instructions) if i.opcode == "STG")
    found = flow.slice_of([(end, {("R", 4), ("R", 5)})])
    assert {lines[k] for k in found if instructions[k].opcode == "STL"} == stores
