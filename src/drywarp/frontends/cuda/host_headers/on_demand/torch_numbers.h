// PyTorch's half precision, bfloat16 and complex numbers: 16-bit values are stored, and computed with as floats.
#pragma once
#include "bfloat16.h"
#include "half.h"
#include "std.h"

namespace c10 {
struct alignas(2) Half {
  unsigned short x;
  Half() = default;
  __device__ Half(float value) : x(__half_as_ushort(__float2half(value))) {}
  __device__ Half(const ::__half &value) : x(__half_as_ushort(value)) {}
  __device__ operator float() const { return __half2float(__ushort_as_half(x)); }
  __device__ operator ::__half() const { return __ushort_as_half(x); }
};
struct alignas(2) BFloat16 {
  unsigned short x;
  BFloat16() = default;
  __device__ BFloat16(float value) : x(__bfloat16_as_ushort(__float2bfloat16(value))) {}
  __device__ BFloat16(const ::__nv_bfloat16 &value) : x(__bfloat16_as_ushort(value)) {}
  __device__ operator float() const { return __bfloat162float(__ushort_as_bfloat16(x)); }
  __device__ operator ::__nv_bfloat16() const { return __ushort_as_bfloat16(x); }
};

template <typename T> constexpr bool is_short_float = false;
template <> inline constexpr bool is_short_float<Half> = true;
template <> inline constexpr bool is_short_float<BFloat16> = true;
// A short float and an integer give a short float; together with a float or a double they give that.
template <typename A, typename B, bool = is_short_float<A>, bool = is_short_float<B>> struct Mixed {};
template <typename A> struct Mixed<A, A, true, true> { using type = A; };
template <typename A, typename B> struct Mixed<A, B, true, false>
    : ::cuda::std::enable_if<::cuda::std::is_arithmetic_v<B>,
                             ::cuda::std::conditional_t<::cuda::std::is_floating_point_v<B>, B, A>> {};
template <typename A, typename B> struct Mixed<A, B, false, true> : Mixed<B, A, true, false> {};
template <typename A, typename B> using mixed = typename Mixed<A, B>::type;
template <typename T> using wide = ::cuda::std::conditional_t<::cuda::std::is_same_v<T, double>, double, float>;

#define DRYWARP_ARITHMETIC(OPERATOR) \
  template <typename A, typename B> __device__ inline mixed<A, B> operator OPERATOR(const A &a, const B &b) { \
    using T = wide<mixed<A, B>>; \
    return static_cast<T>(a) OPERATOR static_cast<T>(b); \
  } \
  template <typename A, typename B, typename = mixed<A, B>> \
  __device__ inline A &operator OPERATOR##=(A &a, const B &b) { \
    using T = wide<mixed<A, B>>; \
    return a = static_cast<T>(a) OPERATOR static_cast<T>(b); \
  }
#define DRYWARP_COMPARISON(OPERATOR) \
  template <typename A, typename B, typename = mixed<A, B>> \
  __device__ inline bool operator OPERATOR(const A &a, const B &b) { \
    using T = wide<mixed<A, B>>; \
    return static_cast<T>(a) OPERATOR static_cast<T>(b); \
  }
DRYWARP_ARITHMETIC(+)
DRYWARP_ARITHMETIC(-)
DRYWARP_ARITHMETIC(*)
DRYWARP_ARITHMETIC(/)
DRYWARP_COMPARISON(==)
DRYWARP_COMPARISON(!=)
DRYWARP_COMPARISON(<)
DRYWARP_COMPARISON(>)
DRYWARP_COMPARISON(<=)
DRYWARP_COMPARISON(>=)
#undef DRYWARP_ARITHMETIC
#undef DRYWARP_COMPARISON
__device__ inline Half operator-(const Half &a) { return -static_cast<float>(a); }
__device__ inline BFloat16 operator-(const BFloat16 &a) { return -static_cast<float>(a); }

template <typename T> struct alignas(2 * sizeof(T)) complex {
  using value_type = T;
  T real_ = T(0);
  T imag_ = T(0);
  complex() = default;
  __host__ __device__ constexpr complex(const T &re, const T &im = T()) : real_(re), imag_(im) {}
  template <typename U>
  __host__ __device__ explicit constexpr complex(const complex<U> &other) : real_(other.real_), imag_(other.imag_) {}
  __host__ __device__ constexpr T real() const { return real_; }
  __host__ __device__ constexpr T imag() const { return imag_; }
  __host__ __device__ constexpr complex &operator+=(const complex &b) { return *this = *this + b; }
  __host__ __device__ constexpr complex &operator-=(const complex &b) { return *this = *this - b; }
  __host__ __device__ constexpr complex &operator*=(const complex &b) { return *this = *this * b; }
  __host__ __device__ constexpr complex &operator/=(const complex &b) { return *this = *this / b; }
  friend __host__ __device__ constexpr complex operator-(const complex &a) { return {-a.real_, -a.imag_}; }
  friend __host__ __device__ constexpr complex operator+(const complex &a, const complex &b) {
    return {a.real_ + b.real_, a.imag_ + b.imag_};
  }
  friend __host__ __device__ constexpr complex operator-(const complex &a, const complex &b) {
    return {a.real_ - b.real_, a.imag_ - b.imag_};
  }
  friend __host__ __device__ constexpr complex operator*(const complex &a, const complex &b) {
    return {a.real_ * b.real_ - a.imag_ * b.imag_, a.real_ * b.imag_ + a.imag_ * b.real_};
  }
  friend __host__ __device__ constexpr complex operator*(const complex &a, const T &b) {
    return {a.real_ * b, a.imag_ * b};
  }
  friend __host__ __device__ constexpr complex operator*(const T &a, const complex &b) { return b * a; }
  friend __host__ __device__ constexpr complex operator/(const complex &a, const complex &b) {
    T length = b.real_ * b.real_ + b.imag_ * b.imag_;
    return {(a.real_ * b.real_ + a.imag_ * b.imag_) / length, (a.imag_ * b.real_ - a.real_ * b.imag_) / length};
  }
  friend __host__ __device__ constexpr bool operator==(const complex &a, const complex &b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  friend __host__ __device__ constexpr bool operator!=(const complex &a, const complex &b) { return !(a == b); }
};
}  // namespace c10

namespace cuda {
namespace std {
template <typename T> __host__ __device__ constexpr c10::complex<T> conj(const c10::complex<T> &z) {
  return {z.real_, -z.imag_};
}
template <typename T, typename Native> struct DrywarpLimits : numeric_limits<Native> {
  using Limits = numeric_limits<Native>;
  static __device__ T lowest() { return Limits::lowest(); }
  static __device__ T max() { return (Limits::max)(); }
  static __device__ T min() { return (Limits::min)(); }
  static __device__ T epsilon() { return Limits::epsilon(); }
  static __device__ T infinity() { return Limits::infinity(); }
  static __device__ T quiet_NaN() { return Limits::quiet_NaN(); }
};
template <> class numeric_limits<c10::Half> : public DrywarpLimits<c10::Half, ::__half> {};
template <> class numeric_limits<c10::BFloat16> : public DrywarpLimits<c10::BFloat16, ::__nv_bfloat16> {};
}  // namespace std
}  // namespace cuda
