"""For every rule a kernel that has its problem, and the same one without: what each computes is the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

N = 1 << 20
_MAP = {"x": f"f32[{N}]:random", "y": f"f32[{N}]", "n": str(N)}


@dataclass(frozen=True)
class Launch:
    """A kernel and how it is launched."""

    source: str
    grid: tuple[int, ...]
    block: int
    args: dict[str, str]
    gpu: str = "a100"


@dataclass(frozen=True)
class Pair:
    """With the problem and without; `line` is where it lies, `gain` what it is worth at least.

    `top` says that nothing else costs as much.
    """

    bad: Launch
    good: Launch
    line: int = 0
    gain: float = 1.02
    top: bool = True


def one_line(body: str, parameters: str = "const float* x, float* y, int n") -> str:
    """A kernel whose body stands in line 2."""
    return f"__global__ void f({parameters}) {{\n{body}\n}}\n"


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x; "
WIDE = {"x": f"f32[{32 * N}]:random", "y": f"f32[{N}]", "n": str(N)}

_SHARED = """__global__ void f(const float* x, float* y, int n) {
  __shared__ float t[8192];
  int a = threadIdx.x;
  for (int k = a; k < 8192; k += 256) t[k] = x[k];
  __syncthreads();
  float s = 0;
  for (int k = 0; k < 256; ++k) s += t[(a * STRIDE + k) & 8191];
  y[blockIdx.x * blockDim.x + a] = s;
}
"""

_TABLE = """__constant__ float table[1024];
__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = x[i];
  for (int k = 0; k < 64; ++k) s += table[(INDEX + k) & 1023];
  y[i] = s;
}
"""

_MATMUL = """__global__ void f(const float* x, const float* z, float* y, int n) {
  int c = blockIdx.x * 16 + threadIdx.x % 16, r = blockIdx.y * 16 + threadIdx.x / 16;
  float s = 0;
  for (int k = 0; k < n; ++k)
    s += x[r * n + k] * z[k * n + c];
  y[r * n + c] = s;
}
"""

_COPY = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
"""

_COUNT = """__global__ void f(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&y[x[i] & 63], 1);
}
"""
_COUNT_SHARED = """__global__ void f(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] & 63;
}
"""

_CHASE = """__global__ void f(const int* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = i;
  for (int k = 0; k < 32; ++k) at = (x[at] + 4096) & (n - 1);
  y[i] = at;
}
"""

_BARRIERS = """__global__ void f(const float* x, float* y, int n) {
  __shared__ float t[1024];
  int a = threadIdx.x;
  float s = x[blockIdx.x * blockDim.x + a];
  for (int k = 0; k < 64; ++k) {
    t[a] = s;
    __syncthreads();
    s = s * 0.5f + t[(a + k * 32) & 1023];
    __syncthreads();
  }
  y[blockIdx.x * blockDim.x + a] = s;
}
"""
_NO_BARRIERS = _BARRIERS.replace("__syncthreads()", "__syncwarp()")

_SUM = """__global__ void f(const float* x, float* y, int n) {
  __shared__ float t[256];
  int a = threadIdx.x;
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + a; i < n; i += gridDim.x * blockDim.x) s += x[i];
  t[a] = s;
  for (int h = 128; h > 0; h /= 2) {
    __syncthreads();
    if (a < h) t[a] += t[a + h];
  }
  if (a == 0) y[blockIdx.x] = t[0];
}
"""

_DIVERGENT = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = x[i];
  int turns = TURNS;
  for (int k = 0; k < turns; ++k) s = s * 0.5f + 1.0f;
  y[i] = s;
}
"""

_STEPS = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned h = i; float s = 0;
#pragma unroll 1
  for (int k = 0; k < 128; ++k) { BODY }
  y[i] = s + h;
}
"""

_POLYNOMIAL = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  REAL s = x[i];
#pragma unroll 16
  for (int k = 0; k < 64; ++k) s = s * s + ONE;
  y[i] = s;
}
"""

_CELLS = """__global__ void f(const float* x, float* y, unsigned width) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
#pragma unroll 1
  for (unsigned k = 0; k < 16; ++k) s += (i + k) DIVIDE + (i * k) DIVIDE;
  y[i] = s;
}
"""

_ROOTS = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = x[i] + 1;
  for (int k = 1; k < 33; ++k) s += 1.0f FUNCTION;
  y[i] = s;
}
"""

