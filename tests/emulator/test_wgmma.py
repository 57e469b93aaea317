"""Warp-group matrix instructions against NumPy: element types, layouts in shared memory, operands in registers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.effort import first, in_turn, some

from .support import run

RNG = np.random.default_rng(5)
LANE = np.arange(32)
G, T = LANE // 4, LANE % 4
SWIZZLE_BITS = {0: 0, 128: 1, 64: 2, 32: 3}

# PTX name of A and B, bytes of an element, accumulator.
TYPES = {
    "f16": ("f16", 2, "f32"),
    "bf16": ("bf16", 2, "f32"),
    "f16 into f16": ("f16", 2, "f16"),
    "tf32": ("tf32", 4, "f32"),
    "s8": ("s8", 1, "s32"),
    "u8": ("u8", 1, "s32"),
    "e4m3": ("e4m3", 1, "f32"),
    "e5m2 into f16": ("e5m2", 1, "f16"),
}


def numbers(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random elements that the type holds exactly, with exact sums of their products, as float64."""
    if kind in ("s8", "u8"):
        return RNG.integers(*((-128, 128) if kind == "s8" else (0, 256)), shape).astype(np.float64)
    return RNG.integers(-4, 5, shape) / 4


def float8(values: np.ndarray, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """Bit patterns of small numbers, found by trying all: an independent reading of the format."""
    bias = 2 ** (exponent_bits - 1) - 1
    table = {}
    for bits in range(127 if mantissa_bits == 3 else 124):
        exponent, mantissa = bits >> mantissa_bits, bits % 2**mantissa_bits
        scale = 2.0 ** (max(exponent, 1) - bias)
        table[scale * ((exponent > 0) + mantissa / 2**mantissa_bits)] = bits
    return np.array([table[abs(v)] | 128 * (v < 0) for v in values.ravel()], np.uint8).reshape(values.shape)


def stored(values: np.ndarray, kind: str) -> np.ndarray:
    """Elements as memory holds them."""
    if kind in ("e4m3", "e5m2"):
        return float8(values, *{"e4m3": (4, 3), "e5m2": (5, 2)}[kind])
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    names = {"f16": "f2", "tf32": "f4", "s8": "i1", "u8": "u1"}
    return values.astype(names[kind]).view(f"u{np.dtype(names[kind]).itemsize}")


def k_major(matrix: np.ndarray, swizzle: int) -> tuple[np.ndarray, int, int]:
    """An image of (rows, K) with K along the bytes, and its leading and stride offsets.

    With a pattern: lines as wide as it is, 8 lines a block, pieces permuted by the 128-byte line's number.
    Without: blocks of 8 rows of 16 bytes, the blocks along K one after the other, then those along rows.
    """
    rows, width = matrix.shape[0], matrix.shape[1] * matrix.itemsize
    data = np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, width)
    if not swizzle:
        blocks = data.reshape(rows // 8, 8, width // 16, 16).transpose(0, 2, 1, 3)
        return blocks.reshape(-1), 128, width // 16 * 128
    padded = np.zeros((rows, swizzle), np.uint8)
    padded[:, :width] = data
    return permuted(padded.reshape(-1), swizzle), 16, 8 * swizzle


def mn_major(matrix: np.ndarray, swizzle: int) -> tuple[np.ndarray, int, int]:
    """An image of (rows, K) with the rows along the bytes."""
    turned = np.ascontiguousarray(matrix.T)
    depth, width = turned.shape[0], turned.shape[1] * turned.itemsize
    data = turned.view(np.uint8).reshape(depth, width)
    if not swizzle:
        # Blocks of 8 values of K, each 16 bytes of rows; along the rows first, then along K.
        blocks = data.reshape(depth // 8, 8, width // 16, 16).transpose(0, 2, 1, 3)
        return blocks.reshape(-1), width // 16 * 128, 128
    groups = -(-width // swizzle)
    padded = np.zeros((depth, groups * swizzle), np.uint8)
    padded[:, :width] = data
    blocks = padded.reshape(depth // 8, 8, groups, swizzle).transpose(2, 0, 1, 3)
    return permuted(blocks.reshape(-1), swizzle), depth * swizzle, 8 * swizzle


def permuted(image: np.ndarray, swizzle: int) -> np.ndarray:
    """16-byte pieces exchanged within each 128-byte line: piece p of line l goes to p xor l within the pattern."""
    result = np.empty_like(image)
    for piece in range(len(image) // 16):
        line, place = divmod(piece, 8)
        to = line * 8 + (place ^ (line % (swizzle // 16)))
        result[16 * to : 16 * to + 16] = image[16 * piece : 16 * piece + 16]
    return result


def descriptor(start: int, leading: int, stride: int, swizzle: int) -> np.uint64:
    return np.uint64(start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | SWIZZLE_BITS[swizzle] << 62)


def source(kind: str, out: str, n: int, k: int, *, registers: bool = False, tails: str = "", more: str = "") -> str:
    """A kernel that puts an image into shared memory and multiplies once."""
    count = n // 4 if out == "f16" else n // 2
    letter = "f" if out == "f32" else "r"
    ctype = {"f32": "float", "f16": "unsigned", "s32": "int"}[out]
    d = ", ".join(f"%{i}" for i in range(count))
    held = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}" if registers else f"%{count}"
    at = count + (4 if registers else 1)
    outs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(count))
    ins = ", ".join(f'"r"(a[{i}])' for i in range(4)) if registers else '"l"(da + at)'
    return f"""extern "C" __global__ void k(const uint4* image, int pieces, const unsigned* rows, {ctype}* out,
      unsigned long long da, unsigned long long db, int keep) {{
  extern __shared__ __align__(1024) uint4 buffer[];
  for (int i = threadIdx.x; i < pieces; i += 128) buffer[i] = image[i];
  unsigned long long at = (unsigned)__cvta_generic_to_shared(buffer) >> 4;
  unsigned a[4]; for (int i = 0; i < 4; ++i) a[i] = rows[threadIdx.x * 4 + i];
  {ctype} d[{count}]; for (int i = 0; i < {count}; ++i) d[i] = out[threadIdx.x * {count} + i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{at + 1}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n{n}k{k}.{out}.{kind}.{kind}{more} {{{d}}}, {held}, %{at}, p{tails};\\n}}"
    : {outs} : {ins}, "l"(db + at), "r"(keep));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < {count}; ++i) out[threadIdx.x * {count} + i] = d[i]; }}"""


def accumulator_places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each of a thread's N / 2 numbers, shape (128, N / 2)."""
    number = np.arange(n // 2)
    warp = np.arange(4)[:, None, None]
    rows = 16 * warp + G[:, None] + 8 * (number // 2 % 2)
    columns = 8 * (number // 4) + 2 * T[:, None] + number % 2 + 0 * warp
    return rows.reshape(128, -1), columns.reshape(128, -1)


def accumulated(matrix: np.ndarray, out: str) -> np.ndarray:
    rows, columns = accumulator_places(matrix.shape[1])
    values = matrix[rows, columns]
    if out == "f16":
        return np.ascontiguousarray(values.astype(np.float16)).view(np.uint32)
    return values.astype(np.float32 if out == "f32" else np.int32)


def tails(kind: str, *, a: int = 0, b: int = 0, registers: bool = False, negate: bool = False) -> str:
    """The immediates behind the predicate: signs, and whether the operands lie along their rows."""
    if kind in ("s8", "u8"):
        return ""
    signs = ", -1, 1" if negate else ", 1, 1"
    return signs + (("" if registers else f", {a}") + f", {b}" if kind in ("f16", "bf16") else "")


def multiply(
    kind: str, out: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, images: list, text: str, rows=None
):
    """Run the kernel on images (bytes, leading, stride, swizzle) of A (or none) and B; the accumulators."""
    descriptors, parts, start = [np.uint64(0), np.uint64(0)], [], 0
    for which, image in enumerate(images):
        if image is None:
            continue
        data, leading, stride, swizzle = image
        descriptors[which] = descriptor(start, leading, stride, swizzle)
        data = np.pad(data, (0, -len(data) % 1024))
        parts.append(data)
        start += len(data)
    whole = np.concatenate(parts)
    old = accumulated(np.zeros((64, b.shape[0])) if c is None else c, out)
    got = run(
        text, 1, 128, whole.view(np.uint32), len(whole) // 16,
        np.zeros((128, 4), np.uint32) if rows is None else rows, old,
        *(np_scalar(word) for word in descriptors), int(c is not None), arch="sm_90a", dynamic_shared=len(whole),
    ).buffer("out")  # fmt: skip
    want = accumulated(a @ b.T + (0 if c is None else c), out)
    np.testing.assert_array_equal(got, want)


def np_scalar(word: np.uint64):
    from drywarp.kernel.launch.launch import Scalar

    return Scalar(np.uint64(word).tobytes(), str(word))


@pytest.mark.parametrize("name", some(TYPES, 2))
@pytest.mark.parametrize("n", first([8, 64]))
def test_element_types(name, n):
    kind, width, out = TYPES[name]
    k = 32 // width
    a, b, c = numbers(kind, (64, k)), numbers(kind, (n, k)), np.round(numbers("f16", (64, n)))
    images = [(*k_major(stored(m, kind), 128), 128) for m in (a, b)]
    multiply(kind, out, a, b, c, images, source(kind, out, n, k, tails=tails(kind)))


@pytest.mark.parametrize(("n", "swizzle", "registers"), [(16, 128, False), (8, 0, False), (24, 32, True)])
def test_counts_of_bits_that_are_set_in_both(n, swizzle, registers):
    a, b = (RNG.integers(0, 2, (rows, 256)) for rows in (64, n))
    c = RNG.integers(-1000, 1000, (64, n))
    packed = [np.packbits(m, axis=1, bitorder="little") for m in (a, b)]
    images = [None if registers and number == 0 else (*k_major(m, swizzle), swizzle) for number, m in enumerate(packed)]
    rows = None
    if registers:
        words = packed[0].view(np.uint32)
        warp, lane = np.arange(128)[:, None] // 32, np.arange(128)[:, None] % 32
        part = np.arange(4)
        rows = words[16 * warp + lane // 4 + 8 * (part % 2), lane % 4 + 4 * (part // 2)]
    text = source("b1", "s32", n, 256, registers=registers, more=".and.popc")
    multiply("b1", "s32", a, b, c, images, text, rows)


WIDTHS = [256, *range(8, 256, 8)]


@pytest.mark.parametrize(("n", "types"), in_turn(WIDTHS, [("e5m2", "f32"), ("f16", "f16")], share=len(WIDTHS) // 2))
def test_every_width(n, types):
    """N is any multiple of 8 up to 256."""
    kind, out = types
    k = 32 if kind == "e5m2" else 16
    a, b, c = numbers(kind, (64, k)), numbers(kind, (n, k)), np.round(numbers("f16", (64, n)))
    images = [(*k_major(stored(m, kind), 32), 32) for m in (a, b)]
    multiply(kind, out, a, b, c, images, source(kind, out, n, k, tails=tails(kind)))


@pytest.mark.parametrize(("left", "right"), some([("e4m3", "e5m2"), ("u8", "s8"), ("s8", "u8")], 2))
def test_operands_of_different_types(left, right):
    a, b = numbers(left, (64, 32)), numbers(right, (16, 32))
    out = "s32" if left[1] == "8" else "f32"
    images = [(*k_major(stored(m, kind), 128), 128) for m, kind in ((a, left), (b, right))]
    text = source(left, out, 16, 32, tails=tails(left)).replace(f"{left}.{left}", f"{left}.{right}")
    multiply(left, out, a, b, None, images, text)


@pytest.mark.parametrize(("swizzle", "turned"), in_turn([0, 32, 64, 128], [(0, 1), (1, 0), (0, 0), (1, 1)], share=2))
def test_layouts_of_16_bit_elements(swizzle, turned):
    n = 40
    a, b = numbers("f16", (64, 16)), numbers("f16", (n, 16))
    images = [
        (*(mn_major if along else k_major)(stored(m, "f16"), swizzle), swizzle)
        for m, along in ((a, turned[0]), (b, turned[1]))
    ]
    text = source("f16", "f32", n, 16, tails=tails("f16", a=turned[0], b=turned[1]))
    multiply("f16", "f32", a, b, None, images, text)


@pytest.mark.parametrize("swizzle", first([64, 0, 32]))
def test_layouts_of_bytes(swizzle):
    a, b = numbers("s8", (64, 32)), numbers("s8", (16, 32))
    images = [(*k_major(stored(m, "s8"), swizzle), swizzle) for m in (a, b)]
    multiply("s8", "s32", a, b, None, images, source("s8", "s32", 16, 32))


def fragments(a: np.ndarray, kind: str) -> np.ndarray:
    """The four registers of each of 128 threads that hold A."""
    bits = stored(a, kind)
    per = 4 // bits.itemsize
    parts = []
    for warp in range(4):
        for register in range(4):
            rows = 16 * warp + G[:, None] + 8 * (register % 2)
            columns = per * T[:, None] + np.arange(per) + 4 * per * (register // 2)
            parts.append(np.ascontiguousarray(bits[rows, columns]).view(np.uint32)[:, 0])
    return np.ascontiguousarray(np.array(parts).reshape(4, 4, 32).transpose(0, 2, 1).reshape(128, 4))


@pytest.mark.parametrize("kind", some(["f16", "bf16", "tf32", "s8", "e4m3"], 3))
def test_first_operand_in_registers(kind):
    width = {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)
    k, out = 32 // width, "s32" if kind == "s8" else "f32"
    a, b = numbers(kind, (64, k)), numbers(kind, (24, k))
    images = [None, (*k_major(stored(b, kind), 64), 64)]
    text = source(kind, out, 24, k, registers=True, tails=tails(kind, registers=True))
    multiply(kind, out, a, b, None, images, text, rows=fragments(a, kind))


def test_a_step_along_k_inside_the_pattern():
    """The next 32 bytes of a tile of 64 elements: the start moves on, the permutation stays that of the tile."""
    tile_a, tile_b = numbers("f16", (64, 64)), numbers("f16", (32, 64))
    step = 48
    images = [k_major(stored(m, "f16"), 128) for m in (tile_a, tile_b)]
    text = source("f16", "f32", 32, 16, tails=tails("f16"))
    whole = np.concatenate([image for image, _, _ in images])
    words = [descriptor(start + 2 * step, 16, 1024, 128) for start in (0, len(images[0][0]))]
    rows, old = np.zeros((128, 4), np.uint32), np.zeros((128, 16), np.float32)
    got = run(
        text, 1, 128, whole.view(np.uint32), len(whole) // 16, rows, old, *map(np_scalar, words), 0,
        arch="sm_90a", dynamic_shared=len(whole),
    )  # fmt: skip
    want = accumulated(tile_a[:, step : step + 16] @ tile_b[:, step : step + 16].T, "f32")
    np.testing.assert_array_equal(got.buffer("out"), want)


def test_a_negated_operand():
    a, b, c = numbers("bf16", (64, 16)), numbers("bf16", (8, 16)), numbers("f16", (64, 8))
    images = [(*k_major(stored(m, "bf16"), 32), 32) for m in (a, b)]
    text = source("bf16", "f32", 8, 16, tails=tails("bf16", negate=True))
    multiply("bf16", "f32", -a, b, c, images, text)


def test_negated_registers():
    a, b, c = numbers("bf16", (64, 16)), numbers("bf16", (8, 16)), numbers("f16", (64, 8))
    images = [None, (*k_major(stored(b, "bf16"), 32), 32)]
    text = source("bf16", "f32", 8, 16, registers=True, tails=tails("bf16", registers=True, negate=True))
    multiply("bf16", "f32", -a, b, c, images, text, rows=fragments(a, "bf16"))


def test_saturation_of_integer_sums():
    a, b = np.full((64, 32), -128.0), np.full((8, 32), 127.0)
    c = np.full((64, 8), -(2.0**31) + 5)
    images = [(*k_major(stored(m, "s8"), 32), 32) for m in (a, b)]
    got_words = source("s8", "s32", 8, 32, more=".satfinite")
    data = np.concatenate([images[0][0], images[1][0]])
    words = [descriptor(start, 16, 256, 32) for start in (0, len(images[0][0]))]
    old = accumulated(c, "s32")
    got = run(
        got_words, 1, 128, data.view(np.uint32), len(data) // 16, np.zeros((128, 4), np.uint32), old,
        *map(np_scalar, words), 1, arch="sm_90a", dynamic_shared=len(data),
    ).buffer("out")  # fmt: skip
    assert (got == -(2**31)).all()


def test_two_warp_groups_multiply_their_own_rows():
    """Each group of four warps counts its rows from 0."""
    text = source("f16", "f32", 8, 16, tails=tails("f16"))
    b = numbers("f16", (8, 16))
    a = numbers("f16", (64, 16))
    images = [k_major(stored(m, "f16"), 128) for m in (a, b)]
    whole = np.concatenate([np.pad(image, (0, -len(image) % 1024)) for image, _, _ in images])
    words = [descriptor(start, 16, 1024, 128) for start in (0, 8192)]
    old = np.zeros((256, 4), np.float32)
    got = run(
        text, 1, 256, whole.view(np.uint32), len(whole) // 16, np.zeros((256, 4), np.uint32), old,
        *map(np_scalar, words), 0, arch="sm_90a", dynamic_shared=len(whole),
    ).buffer("out")  # fmt: skip
    want = accumulated(a @ b.T, "f32")
    np.testing.assert_array_equal(got, np.concatenate([want, want]))


def test_an_operand_beyond_shared_memory_is_an_error():
    text = source("f16", "f32", 8, 16, tails=tails("f16"))
    from drywarp.errors import EmulationError

    with pytest.raises(EmulationError, match="operand out of bounds at shared address"):
        run(
            text, 1, 128, np.zeros(256, np.uint32), 64, np.zeros((128, 4), np.uint32), np.zeros((128, 4), np.float32),
            *map(np_scalar, [descriptor(0, 16, 1024, 128)] * 2), 0, arch="sm_90a", dynamic_shared=1024,
        )  # fmt: skip


def test_a_group_without_products_ends() -> None:
    """ptxas writes a product without operands or result for it."""
    source = """extern "C" __global__ void k(float* out) {
      asm volatile("wgmma.fence.sync.aligned;\\nwgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
      out[threadIdx.x] = threadIdx.x; }"""  # noqa: E501
    done = run(source, 1, 128, np.zeros(128, np.float32), arch="sm_90a")
    np.testing.assert_array_equal(done.buffer(0), np.arange(128))
