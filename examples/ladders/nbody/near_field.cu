// The near field of a fast multipole method: the potential at the points of each box of a periodic grid of boxes,
// from all points of the box and of its 26 neighbours. Six optimisations, each a macro and each on its own:
//   PACKED=1   a point's x, y, z and charge lie together and move as one vector of 128 bits
//   PACKED=2   they lie together, but move as four words
//   RSQRT=1    one approximate reciprocal square root in place of a square root and a division
//   SHARED=1   a block copies each neighbouring box to shared memory before its threads go through it
//   TARGETS=2  a thread has two target points, so that a source point in registers serves two interactions
//   TRANS=1    with SHARED, a point's numbers lie together in shared memory, though not in global memory
//   AHEAD=1    what is read next is on its way to registers while the present is computed
// drywarp: --grid 16,16,16 --block 256
// drywarp: --arg points=f32[4,1048576]:random --arg potentials=f32[1048576] --arg count=1048576

#ifndef POINTS
#define POINTS 256  // a box
#endif
#ifndef PACKED
#define PACKED 0
#endif
#ifndef RSQRT
#define RSQRT 0
#endif
#ifndef SHARED
#define SHARED 0
#endif
#ifndef TARGETS
#define TARGETS 1
#endif
#ifndef TRANS
#define TRANS 0
#endif
#ifndef AHEAD
#define AHEAD 0
#endif
constexpr int THREADS = POINTS / TARGETS;
constexpr float SOFTENING = 1e-3f;  // keeps a point's distance from itself above zero

// How points lie: four arrays one behind the other, vectors of four, or the same vectors, moved word by word.
enum Layout { ARRAYS, VECTORS, WORDS };
constexpr Layout GLOBAL = PACKED == 1 ? VECTORS : PACKED == 2 ? WORDS : ARRAYS;
constexpr Layout NEAR = !SHARED ? GLOBAL : TRANS ? VECTORS : GLOBAL;  // where source points are read

// Point i of `count` points in global or shared memory.
template <Layout layout, typename Float>
__device__ float4 point(const Float* points, int count, int i) {
  if constexpr (layout == VECTORS) return reinterpret_cast<const float4*>(points)[i];
  int first = layout == WORDS ? 4 * i : i, step = layout == WORDS ? 1 : count;
  return make_float4(points[first], points[first + step], points[first + 2 * step], points[first + 3 * step]);
}

template <Layout layout, typename Float>
__device__ void put(Float* points, int count, int i, float4 value) {
  if constexpr (layout == VECTORS) {
    reinterpret_cast<float4*>(points)[i] = value;
    return;
  }
  int first = layout == WORDS ? 4 * i : i, step = layout == WORDS ? 1 : count;
  points[first] = value.x;
  points[first + step] = value.y;
  points[first + 2 * step] = value.z;
  points[first + 3 * step] = value.w;
}

__device__ float potential(float4 target, float4 source) {
  float dx = target.x - source.x, dy = target.y - source.y, dz = target.z - source.z;
  float square = dx * dx + dy * dy + dz * dz + SOFTENING;
#if RSQRT
  return source.w * rsqrtf(square);
#else
  return source.w / sqrtf(square);
#endif
}

// The first point of a neighbour, 0 to 26, of this block's box.
__device__ int first_point(int neighbour) {
  unsigned x = (blockIdx.x + gridDim.x - 1 + neighbour % 3) % gridDim.x;
  unsigned y = (blockIdx.y + gridDim.y - 1 + neighbour / 3 % 3) % gridDim.y;
  unsigned z = (blockIdx.z + gridDim.z - 1 + neighbour / 9) % gridDim.z;
  return ((z * gridDim.y + y) * gridDim.x + x) * POINTS;
}

__global__ void __launch_bounds__(THREADS) near_field(const float* points, float* potentials, int count) {
  int thread = threadIdx.x;
  int own = first_point(13) + thread;
  float4 targets[TARGETS];
  float sums[TARGETS] = {};
  for (int t = 0; t < TARGETS; ++t) targets[t] = point<GLOBAL>(points, count, own + t * THREADS);
#if SHARED
#if PACKED == 2
  __shared__ volatile float sources[4 * POINTS];  // otherwise the compiler moves four words as a vector
#else
  __shared__ __align__(16) float sources[4 * POINTS];
#endif
  const int in_box = POINTS;
#if AHEAD
  float4 next[TARGETS];
  for (int t = 0; t < TARGETS; ++t) next[t] = point<GLOBAL>(points, count, first_point(0) + thread + t * THREADS);
#endif
#else
  const float* sources = points;
  const int in_box = count;
#endif
  for (int neighbour = 0; neighbour < 27; ++neighbour) {
    int first = first_point(neighbour);
#if SHARED
    __syncthreads();
    for (int t = 0; t < TARGETS; ++t) {
      int i = thread + t * THREADS;
#if AHEAD
      put<NEAR>(sources, in_box, i, next[t]);
#else
      put<NEAR>(sources, in_box, i, point<GLOBAL>(points, count, first + i));
#endif
    }
    __syncthreads();
#if AHEAD
    int after = first_point(neighbour < 26 ? neighbour + 1 : 0);
    for (int t = 0; t < TARGETS; ++t) next[t] = point<GLOBAL>(points, count, after + thread + t * THREADS);
#endif
    first = 0;
#endif
#if AHEAD
    float4 source = point<NEAR>(sources, in_box, first);
#endif
    for (int i = 0; i < POINTS; ++i) {
#if AHEAD
      float4 present = source;
      source = point<NEAR>(sources, in_box, first + (i + 1) % POINTS);
#else
      float4 present = point<NEAR>(sources, in_box, first + i);
#endif
      for (int t = 0; t < TARGETS; ++t) sums[t] += potential(targets[t], present);
    }
  }
  for (int t = 0; t < TARGETS; ++t) potentials[own + t * THREADS] = sums[t];
}
