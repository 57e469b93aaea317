"""CUDA C++: separate the device code, compile it with NVRTC or nvcc, and instantiate templates."""