_LOCAL = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[16];
  for (int k = 0; k < 16; ++k) v[k] = x[(i + k * 4096) & (n - 1)];
  float s = 0;
  for (int k = 0; k < 16; ++k) s += v[INDEX];
  y[i] = s;
}
"""

_TILE = """__global__ void __launch_bounds__(128) f(const float* x, float* y, int n) {
  __shared__ float t[SIZE];
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = i;
  t[threadIdx.x] = x[i];
  __syncwarp();
  float s = t[threadIdx.x ^ 1];
#pragma unroll 1
  for (int k = 0; k < 32; ++k) { at = (at * 5 + 17) & (n - 1); s += x[(at + (int)s) & (n - 1)]; }
  y[i] = s;
}
"""

_MANY = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[COUNT], s = 0;
#pragma unroll
  for (int k = 0; k < COUNT; ++k) v[k] = x[(i + k * 8192) & (n - 1)];
#pragma unroll 1
  for (int t = 0; t < 64; ++t) {
    s += x[(i + t * 8192 + (s > 1e30f)) & (n - 1)];
    s += x[(i + t * 4096 + (s > 1e30f)) & (n - 1)];
    s += x[(i + t * 2048 + (s > 1e30f)) & (n - 1)];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) v[k] += s;
  }
#pragma unroll
  for (int k = 0; k < COUNT; ++k) s += v[k];
  y[i] = s;
}
"""

_FINISH = """__global__ void f(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = x[i], b = a + 1, c = a + 2, d = a + 3;
  int turns = WHO ? 512 : 64;
#pragma unroll 4
  for (int k = 0; k < turns; ++k) { a = a * 0.5f + 1; b = b * 0.5f + 1; c = c * 0.5f + 1; d = d * 0.5f + 1; }
  y[i] = a + b + c + d;
}
"""


def launch(
    source: str, blocks: int = 4096, block: int = 256, args: dict[str, str] | None = None, gpu: str = "a100"
) -> Launch:
    """A launch in one dimension."""
    return Launch(source, (blocks,), block, args or _MAP, gpu)


_INTS = {"x": f"i32[{N}]:random", "y": f"i32[{N}]", "n": str(N)}
_CHAIN = {"x": f"i32[{N}]:iota", "y": f"f32[{N}]", "n": str(N)}
_SQUARES = {"x": "f32[512,512]:random", "z": "f32[512,512]:random", "y": "f32[512,512]", "n": "512"}
_EIGHT = {"x": f"f32[{8 * N}]:random", "y": "f32[32768]", "n": str(8 * N)}
_WIDTH = {"x": "f32[1]", "y": f"f32[{N}]", "width": "1000"}

_HOPPER = Path(__file__).parents[2] / "examples" / "hopper"
_ATTENTION = (_HOPPER / "attention.cu").read_text(encoding="utf-8")
_HEADS = dict.fromkeys("QKV", "tensormap(box=128x64,swizzle=128):f16[8192,128]:random")
_HEADS |= {"O": "f16[8192,128]", "tokens": "1024"}
_TILES = {
    "A": "tensormap(box=128x64,swizzle=128):f16[1024,1024]:random",
    "B": "tensormap(box=256x64,swizzle=128):f16[2048,1024]:random",
    "C": "f16[1024,2048]",
    "n": "2048",
    "k": "1024",
}
_LARGE = _TILES | {"A": "tensormap(box=128x64,swizzle=128):f16[4096,1024]:random", "C": "f16[4096,2048]"}
_HALF_TILES = _LARGE | {
    "A": "tensormap(box=64x64,swizzle=128):f16[4096,1024]:random",
    "B": "tensormap(box=128x64,swizzle=128):f16[2048,1024]:random",
}

# One warp group with 64 x 128 results a block, so that two blocks fit on an SM.
_SMALL = (_HOPPER / "wgmma_tile.cu").read_text(encoding="utf-8")
for _old, _new in (
    ("ROWS = 128, COLUMNS = 256", "ROWS = 64, COLUMNS = 128"),
    ("CONSUMER_WARPS = 8", "CONSUMER_WARPS = 4"),
    ("__launch_bounds__(384)", "__launch_bounds__(256, 2)"),
    ("group == 2", "group == 1"),
    ("threadIdx.x == 256", "threadIdx.x == 128"),
    ('asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");', ""),
    ('asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");', ""),
    (", lower[64] = {}", ""),
    ("      multiply(lower, a + A_BYTES / 32 + 2 * step, b + 2 * step);\n", ""),
    ("    *(__half2*)(C + to + (size_t)64 * n) = __floats2half2_rn(lower[i], lower[i + 1]);\n", ""),
    ("--shared 197632", "--shared 98368"),
):
    assert _old in _SMALL
    _SMALL = _SMALL.replace(_old, _new)

