// The forward kernel of FlashAttention 3 on zeros, launched by the library's own host code: batch, tokens, heads.
// With a fourth argument the inputs are random, and the results are compared with sums in double precision.
// Needs the folder `hopper` of Dao-AILab/flash-attention and CUTLASS's headers; HEAD and CAUSAL_MASK are macros.
#include "flash_fwd_launch_template.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

void prepare_varlen_num_blocks(Flash_fwd_params&, cudaStream_t, bool, int, int, bool) {}  // sequences are of one length

using Half = cutlass::half_t;
constexpr int COLUMNS = HEAD;

static double largest_difference(const std::vector<Half>* host, int batch, int tokens, int heads) {
  double worst = 0;
  for (int b = 0; b < batch; b++)
    for (int h = 0; h < heads; h++)
      for (int row = 0; row < tokens; row += 37) {
        auto value = [&](int which, int token, int column) {
          return double(float(host[which][((size_t(b) * tokens + token) * heads + h) * COLUMNS + column]));
        };
        int end = CAUSAL_MASK ? row + 1 : tokens;
        std::vector<double> weight(end);
        double sum = 0;
        for (int k = 0; k < end; k++) {
          double score = 0;
          for (int c = 0; c < COLUMNS; c++) score += value(0, row, c) * value(1, k, c);
          sum += weight[k] = std::exp(score / std::sqrt(double(COLUMNS)));
        }
        for (int c = 0; c < COLUMNS; c++) {
          double expected = 0;
          for (int k = 0; k < end; k++) expected += weight[k] / sum * value(2, k, c);
          worst = std::fmax(worst, std::fabs(expected - value(3, row, c)));
        }
      }
  return worst;
}

int main(int count, char** words) {
  int batch = std::atoi(words[1]), tokens = std::atoi(words[2]), heads = std::atoi(words[3]);
  bool check = count > 4;
  size_t elements = size_t(batch) * tokens * heads * COLUMNS;
  Half* device[4];
  std::vector<Half> host[4];
  float* sums;
  int* counter;
  unsigned state = 1;
  for (int n = 0; n < 4; n++) {
    cudaMalloc(&device[n], elements * sizeof(Half));
    if (!check) continue;
    host[n].resize(elements);
    for (Half& one : host[n]) one = Half(((state = state * 1664525u + 1013904223u) >> 16) % 2000 / 1000.0f - 1.0f);
    cudaMemcpy(device[n], host[n].data(), elements * sizeof(Half), cudaMemcpyHostToDevice);
  }
  cudaMalloc(&sums, size_t(batch) * heads * tokens * sizeof(float));
  cudaMalloc(&counter, sizeof(int));
  cudaMemset(counter, 0, sizeof(int));

  Flash_fwd_params p = {};
  p.q_ptr = device[0], p.k_ptr = device[1], p.v_ptr = device[2], p.o_ptr = device[3], p.softmax_lse_ptr = sums;
  p.q_row_stride = p.k_row_stride = p.v_row_stride = p.o_row_stride = int64_t(heads) * COLUMNS;
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = COLUMNS;
  p.q_batch_stride = p.k_batch_stride = p.v_batch_stride = p.o_batch_stride = int64_t(tokens) * heads * COLUMNS;
  p.v_dim_stride = 1;
  p.b = p.b_k = batch, p.h = p.h_k = heads, p.total_q = p.total_k = batch * tokens;
  p.seqlen_q = p.seqlen_k = p.seqlen_q_rounded = p.seqlen_k_rounded = tokens;
  p.d = p.dv = p.d_rounded = p.dv_rounded = COLUMNS;
  p.scale_softmax = 1 / std::sqrt(float(COLUMNS));
  p.window_size_left = tokens - 1, p.window_size_right = CAUSAL_MASK ? 0 : tokens - 1;
  p.is_causal = p.head_swizzle = CAUSAL_MASK;
  p.p_dropout = p.rp_dropout = 1, p.num_splits = 1, p.arch = 90;
  p.skip_scheduler_metadata_computation = true;
  p.tile_count_semaphore = counter;
  run_flash_fwd<90, HEAD, HEAD, 1, Half, Half, CAUSAL_MASK, false, false, false, false, false, false, false, false, false>(p, 0);

  cudaError_t status = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(status));
  if (!check || status != cudaSuccess) return status != cudaSuccess;
  cudaMemcpy(host[3].data(), device[3], elements * sizeof(Half), cudaMemcpyDeviceToHost);
  std::printf("largest difference %g\n", largest_difference(host, batch, tokens, heads));
}
