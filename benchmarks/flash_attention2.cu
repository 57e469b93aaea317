// FlashAttention 2, forward and backward, launched by the library's own host code: batch, tokens, heads. The inputs are
// random; output and gradients of some rows are compared with sums in double precision.
// Needs csrc/flash_attn/src of Dao-AILab/flash-attention, CUTLASS's headers and an empty file c10/cuda/CUDAException.h;
// HEAD and CAUSAL_MASK are macros.
#include <cstdio>
#include <cstdlib>

#define FLASHATTENTION_DISABLE_DROPOUT
#define FLASHATTENTION_DISABLE_ALIBI
#define FLASHATTENTION_DISABLE_UNEVEN_K
#define FLASHATTENTION_DISABLE_SOFTCAP
#define FLASHATTENTION_DISABLE_LOCAL
#define C10_CUDA_CHECK(call) \
  do { \
    cudaError_t found = (call); \
    if (found != cudaSuccess) std::printf("FAIL: %s\n", cudaGetErrorName(found)), std::exit(1); \
  } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())

#include "flash_fwd_launch_template.h"
#include "flash_bwd_launch_template.h"

#include <cmath>
#include <vector>

using Half = cutlass::half_t;
constexpr int COLUMNS = HEAD, STEP = 37;
enum { Q, K, V, O, DO, DQ, DK, DV, TENSORS };

struct Case {
  int batch, tokens, heads;
  std::vector<Half> host[TENSORS];

  double at(int which, int b, int h, int token, int column) const {
    return double(float(host[which][((size_t(b) * tokens + token) * heads + h) * COLUMNS + column]));
  }
  double dot(int one, int row, int other, int column_row, int b, int h) const {
    double sum = 0;
    for (int c = 0; c < COLUMNS; c++) sum += at(one, b, h, row, c) * at(other, b, h, column_row, c);
    return sum;
  }
  // Largest differences of O and the three gradients for one head, over every STEP-th row.
  void compare(int b, int h, double* worst) const {
    std::vector<double> weight(size_t(tokens) * tokens), gradient(size_t(tokens) * tokens);
    double scale = 1 / std::sqrt(double(COLUMNS));
    for (int row = 0; row < tokens; row++) {
      int end = CAUSAL_MASK ? row + 1 : tokens;
      double sum = 0, mean = 0;
      double *p = &weight[size_t(row) * tokens], *g = &gradient[size_t(row) * tokens];
      for (int k = 0; k < end; k++) sum += p[k] = std::exp(scale * dot(Q, row, K, k, b, h));
      for (int k = 0; k < end; k++) mean += (p[k] /= sum) * (g[k] = dot(DO, row, V, k, b, h));
      for (int k = 0; k < end; k++) g[k] = p[k] * (g[k] - mean) * scale;
    }
    for (int row = 0; row < tokens; row += STEP)
      for (int c = 0; c < COLUMNS; c++) {
        double expected[4] = {};
        for (int other = 0; other < tokens; other++) {
          size_t along = size_t(row) * tokens + other, across = size_t(other) * tokens + row;
          expected[0] += weight[along] * at(V, b, h, other, c);
          expected[1] += gradient[along] * at(K, b, h, other, c);
          expected[2] += gradient[across] * at(Q, b, h, other, c);
          expected[3] += weight[across] * at(DO, b, h, other, c);
        }
        int found[4] = {O, DQ, DK, DV};
        for (int n = 0; n < 4; n++)
          worst[n] = std::fmax(worst[n], std::fabs(expected[n] - at(found[n], b, h, row, c)));
      }
  }
};

