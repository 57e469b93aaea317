"""Kernels in Python files: Triton, Numba-CUDA and CUDA C++ in strings, executing only the code that they need."""
