"""Copies by the copy engine: the static mode finds the pieces of global memory that the emulator records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.execution.emulator import emulate
from drywarp.execution.symbolic import Hints, StaticProfile, assume_launch, static_profile
from drywarp.kernel.instruction import Address
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.arguments import bind_arguments, make_launch
from drywarp.kernel.launch.launch import Launch
from drywarp.kernel.launch.textures import tensor_map
from drywarp.kernel.profile import Profile
from tests.emulator.support import kernels
from tests.emulator.test_bulk_copy import PREFACE
from tests.symbolic.kernels import assert_same_profile, iteration_by_iteration

WAIT = """
__device__ void expect(uint64_t* b, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(bytes) : "memory"); }
__device__ void wait_for(uint64_t* b, int parity) { int p;
  do asm volatile("{.reg .pred P; mbarrier.try_wait.parity.shared::cta.b64 P, [%1], %2; selp.s32 %0, 1, 0, P;}"
    : "=r"(p) : "r"(at(b)), "r"(parity) : "memory"); while (!p); }
__device__ void set_up(uint64_t* b) { if (threadIdx.x == 0) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(b)));
  asm volatile("fence.mbarrier_init.release.cluster;"); } __syncthreads(); }
"""
BOXES = (
    PREFACE
    + WAIT
    + """extern "C" __global__ void k(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out,
    int x, int dx, int y, int dy, int n) {
  __shared__ alignas(128) float s[8 * 32]; __shared__ uint64_t b; set_up(&b);
  if (threadIdx.x) return;
  for (int i = 0; i < n; ++i) {
    int column = x + i * dx, row = y + i * dy + 16 * blockIdx.x;
    expect(&b, sizeof s);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" :: "r"(at(s)), "l"(&in), "r"(column), "r"(row), "r"(at(&b)) : "memory");
    wait_for(&b, i & 1);
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
      :: "l"(&out), "r"(column), "r"(row), "r"(at(s)) : "memory");
    finish();
  }
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];"
    :: "l"(&out), "r"(x), "r"(y), "r"(at(s)) : "memory");
  finish(); }"""
)
RUNS = (
    PREFACE
    + WAIT
    + """extern "C" __global__ void k(const char* in, char* out, int start, int step, int bytes, int n) {
  __shared__ alignas(128) char s[4096]; __shared__ uint64_t b; set_up(&b);
  if (threadIdx.x) return;
  for (int i = 0; i < n; ++i) {
    int at_byte = start + i * step + 512 * blockIdx.x;
    expect(&b, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :: "r"(at(s)), "l"(in + at_byte), "r"(bytes), "r"(at(&b)) : "memory");
    wait_for(&b, i & 1);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
      :: "l"(out + at_byte), "r"(at(s)), "r"(bytes) : "memory");
    finish();
  }
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;"
    :: "l"(out), "r"(at(s)), "r"(bytes) : "memory");
  finish(); }"""
)
PIXELS = (
    PREFACE
    + WAIT
    + """extern "C" __global__ void k(const __grid_constant__ CUtensorMap in, int channel, int step, int n) {
  __shared__ alignas(128) short s[24 * 16]; __shared__ uint64_t b; set_up(&b);
  if (threadIdx.x) return;
  for (int i = 0; i < n; ++i) {
    expect(&b, sizeof s);
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" :: "r"(at(s)), "l"(&in), "r"(at(&b)), "r"(channel),
      "r"(i * step - 1), "r"(-1), "r"(blockIdx.x), "h"((uint16_t)(i % 3)), "h"((uint16_t)1) : "memory");
    wait_for(&b, i & 1);
  } }"""
)
ROWS = (
    PREFACE
    + WAIT
    + """extern "C" __global__ void k(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out,
    int column, int row, int apart, int n) {
  __shared__ alignas(1024) float s[4 * 32]; __shared__ uint64_t b; set_up(&b);
  if (threadIdx.x) return;
  for (int i = 0; i < n; ++i) {
    int first = row + i + 2 * blockIdx.x;
    expect(&b, sizeof s);
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0],"
      " [%1, {%2, %3, %4, %5, %6}], [%7];" :: "r"(at(s)), "l"(&in), "r"(column), "r"(first), "r"(first + apart),
      "r"(first + 2 * apart), "r"(first + 3 * apart), "r"(at(&b)) : "memory");
    wait_for(&b, i & 1);
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
      " [%0, {%1, %2, %3, %4, %5}], [%6];" :: "l"(&out), "r"(column), "r"(first), "r"(first + 1), "r"(first + 2),
      "r"(first + 3), "r"(at(s)) : "memory");
    finish();
  } }"""
)


def pieces(profile: Profile) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """The pieces that each warp's copies touch, in order: the buffer and the byte within it."""
    log, found = profile.accesses, dict[tuple[int, int], list[tuple[str, int]]]()
    places = [(start, start + size, name) for name, (start, size) in profile.allocations.items()]
    code = profile.kernel.instructions
    for row in range(len(log)):
        number, pattern = int(log.instruction[row]), int(log.pattern[row])
        if code[number].class_ != "bulk_copy":
            continue
        lanes = [lane for lane in range(32) if int(log.masks[pattern]) >> lane & 1]
        for address in (int(log.base[row]) + log.offsets[pattern][lanes]).tolist():
            name, start = next((name, start) for start, end, name in places if start <= address < end)
            found.setdefault((number, int(log.warp[row])), []).append((name, address - start))
    return found


