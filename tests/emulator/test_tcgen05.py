"""Tensor memory and its matrix instructions against NumPy: loads and stores, copies, products, pairs of blocks."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.errors import EmulationError, UnsupportedInstructionError
from drywarp.execution.emulator import emulate
from drywarp.execution.emulator.skim import without_results
from drywarp.kernel.cfg import build_cfg
from drywarp.kernel.launch.arguments import make_launch
from tests.effort import first, in_turn, some

from .support import kernels, run
from .test_refine import same_profile
from .test_wgmma import float8, k_major, mn_major, np_scalar, numbers, stored

RNG = np.random.default_rng(7)
THREAD = np.arange(32)
LAYOUTS = {0: 0, 128: 2, 64: 4, 32: 6}
FORMATS = {"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
RESULTS = {"f16": 0, "f32": 1, "s32": 2}
KIND = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "u8": "i8", "s8": "i8"}


def kernel(act: str, columns: int, group: int = 1, prefix: str = "") -> str:
    """A kernel that fills shared and tensor memory, lets one thread act, and returns tensor memory.

    In `act`, %0 is the address of the allocated columns, %1 and %2 are the descriptors, %3 is the instruction
    descriptor, p says whether the old D counts, and %5 is the barrier.
    """
    load = ", ".join(f'"=r"(v[{i}])' for i in range(8))
    held = ", ".join(f"%{i}" for i in range(8))
    stores = ", ".join(f'"r"(v[{i}])' for i in range(8))
    more = ", ".join(f"%{i}" for i in range(1, 9))
    together = "__cluster_dims__(2, 1, 1)" if group == 2 else ""
    meet = 'asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");' if group == 2 else ""
    commit = (
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%5], 3;"
        if group == 2
        else "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%5];"
    )
    return f"""extern "C" __global__ void {together} k(const uint4* image, int pieces, unsigned* memory,
      unsigned long long da, unsigned long long db, unsigned idesc, int keep) {{
  extern __shared__ __align__(1024) uint4 buffer[];
  unsigned base = (unsigned)__cvta_generic_to_shared(buffer), tail = base + 16 * pieces, at, v[8];
  image += blockIdx.x * pieces; memory += blockIdx.x * 128 * {columns};
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(tail + 8));
  if (threadIdx.x < 32) asm volatile(
    "tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%0], {max(32, columns)};" :: "r"(tail) : "memory");
  for (int i = threadIdx.x; i < pieces; i += 128) buffer[i] = image[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads(); {meet}
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at) : "r"(tail) : "memory");
  unsigned own = at + ((threadIdx.x & 96) << 16);
  for (int c = 0; c < {columns}; c += 8) {{
    for (int i = 0; i < 8; ++i) v[i] = memory[threadIdx.x * {columns} + c + i];
    asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {{{more}}};" :: "r"(own + c), {stores} : "memory");
  }}
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); __syncthreads(); {meet}
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (threadIdx.x == 0 && blockIdx.x % {group} == 0)
    asm volatile("{{ .reg .pred p, q; .reg .b32 s, t, u; setp.ne.b32 p, %4, 0; setp.eq.b32 q, %4, 0; {prefix}\\n"
      "{act}\\n {commit} }}" :: "r"(at), "l"(da + (base >> 4 & 0x3fff)), "l"(db + (base >> 4 & 0x3fff)),
      "r"(idesc), "r"(keep), "r"(tail + 8) : "memory");
  asm volatile("{{ .reg .pred p;\\nW: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\\n@!p bra W; }}"
    :: "r"(tail + 8) : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (int c = 0; c < {columns}; c += 8) {{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{held}}}, [%8];" : {load} : "r"(own + c));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 8; ++i) memory[threadIdx.x * {columns} + c + i] = v[i];
  }}
  __syncthreads(); {meet}
  if (threadIdx.x < 32) asm volatile(
    "tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %0, {max(32, columns)};" :: "r"(at)); }}"""


def descriptor(start: int, leading: int, stride: int, swizzle: int) -> np.uint64:
    low = start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | 1 << 46
    return np.uint64(low | LAYOUTS[swizzle] << 61)


def instruction(kind: str, out: str, m: int, n: int, *, right: str = "", flags: int = 0) -> int:
    formats = FORMATS[kind] << 7 | FORMATS[right or kind] << 10
    return RESULTS[out] << 4 | formats | (n >> 3) << 17 | (m >> 4) << 24 | flags


def execute(
    act: str,
    images: list,
    before: np.ndarray,
    idesc: int = 0,
    keep: int = 0,
    *,
    group: int = 1,
    prefix: str = "",
    line: int = 0,
    arch: str = "sm_100a",
) -> np.ndarray:
    """Tensor memory, shape (blocks * 128, columns), after one thread acted; `images` as `k_major` gives them.

    A pair's blocks have their images one after the other: those of the first block, then those of the second.
    Each image begins at a multiple of 1024 bytes, or so many lines of 128 bytes behind it.
    """
    words, parts, start = [], [], 0
    for data, leading, stride, swizzle in images:
        words.append(descriptor(start + 128 * line, leading, stride, swizzle) | np.uint64(line << 49))
        parts.append(np.pad(data, (128 * line, (-len(data) - 128 * line) % 1024)))
        start += len(parts[-1])
    whole = np.concatenate(parts) if parts else np.zeros(1024, np.uint8)
    pieces = len(whole) // 16 // group
    words = (words[: len(words) // group] + [np.uint64(0)] * 2)[:2]
    text = kernel(act, before.shape[1], group, prefix)
    got = run(
        text, group, 128, whole.view(np.uint32), pieces, np.ascontiguousarray(before), *map(np_scalar, words),
        np_scalar32(idesc), keep, arch=arch, dynamic_shared=16 * pieces + 16,
    )  # fmt: skip
    return np.asarray(got.buffer("memory")).reshape(before.shape)


def np_scalar32(word: int):
    from drywarp.kernel.launch.launch import Scalar

    return Scalar(np.uint32(word).tobytes(), str(word))


def accumulator(matrix: np.ndarray, out: str) -> np.ndarray:
    """The words of a matrix of accumulators."""
    if out == "f16":
        return matrix.astype(np.float16).view(np.uint16).astype(np.uint32)
    return matrix.astype(np.float32 if out == "f32" else np.int32).view(np.uint32)


def small(values: np.ndarray, exponent_bits: int, fraction_bits: int) -> np.ndarray:
    """Bit patterns of floats of four or six bits, found by trying all."""
    table = {}
    for bits in range(1 << (exponent_bits + fraction_bits)):
        exponent, fraction = bits >> fraction_bits, bits % (1 << fraction_bits)
        scale = 2.0 ** (max(exponent, 1) - (2 ** (exponent_bits - 1) - 1))
        table[scale * ((exponent > 0) + fraction / 2**fraction_bits)] = bits
    sign = 1 << (exponent_bits + fraction_bits)
    return np.array([table[abs(v)] | sign * (v < 0) for v in values.ravel()], np.uint8).reshape(values.shape)


def packed(codes: np.ndarray, width: int, gaps: bool) -> np.ndarray:
    """Codes of `width` bits as bytes, sixteen of them at the start of each sixteen bytes if there are `gaps`."""
    bits = (codes[..., None] >> np.arange(width) & 1).astype(np.uint8).reshape(len(codes), -1, 16 * width)
    found = np.packbits(bits, axis=-1, bitorder="little")
    if gaps:
        found = np.pad(found, ((0, 0), (0, 0), (0, 16 - found.shape[-1])))
    return found.reshape(len(codes), -1)


# Products ----------------------------------------------------------------------------------------------------------

TYPES = [
    ("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("tf32", "f32"), ("s8", "s32"), ("u8", "s32"),
    ("e4m3", "f32"), ("e5m2", "f16"),
]  # fmt: skip


def mma(kind: str, group: int = 1, left: str = "%1", tail: str = "") -> str:
    return f"tcgen05.mma.cta_group::{group}.kind::{KIND.get(kind, 'f8f6f4')} [%0], {left}, %2, %3, p{tail};"


@pytest.mark.parametrize(("types", "m"), in_turn(TYPES, [128, 64]))
def test_element_types(types, m):
    kind, out = types
    n, width = 32, {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)
    a, b, c = numbers(kind, (m, 32 // width)), numbers(kind, (n, 32 // width)), np.round(numbers("f16", (128, n)))
    images = [(*k_major(stored(part, kind), 128), 128) for part in (a, b)]
    got = execute(mma(kind), images, accumulator(c, out), instruction(kind, out, m, n), keep=1)
    want, lanes = accumulator(c, out), np.arange(m) if m == 128 else np.arange(m) % 16 + 32 * (np.arange(m) // 16)
    want[lanes] = accumulator(a @ b.T + c[lanes], out)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("swizzle", "turned"), in_turn([0, 32, 64, 128], [(0, 1), (1, 0), (0, 0), (1, 1)], share=2))
def test_layouts(swizzle, turned):
    a, b = numbers("f16", (128, 16)), numbers("f16", (64, 16))
    images = [
        (*(mn_major if along else k_major)(stored(part, "f16"), swizzle), swizzle)
        for part, along in zip((a, b), turned, strict=True)
    ]
    word = instruction("f16", "f32", 128, 64, flags=turned[0] << 15 | turned[1] << 16)
    got = execute(mma("f16"), images, np.ones((128, 64), np.uint32), word)
    np.testing.assert_array_equal(got, accumulator(a @ b.T, "f32"))


@pytest.mark.parametrize(("swizzle", "line"), in_turn([32, 64, 128, 0], [1, 3, 6, 5]))
def test_a_pattern_that_begins_behind_an_aligned_address(swizzle, line):
    """The base offset of a descriptor says at which line; without a pattern it has no meaning."""
    a, b = numbers("f16", (128, 16)), numbers("f16", (64, 16))
    images = [(*k_major(stored(part, "f16"), swizzle), swizzle) for part in (a, b)]
    got = execute(mma("f16"), images, np.ones((128, 64), np.uint32), instruction("f16", "f32", 128, 64), line=line)
    np.testing.assert_array_equal(got, accumulator(a @ b.T, "f32"))


@pytest.mark.parametrize(("left", "right"), some([("e2m1", "e4m3"), ("e3m2", "e2m3"), ("e4m3", "e5m2")], 1))
def test_floats_of_less_than_a_byte_lie_in_bytes(left, right):
    forms = {"e2m1": (2, 1), "e3m2": (3, 2), "e2m3": (2, 3)}
    parts = [RNG.choice([-2.0, -1.5, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0], (rows, 32)) for rows in (128, 16)]
    images = []
    for part, kind in zip(parts, (left, right), strict=True):
        if kind in forms:
            rows = packed(small(part, *forms[kind]), 1 + sum(forms[kind]), gaps=True)
        else:
            rows = stored(part, kind)
        images.append((*k_major(rows, 32), 32))
    got = execute(mma(left), images, np.zeros((128, 16), np.uint32), instruction(left, "f32", 128, 16, right=right))
    np.testing.assert_array_equal(got, accumulator(parts[0] @ parts[1].T, "f32"))


@pytest.mark.parametrize("kind", some(["f16", "s8", "tf32"], 2))
def test_first_operand_in_tensor_memory(kind):
    width, out = {"f16": 2, "tf32": 4}.get(kind, 1), "s32" if kind == "s8" else "f32"
    a, b = numbers(kind, (128, 32 // width)), numbers(kind, (24, 32 // width))
    before = np.zeros((128, 32), np.uint32)
    before[:, 24:] = np.ascontiguousarray(stored(a, kind)).view(np.uint32)
    image = (*k_major(stored(b, kind), 64), 64)
    got = execute(
        mma(kind, left="[s]"), [image, image], before, instruction(kind, out, 128, 24), prefix="add.u32 s, %0, 24;"
    )
    np.testing.assert_array_equal(got[:, :24], accumulator(a @ b.T, out))
    np.testing.assert_array_equal(got[:, 24:], before[:, 24:])


def test_signs_lanes_left_alone_and_a_scaled_accumulator():
    a, b, c = numbers("f16", (128, 16)), numbers("f16", (16, 16)), numbers("f16", (128, 16)) * 8
    images = [(*k_major(stored(part, "f16"), 32), 32) for part in (a, b)]
    word = instruction("f16", "f32", 128, 16, flags=1 << 13)
    off = np.array([0x5, 0, 0xFFFF0000, 0], np.uint32)
    text = "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {s, t, u, t}, p, 3;"
    prefix = f"mov.b32 s, {off[0]}; mov.b32 t, 0; mov.b32 u, {off[2]};"
    got = execute(text, images, accumulator(c, "f32"), word, keep=1, prefix=prefix)
    want = accumulator(-a @ b.T + c / 8, "f32")
    alone = np.unpackbits(off.view(np.uint8), bitorder="little").astype(bool)
    want[alone] = accumulator(c, "f32")[alone]
    np.testing.assert_array_equal(got, want)


def test_saturation_of_integer_sums():
    a, b = np.full((128, 32), -128.0), np.full((8, 32), 127.0)
    images = [(*k_major(stored(part, "s8"), 32), 32) for part in (a, b)]
    before = accumulator(np.full((128, 8), -(2.0**31) + 5), "s32")
    got = execute(mma("s8"), images, before, instruction("s8", "s32", 128, 8, flags=8), keep=1)
    assert (got == 1 << 31).all()


# Scale factors -------------------------------------------------------------------------------------------------------

SCALED = [
    ("mxf8f6f4", "block_scale", 32, 1, 2),
    ("mxf4", "block_scale.scale_vec::2X", 32, 2, 2),
    ("mxf4nvf4", "block_scale.scale_vec::4X", 16, 4, 0),
]


def scales(factors: np.ndarray, first_byte: int) -> np.ndarray:
    """Tensor memory with a byte per row and block of K: row m at lane m % 32 of column m / 32, in each quarter."""
    words = np.zeros((128, 4), np.uint8), len(factors) // 32
    columns = np.zeros((32, words[1], 4), np.uint8)
    for row, bytes_ in enumerate(factors):
        columns[row % 32, row // 32, first_byte : first_byte + len(bytes_)] = bytes_
    return np.tile(np.ascontiguousarray(columns).view(np.uint32)[..., 0], (4, 1))


@pytest.mark.parametrize("form", SCALED, ids=[form[0] for form in SCALED])
def test_block_scaled_products(form):
    kind, words, per_scale, count, first_byte = form
    k, n = (32 if kind == "mxf8f6f4" else 64), 64
    a, b = (RNG.choice([-3.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 6.0], (rows, k)) for rows in (128, n))
    exponents = kind != "mxf4nvf4"
    if exponents:
        codes = [RNG.integers(125, 130, (rows, count)).astype(np.uint8) for rows in (128, n)]
        factors = [2.0 ** (code.astype(float) - 127) for code in codes]
    else:
        factors = [RNG.choice([0.5, 1.0, 1.5, 2.0], (rows, count)) for rows in (128, n)]
        codes = [float8(part, 4, 3) for part in factors]
    if kind == "mxf8f6f4":
        rows, bits = [stored(part, "e4m3") for part in (a, b)], 0
    else:
        rows, bits = [packed(small(part, 2, 1), 4, gaps=False) for part in (a, b)], 1 << 7 | 1 << 10
    images = [(*k_major(part, 128), 128) for part in rows]
    ids = first_byte << 29 | first_byte << 4
    word = bits | (n >> 3) << 17 | exponents << 23 | (128 >> 4) << 24 | ids
    before = np.zeros((128, 128), np.uint32)
    before[:, 64:68], before[:, 68:70] = scales(codes[0], first_byte), scales(codes[1], first_byte)
    text = f"tcgen05.mma.cta_group::1.kind::{kind}.{words} [%0], %1, %2, %3, [s], [t], p;"
    got = execute(text, images, before, word, prefix="add.u32 s, %0, 64; add.u32 t, %0, 68;")
    spread = [part * np.repeat(factor, per_scale, axis=1) for part, factor in zip((a, b), factors, strict=True)]
    np.testing.assert_array_equal(got[:, :n], accumulator(spread[0] @ spread[1].T, "f32"))


@pytest.mark.parametrize(("first", "vector", "n"), [(0, 16, 128), (2, 16, 256), (3, 32, 64), (1, 32, 192), (2, 16, 8)])
def test_96_elements_along_k_out_of_a_ring_of_buffers(first, vector, n):
    """Rows of 48 bytes that begin 96 or 112 bytes into a line go on in another buffer; so do scale factors in words."""
    a, b = (RNG.choice([-3.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 6.0], (rows, 96)) for rows in (128, n))
    start = 96 if first % 2 == 0 else 112
    images = []
    for part in (a, b):
        line = np.zeros((len(part), 256), np.uint8)
        line[:, start : start + 48] = packed(small(part, 2, 1), 4, gaps=False)
        halves = [k_major(np.ascontiguousarray(half), 128)[0] for half in np.split(line, 2, axis=1)]
        images.append(np.concatenate([np.pad(half, (0, -len(half) % 1024)) for half in halves]))
    count = 96 // vector
    factors = [2.0 ** RNG.integers(-2, 3, (rows, count)) for rows in (128, n)]
    codes = [(np.log2(part) + 127).astype(np.uint8) for part in factors]
    if vector == 16:
        codes = [float8(part, 4, 3) for part in factors]
    before = np.zeros((128, 512), np.uint32)
    for place, part in zip((256, 272), codes, strict=True):
        apart = 4 * -(-len(part) // 128)
        held = before[:, place : place + 2 * apart].view(np.uint8).reshape(128, -1)
        for row, factor in enumerate(part):
            for k, code in enumerate(factor):
                word, byte = divmod(first + k, 4)
                held[row % 32 + 32 * np.arange(4), 4 * (apart * word + row // 32) + byte] = code
        before[:, place : place + 2 * apart] = held.view(np.uint32)
    word = 1 << 7 | 1 << 10 | (n >> 3) << 17 | (vector == 32) << 23 | 8 << 24 | first << 29 | first << 4 | 1 << 31
    text = f"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block{vector} [%0], x, y, %3, [s], [t], p;"
    # Where the next buffer begins takes the place of the leading offset.
    ahead = [(start >> 4) + ((len(image) // 2 >> 4) << 16) + (1 << 52) for image in images]
    prefix = ".reg .b64 x, y, z; add.u32 s, %0, 256; add.u32 t, %0, 272;" + "".join(
        f" and.b64 z, {given}, 0x3fff; shl.b64 z, z, 16; and.b64 {made}, {given}, 0xffffffffc000ffff;"
        f" or.b64 {made}, {made}, z; add.s64 {made}, {made}, {more};"
        for given, made, more in zip(("%1", "%2"), "xy", ahead, strict=True)
    )
    got = execute(text, [(image, 0, 1024, 128) for image in images], before, word, prefix=prefix, arch="sm_103a")
    spread = [part * np.repeat(factor, vector, axis=1) for part, factor in zip((a, b), factors, strict=True)]
    np.testing.assert_array_equal(got[:, :n], accumulator(spread[0] @ spread[1].T, "f32"))


# Sparse first operands -----------------------------------------------------------------------------------------------


def thinned(kind: str, rows: int, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sparse matrix, its stored half, and codes of 2 bits: two for each pair of stored units.

    Of four neighbours two are stored, of two TF32 elements one, of four pairs of packed 4-bit elements two.
    """
    unit = {"tf32": 2, "e2m1": 2}.get(kind, 1)
    groups = depth // (2 if kind == "tf32" else 4 * unit)
    values = RNG.choice([-2.0, -1.5, -0.5, 0.5, 1.0, 1.5, 3.0], (rows, depth))
    if kind in ("s8", "u8"):
        values = RNG.integers(1, 9, (rows, depth)).astype(float)
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    if kind == "tf32":
        pairs = np.array([(0, 1), (2, 3)])
    codes = pairs[RNG.integers(0, len(pairs), (rows, groups))]
    kept = np.zeros((rows, groups, 4), bool)
    np.put_along_axis(kept, codes, True, axis=2)
    kept = kept.reshape(rows, -1)
    # A code names half a TF32 element, or two packed ones.
    kept = kept[:, ::2] if kind == "tf32" else np.repeat(kept, unit, axis=1)
    whole = np.where(kept, values, 0)
    return whole, values[kept].reshape(rows, depth // 2), codes.reshape(rows, -1)


def metadata(codes: np.ndarray, wide: bool) -> np.ndarray:
    """Words of tensor memory, shape (lanes, columns), found one code after the other."""
    rows, units = codes.shape
    words = np.zeros((rows, units // 16), np.uint32)
    for row in range(rows):
        for code in range(units):
            lane, column, bit = row, code // 16, 2 * (code % 16)
            if wide:  # 16 codes: the right half of a row's lies 8 lanes on, those of rows 8 to 15 in the high halves
                lane, column = row // 16 * 16 + code // 8 * 8 + row % 8, 0
                bit = 16 * (row // 8 % 2) + 2 * (code % 8)
            words[lane, column] |= np.uint32(codes[row, code] << bit)
    return words


SPARSE = ["f16", "tf32", "e4m3", "s8", "bf16", "u8"]


@pytest.mark.parametrize(("kind", "form"), in_turn(SPARSE, [(128, 128), (64, 0), (128, 64)]))
def test_sparse_first_operands(kind, form):
    m, swizzle = form
    width, n, out = {"tf32": 4, "f16": 2, "bf16": 2}.get(kind, 1), 32, "s32" if kind in ("s8", "u8") else "f32"
    depth, wide = 64 // width, width > 1
    whole, held, codes = thinned(kind, m, depth)
    b = numbers(kind, (n, depth))
    words, selector = metadata(codes, wide), int(wide)
    before = RNG.integers(0, 1 << 32, (128, 2 * n), dtype=np.uint32)
    lanes = np.arange(m) if m == 128 else np.arange(m) % 16 + 32 * (np.arange(m) // 16)
    before[lanes, n + 2 + selector] = words[:, 0]
    if not wide:
        before[lanes, n + 3] = words[:, 1]
    images = [(*k_major(stored(part, kind), swizzle), swizzle) for part in (held, b)]
    text = mma(kind).replace("mma", "mma.sp").replace("%2, %3", "%2, [s], %3")
    word = instruction(kind, out, m, n, flags=4 | selector)
    got = execute(text, images, before, word, prefix=f"add.u32 s, %0, {n + 2};")
    np.testing.assert_array_equal(got[lanes, :n], accumulator(whole @ b.T, out))


@pytest.mark.parametrize("group", [1, 2])
def test_a_sparse_operand_in_tensor_memory(group):
    """Each of a pair's blocks has the metadata of its own rows."""
    n, m = 32, 128 * group
    whole, held, codes = thinned("f16", m, 32)
    b = numbers("f16", (n, 32))
    before = np.zeros((m, 64), np.uint32)
    before[:, 32:40] = np.ascontiguousarray(stored(held, "f16")).view(np.uint32)
    before[:, 40] = np.concatenate([metadata(part, True)[:, 0] for part in np.split(codes, group)])
    images = []
    for part in np.split(b, group):
        image = (*k_major(stored(part, "f16"), 64), 64)
        images += [image, image]
    text = mma("f16", group, left="[s]").replace("mma", "mma.sp").replace("%2, %3", "%2, [t], %3")
    word = instruction("f16", "f32", m, n, flags=4)
    got = execute(text, images, before, word, group=group, prefix="add.u32 s, %0, 32; add.u32 t, %0, 40;")
    np.testing.assert_array_equal(got[:, :n], accumulator(whole @ b.T, "f32"))


@pytest.mark.parametrize("form", SCALED, ids=[form[0] for form in SCALED])
def test_sparse_block_scaled_products(form):
    """A factor for twice as many elements along K as of dense products."""
    kind, words, per_scale, count, first_byte = form
    fp8, n = kind == "mxf8f6f4", 64
    k = 64 if fp8 else 128
    whole, held, sparse_codes = thinned("e4m3" if fp8 else "e2m1", 128, k)
    b = RNG.choice([-3.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 6.0], (n, k))
    exponents = kind != "mxf4nvf4"
    factors = [2.0 ** RNG.integers(-2, 3, (rows, count)) for rows in (128, n)]
    codes = [(np.log2(part) + 127).astype(np.uint8) if exponents else float8(part, 4, 3) for part in factors]
    if fp8:
        rows, bits = [stored(part, "e4m3") for part in (held, b)], 0
    else:
        rows, bits = [packed(small(part, 2, 1), 4, gaps=False) for part in (held, b)], 1 << 7 | 1 << 10
    images = [(*k_major(part, 128), 128) for part in rows]
    ids = first_byte << 29 | first_byte << 4
    word = 4 | bits | (n >> 3) << 17 | exponents << 23 | (128 >> 4) << 24 | ids
    before = np.zeros((128, 128), np.uint32)
    before[:, 64:68], before[:, 68:70] = scales(codes[0], first_byte), scales(codes[1], first_byte)
    before[:, 72:74] = metadata(sparse_codes, False)
    text = f"tcgen05.mma.sp.cta_group::1.kind::{kind}.{words} [%0], %1, %2, [u], %3, [s], [t], p;"
    place = "add.u32 s, %0, 64; add.u32 t, %0, 68; add.u32 u, %0, 72;"
    got = execute(text, images, before, word, prefix=place)
    spread = [part * np.repeat(factor, 2 * per_scale, axis=1) for part, factor in zip((whole, b), factors, strict=True)]
    np.testing.assert_array_equal(got[:, :n], accumulator(spread[0] @ spread[1].T, "f32"))


# Products that keep B ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "form"), in_turn(["f16", "s8", "tf32"], [(32, 64), (64, 128), (128, 64)]))
@pytest.mark.parametrize("collector", ["", ".collector::b1::fill"])
def test_products_that_keep_the_second_operand(kind, form, collector):
    """Of 32 rows each quarter of the columns lies in lanes of its own, of 64 each half."""
    (m, n), width, out = form, {"f16": 2, "tf32": 4}.get(kind, 1), "s32" if kind == "s8" else "f32"
    a, b = numbers(kind, (m, 32 // width)), numbers(kind, (n, 32 // width))
    c = np.round(numbers("f16", (m, n)))
    images = [(*k_major(stored(part, kind), 128), 128) for part in (a, b)]

    def placed(matrix: np.ndarray) -> np.ndarray:
        return accumulator(np.concatenate(np.split(matrix, 128 // m, axis=1)), out)

    text = mma(kind).replace("mma", "mma.ws").replace(" [%0]", f"{collector} [%0]")
    got = execute(text, images, placed(c), instruction(kind, out, m, n), keep=1)
    np.testing.assert_array_equal(got, placed(a @ b.T + c))


# Pairs of blocks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [256, 128])
def test_a_pair_of_blocks_shares_a_product(m):
    n = 64
    a, b, c = numbers("f16", (m, 16)), numbers("f16", (n, 16)), numbers("f16", (m, n))
    images = []
    for block in range(2):
        for part in (a, b):
            half = np.array_split(part, 2)[block]
            images.append((*k_major(stored(half, "f16"), 128), 128))

    def placed(matrix: np.ndarray) -> np.ndarray:
        blocks = np.split(matrix, 2)
        if m == 128:
            blocks = [np.concatenate(np.split(part, 2, axis=1)) for part in blocks]
        return accumulator(np.concatenate(blocks), "f32")

    got = execute(mma("f16", 2), images, placed(c), instruction("f16", "f32", m, n), keep=1, group=2)
    np.testing.assert_array_equal(got, placed(a @ b.T + c))


# Copies, shifts, loads and stores ------------------------------------------------------------------------------------

COPIES = {
    "128x256b": (128, 32, lambda rows: rows),
    "128x128b": (128, 16, lambda rows: rows),
    "4x256b": (4, 32, None),
    "64x128b.warpx2::02_13": (64, 16, lambda rows: np.tile(rows, (2, 1))),
    "64x128b.warpx2::01_23": (64, 16, lambda rows: np.repeat(rows.reshape(2, 32, 4), 2, axis=0).reshape(128, 4)),
    "32x128b.warpx4": (32, 16, lambda rows: np.tile(rows, (4, 1))),
}


@pytest.mark.parametrize("shape", some(COPIES, 1))
def test_copies_from_shared_memory(shape):
    rows, size, spread = COPIES[shape]
    data = RNG.integers(0, 256, (max(rows, 8), size)).astype(np.uint8)
    image = (*k_major(data, 0), 0)
    before = np.arange(128 * 8, dtype=np.uint32).reshape(128, 8)
    got = execute(f"tcgen05.cp.cta_group::1.{shape} [%0], %1;", [image, image], before)
    want, words = before.copy(), np.ascontiguousarray(data[:rows]).view(np.uint32)
    if spread is None:
        want[::32] = words
    else:
        want[:, : size // 4] = spread(words)
    np.testing.assert_array_equal(got, want)


def test_a_shift_moves_rows_of_one_quarter():
    before = RNG.integers(0, 1 << 32, (128, 16), dtype=np.uint32)
    got = execute("tcgen05.shift.cta_group::1.down [s];", [], before, prefix="add.u32 s, %0, 0x200008;")
    want = before.copy()
    want[32:63, 8:] = before[33:64, 8:]
    np.testing.assert_array_equal(got, want)


SHAPES = {
    "32x32b": (1, lambda r, t: (t, r)),
    "16x64b": (1, lambda r, t: (t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2)),
    "16x128b": (2, lambda r, t: (t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4)),
    "16x256b": (4, lambda r, t: (t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2)),
    "16x32bx2": (1, lambda r, t: (t % 16, r + 16 * (t // 16))),
}


def moves(shape: str, times: int, form: str, lane: int) -> str:
    """A kernel that loads some registers of each thread from given tensor memory, stores them to other columns."""
    count = SHAPES[shape][0] * times
    listed = ", ".join(f"%{i}" for i in range(count))
    outs = ", ".join(f'"=r"(v[{i}])' for i in range(count))
    ins = ", ".join(f'"r"(v[{i}])' for i in range(count))
    later = ", ".join(f"%{i}" for i in range(1, count + 1))
    half = ", 16" if shape == "16x32bx2" else ""
    pack, expand = (".pack::16b", ".unpack::16b") if form else ("", "")
    return f"""extern "C" __global__ void k(const unsigned* memory, unsigned* registers, unsigned* back) {{
  __shared__ unsigned where; unsigned v[{count}], w;
  if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;"
    :: "r"((unsigned)__cvta_generic_to_shared(&where)) : "memory");
  __syncthreads();
  unsigned own = where + ((threadIdx.x & 96) << 16);
  for (int c = 0; c < 64; ++c)
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {{%1}};"
      :: "r"(own + c), "r"(memory[threadIdx.x * 64 + c]));
  for (int c = 64; c < 128; ++c)
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {{%1}};" :: "r"(own + c), "r"(7));
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  asm volatile("tcgen05.ld.sync.aligned.{shape}.x{times}{pack}.b32 {{{listed}}}, [%{count}]{half};" : {outs}
    : "r"(own + ({lane} << 16)));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  for (int i = 0; i < {count}; ++i) registers[threadIdx.x * {count} + i] = v[i];
  asm volatile("tcgen05.st.sync.aligned.{shape}.x{times}{expand}.b32 [%0]{half}, {{{later}}};"
    :: "r"(own + 64 + ({lane} << 16)), {ins} : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  for (int c = 0; c < 64; ++c) {{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%0}}, [%1];" : "=r"(w) : "r"(own + 64 + c));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    back[threadIdx.x * 64 + c] = w; }}
  __syncthreads();
  if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" :: "r"(where)); }}"""


@pytest.mark.parametrize(("shape", "times"), in_turn(list(SHAPES), [2, 4, 1]))
@pytest.mark.parametrize("form", ["", "packed"])
def test_loads_and_stores(shape, times, form):
    lane = 16 if shape.startswith("16") and times == 4 else 0
    memory = RNG.integers(0, 1 << 32, (128, 64), dtype=np.uint32)
    each, place = SHAPES[shape]
    count = each * times
    got = run(
        moves(shape, times, form, lane), 1, 128, memory, np.zeros((128, count), np.uint32),
        np.zeros((128, 64), np.uint32), arch="sm_100a",
    )  # fmt: skip
    want, back = np.zeros((128, count), np.uint32), np.full((128, 64), 7, np.uint32)
    for thread in range(128):
        for register in range(count):
            row, column = place(register, thread % 32)
            row += thread // 32 * 32 + lane
            if form:
                far = 16 * (thread % 32 // 16) if shape == "16x32bx2" else 0
                column = 2 * (column - far) + far
                low, high = (memory[row, column + part] & 0xFFFF for part in (0, 1))
                want[thread, register] = low | high << 16
                back[row, column : column + 2] = low, high
            else:
                want[thread, register] = back[row, column] = memory[row, column]
    np.testing.assert_array_equal(got.buffer("registers"), want)
    np.testing.assert_array_equal(got.buffer("back"), back)


# Bad input -----------------------------------------------------------------------------------------------------------


def test_columns_that_are_not_allocated_are_an_error():
    a, b = numbers("f16", (128, 16)), numbers("f16", (64, 16))
    images = [(*k_major(stored(part, "f16"), 128), 128) for part in (a, b)]
    with pytest.raises(EmulationError, match="accumulates in columns 0 to 63 of tensor memory, which block"):
        execute(mma("f16"), images, np.zeros((128, 32), np.uint32), instruction("f16", "f32", 128, 64))


def test_a_warp_reaches_its_own_lanes_only():
    text = moves("32x32b", 1, "", 0).replace('"r"(own + (0 << 16))', '"r"(where + (64 << 16))', 1)
    arguments = np.zeros((128, 64), np.uint32), np.zeros((128, 1), np.uint32), np.zeros((128, 64), np.uint32)
    with pytest.raises(EmulationError, match="expected lane 0, since warp 0 of its block reaches lanes 0 to 31"):
        run(text, 1, 128, *arguments, arch="sm_100a")


def test_an_address_in_the_first_lanes_stands_for_the_own_lanes_of_every_warp():
    text = moves("32x32b", 1, "", 0).replace("own + (0 << 16)", "where").replace("own + 64 + (0 << 16)", "where + 64")
    assert text.count("(where") == 3
    memory = RNG.integers(0, 1 << 32, (128, 64), dtype=np.uint32)
    got = run(text, 1, 128, memory, np.zeros((128, 1), np.uint32), np.zeros((128, 64), np.uint32), arch="sm_100a")
    registers, back = got.buffer("registers"), got.buffer("back")
    assert np.array_equal(registers[:, 0], memory[:, 0])
    assert np.array_equal(back[:, 0], memory[:, 0])
    assert (back[:, 1:] == 7).all()


def test_room_that_never_comes_is_a_deadlock():
    source = """extern "C" __global__ void k(unsigned* out) {
      __shared__ unsigned where; unsigned at = (unsigned)__cvta_generic_to_shared(&where);
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;" :: "r"(at));
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(at));
      out[threadIdx.x] = where; }"""
    with pytest.raises(EmulationError, match=r"wait|deadlock"):
        run(source, 1, 32, np.zeros(32, np.uint32), arch="sm_100a")


def test_columns_are_given_out_again():
    source = """extern "C" __global__ void k(unsigned* out) {
      __shared__ unsigned where[3]; unsigned at = (unsigned)__cvta_generic_to_shared(where);
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" :: "r"(at));
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" :: "r"(at + 4));
      __syncwarp();
      asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" :: "r"(where[0]));
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(at + 8));
      __syncwarp();
      if (threadIdx.x < 3) out[threadIdx.x] = where[threadIdx.x]; }"""
    got = run(source, 2, 32, np.zeros(3, np.uint32), arch="sm_100a").buffer("out")
    assert got.tolist() == [0, 128, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, p, %1;", "operands UTCHMMA.WS"),
        ("tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, p;", "of 32 columns: expected 64, 128 or 256"),
        ("tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%0], %1;", "UTCCP.T.S.U4x16P64 is not supported"),
    ],
)
def test_what_is_not_emulated_is_named(text, message):
    a, b = numbers("f16", (128, 16)), numbers("f16", (32, 16))
    images = [(*k_major(stored(part, "f16"), 128), 128) for part in (a, b)]
    word = instruction("f16", "f32", 128, 32)
    with pytest.raises((EmulationError, UnsupportedInstructionError), match=message):
        execute(text, images, np.zeros((128, 32), np.uint32), word, prefix="mov.u32 s, %0;")


@pytest.mark.parametrize("word", first([np.uint64(1 << 61)]))
def test_descriptors_of_other_forms_are_refused(word):
    text = kernel(mma("f16"), 32)
    with pytest.raises(UnsupportedInstructionError, match="a matrix descriptor"):
        run(
            text, 1, 128, np.zeros(4096, np.uint32), 1024, np.zeros((128, 32), np.uint32), np_scalar(word),
            np_scalar(word), np_scalar32(instruction("f16", "f32", 128, 32)), 0, arch="sm_100a", dynamic_shared=16400,
        )  # fmt: skip


@pytest.mark.parametrize("harmful", [False, True])
def test_results_that_pass_through_shared_memory_are_left_out_until_an_address_reads_them(harmful: bool) -> None:
    """Indices and results share places; brief runs see whether an index is read before or after a result is stored."""
    store, index = "s[threadIdx.x] = v; __syncwarp();", "int at = s[31 - threadIdx.x]; __syncwarp();"
    source = f"""extern "C" __global__ void k(const int* in, float* out) {{
      __shared__ unsigned where; __shared__ volatile int s[32]; int v;
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"
        :: "r"((unsigned)__cvta_generic_to_shared(&where)) : "memory");
      __syncwarp();
      s[threadIdx.x] = threadIdx.x ^ blockIdx.x % 32; __syncwarp();
      asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {{%1}};"
        :: "r"(where), "r"(in[blockIdx.x * 32 + threadIdx.x]) : "memory");
      asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
      asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%0}}, [%1];" : "=r"(v) : "r"(where) : "memory");
      asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      {store + index if harmful else index + store}
      out[blockIdx.x * 32 + at] = s[threadIdx.x] * 2.0f;
      asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(where)); }}"""
    kernel = kernels.kernel(source, "sm_100a")
    brief = without_results(kernel, build_cfg(kernel.instructions, kernel.code_entries))
    assert brief is not None
    assert brief.wrong
    assert all(kernel.instructions[number].opcode == "STS" for number in brief.wrong)
    indices = np.stack([RNG.permutation(32) for _ in range(100)]).astype(np.int32)
    launch = make_launch(kernel, (100, 1, 1), (32, 1, 1), {"in": indices, "out": np.zeros((100, 32), np.float32)})
    whole, shorter = (emulate(kernel, launch, results=results) for results in (True, False))
    assert len(whole.profile.blocks) > 1
    same_profile(whole.profile, shorter.profile)
    assert np.array_equal(whole.buffer("out"), shorter.buffer("out")) == harmful
