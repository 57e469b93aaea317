// A stand-in for HIP's cooperative groups: thread blocks, the grid, and tiles of a wavefront.
#ifndef DRYWARP_HIP_COOPERATIVE_GROUPS
#define DRYWARP_HIP_COOPERATIVE_GROUPS
#include <hip/hip_runtime.h>

namespace cooperative_groups {

struct thread_block {
    DW void sync() const { __syncthreads(); }
    DW unsigned int thread_rank() const {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    DW unsigned int size() const { return blockDim.x * blockDim.y * blockDim.z; }
    DW unsigned int num_threads() const { return size(); }
    DW dim3 group_index() const { return blockIdx; }
    DW dim3 thread_index() const { return threadIdx; }
};
DW thread_block this_thread_block() { return {}; }

struct grid_group {
    DW bool is_valid() const { return true; }
    DW void sync() const DW_APPROXIMATE("grid synchronisation") { __syncthreads(); }
    DW unsigned long long thread_rank() const {
        unsigned long long block = ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        return block * this_thread_block().size() + this_thread_block().thread_rank();
    }
    DW unsigned long long size() const {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * this_thread_block().size();
    }
};
DW grid_group this_grid() { return {}; }

template <unsigned int N, class Parent = void> struct thread_block_tile {
    template <class P> DW operator thread_block_tile<N, P>() const { return {}; }
    DW void sync() const { __builtin_amdgcn_wave_barrier(); }
    DW unsigned int thread_rank() const { return this_thread_block().thread_rank() % N; }
    static constexpr unsigned int size() { return N; }
    static constexpr unsigned int num_threads() { return N; }
    DW unsigned int meta_group_rank() const { return this_thread_block().thread_rank() / N; }
    DW unsigned int meta_group_size() const { return this_thread_block().size() / N; }
    template <class T> DW T shfl(T value, int lane) const { return __shfl(value, lane, N); }
    template <class T> DW T shfl_up(T value, unsigned int delta) const { return __shfl_up(value, delta, N); }
    template <class T> DW T shfl_down(T value, unsigned int delta) const { return __shfl_down(value, delta, N); }
    template <class T> DW T shfl_xor(T value, unsigned int mask) const { return __shfl_xor(value, mask, N); }
    DW unsigned long long ballot(int p) const {
        unsigned int first = __lane_id() / N * N;
        return __ballot(p) >> first & (N == 64 ? ~0ull : (1ull << N % 64) - 1);
    }
    DW int any(int p) const { return ballot(p) != 0; }
    DW int all(int p) const { return ballot(!p) == 0; }
};
template <unsigned int N, class G> DW thread_block_tile<N, G> tiled_partition(const G &) { return {}; }
template <class G> DW void sync(const G &group) { group.sync(); }

}  // namespace cooperative_groups

#endif
