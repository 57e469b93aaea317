// What device code takes from PyTorch's headers: number types, accessors, random state, macros. Tensors and everything
// else of the host have a name only.
#pragma once
#include "../cuda.h"
#include "../stdint.h"
#include "bfloat16.h"
#include "half.h"
#include "std.h"
#include "torch_numbers.h"

#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_ALWAYS_INLINE __forceinline__
#define C10_RESTRICT __restrict__
#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_API
#define TORCH_API
#define TORCH_CUDA_CPP_API
#define TORCH_CUDA_CU_API
#define C10_CUDA_API
#define C10_WARP_SIZE 32
#define C10_MAX_THREADS_PER_BLOCK(threads) (threads)
#define C10_MIN_BLOCKS_PER_SM(threads, blocks) (blocks)
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_CUDA_KERNEL_LAUNCH_CHECK()
#define C10_CUDA_CHECK(call) (call)
#define AT_CUDA_CHECK(call) (call)
#define TORCH_CHECK(...)
#define TORCH_INTERNAL_ASSERT(...)
#define AT_ASSERT(...)
#define AT_ERROR(...)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define SYCL_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_LOOP_TYPE(index, count, type) \
  for (int64_t index##_wide = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; index##_wide < (count); \
       index##_wide += int64_t(blockDim.x) * gridDim.x) \
    if (const type index = static_cast<type>(index##_wide); true)
#define CUDA_KERNEL_LOOP(index, count) CUDA_KERNEL_LOOP_TYPE(index, count, int)

namespace c10 {
using cuda::std::nullopt;
using cuda::std::optional;
enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, QInt8, QUInt8,
  QInt32, BFloat16
};
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
struct Device;
struct Scalar;
struct Stream;
struct TensorOptions;
template <typename T> struct ArrayRef {
  const T *elements;
  size_t length;
};
using IntArrayRef = ArrayRef<int64_t>;
constexpr ScalarType kByte = ScalarType::Byte, kInt = ScalarType::Int, kLong = ScalarType::Long;
constexpr ScalarType kHalf = ScalarType::Half, kFloat = ScalarType::Float, kDouble = ScalarType::Double;
constexpr ScalarType kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
namespace cuda {
struct CUDAGuard;
struct CUDAStream;
struct OptionalCUDAGuard;
}  // namespace cuda
}  // namespace c10

namespace at {
using namespace c10;
struct Tensor {
  void *held;
};
using TensorList = ArrayRef<Tensor>;
struct Generator;

// The type in which sums are formed, on CUDA devices.
template <typename T> struct OpMathType { using type = T; };
template <> struct OpMathType<c10::Half> { using type = float; };
template <> struct OpMathType<c10::BFloat16> { using type = float; };
template <> struct OpMathType<::__half> { using type = float; };
template <> struct OpMathType<::__nv_bfloat16> { using type = float; };
template <typename T> using opmath_type = typename OpMathType<T>::type;
template <typename T, bool integral> struct AccumulatedAs { using type = opmath_type<T>; };
template <typename T> struct AccumulatedAs<T, true> { using type = int64_t; };
template <> struct AccumulatedAs<bool, true> { using type = bool; };
template <typename T, bool on_device> struct AccumulateType {
  using type = typename AccumulatedAs<T, ::cuda::std::is_integral_v<T>>::type;
};
template <typename T, bool on_device> using acc_type = typename AccumulateType<T, on_device>::type;
template <typename T> using acc_type_device = acc_type<T, true>;

// Views of a tensor that kernels take as arguments: the address, and sizes and strides in elements.
template <typename T> struct DefaultPtrTraits { typedef T *PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
struct TensorAccessor {
  typename Traits<T>::PtrType data_;
  const Index *sizes_;
  const Index *strides_;
  __device__ Index size(Index dimension) const { return sizes_[dimension]; }
  __device__ Index stride(Index dimension) const { return strides_[dimension]; }
  __device__ typename Traits<T>::PtrType data() const { return data_; }
  __device__ decltype(auto) operator[](Index at) const {
    if constexpr (N == 1) {
      return (data_[strides_[0] * at]);
    } else {
      return TensorAccessor<T, N - 1, Traits, Index>{data_ + strides_[0] * at, sizes_ + 1, strides_ + 1};
    }
  }
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
struct GenericPackedTensorAccessor {
  typename Traits<T>::PtrType data_;
  Index sizes_[N];
  Index strides_[N];
  __device__ Index size(Index dimension) const { return sizes_[dimension]; }
  __device__ Index stride(Index dimension) const { return strides_[dimension]; }
  __device__ typename Traits<T>::PtrType data() const { return data_; }
  __device__ decltype(auto) operator[](Index at) const {
    return TensorAccessor<T, N, Traits, Index>{data_, sizes_, strides_}[at];
  }
};
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;

// The state of the random number generator, which a captured graph reads from memory.
struct PhiloxCudaState {
  union Payload {
    uint64_t val;
    int64_t *ptr;
  };
  Payload seed_;
  Payload offset_;
  uint64_t offset_intragraph_;
  bool captured_;
};
struct CUDAGeneratorImpl;
namespace cuda {
using namespace c10::cuda;
using at::PhiloxCudaState;
namespace philox {
__device__ inline ::cuda::std::tuple<uint64_t, uint64_t> unpack(at::PhiloxCudaState state) {
  if (state.captured_) {
    return {uint64_t(*state.seed_.ptr), uint64_t(*state.offset_.ptr) + state.offset_intragraph_};
  }
  return {state.seed_.val, state.offset_.val};
}
}  // namespace philox
template <typename T> __host__ __device__ constexpr T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
}  // namespace cuda
template <typename T> __host__ __device__ constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
template <typename T> __host__ __device__ constexpr T round_up(T a, T b) { return ceil_div(a, b) * b; }
}  // namespace at

namespace torch {
using namespace at;
}

template <typename T> __device__ T WARP_SHFL(T value, int lane, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_sync(mask, value, lane, width);
}
template <typename T> __device__ T WARP_SHFL_XOR(T value, int lanes, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_xor_sync(mask, value, lanes, width);
}
template <typename T> __device__ T WARP_SHFL_UP(T value, unsigned by, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_up_sync(mask, value, by, width);
}
template <typename T> __device__ T WARP_SHFL_DOWN(T value, unsigned by, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_down_sync(mask, value, by, width);
}
__device__ inline unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffff) {
  return __ballot_sync(mask, predicate);
}
template <typename T> __device__ T doLdg(const T *address) { return __ldg(address); }
template <typename T> __device__ T gpuAtomicAdd(T *address, T value) {
  if constexpr (::cuda::std::is_same_v<T, int64_t>) {
    return atomicAdd(reinterpret_cast<unsigned long long *>(address), static_cast<unsigned long long>(value));
  } else {
    return atomicAdd(address, value);
  }
}
__device__ inline c10::Half gpuAtomicAdd(c10::Half *address, c10::Half value) {
  return atomicAdd(reinterpret_cast<__half *>(address), static_cast<__half>(value));
}
__device__ inline c10::BFloat16 gpuAtomicAdd(c10::BFloat16 *address, c10::BFloat16 value) {
  return atomicAdd(reinterpret_cast<__nv_bfloat16 *>(address), static_cast<__nv_bfloat16>(value));
}
template <typename T> __device__ c10::complex<T> gpuAtomicAdd(c10::complex<T> *address, c10::complex<T> value) {
  return {atomicAdd(&address->real_, value.real_), atomicAdd(&address->imag_, value.imag_)};
}
template <typename T> __device__ void gpuAtomicAddNoReturn(T *address, T value) { gpuAtomicAdd(address, value); }
template <typename T> __device__ void fastAtomicAdd(T *elements, size_t at, size_t count, T value, bool fast = true) {
  gpuAtomicAdd(elements + at, value);
}
