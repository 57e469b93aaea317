"""Reserved addresses to which memory is mapped, and pools that other devices reach."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import nvcc

SOURCE = """
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
typedef unsigned long long u64;
struct Properties { int type, handles, place, device; void* more; unsigned char compressed, flags[7]; };
struct Access { int place, device, flags; };
static void* library;
template <typename... Arguments> int call(const char* name, Arguments... given) {
  return ((int (*)(Arguments...))dlsym(library, name))(given...);
}
__global__ void number(int* x, int first) { x[threadIdx.x] = first + threadIdx.x; }
__global__ void twice(int* x) { x[threadIdx.x] *= 2; }

static int mapping() {
  const size_t size = 2 << 20;
  size_t least = 0;
  u64 range = 0, other = 0, memory[2] = {};
  int host[32], device = -1;
  Properties properties = {1, 0, 1, 0, nullptr, 1}, granted = {};
  Access access = {1, 0, 3};
  cudaFree(0);
  call("cuDeviceGetAttribute", &device, 102, 0);
  call("cuMemGetAllocationGranularity", &least, (const void*)&properties, 0);
  std::printf("%d %zu\\n", device, least);
  std::printf("odd %d\\n", call("cuMemAddressReserve", &range, size + 1, (size_t)0, (u64)0, (u64)0));
  if (call("cuMemAddressReserve", &range, 2 * size, (size_t)0, (u64)0, (u64)0)) return 1;
  if (call("cuMemAddressReserve", &other, 2 * size, (size_t)0, (u64)0, (u64)0)) return 2;
  for (u64& one : memory)
    if (call("cuMemCreate", &one, size, (const void*)&properties, (u64)0)) return 3;
  call("cuMemGetAllocationPropertiesFromHandle", &granted, memory[0]);
  std::printf("compressed %d of %d\\n", granted.compressed, granted.type);
  for (int n = 0; n < 2; ++n)
    if (call("cuMemMap", range + n * size, size, (size_t)0, memory[n], (u64)0)) return 4;
  if (call("cuMemSetAccess", range, 2 * size, (const void*)&access, (size_t)1)) return 5;
  number<<<1, 32>>>((int*)range, 100);
  number<<<1, 32>>>((int*)(range + size), 200);
  std::printf("again %d\\n", call("cuMemMap", other, size, (size_t)0, memory[0], (u64)0));
  if (call("cuMemUnmap", range, 2 * size)) return 6;
  // The other way round.
  for (int n = 0; n < 2; ++n)
    if (call("cuMemMap", other + n * size, size, (size_t)0, memory[1 - n], (u64)0)) return 7;
  twice<<<1, 32>>>((int*)other);
  cudaMemcpy(host, (void*)other, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d %d", host[0], host[31]);
  cudaMemcpy(host, (void*)(other + size), sizeof host, cudaMemcpyDeviceToHost);
  std::printf(" %d %d\\n", host[0], host[31]);
  std::printf("held %d\\n", call("cuMemAddressFree", other, 2 * size));
  for (u64 one : memory) call("cuMemRelease", one);
  if (call("cuMemUnmap", other, 2 * size) || call("cuMemAddressFree", other, 2 * size)) return 8;
  return call("cuMemAddressFree", range, 2 * size);
}

static int pools() {
  cudaMemPool_t pool;
  int *own, *theirs, host[32];
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, {1}};
  if (cudaMemPoolCreate(&pool, &properties)) return 1;
  cudaMallocFromPoolAsync(&theirs, 4096, pool, 0);
  cudaPointerAttributes what;
  cudaPointerGetAttributes(&what, theirs);
  std::printf("on %d\\n", what.device);
  if (ALLOWED) {
    cudaMemAccessDesc access = {};
    access.location = {cudaMemLocationTypeDevice, {0}};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    if (cudaMemPoolSetAccess(pool, &access, 1)) return 2;
    cudaMemAccessDesc absent = access;
    absent.location.id = 7;
    if (cudaMemPoolSetAccess(pool, &absent, 1) != cudaErrorInvalidDevice) return 3;
    cudaGetLastError();
  }
  number<<<1, 32>>>(theirs, 5);
  cudaMemcpy(host, theirs, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d %s\\n", host[31], cudaGetErrorName(cudaGetLastError()));
  return 0;
}

int main(int count, char** words) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  return words[1][0] == 'm' ? mapping() : pools();
}
"""


@pytest.fixture(scope="module", params=[0, 1], ids=["kept-out", "allowed"])
def allowed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bool]:
    """The program, and whether it lets device 0 reach the pool of device 1."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("whole programs need nvcc (drywarp[ptx]) and g++")
    folder = tmp_path_factory.mktemp("virtual")
    (folder / "virtual.cu").write_text(SOURCE)
    words = [*compiler, "-arch=sm_80", f"-DALLOWED={request.param}", "-o", str(folder / "made"), "-ldl"]
    subprocess.run([*words, str(folder / "virtual.cu")], check=True, capture_output=True)
    return folder / "made", bool(request.param)


@pytest.mark.parametrize("options", [(), ("--sampled",), ("--check",)], ids=["plain", "sampled", "checked"])
def test_memory_is_mapped_and_keeps_its_content(run: Any, allowed: tuple[Path, bool], options: tuple[str, ...]) -> None:
    ran = run("mapping", started=allowed[0], options=options)
    assert ran.output.splitlines() == [
        "1 2097152",
        "odd 1",
        "compressed 0 of 1",
        "again 801",
        "400 462 100 131",
        "held 1",
    ], ran.report
    assert ran.status == int("--check" in options)  # it tells the call that is not served
    assert ran.result["not_modelled"] == {"cuMemMap of memory that is mapped already": 1}


def test_a_pools_memory_is_reached_by_whom_it_lets(run: Any, allowed: tuple[Path, bool]) -> None:
    program, reached = allowed
    ran = run("pools", started=program, options=("--devices", "2"))
    assert ran.status == 0, ran.report
    first, second = ran.output.splitlines()
    assert first == "on 1"
    assert (second == "36 cudaSuccess") == reached
    assert bool(ran.result["faults"]) != reached
