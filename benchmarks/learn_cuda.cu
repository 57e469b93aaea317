// A public kernel for Blackwell on random numbers, launched by its own host code: the function's place in the file, rows,
// columns and depth of the product; or queries, keys and heads of 128 columns. With a fifth argument some results are
// compared with sums in double precision. SOURCE and FUNCTIONS are macros.
#include <algorithm>
#include <tuple>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include SOURCE

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using Word = nv_bfloat16;
static bool check;
static unsigned state = 1;
static double worst, largest;

template <class T> T drawn() {
  float value = ((state = state * 1664525u + 1013904223u) >> 16) % 2001 / 1000.0f - 1.0f;
  return std::is_integral_v<T> ? T(value * 100) : T(value);
}

template <class T> struct Buffer {
  T* device;
  std::vector<T> host;
  explicit Buffer(size_t elements, bool fill = true) : host(check ? elements : 0) {
    cudaMalloc(&device, elements * sizeof(T));
    if (check && fill) {
      for (T& one : host) one = drawn<T>();
      cudaMemcpy(device, host.data(), elements * sizeof(T), cudaMemcpyHostToDevice);
    }
  }
  double operator[](size_t at) const { return double(float(host[at])); }
  void fetch() { cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost); }
};

static void compare(double found, double expected) {
  worst = std::fmax(worst, std::fabs(found - expected));
  largest = std::fmax(largest, std::fabs(expected));
}

template <class A, class C> void product(const Buffer<A>& a, const Buffer<A>& b, Buffer<C>& c, int m, int n, int k,
                                         const Buffer<float>* of_rows = nullptr, const Buffer<float>* of_columns = nullptr) {
  c.fetch();
  for (int row = 0; row < m; row += 7)
    for (int column = 0; column < n; column += 5) {
      double sum = 0;
      for (int i = 0; i < k; i++) sum += a[size_t(row) * k + i] * b[size_t(column) * k + i];
      compare(c[size_t(row) * n + column], of_rows ? sum * (*of_rows)[row] * (*of_columns)[column] : sum);
    }
}

template <class A, class C> void call(void (*kernel)(const A*, const A*, C*, int, int, int), int m, int n, int k) {
  Buffer<A> a(size_t(m) * k), b(size_t(n) * k);
  Buffer<C> c(size_t(m) * n, false);
  kernel(a.device, b.device, c.device, m, n, k);
  if (check) product(a, b, c, m, n, k);
}

template <class A> using Scaled = void(const A*, const A*, const float*, const float*, Word*, int, int, int);
template <class A> void call(Scaled<A>* kernel, int m, int n, int k) {
  Buffer<A> a(size_t(m) * k), b(size_t(n) * k);
  Buffer<float> rows(m), columns(n);
  Buffer<Word> c(size_t(m) * n, false);
  kernel(a.device, b.device, rows.device, columns.device, c.device, m, n, k);
  if (check) product(a, b, c, m, n, k, &rows, &columns);
}

void call(void (*kernel)(const Word*, const Word*, const Word*, Word*, int, int, int, int), int queries, int keys, int heads) {
  const int columns = 128;
  Buffer<Word> q(size_t(heads) * queries * columns), k(size_t(heads) * keys * columns), v(size_t(heads) * keys * columns);
  Buffer<Word> o(size_t(heads) * queries * columns, false);
  kernel(q.device, k.device, v.device, o.device, heads, queries, keys, columns);
  if (!check) return;
  o.fetch();
  for (int h = 0; h < heads; h++)
    for (int row = 0; row < queries; row += 37) {
      std::vector<double> weight(keys);
      double sum = 0;
      for (int i = 0; i < keys; i++) {
        double score = 0;
        for (int c = 0; c < columns; c++)
          score += q[(size_t(h) * queries + row) * columns + c] * k[(size_t(h) * keys + i) * columns + c];
        sum += weight[i] = std::exp(score / std::sqrt(double(columns)));
      }
      for (int c = 0; c < columns; c++) {
        double expected = 0;
        for (int i = 0; i < keys; i++) expected += weight[i] / sum * v[(size_t(h) * keys + i) * columns + c];
        compare(o[(size_t(h) * queries + row) * columns + c], expected);
      }
    }
}

int main(int count, char** words) {
  int number = std::atoi(words[1]), x = std::atoi(words[2]), y = std::atoi(words[3]), z = std::atoi(words[4]), next = 0;
  check = count > 5;
#define F(kernel) if (number == next++) call(kernel, x, y, z);
#define INT8(kernel) F(static_cast<Scaled<int8_t>*>(kernel))
#define FP8(kernel) F(static_cast<Scaled<__nv_fp8_e4m3>*>(kernel))
  FUNCTIONS
  cudaError_t status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(status));
  if (check) std::printf("largest difference %g of %g\n", worst, largest);
  return status != cudaSuccess;
}
