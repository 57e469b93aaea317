// The runtime on the device: kernels that launch kernels. What is declared here stays an open call.
#pragma once
extern "C" {
__device__ void *cudaGetParameterBufferV2(void *kernel, dim3 grid, dim3 block, unsigned int shared);
__device__ cudaError_t cudaLaunchDeviceV2(void *parameters, cudaStream_t stream);
__device__ cudaError_t cudaMalloc(void **address, size_t bytes);
__device__ cudaError_t cudaFree(void *address);
__device__ cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream);
__device__ cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
__device__ cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
__device__ cudaError_t cudaStreamDestroy(cudaStream_t stream);
__device__ cudaError_t cudaDeviceSynchronize();
__device__ cudaError_t cudaGetLastError();
__device__ cudaError_t cudaPeekAtLastError();
__device__ const char *cudaGetErrorString(cudaError_t error);
}
template <typename T> __device__ cudaError_t cudaMalloc(T **address, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void **>(address), bytes);
}
#define cudaStreamNonBlocking 1