def launched(source: str, arch: str, arguments: dict[str, Any]) -> tuple[Kernel, Launch]:
    kernel = kernels.kernel(source, arch)
    return kernel, make_launch(kernel, (2, 1, 1), (32, 1, 1), arguments)


def agrees(kernel: Kernel, launch: Launch) -> StaticProfile:
    """The static mode's answer, which has the emulator's counts and pieces, iteration by iteration too."""
    found = static_profile(kernel, launch)
    emulated = emulate(kernel, launch, blocks="all").profile
    assert pieces(found.profile) == pieces(emulated)
    assert np.array_equal(found.profile.executions(), emulated.executions())
    assert not found.profile.doubts
    assert_same_profile(found.profile, iteration_by_iteration(kernel, launch).profile)
    return found


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
@given(
    x=st.integers(-40, 110),
    dx=st.integers(-20, 20),
    y=st.integers(-10, 70),
    dy=st.integers(-6, 6),
    n=st.integers(1, 24),
)
def test_boxes_that_move_over_the_edges_of_a_tensor(arch: str, x: int, dx: int, y: int, dy: int, n: int) -> None:
    tensors = [tensor_map(np.zeros((64, 96), np.float32), box=(8, 32)) for _ in range(2)]
    given_ = {"in": tensors[0], "out": tensors[1], "x": x, "dx": dx, "y": y, "dy": dy, "n": n}
    agrees(*launched(BOXES, arch, given_))


@given(step=st.integers(0, 60), pieces_=st.integers(1, 256), n=st.integers(1, 24))
def test_runs_of_bytes(step: int, pieces_: int, n: int) -> None:
    given_ = {"start": 32, "step": 16 * step, "bytes": 16 * pieces_, "n": n}
    buffers = {name: np.zeros(32768, np.uint8) for name in ("in", "out")}
    agrees(*launched(RUNS, "sm_90", {**buffers, **given_}))


@given(channel=st.sampled_from([0, 16]), step=st.integers(1, 3), n=st.integers(1, 9))
def test_pixels_of_images(channel: int, step: int, n: int) -> None:
    images = np.zeros((2, 9, 7, 32), np.float16)
    made = tensor_map(images, box=(24, 16), lower=(-1, -1), upper=(-1, -1))
    agrees(*launched(PIXELS, "sm_90", {"in": made, "channel": channel, "step": step, "n": n}))


@given(column=st.sampled_from([0, 16, 84]), row=st.integers(0, 30), apart=st.integers(1, 4), n=st.integers(1, 16))
def test_rows_that_lie_apart(column: int, row: int, apart: int, n: int) -> None:
    maps = {name: tensor_map(np.zeros((40, 96), np.float32), box=(1, 32), swizzle=0) for name in ("in", "out")}
    agrees(*launched(ROWS, "sm_100a", {**maps, "column": column, "row": row, "apart": apart, "n": n}))


