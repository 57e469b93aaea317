"""A program that calls the driver API, as libraries do: by name, from a library that is loaded at run time."""

import ctypes
import sys
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

driver = ctypes.CDLL("libcuda.so.1")


def called(name: str, *arguments: object) -> int:
    found, status = c_void_p(), c_int()
    driver.cuGetProcAddress_v2(name.encode(), byref(found), 12000, c_uint64(0), byref(status))
    if not found.value:
        return -1
    return int(ctypes.CFUNCTYPE(c_int)(found.value)(*arguments))


def call(name: str, *arguments: object) -> None:
    if status := called(name, *arguments):
        text = c_char_p()
        driver.cuGetErrorName(status, byref(text))
        sys.exit(f"{name}: {status} {text.value!r}")


device, context, module, kernel = c_int(), c_void_p(), c_void_p(), c_void_p()
call("cuInit", c_uint(0))
call("cuDeviceGet", byref(device), c_int(0))
name = ctypes.create_string_buffer(100)
call("cuDeviceGetName", name, c_int(100), device)
call("cuDevicePrimaryCtxRetain", byref(context), device)
call("cuCtxSetCurrent", context)
image = Path(sys.argv[1]).read_bytes()
print("damaged:", called("cuModuleLoadData", byref(module), b"no image"))
call("cuModuleLoadData", byref(module), image)
print("missing:", called("cuModuleGetFunction", byref(kernel), module, b"nothing"))
call("cuModuleGetFunction", byref(kernel), module, sys.argv[2].encode())

LATER_THAN_13_0, OVERSIZED = 17, 3
set_to = [called("cuFuncSetAttribute", kernel, c_int(key), c_int(OVERSIZED)) for key in (LATER_THAN_13_0, 14)]
print("attributes:", *set_to)

grid, block = c_int(), c_int()
call("cuOccupancyMaxPotentialBlockSize", byref(grid), byref(block), kernel, None, c_size_t(0), c_int(768))
print("fills:", grid.value, block.value)

count, x = 1000, (c_float * 1000)(*range(1000))
memory, y, begin, end = c_uint64(), (c_float * 1000)(), c_void_p(), c_void_p()
call("cuMemAlloc", byref(memory), c_size_t(8000))
call("cuMemcpyHtoD", memory, x, c_size_t(4000))
call("cuMemsetD32", c_uint64(memory.value + 4000), c_uint(0x3F800000), c_size_t(1000))
call("cuEventCreate", byref(begin), c_uint(0))
call("cuEventCreate", byref(end), c_uint(0))
named = {"n": c_int(count), "a": c_float(2.0), "x": memory, "y": c_uint64(memory.value + 4000)}
given = [named[letter] for letter in sys.argv[3]]
pointers = (c_void_p * 4)(*(ctypes.cast(byref(one), c_void_p) for one in given))
call("cuEventRecord", begin, None)
too_much = [c_uint(number) for number in (4, 1, 1, 256, 1, 1, 65536)]
print("too much:", called("cuLaunchKernel", kernel, *too_much, None, pointers, None))
print("runtime:", ctypes.CDLL("libcudart.so.13").cudaGetLastError())
extents = [c_uint(number) for number in (4, 1, 1, 256, 1, 1, 0)]
call("cuLaunchKernel", kernel, *extents, None, pointers, None)
call("cuEventRecord", end, None)
call("cuMemcpyDtoH", y, c_uint64(memory.value + 4000), c_size_t(4000))
took = c_float()
call("cuEventElapsedTime", byref(took), begin, end)
right = all(y[k] == 2 * k + 1 for k in range(count))
print(name.value.decode(), "right" if right else "wrong", took.value > 0)