# Products in tensor memory: single blocks, pairs of them, and 4-bit floats with scale factors.
_BLACKWELL = Path(__file__).parents[2] / "examples" / "blackwell"
_SINGLE, _PAIRED, _SCALED = (
    (_BLACKWELL / f"tcgen05_{name}.cu").read_text(encoding="utf-8") for name in ("tile", "pair", "fp4")
)
_ONE_SET = _SINGLE.replace("SETS 2", "SETS 1")
_FEW_STAGES = _SINGLE.replace("STAGES 4", "STAGES 2").replace("--shared 197744", "--shared 99400")
_WIDE = _SCALED.replace("COLUMNS 128", "COLUMNS 256").replace("SETS 2", "SETS 1").replace("STAGES 6", "STAGES 4")
_PRODUCT = {
    "A": "tensormap(box=128x64,swizzle=128):f16[2048,1024]:random",
    "B": "tensormap(box=256x64,swizzle=128):f16[4096,1024]:random",
    "C": "f16[2048,4096]",
    "m": "2048",
    "n": "4096",
    "k": "1024",
}
_HALF_OF_B = _PRODUCT | {"B": "tensormap(box=128x64,swizzle=128):f16[4096,1024]:random"}
_PACKED = {
    "A": "tensormap(box=128x128,swizzle=128):u8[2048,2048]:random",
    "B": "tensormap(box=128x128,swizzle=128):u8[4096,2048]:random",
    "scales_a": "u8[524288]:random(48,63)",
    "scales_b": "u8[1048576]:random(48,63)",
    "alpha": "0.01",
    "C": "f16[2048,4096]",
    "m": "2048",
    "n": "4096",
    "k": "4096",
}

_CLUSTERS = """__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(1024, 1) k(float* y) {
  float a = threadIdx.x;
  for (int n = 0; n < 64; ++n) a = sqrtf(a) + 1;
  y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
"""
_OUT = {"y": f"f32[{4224 * 1024}]"}

