"""Texture and surface objects against a reference that reads one texel after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from drywarp import surface, texture
from drywarp.errors import EmulationError
from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Texture
from tests.effort import first

from .support import kernels, run

ARCHES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
RNG = np.random.default_rng(11)
COUNT = 96


def texel_place(i: int, size: int, mode: str, normalized: bool) -> int | None:
    """Where index i is read under an address mode; None outside."""
    if mode == "border":
        return i if 0 <= i < size else None
    if mode == "wrap" and normalized:
        return i - size * math.floor(i / size)
    if mode == "mirror" and normalized:
        block, rest = divmod(i, size)
        return rest if block % 2 == 0 else size - 1 - rest
    return min(max(i, 0), size - 1)


def read(data: np.ndarray, places: Sequence[int | None], border: float) -> float:
    """One texel; `places` are x, y, z and `data` is indexed the other way round."""
    return border if None in places else float(data[tuple(places[::-1])])


def sample(data: np.ndarray, at: Sequence[float], linear: bool, mode: str, normalized: bool, border: float) -> float:
    """What the CUDA guide says that a fetch at (x, y, z) gives."""
    corners = []
    for coordinate, size in zip(at, data.shape[::-1], strict=True):
        x = float(coordinate) * (size if normalized else 1)
        if not linear:
            corners.append([(math.floor(x), 1.0)])
            continue
        low = math.floor(x - 0.5)
        fraction = math.floor((x - 0.5 - low) * 256 + 0.5) / 256
        corners.append([(low, 1 - fraction), (low + 1, fraction)])
    total = 0.0
    for choice in itertools.product(*corners):
        places = [texel_place(i, n, mode, normalized) for (i, _), n in zip(choice, data.shape[::-1], strict=True)]
        total += math.prod(weight for _, weight in choice) * read(data, places, border)
    return total


MODES = [
    (linear, mode, normalized)
    for linear in (False, True)
    for mode in ("wrap", "clamp", "mirror", "border")
    for normalized in (False, True)
]

FILTERED = """
extern "C" __global__ void k(cudaTextureObject_t a, cudaTextureObject_t b, cudaTextureObject_t c,
                             const float* at, float* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = at[i], y = at[i + n], z = at[i + 2 * n];
  o[i] = tex1D<float>(a, x);
  o[i + n] = tex2D<float>(b, x, y);
  o[i + 2 * n] = tex3D<float>(c, x, y, z);
}"""


@pytest.mark.parametrize(("linear", "mode", "normalized"), MODES)
def test_filters_and_address_modes(linear: bool, mode: str, normalized: bool) -> None:
    kernel = kernels.kernel(FILTERED, "sm_80")
    data = [RNG.random(shape, np.float32) for shape in ((13,), (7, 10), (3, 5, 6))]
    reach = 2.5 if normalized else 15.0
    at = ((RNG.random((3, COUNT), np.float32) - 0.5) * 2 * reach).astype(np.float32)
    at[:, :6] = np.array([0.0, 0.5, 1.0, -0.5, 2.0, 1.5], np.float32)
    options = {"filter": "linear" if linear else "point", "address": mode, "normalized": normalized, "border": 0.25}
    textures = [texture(d, **options) for d in data]
    o = run(kernel, 3, 32, *textures, at, np.zeros(3 * COUNT, np.float32), COUNT).buffer("o").reshape(3, COUNT)
    for dimensions, array in enumerate(data, 1):
        expected = [sample(array, at[:dimensions, i], linear, mode, normalized, 0.25) for i in range(COUNT)]
        np.testing.assert_allclose(o[dimensions - 1], np.array(expected, np.float32), rtol=2e-7)


EVERY_FETCH = """
extern "C" __global__ void k(cudaTextureObject_t line, cudaTextureObject_t plane, cudaTextureObject_t volume,
                             cudaTextureObject_t lines, cudaTextureObject_t planes, cudaTextureObject_t wide,
                             const float* at, const int* number, float* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = at[i], y = at[i + n], z = at[i + 2 * n];
  int l = number[i];
  bool there;
  float2 d = make_float2(x, y);
  float* p = o + i;
  p[0 * n] = tex1Dfetch<float>(line, l);
  p[1 * n] = tex1D<float>(line, x) + tex1DLod<float>(line, y, z) + tex1DGrad<float>(line, z, x, y);
  p[2 * n] = tex2D<float>(plane, x, y) + 2 * tex2DLod<float>(plane, y, z, x) + 4 * tex2DGrad<float>(plane, z, x, d, d);
  p[3 * n] = tex3D<float>(volume, x, y, z) + 2 * tex3DLod<float>(volume, y, z, x, y);
  p[4 * n] = tex1DLayered<float>(lines, x, l) + 2 * tex1DLayeredLod<float>(lines, y, l + 1, z)
             + 4 * tex1DLayeredGrad<float>(lines, z, l + 2, x, y);
  p[5 * n] = tex2DLayered<float>(planes, x, y, l) + 2 * tex2DLayeredLod<float>(planes, y, z, l + 1, x)
             + 4 * tex2DLayeredGrad<float>(planes, z, x, l + 2, d, d);
  float4 q = tex2D<float4>(wide, x, y), g = tex2Dgather<float4>(plane, x, y, 0), h = tex2Dgather<float4>(wide, y, x, 2);
  p[6 * n] = q.x; p[7 * n] = q.y; p[8 * n] = q.z; p[9 * n] = q.w;
  p[10 * n] = g.x; p[11 * n] = g.y; p[12 * n] = g.z; p[13 * n] = g.w;
  p[14 * n] = h.x + 2 * h.y + 4 * h.z + 8 * h.w;
  q = tex2D<float4>(wide, y, x);
  p[15 * n] = q.y + 2 * q.w;
  p[16 * n] = tex2D<float>(plane, y, z, &there) + there;
}"""


def everything(arrays: Sequence[np.ndarray], at: np.ndarray, number: np.ndarray) -> np.ndarray:
    """What the kernel above gives with points, clamped and not normalized."""
    line, plane, volume, lines, planes, wide = arrays

    def point(data: np.ndarray, *place: float) -> np.float32:
        return np.float32(sample(data, place, False, "clamp", False, 0.0))

    def layer(data: np.ndarray, number: int) -> np.ndarray:
        return data[min(number, len(data) - 1)]

    def footprint(data: np.ndarray, x: float, y: float) -> list[np.float32]:
        i, j = math.floor(np.float64(x) - 0.5), math.floor(np.float64(y) - 0.5)
        return [point(data, i + a, j + b) for a, b in ((0, 1), (1, 1), (1, 0), (0, 0))]

    rows = []
    for (x, y, z), n in zip(at.T, number.tolist(), strict=True):
        h = footprint(wide[..., 2], y, x)
        rows.append([
            line[n] if 0 <= n < len(line) else 0.0,
            point(line, x) + point(line, y) + point(line, z),
            point(plane, x, y) + 2 * point(plane, y, z) + 4 * point(plane, z, x),
            point(volume, x, y, z) + 2 * point(volume, y, z, x),
            point(layer(lines, n), x) + 2 * point(layer(lines, n + 1), y) + 4 * point(layer(lines, n + 2), z),
            point(layer(planes, n), x, y) + 2 * point(layer(planes, n + 1), y, z)
            + 4 * point(layer(planes, n + 2), z, x),
            *(point(wide[..., c], x, y) for c in range(4)),
            *footprint(plane, x, y),
            h[0] + 2 * h[1] + 4 * h[2] + 8 * h[3],
            point(wide[..., 1], y, x) + 2 * point(wide[..., 3], y, x),
            point(plane, y, z) + 1,
        ])  # fmt: skip
    return np.array(rows, np.float32).T


@pytest.mark.parametrize("arch", first(ARCHES))
def test_every_texture_function_on_every_architecture(arch: str) -> None:
    shapes = ((20,), (7, 10), (3, 5, 6), (3, 9), (4, 5, 6), (6, 5, 4))
    # Small integers: their sums are exact in whatever order.
    arrays = [RNG.integers(0, 1000, shape).astype(np.float32) for shape in shapes]
    layered = (False, False, False, True, True, False)
    textures = [
        texture(array, address="clamp", layered=flag, channels=4 if array is arrays[5] else 1)
        for array, flag in zip(arrays, layered, strict=True)
    ]
    at = (RNG.random((3, COUNT), np.float32) * 14 - 2).astype(np.float32)
    number = RNG.integers(0, 25, COUNT).astype(np.int32)
    o = run(EVERY_FETCH, 3, 32, *textures, at, number, np.zeros(17 * COUNT, np.float32), COUNT, arch=arch).buffer("o")
    np.testing.assert_array_equal(o.reshape(17, COUNT), everything(arrays, at, number))


ELEMENTS = """
extern "C" __global__ void k(cudaTextureObject_t u8, cudaTextureObject_t i8, cudaTextureObject_t u16,
                             cudaTextureObject_t f16, cudaTextureObject_t i32, cudaTextureObject_t fraction,
                             cudaTextureObject_t signed_fraction, int* o, float* f) {
  int i = threadIdx.x;
  uchar4 c = tex1Dfetch<uchar4>(u8, i);
  o[i] = c.x + (c.y << 8) + (c.z << 16) + (c.w << 24);
  char2 s = tex1Dfetch<char2>(i8, i);
  o[i + 32] = s.x * 1000 + s.y;
  o[i + 64] = tex1Dfetch<unsigned short>(u16, i);
  o[i + 96] = tex1Dfetch<int>(i32, i);
  f[i] = tex1Dfetch<float>(f16, i);
  float4 g = tex1Dfetch<float4>(fraction, i);
  f[i + 32] = g.x + g.w;
  f[i + 64] = tex1Dfetch<float>(signed_fraction, i);
}"""


@pytest.mark.parametrize("arch", first(["sm_80", "sm_90"]))
def test_elements_of_every_type_are_read_as_declared(arch: str) -> None:
    u8, i8 = RNG.integers(0, 256, (32, 4)).astype(np.uint8), RNG.integers(-128, 128, (32, 2)).astype(np.int8)
    u16, f16 = RNG.integers(0, 65536, 32).astype(np.uint16), RNG.standard_normal(32).astype(np.float16)
    i32, i16 = RNG.integers(-(2**31), 2**31, 32).astype(np.int32), RNG.integers(-32768, 32768, 32).astype(np.int16)
    i16[0] = -32768
    textures = [
        texture(u8, channels=4), texture(i8, channels=2), texture(u16), texture(f16), texture(i32),
        texture(u8, channels=4, normalized_float=True), texture(i16, normalized_float=True),
    ]  # fmt: skip
    result = run(ELEMENTS, 1, 32, *textures, np.zeros(128, np.int32), np.zeros(96, np.float32), arch=arch)
    o, f = result.buffer("o").reshape(4, 32), result.buffer("f").reshape(3, 32)
    np.testing.assert_array_equal(o[0].view(np.uint32), u8.reshape(-1).view(np.uint32))
    np.testing.assert_array_equal(o[1], i8[:, 0].astype(np.int32) * 1000 + i8[:, 1])
    np.testing.assert_array_equal(o[2], u16)
    np.testing.assert_array_equal(o[3], i32)
    np.testing.assert_array_equal(f[0], f16.astype(np.float32))
    np.testing.assert_allclose(f[1], (u8[:, 0].astype(float) + u8[:, 3]) / 255, rtol=2e-7)
    np.testing.assert_allclose(f[2], np.maximum(i16 / 32767.0, -1.0), rtol=2e-7)


CUBES = """
extern "C" __global__ void k(cudaTextureObject_t one, cudaTextureObject_t many, const float* at, const int* l,
                             float* o) {
  int i = threadIdx.x;
  float x = at[i], y = at[i + 32], z = at[i + 64];
  o[i] = texCubemap<float>(one, x, y, z) + 1000 * texCubemapLayered<float>(many, z, x, y, l[i]);
}"""


@pytest.mark.parametrize("arch", first(["sm_80", "sm_90"]))
def test_cube_maps_read_the_face_that_a_direction_points_at(arch: str) -> None:
    one, many = (RNG.integers(0, 100, (6 * n, 4, 4)).astype(np.float32) for n in (1, 3))
    at = (RNG.random((3, 32), np.float32) - np.float32(0.5)).astype(np.float32)
    layer = RNG.integers(0, 3, 32).astype(np.int32)

    def point(faces: np.ndarray, x: float, y: float, z: float) -> float:
        # Rows of the guide's table: largest coordinate, then the face and what s and t are on it.
        size, face, s, t = max(
            [(abs(x), 0 if x >= 0 else 1, -z if x >= 0 else z, -y),
             (abs(y), 2 if y >= 0 else 3, x, z if y >= 0 else -z),
             (abs(z), 4 if z >= 0 else 5, x if z >= 0 else -x, -y)],
            key=lambda row: row[0],
        )  # fmt: skip
        column, row = (min(math.floor((c / size + 1) / 2 * 4), 3) for c in (s, t))
        return float(faces[face, row, column])

    textures = [texture(one, cube=True), texture(many, cube=True, layered=True)]
    o = run(CUBES, 1, 32, *textures, at, layer, np.zeros(32, np.float32), arch=arch).buffer("o")
    expected = [
        point(one, *at[:, i].tolist()) + 1000 * point(many[6 * layer[i] :], at[2, i], at[0, i], at[1, i])
        for i in range(32)
    ]
    np.testing.assert_array_equal(o, np.array(expected, np.float32))


OBJECTS_IN_MEMORY = """
__constant__ cudaTextureObject_t fixed;
extern "C" __global__ void k(const cudaTextureObject_t* __restrict__ t, const cudaSurfaceObject_t* __restrict__ s,
                             float* o) {
  int i = threadIdx.x;
  o[i] = tex2D<float>(t[i % 3 == 0], i % 8, i % 5) + 1000 * tex1Dfetch<float>(fixed, i);
  int old = surf2Dread<int>(s[i & 1], 4 * i, 1);
  surf2Dwrite<int>(old + i, s[i & 1], 4 * i, 0);
}"""


@pytest.mark.parametrize("arch", first(ARCHES))
def test_objects_that_differ_between_lanes(arch: str) -> None:
    kernel = kernels.kernel(OBJECTS_IN_MEMORY, arch)
    a, b, line = (RNG.integers(0, 100, shape).astype(np.float32) for shape in ((5, 8), (5, 8), (32,)))
    c, d = (RNG.integers(0, 100, (2, 32)).astype(np.int32) for _ in range(2))
    arguments = {"t": [texture(a), texture(b)], "s": (surface(c), surface(d)), "o": np.zeros(32, np.float32)}
    launch = make_launch(kernel, (1, 1, 1), (32, 1, 1), arguments, constants={"fixed": texture(line)})
    result = emulate(kernel, launch, blocks="all")
    i = np.arange(32)
    chosen = np.where(i % 3 == 0, b[i % 5, i % 8], a[i % 5, i % 8])
    np.testing.assert_array_equal(result.buffer("o"), chosen + 1000 * line)
    np.testing.assert_array_equal(result.buffer("s[0]")[0], np.where(i % 2 == 0, c[1] + i, c[0]))
    np.testing.assert_array_equal(result.buffer("s[1]")[0], np.where(i % 2 == 1, d[1] + i, d[0]))


SURFACES = """
extern "C" __global__ void k(cudaSurfaceObject_t line, cudaSurfaceObject_t plane, cudaSurfaceObject_t volume,
                             cudaSurfaceObject_t planes, cudaSurfaceObject_t colour, float* o) {
  int i = threadIdx.x, x = i - 8;
  float r = surf1Dread<float>(line, 4 * i);
  r += 2 * surf2Dread<float>(plane, 4 * x, i / 4, cudaBoundaryModeZero);
  r += 4 * surf2Dread<float>(plane, 4 * x, x, cudaBoundaryModeClamp);
  r += 8 * surf3Dread<float>(volume, 4 * (i % 4), i % 3, i % 2);
  r += 16 * surf2DLayeredread<float>(planes, 4 * (i % 4), i % 3, i % 2);
  uchar4 c = surf2Dread<uchar4>(colour, 4 * (i % 8), i / 8);
  o[i] = r + 32 * (c.x + c.w);
  surf1Dwrite<float>(i, line, 4 * i);
  surf2Dwrite<float>(i + 100, plane, 4 * x, i / 4, cudaBoundaryModeZero);
  surf3Dwrite<float>(i, volume, 4 * (i % 4), i % 3, i % 2);
  surf2Dwrite<unsigned char>(i, colour, i, 1);
  surf2Dwrite<ushort2>(make_ushort2(i, 7), colour, 4 * (i % 8), 3);
}"""


@pytest.mark.parametrize("arch", first(ARCHES))
def test_surfaces_are_read_and_written(arch: str) -> None:
    shapes = ((32,), (8, 16), (2, 3, 4), (2, 3, 4))
    line, plane, volume, planes = (RNG.integers(0, 50, shape).astype(np.float32) for shape in shapes)
    colour = RNG.integers(0, 256, (4, 8, 4)).astype(np.uint8)
    surfaces = [
        surface(line), surface(plane), surface(volume), surface(planes, layered=True), surface(colour, channels=4),
    ]  # fmt: skip
    result = run(SURFACES, 1, 32, *surfaces, np.zeros(32, np.float32), arch=arch)
    i = np.arange(32)
    x = i - 8
    inside = (x >= 0) & (x < 16)
    zero = np.where(inside, plane[i // 4, np.clip(x, 0, 15)], 0)
    clamped = plane[np.clip(x, 0, 7), np.clip(x, 0, 15)]
    flat = colour.reshape(4, 8, 4).astype(np.float32)[i // 8, i % 8]
    expected = line + 2 * zero + 4 * clamped + 8 * volume[i % 2, i % 3, i % 4] + 16 * planes[i % 2, i % 3, i % 4]
    np.testing.assert_array_equal(result.buffer("o"), expected + 32 * (flat[:, 0] + flat[:, 3]))
    np.testing.assert_array_equal(result.buffer("line"), i.astype(np.float32))
    written = plane.copy()
    written[i[inside] // 4, x[inside]] = i[inside] + 100
    np.testing.assert_array_equal(result.buffer("plane"), written)
    after = result.buffer("colour").copy()
    np.testing.assert_array_equal(after[1].reshape(-1), i.astype(np.uint8))
    np.testing.assert_array_equal(after[3].reshape(-1).view(np.uint16).reshape(8, 2)[:, 1], 7)
    # Lanes twelve apart write the same texel; the highest stays.
    np.testing.assert_array_equal(result.buffer("volume")[i % 2, i % 3, i % 4], i + 12 * ((31 - i) // 12))


READS = """
extern "C" __global__ void k(cudaTextureObject_t t, float* o, float shift) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  o[y * gridDim.x * blockDim.x + x] = tex2D<float>(t, x + shift, y + shift);
}"""


def sectors(made: Texture, shift: float) -> list[int]:
    """Distinct sectors of each warp's fetch, as the record has them."""
    kernel = kernels.kernel(READS, "sm_80")
    log = run(kernel, (2, 4), 32, made, np.zeros(256, np.float32), shift).profile.accesses
    fetch = next(n for n, i in enumerate(kernel.instructions) if i.opcode == "TEX")
    found = []
    for warp in np.unique(log.warp):
        mine = np.flatnonzero((log.warp == warp) & (log.instruction == fetch))
        places = set()
        for row in mine:
            lanes = (log.masks[log.pattern[row]] >> np.arange(32)) & 1 == 1
            places |= set(((log.base[row] + log.offsets[log.pattern[row]][lanes]) // 32).tolist())
        found.append(len(places))
    return found


def test_a_fetch_records_the_texels_that_it_reads() -> None:
    data = RNG.random((4, 64), np.float32)
    assert sectors(texture(data), 0.0) == [4] * 8
    # Centres lie half a texel further: each fetch blends two columns and two rows, but at the edges.
    assert sectors(texture(data, filter="linear", address="clamp"), 0.0) == [4, 5] + [8, 10] * 3
    # What lies outside is the border's value, and no access.
    assert sectors(texture(data, filter="linear", address="border"), 0.5) == [10, 8] * 3 + [5, 4]


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        ("o[0] = tex2D<float>(t, 1, 1);", "texture:f32[4,4,4]", "t is a 3D texture of [4,4,4] and is read as 2D"),
        ("o[0] = tex1Dfetch<float>(t, 1);", "texture:f32[4,4]", "t is a 2D texture of [4,4] and is read as 1D"),
        ("o[0] = tex2D<float>(t + 7, 1, 1);", "texture:f32[4,4]", "no texture object has the handle 0x8"),
        ("o[0] = tex2D<float>(t, 1, 1);", "surface:f32[4,4]", "is a 2D surface of [4,4] and is used as a texture"),
        (
            "o[0] = surf2Dread<float>(t, 16, 1);", "surface:f32[4,4]",
            "surface t of [4,4] texels of 4 bytes: (16, 1), x in bytes, is outside, block (0, 0, 0) thread (0, 0, 0)",
        ),
        (
            "o[0] = surf2Dread<float>(t, 2 * threadIdx.x, 1);", "surface:f32[4,4]",
            "(2, 1), x in bytes, is not a multiple of the access's width, block (0, 0, 0) thread (1, 0, 0)",
        ),
    ],
)  # fmt: skip
def test_wrong_uses_are_named(source: str, given: str, expected: str) -> None:
    kernel = compile_cuda(f'extern "C" __global__ void k(unsigned long long t, float* o) {{ {source} }}', arch="sm_80")
    launch = make_launch(kernel, (1, 1, 1), (2, 1, 1), {"t": given, "o": "f32[1]"})
    with pytest.raises(EmulationError) as error:
        emulate(kernel, launch)
    assert expected in str(error.value)