def test_a_tensor_of_another_argument() -> None:
    """A map by the name of the argument that holds its tensor."""
    source = BOXES.replace("int x, int dx", "float* held, int x, int dx")
    kernel = kernels.kernel(source, "sm_90")
    given_ = {"in": "tensormap(box=8x32):held", "out": "tensormap(box=8x32):held", "held": "f32[64,96]"}
    numbers = {"x": "0", "dx": "32", "y": "0", "dy": "8", "n": "3"}
    found = agrees(kernel, make_launch(kernel, (2, 1, 1), (32, 1, 1), {**given_, **numbers}))
    assert {name for of in pieces(found.profile).values() for name, _ in of} == {"held"}


def test_a_million_iterations_of_copies_take_no_longer_than_a_hundred() -> None:
    tensors = [tensor_map(np.zeros((64, 96), np.float32), box=(8, 32)) for _ in range(2)]
    given_ = {"in": tensors[0], "out": tensors[1], "x": 0, "dx": 0, "y": 0, "dy": 0, "n": 1_000_000}
    kernel, launch = launched(BOXES, "sm_90", given_)
    found = static_profile(kernel, launch, blocks=[0]).profile
    copies = [n for n, i in enumerate(kernel.instructions) if i.opcode == "UTMALDG"]
    assert [found.executions()[n] for n in copies] == [2e6]


def test_what_is_not_known_is_said() -> None:
    """Without its map a tensor copy is left out; a run whose place and size are assumed is not."""
    kernel = kernels.kernel(BOXES, "sm_90")
    found = static_profile(kernel, assume_launch(kernel, grid=(2, 1, 1), block=(32, 1, 1)), hints=Hints())
    assert any("copies whose tensor maps or sizes are not known" in doubt for doubt in found.profile.doubts)
    assert not pieces(found.profile)
    kernel = kernels.kernel(RUNS, "sm_90")
    stated = bind_arguments(kernel, {"bytes": 1024, "n": 4})
    found = static_profile(kernel, assume_launch(kernel, grid=(2, 1, 1), block=(32, 1, 1), arguments=stated))
    assert not found.profile.doubts
    assert {name for of in pieces(found.profile).values() for name, _ in of} == {"in", "out"}
    assert any(a.what == "addresses" for a in found.report.assumptions)


def test_a_copy_whose_operands_have_no_static_form_is_said_too() -> None:
    """One with an offset beside its register, as no compiler wrote so far, is left out of the time and named."""
    kernel = kernels.kernel(RUNS, "sm_90")
    code = tuple(
        replace(i, operands=tuple(replace(o, offset=16) if isinstance(o, Address) else o for o in i.operands))
        if i.class_ == "bulk_copy"
        else i
        for i in kernel.instructions
    )
    assert code != kernel.instructions
    kernel = replace(kernel, instructions=code)
    stated = bind_arguments(kernel, {"bytes": 1024, "n": 4})
    found = static_profile(kernel, assume_launch(kernel, grid=(2, 1, 1), block=(32, 1, 1), arguments=stated))
    assert any("copies whose tensor maps or sizes are not known" in doubt for doubt in found.profile.doubts)
    assert not pieces(found.profile)


def test_coordinates_that_depend_on_data_lie_within_the_tensor() -> None:
    source = BOXES.replace("int x, int dx", "const int* where, int x, int dx").replace(
        "column = x +", "column = where[i] +"
    )
    kernel = kernels.kernel(source, "sm_90")
    tensors = [tensor_map(np.zeros((64, 96), np.float32), box=(8, 32)) for _ in range(2)]
    given_ = {"in": tensors[0], "out": tensors[1], "where": np.zeros(64, np.int32), "x": 0, "dx": 0, "y": 0, "dy": 0}
    found = static_profile(kernel, make_launch(kernel, (2, 1, 1), (32, 1, 1), {**given_, "n": 40}))
    load = next(n for n, i in enumerate(kernel.instructions) if i.opcode == "UTMALDG")
    assert all(len(of) > 0 for (number, _), of in pieces(found.profile).items() if number == load)
    assert any(a.what == "addresses that depend on data" for a in found.report.assumptions)