template <typename Params>
static void shape(Params& p, const Case& c, Half** device, float* sums) {
  p.q_ptr = device[Q], p.k_ptr = device[K], p.v_ptr = device[V], p.o_ptr = device[O], p.softmax_lse_ptr = sums;
  p.q_row_stride = p.k_row_stride = p.v_row_stride = p.o_row_stride = int64_t(c.heads) * COLUMNS;
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = COLUMNS;
  p.q_batch_stride = p.k_batch_stride = p.v_batch_stride = p.o_batch_stride = int64_t(c.tokens) * c.heads * COLUMNS;
  p.b = c.batch, p.h = p.h_k = c.heads, p.h_h_k_ratio = 1, p.d = p.d_rounded = COLUMNS, p.total_q = c.batch * c.tokens;
  p.seqlen_q = p.seqlen_k = p.seqlen_q_rounded = p.seqlen_k_rounded = c.tokens;
  p.scale_softmax = 1 / std::sqrt(float(COLUMNS)), p.scale_softmax_log2 = p.scale_softmax * float(M_LOG2E);
  p.p_dropout = p.rp_dropout = 1, p.p_dropout_in_uint8_t = 255, p.scale_softmax_rp_dropout = p.scale_softmax;
  p.window_size_left = -1, p.window_size_right = CAUSAL_MASK ? 0 : -1, p.is_causal = CAUSAL_MASK, p.num_splits = 1;
  p.is_seqlens_k_cumulative = true;
}

int main(int count, char** words) {
  if (count != 4) return std::fprintf(stderr, "usage: %s BATCH TOKENS HEADS, tokens a multiple of 128\n", words[0]), 2;
  Case c;
  c.batch = std::atoi(words[1]), c.tokens = std::atoi(words[2]), c.heads = std::atoi(words[3]);
  size_t elements = size_t(c.batch) * c.tokens * c.heads * COLUMNS, rows = size_t(c.batch) * c.heads * c.tokens;
  Half* device[TENSORS];
  float *sums, *products, *accumulated;
  unsigned state = 1;
  for (int n = 0; n < TENSORS; n++) {
    c.host[n].resize(elements);
    for (Half& one : c.host[n]) one = Half(((state = state * 1664525u + 1013904223u) >> 16) % 2000 / 1000.0f - 1.0f);
    C10_CUDA_CHECK(cudaMalloc(&device[n], elements * sizeof(Half)));
    C10_CUDA_CHECK(cudaMemcpy(device[n], c.host[n].data(), elements * sizeof(Half), cudaMemcpyHostToDevice));
  }
  C10_CUDA_CHECK(cudaMalloc(&sums, rows * sizeof(float)));
  C10_CUDA_CHECK(cudaMalloc(&products, rows * sizeof(float)));
  C10_CUDA_CHECK(cudaMalloc(&accumulated, elements * sizeof(float)));

  flash::Flash_bwd_params p = {};
  shape(p, c, device, sums);
  flash::Flash_fwd_params& forward = p;
  p.do_ptr = device[DO], p.dq_ptr = device[DQ], p.dk_ptr = device[DK], p.dv_ptr = device[DV];
  p.do_row_stride = p.dq_row_stride = p.dk_row_stride = p.dv_row_stride = p.q_row_stride;
  p.do_head_stride = p.dq_head_stride = p.dk_head_stride = p.dv_head_stride = p.q_head_stride;
  p.do_batch_stride = p.dq_batch_stride = p.dk_batch_stride = p.dv_batch_stride = p.q_batch_stride;
  p.dq_accum_ptr = accumulated, p.dsoftmax_sum = products;
#if HEAD == 64
  flash::run_mha_fwd_hdim64<Half, CAUSAL_MASK>(forward, 0);
  flash::run_mha_bwd_hdim64<Half, CAUSAL_MASK>(p, 0);
#else
  flash::run_mha_fwd_hdim128<Half, CAUSAL_MASK>(forward, 0);
  flash::run_mha_bwd_hdim128<Half, CAUSAL_MASK>(p, 0);
#endif
  C10_CUDA_CHECK(cudaDeviceSynchronize());
  for (int n = 0; n < TENSORS; n++)
    C10_CUDA_CHECK(cudaMemcpy(c.host[n].data(), device[n], elements * sizeof(Half), cudaMemcpyDeviceToHost));
  double worst[4] = {};
  for (int b = 0; b < c.batch; b++)
    for (int h = 0; h < c.heads; h++) c.compare(b, h, worst);
  std::printf("largest differences: O %.2g, dQ %.2g, dK %.2g, dV %.2g\n", worst[0], worst[1], worst[2], worst[3]);
  bool sound = worst[0] < 2e-3 && worst[1] < 2e-3 && worst[2] < 2e-3 && worst[3] < 4e-3;
  std::printf("%s\n", sound ? "PASS" : "FAIL");
  return !sound;
}
