"""Bulk and tensor copies against NumPy: dimensions, permutations, borders, reductions, and the record of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from drywarp.errors import EmulationError, UsageError
from drywarp.execution.emulator import emulate
from drywarp.execution.emulator.skim import without_results
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.textures import tensor_map
from drywarp.kernel.profile import SPACE_GLOBAL
from tests.effort import first, some

from .support import kernels, run
from .test_refine import same_profile

ARCHES = ("sm_90", "sm_100", "sm_120")
RNG = np.random.default_rng(11)
PREFACE = """#include <cuda.h>
#include <cstdint>
__device__ uint32_t at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void begin(uint64_t* b, uint32_t bytes) { if (threadIdx.x == 0) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(b)));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(bytes) : "memory"); } }
__device__ void wait(uint64_t* b) { int p;
  do asm volatile("{.reg .pred P; mbarrier.try_wait.parity.shared::cta.b64 P, [%1], 0; selp.s32 %0, 1, 0, P;}"
    : "=r"(p) : "r"(at(b)) : "memory"); while (!p); }
__device__ void finish() {
  asm volatile("cp.async.bulk.commit_group;"); asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
"""


@pytest.mark.parametrize("arch", first(ARCHES))
def test_bulk_copies_there_and_back(arch):
    source = (
        PREFACE
        + """extern "C" __global__ void k(const uint4* in, uint4* out) {
      __shared__ alignas(128) uint4 s[96]; __shared__ uint64_t b; begin(&b, sizeof s); __syncthreads();
      const uint4* from = in + 96 * blockIdx.x;
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
          :: "r"(at(s)), "l"(from), "r"((uint32_t)sizeof s), "r"(at(&b)) : "memory");
      wait(&b); s[threadIdx.x].x += 1;
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
      if (threadIdx.x == 0) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
          :: "l"(out + 96 * blockIdx.x), "r"(at(s)), "r"((uint32_t)sizeof s) : "memory"); finish(); } }"""
    )
    data = RNG.integers(0, 2**31, 3 * 96 * 4).astype(np.uint32)
    got = run(source, 3, 96, data, np.zeros_like(data), arch=arch)
    want = data.copy()
    want[::4] += 1
    np.testing.assert_array_equal(got.buffer("out"), want)
    # A copy of 1536 bytes is three requests of 32 pieces of 16 bytes each way, by one warp.
    log = got.profile.accesses
    copies = [i for i, ins in enumerate(got.profile.kernel.instructions) if ins.opcode == "UBLKCP"]
    assert len(copies) == 2
    for index in copies:
        rows = np.flatnonzero(log.instruction == index)
        assert len(rows) == 9
        assert (log.space[rows] == SPACE_GLOBAL).all()
        assert (log.masks[log.pattern[rows]] == 0xFFFFFFFF).all()
        np.testing.assert_array_equal(np.diff(np.sort(log.base[rows])), 512)


def test_bulk_copy_within_shared_memory():
    source = (
        PREFACE
        + """extern "C" __global__ void k(uint4* out) {
      __shared__ alignas(128) uint4 s[32], t[32]; __shared__ uint64_t b; begin(&b, 512); s[threadIdx.x].y = threadIdx.x;
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
          :: "r"(at(t)), "r"(at(s)), "r"(512), "r"(at(&b)) : "memory");
      wait(&b); out[threadIdx.x].y = t[threadIdx.x].y; }"""
    )
    got = run(source, 1, 32, np.zeros(128, np.uint32), arch="sm_90").buffer("out")
    np.testing.assert_array_equal(got.reshape(32, 4)[:, 1], np.arange(32))


@pytest.mark.parametrize(
    ("form", "dtype", "operation"),
    some([
        ("add.f32", "f4", np.add), ("add.noftz.f16", "f2", np.add), ("add.f64", "f8", np.add),
        ("add.u32", "u4", np.add), ("min.s32", "i4", np.minimum), ("max.s64", "i8", np.maximum),
        ("and.b32", "u4", np.bitwise_and), ("xor.b64", "u8", np.bitwise_xor), ("min.f16", "f2", np.minimum),
    ], 3),
)  # fmt: skip
def test_bulk_reductions(form, dtype, operation):
    source = (
        PREFACE
        + f"""extern "C" __global__ void k(const uint4* in, uint4* out) {{
      __shared__ alignas(128) uint4 s[32]; s[threadIdx.x] = in[threadIdx.x];
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
      if (threadIdx.x == 0) {{ asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.{form} [%0], [%1], %2;"
          :: "l"(out), "r"(at(s)), "r"(512) : "memory"); finish(); }} }}"""
    )
    kind = np.dtype(dtype)
    size = 512 // kind.itemsize
    a, b = (RNG.integers(0, 500, size).astype(kind) for _ in range(2))
    words = a.view(np.uint32), b.view(np.uint32)
    got = run(source, 1, 32, words[0], words[1].copy(), arch="sm_90").buffer("out")
    np.testing.assert_array_equal(got.view(kind), operation(b, a))


def tensor_kernel(rank: int, bytes_: int, operation: str = "") -> str:
    """Loads a box per block and stores it to `out` as shared memory has it, or into another tensor."""
    coordinates = ", ".join(f"%{2 + d}" for d in range(rank))
    places = ", ".join(f'"r"(c[{d}])' for d in range(rank))
    map_ = "const __grid_constant__ CUtensorMap"
    names = "uint8_t* out" if not operation else f"{map_} to"
    load = (
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        f" [%0], [%1, {{{coordinates}}}], [%{2 + rank}];"
    )
    store = f"cp{'.reduce' if operation != 'store' else ''}.async.bulk.tensor.{rank}d.global.shared::cta"
    store += f"{'.' + operation if operation != 'store' else ''}.tile.bulk_group [%0, {{"
    store += ", ".join(f"%{1 + d}" for d in range(rank)) + f"}}], [%{1 + rank}];"
    end = f"for (int i = threadIdx.x; i < {bytes_}; i += 32) out[{bytes_} * blockIdx.x + i] = s[i];"
    if operation:
        issue = f'asm volatile("{store}" :: "l"(&to), {places}, "r"(at(s)) : "memory");'
        end = f"if (threadIdx.x == 0) {{ {issue} finish(); }}"
    return (
        PREFACE
        + f"""extern "C" __global__ void k({map_} from, const int* where, {names}) {{
      extern __shared__ __align__(1024) uint8_t s[]; __shared__ uint64_t b; begin(&b, {bytes_}); __syncthreads();
      int c[{rank}]; for (int d = 0; d < {rank}; ++d) c[d] = where[{rank} * blockIdx.x + d];
      if (threadIdx.x == 0)
        asm volatile("{load}" :: "r"(at(s)), "l"(&from), {places}, "r"(at(&b)) : "memory");
      wait(&b); {end} }}"""
    )


def boxes(tensor: np.ndarray, box: tuple[int, ...], where: np.ndarray, step=None, outside=0) -> np.ndarray:
    """The boxes at coordinates listed fastest first, as NumPy has them; outside the tensor the filling."""
    step = step or (1,) * tensor.ndim
    found = []
    for corner in where[:, ::-1]:
        index = np.meshgrid(*(c + np.arange(0, e, s) for c, e, s in zip(corner, box, step, strict=True)), indexing="ij")
        inside = np.all([(i >= 0) & (i < n) for i, n in zip(index, tensor.shape, strict=True)], axis=0)
        values = np.full(inside.shape, outside, tensor.dtype)
        values[inside] = tensor[tuple(i[inside] for i in index)]
        found.append(values)
    return np.stack(found)


def load(tensor: np.ndarray, where: np.ndarray, arch: str = "sm_90", **options) -> np.ndarray:
    """Run the loading kernel; the boxes' bytes as they lie in shared memory, shape (blocks, bytes)."""
    made = tensor_map(tensor, **options)
    size = int(np.prod([-(-e // s) for e, s in zip(made.box, made.element_strides, strict=True)])) * made.element_bytes
    kernel = kernels.kernel(tensor_kernel(tensor.ndim, size), arch)
    out = np.zeros(size * len(where), np.uint8)
    arguments = {"from": made, "where": where.astype(np.int32), "out": out}
    launch = make_launch(kernel, (len(where), 1, 1), (32, 1, 1), arguments, dynamic_shared=-(-size // 1024) * 1024)
    return emulate(kernel, launch, blocks="all").buffer("out").reshape(len(where), size)


CASES = {
    "1 dimension": ((400,), (64,), "f4", [[0], [128], [380], [-8], [400]]),
    "2 dimensions": ((40, 96), (16, 64), "f2", [[0, 0], [32, 24], [64, 30], [-16, -3], [96, 0], [7, 1]]),
    "2 dimensions of bytes": ((20, 48), (8, 32), "u1", [[0, 0], [16, 13], [33, -5]]),
    "3 dimensions": ((6, 10, 32), (2, 4, 16), "f4", [[0, 0, 0], [16, 8, 5], [-4, -1, -1], [20, 3, 2]]),
    "5 dimensions": ((2, 3, 4, 5, 16), (1, 2, 2, 3, 8), "i8", [[0, 0, 0, 0, 0], [8, 3, 3, 2, 1], [4, -1, 2, 1, 1]]),
}


@pytest.mark.parametrize("name", some(CASES, 2))
def test_tensor_loads(name):
    shape, box, dtype, where = CASES[name]
    tensor = RNG.integers(1, 100, shape).astype(dtype)
    got = load(tensor, np.array(where), box=box)
    want = boxes(tensor, box, np.array(where))
    np.testing.assert_array_equal(got.view(dtype).reshape(want.shape), want)


@pytest.mark.parametrize("arch", first(ARCHES))
def test_tensor_load_on_each_architecture(arch):
    tensor = RNG.random((24, 64), dtype=np.float32)
    where = np.array([[0, 0], [48, 20]])
    got = load(tensor, where, arch, box=(8, 32))
    np.testing.assert_array_equal(got.view(np.float32).reshape(2, 8, 32), boxes(tensor, (8, 32), where))


@pytest.mark.parametrize("swizzle", first([64, 32, 128]))
def test_permuted_boxes(swizzle):
    """A row of a box is as wide as the pattern; piece p of 128-byte line l lies at p xor l, within the pattern."""
    columns = swizzle // 2
    tensor = np.arange(50 * 160, dtype=np.int16).reshape(50, 160).view(np.float16)
    where = np.array([[32, 3], [160 - columns // 2 // 8 * 8, 40]])
    got = load(tensor, where, box=(24, columns), swizzle=swizzle)
    plain = boxes(tensor.view(np.int16), (24, columns), where).view(np.uint8).reshape(2, -1, 16)
    want = np.empty_like(plain)
    for piece in range(plain.shape[1]):
        line, place = divmod(piece, 8)
        want[:, 8 * line + (place ^ line % (swizzle // 16))] = plain[:, piece]
    np.testing.assert_array_equal(got, want.reshape(2, -1))


def test_every_second_element_and_views_of_a_buffer():
    tensor = RNG.integers(0, 1000, (30, 64)).astype(np.int32)
    where = np.array([[8, 2], [60, 27]])
    got = load(tensor, where, box=(10, 32), step=(3, 2))
    want = boxes(tensor, (10, 32), where, step=(3, 2))
    np.testing.assert_array_equal(got.view(np.int32).reshape(want.shape), want)
    view = tensor.reshape(-1)[: 20 * 80].reshape(20, 80)[:, :72]
    got = load(tensor, where, box=(4, 16), shape=(20, 72), strides=(80,))
    np.testing.assert_array_equal(got.view(np.int32).reshape(2, 4, 16), boxes(view, (4, 16), where))


@pytest.mark.parametrize(("dtype", "bits"), first([("f2", 0x7FFF), ("f4", 0x7FFFFFFF)]))
def test_nan_outside(dtype, bits):
    tensor = np.ones((4, 16), dtype)
    got = load(tensor, np.array([[8, 2]]), box=(4, 16), nan=True).view(f"u{np.dtype(dtype).itemsize}").reshape(4, 16)
    assert (got[2:] == bits).all()
    assert (got[:, 8:] == bits).all()
    assert (got[:2, :8] == np.ones(1, dtype).view(got.dtype)).all()


@pytest.mark.parametrize(
    ("operation", "dtype", "function"),
    some(
        [
            ("store", "f2", lambda old, new: new),
            ("add", "f4", np.add),
            ("min", "i4", np.minimum),
            ("max", "u4", np.maximum),
            ("or", "u4", np.bitwise_or),
            ("add", "f2", np.add),
        ],
        2,
    ),
)
@pytest.mark.parametrize("swizzle", first([64, 0]))
def test_tensor_stores_and_reductions(operation, dtype, function, swizzle):
    """Boxes go from one tensor to the same place in another; what hangs over its border is dropped."""
    kind = np.dtype(dtype)
    box = (8, 64 // kind.itemsize)
    a, b = (RNG.integers(0, 200, (20, 96)).astype(kind) for _ in range(2))
    where = np.array([[0, 0], [48, 16], [80, 8], [-8, -2]])
    kernel = kernels.kernel(tensor_kernel(2, 512, operation), "sm_90")
    maps = {name: tensor_map(t, box=box, swizzle=swizzle) for name, t in (("from", a), ("to", b.copy()))}
    launch = make_launch(
        kernel, (4, 1, 1), (32, 1, 1), {**maps, "where": where.astype(np.int32)}, dynamic_shared=1024
    )  # fmt: skip
    got = emulate(kernel, launch, blocks="all").buffer("to")
    want = b.copy()
    for x, y in where:
        rows = slice(max(y, 0), max(y + 8, 0))
        columns = slice(max(x, 0), max(x + box[1], 0))
        want[rows, columns] = function(want[rows, columns], a[rows, columns])
    np.testing.assert_array_equal(got, want)


def test_the_record_of_a_tensor_copy():
    """A box of 16 rows of 128 bytes is 128 pieces in four requests of four rows; at a border fewer."""
    tensor = RNG.random((40, 96), dtype=np.float32)
    made = tensor_map(tensor, box=(16, 32))
    kernel = kernels.kernel(tensor_kernel(2, 2048), "sm_90")
    where = np.array([[32, 8], [64, 30]], np.int32)
    launch = make_launch(
        kernel, (2, 1, 1), (32, 1, 1), {"from": made, "where": where, "out": np.zeros(4096, np.uint8)},
        dynamic_shared=2048,
    )  # fmt: skip
    profile = emulate(kernel, launch, blocks="all").profile
    log = profile.accesses
    index = next(i for i, ins in enumerate(kernel.instructions) if ins.opcode == "UTMALDG")
    start = profile.allocations["from"][0]
    for block, rows_inside in ((0, 16), (1, 10)):
        rows = np.flatnonzero((log.instruction == index) & (log.warp == block))
        lanes = (log.masks[log.pattern[rows]][:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool)
        addresses = (log.base[rows, None] + log.offsets[log.pattern[rows]])[lanes]
        x, y = where[block].tolist()
        want = [start + (384 * (y + r) + 4 * x) + 16 * p for r in range(rows_inside) for p in range(8)]
        assert sorted(addresses.tolist()) == sorted(want)


def failing(source: str, match: str, *arguments, **options) -> None:
    with pytest.raises(EmulationError, match=match):
        run(PREFACE + source, 1, 32, *arguments, arch="sm_90", **options)


BULK = """extern "C" __global__ void k(const uint8_t* in, int from, int to, int size) {
  __shared__ alignas(128) uint8_t s[512]; __shared__ uint64_t b; begin(&b, size); __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :: "r"(at(s) + to), "l"(in + from), "r"(size), "r"(at(&b)) : "memory");
  wait(&b); }"""


def test_copies_that_leave_their_memory_are_errors():
    data = np.zeros(1024, np.uint8)
    failing(BULK, r"512 bytes out of bounds .*, block .* thread .*at byte 768 of in \(1024 bytes\)", data, 768, 0, 512)
    failing(BULK, "out of bounds at shared address", data, 0, 8192, 512)
    failing(BULK, "global address .* expected a multiple of 16", data, 8, 0, 64)
    failing(BULK, "shared address .* expected a multiple of 16", data, 0, 4, 64)


def test_a_map_that_is_none_is_an_error():
    source = """extern "C" __global__ void k(const CUtensorMap* maps) {
      __shared__ alignas(128) uint8_t s[512]; __shared__ uint64_t b; begin(&b, 512); __syncthreads();
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          " [%0], [%1, {%2}], [%3];" :: "r"(at(s)), "l"(maps), "r"(0), "r"(at(&b)) : "memory");
      wait(&b); }"""
    failing(source, "there is no tensor map at this address", np.zeros(128, np.uint8))


MULTICAST = """extern "C" __global__ void k(const __grid_constant__ CUtensorMap from, int mask, uint8_t* out) {
  __shared__ alignas(128) uint8_t s[512]; __shared__ uint64_t b; begin(&b, 512); __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2}], [%3], %4;"
      :: "r"(at(s)), "l"(&from), "r"(128), "r"(at(&b)), "h"((uint16_t)mask) : "memory");
  wait(&b); for (int i = threadIdx.x; i < 512; i += 32) out[i] = s[i]; }"""


def test_a_copy_to_several_blocks_is_done_where_it_names_the_only_one():
    """Block 0 is bit 0 of the mask; what names another one, alone or beside it, cannot be."""
    kernel = kernels.kernel(PREFACE + MULTICAST, "sm_90")
    tensor = RNG.random(512, dtype=np.float32)

    def copied(mask: int) -> np.ndarray:
        arguments = {"from": tensor_map(tensor, box=(128,)), "mask": mask, "out": np.zeros(512, np.uint8)}
        return emulate(kernel, make_launch(kernel, (1, 1, 1), (32, 1, 1), arguments)).buffer("out")

    np.testing.assert_array_equal(copied(0b1).view(np.float32), tensor[128:256])
    for mask in (0b11, 0b10):
        with pytest.raises(
            EmulationError, match=f"blocks in the mask {mask:#x}, .*: expected some of the cluster's 1 blocks"
        ):
            copied(mask)


@pytest.mark.exhaustive
def test_the_standard_librarys_copies():
    """cuda::memcpy_async with a barrier, and cuda::ptx, in the words of the library."""
    source = """#include <cuda/barrier>
    #include <cuda/ptx>
    extern "C" __global__ void k(const int* in, int* out) {
      using Barrier = cuda::barrier<cuda::thread_scope_block>;
      __shared__ alignas(16) int s[256]; __shared__ alignas(Barrier) unsigned char room[sizeof(Barrier)];
      Barrier& b = *reinterpret_cast<Barrier*>(room);
      if (threadIdx.x == 0) { init(&b, blockDim.x); cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }
      __syncthreads();
      Barrier::arrival_token token;
      if (threadIdx.x == 0) {
        cuda::memcpy_async(s, in, cuda::aligned_size_t<16>(sizeof s), b);
        token = cuda::device::barrier_arrive_tx(b, 1, 0);
      } else token = b.arrive();
      b.wait(std::move(token));
      for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] *= 3;
      cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
      __syncthreads();
      if (threadIdx.x == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out, s, sizeof s);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
      } }"""
    data = np.arange(256, dtype=np.int32)
    got = run(source, 1, 64, data, np.zeros_like(data), arch="sm_90", entry="k").buffer("out")
    np.testing.assert_array_equal(got, 3 * data)


# im2col -------------------------------------------------------------------------------------------


def columns_kernel(rank: int, size: int, stores: bool = False) -> str:
    """Copies pixels in through `from`, at the coordinates and offsets of `where`, and out as bytes or through `to`."""
    coordinates = ", ".join(f"%{4 + n}" for n in range(rank))
    offsets = ", ".join(f"%{4 + rank + n}" for n in range(rank - 2))
    given = ", ".join(f'"r"(c[{n}])' for n in range(rank))
    beside = ", ".join(f'"h"((uint16_t)c[{rank + n}])' for n in range(rank - 2))
    names = "uint8_t* out" if not stores else "const __grid_constant__ CUtensorMap to"
    end = f"for (int i = threadIdx.x; i < {size}; i += 32) out[{size} * blockIdx.x + i] = s[i];"
    if stores:
        name = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.im2col_no_offs.bulk_group"
        places = ", ".join(f"%{2 + n}" for n in range(rank))
        end = f"""if (threadIdx.x == 0) {{
          asm volatile("{name} [%0, {{{places}}}], [%1];" :: "l"(&to), "r"(at(s)), {given} : "memory"); finish(); }}"""
    return (
        PREFACE
        + f"""extern "C" __global__ void k(const __grid_constant__ CUtensorMap from, const int* where, {names}) {{
      extern __shared__ __align__(1024) uint8_t s[]; __shared__ uint64_t b; begin(&b, {size}); __syncthreads();
      int c[{2 * rank - 2}]; for (int d = 0; d < {2 * rank - 2}; ++d) c[d] = where[{2 * rank - 2} * blockIdx.x + d];
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
          " [%0], [%1, {{{coordinates}}}], [%2], {{{offsets}}}; // %3"
          :: "r"(at(s)), "l"(&from), "r"(at(&b)), "r"(0), {given}, {beside} : "memory");
      wait(&b); {end} }}"""
    )


def convolution(images: np.ndarray, pads: tuple[int, ...], taps: tuple[int, ...], strides: tuple[int, ...]):
    """What a convolution multiplies: shape (taps…, pixels of all images, channels), by NumPy's windows."""
    padded = np.pad(images, ((0, 0), *((pad, pad) for pad in pads), (0, 0)))
    axes = tuple(range(1, images.ndim - 1))
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps, axes)
    windows = windows[(slice(None), *(slice(None, None, step) for step in strides))]
    order = [*range(images.ndim, windows.ndim), *range(images.ndim)]
    return windows.transpose(order).reshape(*taps, -1, images.shape[-1])


COLUMNS = {
    "1 dimension": ((3, 20, 32), (2,), (5,), (1,), 24),
    "2 dimensions": ((2, 9, 7, 64), (1, 1), (3, 3), (1, 1), 50),
    "2 dimensions, every second pixel": ((3, 9, 11, 16), (1, 0), (3, 2), (2, 2), 17),
    "3 dimensions": ((2, 4, 5, 6, 16), (1, 1, 1), (3, 3, 3), (1, 1, 1), 40),
}


@pytest.mark.parametrize("name", first(COLUMNS, 4))
def test_pixels_of_convolutions(name):
    """A copy for each tap of the filter and each part of the pixels gives the matrix of the convolution."""
    shape, pads, taps, strides, pixels = COLUMNS[name]
    images, channels = RNG.integers(1, 1000, shape).astype(np.float16), min(32, shape[-1])
    lower = tuple(-pad for pad in pads)
    upper = tuple(pad - tap + 1 for pad, tap in zip(pads, taps, strict=True))
    made = tensor_map(images, box=(pixels, channels), lower=lower, upper=upper, step=(1, *strides, 1), swizzle=0)
    want = convolution(images, pads, taps, strides)
    outputs = [
        (extent + 2 * pad - tap) // step + 1
        for extent, pad, tap, step in zip(shape[1:-1], pads, taps, strides, strict=True)
    ]
    where, expected = [], []
    for start in range(0, want.shape[-2], pixels):
        image, *place = np.unravel_index(start, (shape[0], *outputs))
        first_pixel = [low + step * at for low, step, at in zip(lower, strides, place, strict=True)]
        for tap in np.ndindex(*taps):
            for channel in range(0, shape[-1], channels):
                where.append([channel, *first_pixel[::-1], image, *tap[::-1]])
                rows = want[tap][start : start + pixels, channel : channel + channels]
                # After the last image there is nothing.
                expected.append(np.pad(rows, ((0, pixels - len(rows)), (0, 0))))
    size = pixels * channels * 2
    kernel = kernels.kernel(columns_kernel(len(shape), size), "sm_90")
    arguments = {"from": made, "where": np.array(where, np.int32), "out": np.zeros(size * len(where), np.uint8)}
    launch = make_launch(kernel, (len(where), 1, 1), (32, 1, 1), arguments, dynamic_shared=-(-size // 1024) * 1024)
    got = emulate(kernel, launch, blocks="all").buffer("out").view(np.float16)
    np.testing.assert_array_equal(got.reshape(-1, pixels, channels), np.array(expected, np.float16))


def test_pixels_are_permuted_and_added_to_others():
    images, sums = (RNG.integers(0, 100, (2, 5, 6, 32)).astype(np.int32) for _ in range(2))
    corners = {"lower": (0, 0), "upper": (-1, -2)}
    maps = {n: tensor_map(t, box=(12, 32), swizzle=128, **corners) for n, t in (("from", images), ("to", sums.copy()))}
    where = np.array([[0, 1, 2, 0, 0, 0], [0, 0, 3, 1, 0, 0]], np.int32)
    kernel = kernels.kernel(columns_kernel(4, 12 * 128, stores=True), "sm_90")
    launch = make_launch(kernel, (2, 1, 1), (32, 1, 1), {**maps, "where": where}, dynamic_shared=2048)
    got = emulate(kernel, launch, blocks="all").buffer("to")
    want = sums.copy()
    # Of each row four pixels lie in the bounding box, of each image four rows: 7 pixels are left of image 0.
    inside = np.zeros((2, 5, 6), bool)
    inside[:, :4, :4] = True
    places = np.argwhere(inside)
    begins = [next(n for n, place in enumerate(places) if tuple(place) == first) for first in ((0, 2, 1), (1, 3, 0))]
    for begin in begins:
        for n, y, x in places[begin : begin + 12]:
            want[n, y, x] += images[n, y, x]
    assert len(places) - begins[1] == 4
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"box": (64, 8), "lower": (0, 0), "upper": (0,)}, "upper 0: expected 2 numbers of pixels, -128 to 127"),
        ({"box": (64, 8), "lower": (0, -129), "upper": (0, 0)}, "lower 0x-129: expected 2 numbers of pixels"),
        ({"box": (1025, 8), "lower": (0, 0), "upper": (0, 0)}, "box 1025x8: expected 1 to 1024 pixels x 1 to 256"),
        ({"box": (1, 8, 8, 8), "lower": (0, 0), "upper": (0, 0)}, "box 1x8x8x8: expected 1 to 1024 pixels"),
        ({"box": (64, 8), "lower": (0, 0)}, "upper missing: expected 2 numbers of pixels"),
    ],
)
def test_im2col_maps_that_the_driver_rejects(options, expected):
    with pytest.raises(UsageError, match=re.escape(expected)):
        tensor_map(np.zeros((1, 8, 8, 8), np.float32), **options)
    with pytest.raises(UsageError, match="an im2col map of 2 dimensions: expected 3 to 5"):
        tensor_map(np.zeros((8, 8), np.float32), box=(8, 8), lower=(0,), upper=(0,))


def test_a_copy_needs_a_map_of_its_kind():
    images, where = np.zeros((1, 4, 4, 32), np.int32), np.zeros((1, 6), np.int32)
    kernel = kernels.kernel(columns_kernel(4, 128), "sm_90")
    arguments = {"from": tensor_map(images, box=(1, 1, 1, 32)), "where": where, "out": np.zeros(128, np.uint8)}
    with pytest.raises(EmulationError, match="an im2col copy through a tiled tensor map"):
        emulate(kernel, make_launch(kernel, (1, 1, 1), (32, 1, 1), arguments, dynamic_shared=1024))
    kernel = kernels.kernel(tensor_kernel(4, 128), "sm_90")
    arguments["from"] = tensor_map(images, box=(1, 32), lower=(0, 0), upper=(0, 0))
    with pytest.raises(EmulationError, match="a tiled copy through an im2col tensor map"):
        emulate(kernel, make_launch(kernel, (1, 1, 1), (32, 1, 1), arguments, dynamic_shared=1024))


def test_an_im2col_map_in_the_words_of_a_launch():
    kernel = kernels.kernel(columns_kernel(4, 8 * 64), "sm_90")
    said = "tensormap(box=8x32,lower=-1x-1,upper=-1x-1):f16[2,6,6,32]:iota"
    arguments = {"from": said, "where": np.array([[0, -1, -1, 0, 2, 1]], np.int32), "out": np.zeros(512, np.uint8)}
    launch = make_launch(kernel, (1, 1, 1), (32, 1, 1), arguments, dynamic_shared=1024)
    assert launch.arguments[0].text == said
    got = emulate(kernel, launch).buffer("out").view(np.float16).reshape(8, 32)
    images = np.arange(2 * 36 * 32).reshape(2, 6, 6, 32).astype(np.float16)
    np.testing.assert_array_equal(got, convolution(images, (1, 1), (3, 3), (1, 1))[1, 2, :8])
    with pytest.raises(UsageError, match=r"tensor map option 'lower=1\.5'"):
        make_launch(kernel, (1, 1, 1), (32, 1, 1), {**arguments, "from": said.replace("lower=-1x-1", "lower=1.5")})


def test_a_copy_of_indices_is_not_left_out() -> None:
    """Brief runs do not copy what only products read, until an address turns out to come from there."""
    source = (
        PREFACE
        + """extern "C" __global__ void k(const __grid_constant__ CUtensorMap from, float* out) {
      __shared__ alignas(128) int s[64]; __shared__ uint64_t b; __shared__ int first;
      if (threadIdx.x == 0) first = blockIdx.x * 32;
      begin(&b, sizeof s); __syncthreads();
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          " [%0], [%1, {%2}], [%3];" :: "r"(at(s)), "l"(&from), "r"(0), "r"(at(&b)) : "memory");
      wait(&b); int at = s[threadIdx.x]; out[first + at] = at * 3.0f; }"""
    )
    kernel = kernels.kernel(source, "sm_90")
    shorter = without_results(kernel, build_cfg(kernel.instructions, kernel.code_entries))
    assert shorter is not None
    assert any("UNREAD" in i.modifiers for i in shorter.code)
    given = {"from": tensor_map(RNG.permutation(64).astype(np.int32) % 32, box=(64,)), "out": np.zeros(3200, "f4")}
    launch = make_launch(kernel, (100, 1, 1), (32, 1, 1), given)
    whole, brief = (emulate(kernel, launch, results=results) for results in (True, False))
    assert len(whole.profile.blocks) > 1
    same_profile(whole.profile, brief.profile)
    np.testing.assert_array_equal(whole.buffer("out"), brief.buffer("out"))


def test_a_copy_over_indices_that_were_read_before_is_left_out() -> None:
    """The copy's place held an index before; as it was read by then, nothing has to be run again."""
    source = (
        (
            PREFACE
            + """extern "C" __global__ void k(const __grid_constant__ CUtensorMap from, float* out) {
      __shared__ alignas(128) int s[32]; __shared__ uint64_t b;
      s[threadIdx.x] = 31 - threadIdx.x; __syncthreads();
      int place = blockIdx.x * 32 + ((volatile int*)s)[threadIdx.x ^ 1]; __syncthreads();
      begin(&b, 128); __syncthreads();
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          " [%0], [%1, {%2}], [%3];" :: "r"(at(s)), "l"(&from), "r"(0), "r"(at(&b)) : "memory");
      wait(&b); out[place] = s[threadIdx.x] * 3.0f; }"""
        )
        .replace("at(s)", "(uint32_t)__cvta_generic_to_shared(s)")
        .replace("at(&b)", "(uint32_t)__cvta_generic_to_shared(&b)")
    )
    kernel = kernels.kernel(source, "sm_90")
    shorter = without_results(kernel, build_cfg(kernel.instructions, kernel.code_entries))
    assert shorter is not None
    assert shorter.watched
    given = {"from": tensor_map(RNG.random(32).astype(np.float32), box=(32,)), "out": np.zeros(3200, "f4")}
    launch = make_launch(kernel, (100, 1, 1), (32, 1, 1), given)
    whole, brief = (emulate(kernel, launch, results=results) for results in (True, False))
    same_profile(whole.profile, brief.profile)
    assert not np.array_equal(whole.buffer("out"), brief.buffer("out")), "what is copied is left out"


def test_a_map_that_the_kernel_changes_is_not_left_out() -> None:
    """What a kernel stores into a tensor map decides where copies read, so brief runs omit nothing."""
    source = (
        PREFACE
        + """extern "C" __global__ void k(const __grid_constant__ CUtensorMap from, char* maps, float* out) {
      __shared__ alignas(128) float s[32]; __shared__ uint64_t b;
      char* own = maps + blockIdx.x * 128;
      ((int*)own)[threadIdx.x] = ((const int*)&from)[threadIdx.x]; __syncwarp();
      if (threadIdx.x == 0) *(long long*)own += blockIdx.x * 128;  // its first field is the address
      __threadfence();
      asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(own) : "memory");
      begin(&b, sizeof s); __syncthreads();
      if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          " [%0], [%1, {%2}], [%3];" :: "r"(at(s)), "l"(own), "r"(0), "r"(at(&b)) : "memory");
      wait(&b); out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x]; }"""
    )
    kernel = kernels.kernel(source, "sm_90")
    assert without_results(kernel, build_cfg(kernel.instructions, kernel.code_entries)) is None
    data = RNG.random((8, 32)).astype(np.float32)
    given = {"from": tensor_map(data, box=(32,), shape=(32,)), "maps": np.zeros(8 * 128, np.uint8)}
    given["out"] = np.zeros((8, 32), np.float32)
    whole, brief = (
        emulate(kernel, make_launch(kernel, (8, 1, 1), (32, 1, 1), given), results=results) for results in (True, False)
    )
    same_profile(whole.profile, brief.profile)
    np.testing.assert_array_equal(whole.buffer("out").reshape(8, 32), data)


FOUR_ROWS = (
    PREFACE
    + """extern "C" __global__ void k(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,
    const int* rows, int column, int swizzle, float* out) {
  __shared__ alignas(1024) float s[4 * 32]; __shared__ uint64_t b; begin(&b, sizeof s); __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0],"
      " [%1, {%2, %3, %4, %5, %6}], [%7];" :: "r"(at(s)), "l"(&A), "r"(column), "r"(rows[0]), "r"(rows[1]),
      "r"(rows[2]), "r"(rows[3]), "r"(at(&b)) : "memory");
  wait(&b);
  for (int r = 0; r < 4; ++r) {
    int word = r * 32 + (threadIdx.x ^ (swizzle ? r * 4 : 0));
    out[r * 32 + threadIdx.x] = s[word]; s[word] += 1; }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
      " [%0, {%1, %2, %3, %4, %5}], [%6];" :: "l"(&B), "r"(column), "r"(rows[4]), "r"(rows[5]), "r"(rows[6]),
      "r"(rows[7]), "r"(at(s)) : "memory");
    finish(); } }"""
)


@pytest.mark.parametrize("swizzle", [0, 128])
@pytest.mark.parametrize("column", [0, 16, 84])
def test_four_rows_are_gathered_and_scattered(swizzle, column):
    """Rows and columns outside the tensor are read as zeros and not written."""
    a, b = RNG.random((2, 20, 96), dtype=np.float32)
    rows = np.array([7, 0, 19, 20, 3, 12, 25, 1], np.int32)
    maps = {name: tensor_map(t.copy(), box=(1, 32), swizzle=swizzle) for name, t in (("A", a), ("B", b))}
    kernel = kernels.kernel(FOUR_ROWS, "sm_100a")
    given = {**maps, "rows": rows, "column": column, "swizzle": swizzle, "out": np.zeros((4, 32), np.float32)}
    run = emulate(kernel, make_launch(kernel, (1, 1, 1), (32, 1, 1), given), blocks="all")
    padded = np.zeros((26, 128), np.float32)
    padded[:20, :96] = a
    gathered, width = padded[rows[:4], column : column + 32], min(32, 96 - column)
    np.testing.assert_array_equal(run.buffer("out"), gathered)
    want = b.copy()
    for row, new in zip(rows[4:], gathered + np.float32(1), strict=True):
        if row < 20:
            want[row, column : column + width] = new[:width]
    np.testing.assert_array_equal(run.buffer("B"), want)


def test_four_rows_need_boxes_of_one():
    maps = {name: tensor_map(np.zeros((20, 96), np.float32), box=(2, 32)) for name in "AB"}
    kernel = kernels.kernel(FOUR_ROWS, "sm_100a")
    given = {**maps, "rows": np.zeros(8, np.int32), "column": 0, "swizzle": 0, "out": np.zeros((4, 32), np.float32)}
    with pytest.raises(EmulationError, match="a copy of four rows through boxes of 2 rows: expected one"):
        emulate(kernel, make_launch(kernel, (1, 1, 1), (32, 1, 1), given), blocks="all")