PAIRS: dict[str, Pair] = {
    "cluster-size": Pair(
        launch(_CLUSTERS.replace("BLOCKS", "16"), 4224, 1024, _OUT, "h100"),
        launch(_CLUSTERS.replace("BLOCKS", "2"), 4224, 1024, _OUT, "h100"),
        top=False,
    ),
    "copy-waits": Pair(
        Launch(_ATTENTION.replace("STAGES 2", "STAGES 1"), (8, 8), 384, _HEADS, "h100"),
        Launch(_ATTENTION, (8, 8), 384, _HEADS, "h100"),
        line=22,
        gain=1.1,
        top=False,
    ),
    "product-waits": Pair(
        Launch(_ATTENTION, (8, 8), 384, _HEADS, "h100"),
        Launch((_HOPPER / "wgmma_tile.cu").read_text(encoding="utf-8"), (8, 8), 384, _TILES, "h100"),
        line=66,
        top=False,
    ),
    "small-tiles": Pair(
        Launch(_SMALL, (16, 64), 256, _HALF_TILES, "h100"),
        Launch((_HOPPER / "wgmma_tile.cu").read_text(encoding="utf-8"), (8, 32), 384, _LARGE, "h100"),
        line=26,
        gain=1.1,
        top=False,
    ),
    "multicast": Pair(
        Launch((_HOPPER / "wgmma_tile.cu").read_text(encoding="utf-8"), (8, 32), 384, _LARGE, "h100"),
        Launch(_ATTENTION, (8, 8), 384, _HEADS, "h100"),
        line=26,
        gain=1.05,
        top=False,
    ),
    "occupancy-tensor-memory": Pair(
        Launch(_FEW_STAGES, (296,), 192, _PRODUCT, "b200"),
        Launch(_FEW_STAGES.replace("SETS 2", "SETS 1"), (296,), 192, _PRODUCT, "b200"),
        line=55,
        top=False,
    ),
    "single-blocks": Pair(
        Launch(_SINGLE, (148,), 192, _PRODUCT, "b200"),
        Launch(_PAIRED, (148,), 192, _HALF_OF_B, "b200"),
        line=55,
        gain=1.2,
        top=False,
    ),
    "sums-not-overlapped": Pair(
        Launch(_ONE_SET, (64,), 192, _PRODUCT, "b200"),
        Launch(_SINGLE, (64,), 192, _PRODUCT, "b200"),
        line=33,
        top=False,
    ),
    "scale-factors": Pair(
        Launch(_WIDE, (128,), 192, _PACKED, "b200"),
        Launch(_SINGLE, (64,), 192, _PRODUCT, "b200"),
        line=69,
        top=False,
    ),
    "uncoalesced-access": Pair(
        launch(one_line(INDEX + "y[i] = x[i * 32];"), args=WIDE),
        launch(one_line(INDEX + "y[i] = x[i];"), args=WIDE),
        line=2,
        gain=2.0,
    ),
    "bank-conflicts": Pair(
        launch(_SHARED.replace("STRIDE", "32"), blocks=864),
        launch(_SHARED.replace("STRIDE", "1"), blocks=864),
        line=7,
        gain=4.0,
    ),
    "divergent-constants": Pair(
        launch(_TABLE.replace("INDEX", "threadIdx.x")), launch(_TABLE.replace("INDEX", "blockIdx.x")), line=5, gain=4.0
    ),
    "redundant-loads": Pair(
        Launch(_MATMUL, (32, 32), 256, _SQUARES),
        launch(_COPY),
        line=5,
        gain=1.5,
    ),
    "atomics": Pair(launch(_COUNT, args=_INTS), launch(_COUNT_SHARED, args=_INTS), line=3, gain=1.1),
    "latency-bound": Pair(launch(_CHASE, blocks=864, args=_CHAIN), launch(_COPY), line=3, gain=1.2),
    "barrier-waits": Pair(
        launch(_BARRIERS, blocks=216, block=1024),
        launch(_NO_BARRIERS, blocks=216, block=1024),
        line=7,
        gain=1.1,
        top=False,
    ),
    "idle-threads": Pair(
        launch(_SUM, blocks=16384, args=_EIGHT), launch(_SUM, blocks=864, args=_EIGHT), line=5, gain=1.1
    ),
    "divergence": Pair(
        launch(_DIVERGENT.replace("TURNS", "threadIdx.x % 32 == 0 ? 1024 : 32")),
        launch(_DIVERGENT.replace("TURNS", "threadIdx.x / 32 == 0 ? 1024 : 32")),
        line=5,
        gain=2.0,
    ),
    "issue-bound": Pair(
        launch(_STEPS.replace("BODY", "h = h * 5 + 1; h ^= h >> 7; s = s * 0.5f + 1; s = s * 0.5f + 3; h += k & 3;")),
        launch(_STEPS.replace("BODY", "s = s * 0.5f + 1; s = s * 0.25f + 2;").replace("unroll 1", "unroll 32")),
        line=5,
        gain=1.1,
    ),
    "occupancy-registers": Pair(
        launch(_MANY.replace("COUNT", "40"), blocks=2160),
        launch(_MANY.replace("COUNT", "4"), blocks=2160),
        top=False,
    ),
    "occupancy-shared-memory": Pair(
        launch(_TILE.replace("SIZE", "11000"), block=128, blocks=8192),
        launch(_TILE.replace("SIZE", "128"), block=128, blocks=8192),
        line=4,
        gain=1.1,
        top=False,
    ),
    "occupancy-block-size": Pair(
        launch(_CHASE, blocks=32768, block=32, args=_CHAIN),
        launch(_CHASE, blocks=8192, block=128, args=_CHAIN),
        gain=1.2,
        top=False,
    ),
    "tail-effect": Pair(
        launch(_POLYNOMIAL.replace("REAL", "float").replace("ONE", "1.0f"), blocks=108 * 8 + 20),
        launch(_POLYNOMIAL.replace("REAL", "float").replace("ONE", "1.0f"), blocks=108 * 8),
        gain=1.05,
        top=False,
    ),
    "scheduler-imbalance": Pair(
        launch(_FINISH.replace("WHO", "threadIdx.x < 32"), block=128, blocks=8192),
        launch(_FINISH.replace("WHO", "threadIdx.x < 128"), block=128, blocks=8192),
        gain=1.3,
        top=False,
    ),
    "fp64": Pair(
        launch(_POLYNOMIAL.replace("REAL", "double").replace("ONE", "1.0"), gpu="rtx3090"),
        launch(_POLYNOMIAL.replace("REAL", "float").replace("ONE", "1.0f"), gpu="rtx3090"),
        line=5,
        gain=4.0,
    ),
    "integer-division": Pair(
        launch(_CELLS.replace("DIVIDE", "/ width"), args=_WIDTH),
        launch(_CELLS.replace("DIVIDE", ">> 10"), args=_WIDTH),
        line=4,
        gain=2.0,
    ),
    "sfu-bound": Pair(
        launch(_ROOTS.replace("FUNCTION", "/ sqrtf(s * k)")),
        launch(_ROOTS.replace("FUNCTION", "* (s * k)")),
        line=4,
        gain=1.3,
    ),
    "register-spills": Pair(
        launch(_LOCAL.replace("INDEX", "(k * n + i) & 15")), launch(_LOCAL.replace("INDEX", "k")), line=6, gain=1.1
    ),
}
