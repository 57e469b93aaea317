"""Sparse and small-element matrix instructions of a warp and of a warp group, against products of whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first, in_turn, some

from .support import run
from .test_tensor import fragment_a, fragment_b, fragment_c, packed
from .test_wgmma import accumulated, descriptor, fragments, k_major, mn_major, np_scalar, stored

RNG = np.random.default_rng(24)
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
LOW_HIGH = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}
SHAPES = {
    "f16.f16": (16, 32), "bf16.bf16": (16, 32), "tf32.tf32": (8, 16), "s8.s8": (32, 64), "u8.s8": (32, 64),
    "s8.u8": (32, 64), "s4.u4": (64, 128), "e4m3.e4m3": (64,), "e5m2.e4m3": (64,),
}  # fmt: skip


def numbers(kind: str, shape: tuple[int, int]) -> np.ndarray:
    if kind in LOW_HIGH:
        return RNG.integers(*LOW_HIGH[kind], shape).astype(np.float64)
    return RNG.integers(-4, 5, shape) / 4


def words(elements: np.ndarray, kind: str) -> np.ndarray:
    """Elements of registers, shape (32, registers, per register), as words, shape (32, registers)."""
    if kind in ("s4", "u4", "b1"):
        shifts = BITS[kind] * np.arange(elements.shape[2])
        bits = elements.astype(np.int64) & ((1 << BITS[kind]) - 1)
        return np.bitwise_or.reduce(bits << shifts, axis=2).astype(np.uint32)
    if kind in ("e4m3", "e5m2"):
        return np.ascontiguousarray(stored(elements, kind)).view(np.uint32)[..., 0]
    return packed(elements, kind).reshape(32, -1)


def sparse(kind: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix with half of each group zero, its stored half, and the codes of each row from left to right."""
    size, unit = {32: (2, 1), 4: (8, 2)}.get(BITS[kind], (4, 1))
    values, whole = numbers(kind, (rows, k // 2)), np.zeros((rows, k))
    codes = np.zeros((rows, 2 * k // size), np.int64)
    for row in range(rows):
        for group in range(k // size):
            chosen = [RNG.integers(2)] if size == 2 else sorted(RNG.permutation(4)[:2])
            # One of two TF32 elements is named by the halves that it consists of.
            codes[row, 2 * group : 2 * group + 2] = (2 * chosen[0], 2 * chosen[0] + 1) if size == 2 else chosen
            for number, place in enumerate(chosen):
                source = group * size // 2 + number * unit
                target = group * size + place * unit
                whole[row, target : target + unit] = values[row, source : source + unit]
    return whole, values, codes


def metadata(codes: np.ndarray, kind: str, selector: int) -> np.ndarray:
    """The word of every lane, by the figures of the PTX manual; lanes that are not chosen hold noise."""
    result = RNG.integers(0, 2**32, 32, dtype=np.uint64).astype(np.uint32)
    count = codes.shape[1]

    def pack(part: np.ndarray) -> int:
        return sum(int(code) << (2 * n) for n, code in enumerate(part))

    for g in range(8):
        if BITS[kind] >= 16:
            for chunk in range(count // 8):
                part = codes[:, 8 * chunk : 8 * chunk + 8]
                result[4 * g + selector * (count // 8) + chunk] = pack(part[g]) | pack(part[g + 8]) << 16
        else:
            for chunk in range(count // 16):
                part = codes[:, 16 * chunk : 16 * chunk + 16]
                result[4 * g + 2 * (selector + chunk)] = pack(part[g])
                result[4 * g + 2 * (selector + chunk) + 1] = pack(part[g + 8])
    return result


def product(name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, arch: str, meta=None, selector=0) -> np.ndarray:
    """The words of the accumulator of one multiplication of fragments, shape (32, registers)."""
    out = "r" if c.dtype != np.float32 else "f"
    ctype = "float" if out == "f" else "unsigned"
    counts = [part.shape[1] for part in (c, a, b)]
    starts = np.cumsum([0, *counts])
    groups = [
        "{" + ", ".join(f"%{start + n}" for n in range(count)) + "}"
        for start, count in zip(starts, counts, strict=False)
    ]
    outs = ", ".join(f'"+{out}"(d[{n}])' for n in range(counts[0]))
    ins = ", ".join(f'"r"({v}[{n}])' for v, count in zip("xy", counts[1:], strict=True) for n in range(count))
    tail = f", %{starts[3]}, {selector}" if meta is not None else ""
    source = f"""extern "C" __global__ void k(const unsigned* a, const unsigned* b, const unsigned* m, {ctype}* c) {{
  unsigned x[{counts[1]}], y[{counts[2]}], e = m[threadIdx.x]; {ctype} d[{counts[0]}]; int t = threadIdx.x;
  for (int i = 0; i < {counts[1]}; ++i) x[i] = a[t * {counts[1]} + i];
  for (int i = 0; i < {counts[2]}; ++i) y[i] = b[t * {counts[2]} + i];
  for (int i = 0; i < {counts[0]}; ++i) d[i] = c[t * {counts[0]} + i];
  asm volatile("{name} {groups[0]}, {groups[1]}, {groups[2]}, {groups[0]}{tail};" : {outs} : {ins}, "r"(e));
  for (int i = 0; i < {counts[0]}; ++i) c[t * {counts[0]} + i] = d[i]; }}"""
    given = np.zeros(32, np.uint32) if meta is None else meta
    got = run(source, 1, 32, *(np.ascontiguousarray(part) for part in (a, b, given, c)), arch=arch).buffer("c")
    return np.ascontiguousarray(got).view(np.uint32).reshape(32, -1)


def old_values(out: str, rows: int = 16) -> np.ndarray:
    return RNG.integers(-30, 30, (rows, 8)).astype(np.float64)


def accumulator(matrix: np.ndarray, out: str) -> np.ndarray:
    parts = packed(fragment_c(matrix), {"s32": "s32"}.get(out, out)).reshape(32, -1)
    return parts.view(np.float32) if out == "f32" else parts


def sparse_cases() -> list[tuple[str, int, str, int]]:
    cases = []
    for kinds, depths in SHAPES.items():
        wide = BITS[kinds.split(".")[0]] >= 16
        outs = ["f32", "f16"] if kinds == "f16.f16" else ["f32"] if wide or kinds[0] == "e" else ["s32"]
        for number, k in enumerate(depths):
            selectors = (4 if wide else 2) if number == 0 and kinds[0] != "e" else 2 if wide else 1
            cases += [(kinds, k, out, selector) for out in outs for selector in range(selectors)]
    return cases


@pytest.mark.parametrize("arch", first(["sm_89", "sm_90a", "sm_120a"]))
@pytest.mark.parametrize(("kinds", "k", "out", "selector"), some(sparse_cases(), 16))
def test_sparse_products(arch, kinds, k, out, selector):
    left, right = kinds.split(".")
    whole, values, codes = sparse(left, 16, k)
    b, c = numbers(right, (k, 8)), old_values(out)
    per = 32 // BITS[left]
    got = product(
        f"mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col.{out}.{kinds}.{out}",
        words(fragment_a(values, per), left), words(fragment_b(b, per), right), accumulator(c, out), arch,
        metadata(codes, left, selector), selector,
    )  # fmt: skip
    np.testing.assert_array_equal(got, accumulator(whole @ b + c, out).view(np.uint32))


DENSE = {
    "m16n8k32 e4m3": ("e4m3.e4m3", 16, 32, "f32"), "m16n8k32 e5m2": ("e5m2.e5m2", 16, 32, "f32"),
    "m16n8k32 e4m3 and e5m2": ("e4m3.e5m2", 16, 32, "f32"), "m16n8k32 into f16": ("e5m2.e4m3", 16, 32, "f16"),
    "m16n8k16 e4m3": ("e4m3.e4m3", 16, 16, "f32"), "m16n8k16 into f16": ("e4m3.e5m2", 16, 16, "f16"),
    "m8n8k32 s4": ("s4.u4", 8, 32, "s32"), "m16n8k32 u4": ("u4.s4", 16, 32, "s32"),
    "m16n8k64 s4": ("s4.s4", 16, 64, "s32"), "m8n8k128 b1": ("b1.b1", 8, 128, "s32"),
    "m16n8k128 b1": ("b1.b1", 16, 128, "s32"), "m16n8k256 b1": ("b1.b1", 16, 256, "s32"),
}  # fmt: skip


@pytest.mark.parametrize(("case", "arch"), in_turn([*DENSE], ["sm_89", "sm_90a"], share=2))
def test_small_elements(arch, case):
    kinds, m, k, out = DENSE[case]
    left, right = kinds.split(".")
    a, b, c = numbers(left, (m, k)), numbers(right, (k, 8)), old_values(out, m)
    per = 32 // BITS[left]
    for tail in (".and.popc", ".xor.popc") if left == "b1" else ("",):
        got = product(
            f"mma.sync.aligned.m{m}n8k{k}.row.col.{out}.{kinds}.{out}{tail}",
            words(fragment_a(a, per), left), words(fragment_b(b, per), right), accumulator(c, out), arch,
        )  # fmt: skip
        want = a @ (1 - b) + (1 - a) @ b if "xor" in tail else a @ b
        np.testing.assert_array_equal(got, accumulator(want + c, out).view(np.uint32))


# Warp groups ----------------------------------------------------------------------------------------

GROUPS = {
    "f16": (32, "f32"), "f16 into f16": (32, "f16"), "bf16": (32, "f32"), "tf32": (16, "f32"),
    "e4m3": (64, "f32"), "e5m2": (64, "f16"), "s8": (64, "s32"), "u8": (64, "s32"),
}  # fmt: skip


def group_source(kind: str, out: str, n: int, k: int, selector: int, registers: bool, tails: str) -> str:
    count = n // 4 if out == "f16" else n // 2
    letter, ctype = ("f", "float") if out == "f32" else ("r", "unsigned" if out == "f16" else "int")
    d = ", ".join(f"%{i}" for i in range(count))
    held = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}" if registers else f"%{count}"
    at = count + (4 if registers else 1)
    outs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(count))
    ins = ", ".join(f'"r"(a[{i}])' for i in range(4)) if registers else '"l"(da + at)'
    return f"""extern "C" __global__ void k(const uint4* image, int pieces, const unsigned* rows, const unsigned* meta,
      {ctype}* out, unsigned long long da, unsigned long long db) {{
  extern __shared__ __align__(1024) uint4 buffer[];
  for (int i = threadIdx.x; i < pieces; i += 128) buffer[i] = image[i];
  unsigned long long at = (unsigned)__cvta_generic_to_shared(buffer) >> 4;
  unsigned a[4]; for (int i = 0; i < 4; ++i) a[i] = rows[threadIdx.x * 4 + i];
  unsigned e = meta[threadIdx.x];
  {ctype} d[{count}]; for (int i = 0; i < {count}; ++i) d[i] = out[threadIdx.x * {count} + i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sp.sync.aligned.m64n{n}k{k}.{out}.{kind}.{kind} {{{d}}}, {held}, %{at}, %{at + 1},"
    " {selector}, 1{tails};" : {outs} : {ins}, "l"(db + at), "r"(e));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < {count}; ++i) out[threadIdx.x * {count} + i] = d[i]; }}"""


@pytest.mark.parametrize(("name", "registers"), in_turn([*GROUPS], [False, True], share=2))
def test_sparse_products_of_a_warp_group(name, registers):
    (k, out), kind, n = GROUPS[name], name.split()[0], 24
    selector = 1 if k < 64 and registers else 0
    parts = [sparse(kind, 16, k) for _ in range(4)]
    whole, values = (np.concatenate([part[number] for part in parts]) for number in (0, 1))
    meta = np.concatenate([metadata(part[2], kind, selector) for part in parts])
    b, c = numbers(kind, (n, k)), np.round(RNG.integers(-30, 30, (64, n)).astype(np.float64))
    # 16-bit operands turned, as only those can be; the first one's turned rows are its stored half.
    turned = BITS[kind] == 16
    laid = mn_major if turned else k_major
    images = [laid(stored(values, kind), 64), laid(stored(b, kind), 64)]
    scales = "" if kind in ("s8", "u8") else ", -1, 1" + ((", 1" if registers else ", 1, 1") if turned else "")
    sign = -1 if scales else 1
    start, padded = 0, []
    descriptors = []
    for data, leading, stride in images:
        descriptors.append(descriptor(start, leading, stride, 64))
        padded.append(np.pad(data, (0, -len(data) % 1024)))
        start += len(padded[-1])
    data = np.concatenate(padded)
    rows = fragments(values, kind) if registers else np.zeros((128, 4), np.uint32)
    got = run(
        group_source(kind, out, n, k, selector, registers, scales), 1, 128, data.view(np.uint32), len(data) // 16,
        rows, meta, accumulated(c, out), *map(np_scalar, descriptors), arch="sm_90a", dynamic_shared=len(data),
    ).buffer("out")  # fmt: skip
    np.testing.assert_array_equal(got, accumulated(sign * whole @ b.T + c, out))


# Conversions and movements of fragments --------------------------------------------------------------

FLOATS = {"E4M3": (4, 3, 448.0), "E5M2": (5, 2, 57344.0)}


def nearest_float8(value: float, name: str) -> int:
    """The bit pattern nearest to a number, by trying all; the even one of two, and the largest for what is larger."""
    if np.isnan(value):
        return 0x7F
    exponent_bits, fraction_bits, most = FLOATS[name]
    bias, best = 2 ** (exponent_bits - 1) - 1, (np.inf, 0, 0)
    for bits in range(128):
        exponent, fraction = bits >> fraction_bits, bits % 2**fraction_bits
        number = 2.0 ** (max(exponent, 1) - bias) * ((exponent > 0) + fraction / 2**fraction_bits)
        if number <= most:
            best = min(best, (abs(min(abs(value), most) - number), bits % 2, bits))
    return best[2] | 128 * bool(np.signbit(value))


@pytest.mark.parametrize("arch", first(["sm_89", "sm_90", "sm_120"]))
@pytest.mark.parametrize("name", FLOATS)
def test_conversions_to_8_bit_floats_and_back(arch, name):
    edges = [
        0.0,
        -0.0,
        0.001,
        2.0**-9,
        2.0**-10,
        3 * 2.0**-10,
        2.0**-17,
        448,
        464,
        466,
        -1e6,
        57344,
        61440,
        np.inf,
        np.nan,
    ]
    sizes = np.exp2(RNG.uniform(-18, 17, 113)) * RNG.choice([-1, 1], 113)
    values = np.concatenate([edges, sizes]).astype(np.float32)
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    source = f"""#include <cuda_fp8.h>
extern "C" __global__ void k(const float* f, const __half2_raw* h, unsigned char* o, unsigned short* p, unsigned* q,
                             unsigned* back) {{
  int t = threadIdx.x;
  o[t] = __nv_cvt_float_to_fp8(f[t], __NV_SATFINITE, __NV_{name});
  if (t < 64) p[t] = __nv_cvt_halfraw2_to_fp8x2(h[t], __NV_SATFINITE, __NV_{name});
  if (t < 32) q[t] = __nv_fp8x4_{name.lower()}(((const float4*)f)[t]).__x;
  __half2_raw w = __nv_cvt_fp8x2_to_halfraw2((unsigned short)(2 * t << 8 | 2 * t + 1), __NV_{name});
  back[t] = w.x | w.y << 16; }}"""
    made = [np.zeros(128, np.uint8), np.zeros(64, np.uint16), np.zeros(32, np.uint32), np.zeros(128, np.uint32)]
    got = run(source, 1, 128, values, halves.view(np.uint32), *made, arch=arch)
    want = np.array([nearest_float8(float(value), name) for value in values], np.uint8)
    np.testing.assert_array_equal(got.buffer("o"), want)
    np.testing.assert_array_equal(got.buffer("q").view(np.uint8), want)
    of_halves = np.array([nearest_float8(float(value), name) for value in halves], np.uint8)
    np.testing.assert_array_equal(got.buffer("p").view(np.uint8), of_halves)
    back = got.buffer("back").view(np.float16).reshape(128, 2).astype(np.float64)
    for bits in range(256):
        number = back[bits // 2, 1 - bits % 2]
        if np.isfinite(number):
            assert nearest_float8(number, name) == bits


@pytest.mark.parametrize(("count", "turned"), in_turn([1, 2, 4], [False, True]))
def test_matrix_loads_and_stores(count, turned):
    """ldmatrix and stmatrix of every count, as stored and turned: a lane has two neighbours in a row of each tile.

    Only the first lanes name rows; what the others give as an address is not one.
    """
    tiles = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    names, trans = ", ".join(f"%{n}" for n in range(count)), ".trans" if turned else ""
    loaded = ", ".join(f'"=r"(d[{n}])' for n in range(count))
    kept = ", ".join(f'"r"(d[{n}])' for n in range(count))
    source = f"""extern "C" __global__ void k(const unsigned* in, unsigned* held, unsigned* out) {{
  __shared__ __align__(16) unsigned s[256]; int t = threadIdx.x; unsigned d[{count}];
  unsigned at = (unsigned)__cvta_generic_to_shared(s) + (t < {8 * count} ? 16 * t : 3);
  for (int i = t; i < {32 * count}; i += 32) s[i] = in[i];
  __syncwarp();
  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names}}}, [%{count}];"
    : {loaded} : "r"(at) : "memory");
  for (int i = 0; i < {count}; ++i) held[32 * i + t] = d[i];
  for (int i = t; i < {32 * count}; i += 32) s[i] = 0;
  __syncwarp();
  asm volatile("stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%{count}], {{{names}}};"
    :: {kept}, "r"(at) : "memory");
  __syncwarp();
  for (int i = t; i < {32 * count}; i += 32) out[i] = s[i]; }}"""
    empty = np.zeros(32 * count, np.uint32)
    got = run(source, 1, 32, tiles.reshape(-1).view(np.uint32), empty, empty, arch="sm_90")
    seen = tiles.transpose(0, 2, 1) if turned else tiles
    np.testing.assert_array_equal(got.buffer("held").view(np.uint16), np.ascontiguousarray(seen).reshape(-1))
    np.testing.assert_array_equal(got.buffer("out").view(np.uint16), tiles.reshape(-1))


def test_a_matrix_store_by_part_of_a_warp():
    """The rows that are stored are those whose lanes take part; here the other half of the warp has exited."""
    source = """extern "C" __global__ void k(const unsigned* in, unsigned* out) {
  __shared__ __align__(16) unsigned s[128]; int t = threadIdx.x;
  unsigned at = (unsigned)__cvta_generic_to_shared(s) + 16 * (t & 31), d[4];
  if (t < 32) for (int i = 0; i < 4; ++i) { d[i] = in[32 * i + t]; s[32 * i + t] = 7; }
  __syncthreads();
  if (t >= 16 && t < 32) return;
  if (t < 32) asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0, %1, %2, %3};"
    :: "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3]), "r"(at) : "memory");
  __syncthreads();
  if (t >= 32) for (int i = 0; i < 4; ++i) out[32 * i + t - 32] = s[32 * i + t - 32]; }"""
    tiles = RNG.integers(0, 1 << 32, (4, 8, 4), dtype=np.uint32)
    got = run(source, 1, 64, tiles, np.zeros((4, 8, 4), np.uint32), arch="sm_90")
    found = got.buffer("out").reshape(tiles.shape)
    np.testing.assert_array_equal(found[:2, :4], tiles[:2, :4])
    assert (found[2:] == 7).all()
    assert any("by part of a warp" in note for note in got.profile.notes)


@pytest.mark.parametrize("arch", first(["sm_80", "sm_90"]))
@pytest.mark.parametrize(("form", "size"), some([("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)], 3))
def test_asynchronous_copies_of_less_than_they_store(arch, form, size):
    """The rest is zero, from any number of source bytes, none included; a predicate may leave out the whole source."""
    form = f"cp.async.{form}.shared.global"
    source = f"""extern "C" __global__ void k(const unsigned char* in, unsigned char* part, unsigned char* whole) {{
  __shared__ __align__(16) unsigned char s[2 * {32 * size}]; int t = threadIdx.x, bytes = t % {size + 1};
  for (int i = t; i < 2 * {32 * size}; i += 32) s[i] = 255;
  __syncwarp();
  unsigned at = (unsigned)__cvta_generic_to_shared(s) + t * {size};
  asm volatile("{form} [%0], [%1], {size}, %2;" :: "r"(at), "l"(in + t * {size}), "r"(bytes) : "memory");
  asm volatile("{{.reg .pred p; setp.gt.s32 p, %2, 2; {form} [%0], [%1], {size}, p;}}"
    :: "r"(at + {32 * size}), "l"(in + t * {size}), "r"(bytes) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  for (int i = 0; i < {size}; ++i) {{
    part[t * {size} + i] = s[t * {size} + i]; whole[t * {size} + i] = s[(32 + t) * {size} + i]; }} }}"""
    data, empty = RNG.integers(1, 255, (32, size)).astype(np.uint8), np.zeros((32, size), np.uint8)
    got = run(source, 1, 32, data, empty, empty, arch=arch)
    count = np.arange(32)[:, None] % (size + 1)
    np.testing.assert_array_equal(got.buffer("part"), np.where(np.arange(size) < count, data, 0))
    np.testing.assert_array_equal(got.buffer("whole"), np.where(count > 2, 0, data))
