"""The emulator runs no host code and touches no file: seen by the interpreter's own audit events, in a process apart.

The first run is the warm-up, in which the core is loaded; then a hook notes down
every file opened, program started, socket, library loaded, import, and text compiled or executed while another
kernel is emulated, one that does what a kernel can: prints, asserts, allocates, calls through a table, meets
barriers and atomics, and reads beyond its buffers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KERNELS = r"""
#include <cstdio>
#include <cassert>
typedef float (*Rule)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
__device__ Rule rules[2] = {twice, square};
__constant__ float table[4];
__device__ int count;
__global__ void warm(float* x, int n) { int i = threadIdx.x + blockIdx.x * blockDim.x; if (i < n) x[i] *= 2; }
__global__ void everything(float* x, const char* path, int n) {
  __shared__ float tile[128];
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  tile[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  float v = tile[127 - threadIdx.x] + __shfl_xor_sync(~0u, tile[threadIdx.x], 5) + table[i & 3];
  v = rules[i & 1](v) + sinf(v) / sqrtf(v + 3);
  if (i == 3) printf("open %s %d %f\n", path, i, v);
  assert(i >= 0);
  int* own = (int*)malloc(16);
  if (own) { own[0] = i; v += own[0]; free(own); }
  atomicAdd(&count, (int)v);
  for (int k = 0; k < (i & 7); k++) v = v * 0.5f + k;
  if (i < n) x[i] = v;
}
__global__ void astray(float* x, int n) { x[n * (1 << 24) + threadIdx.x] = 1; }
"""

PROGRAM = r"""
import sys
import numpy as np
import numpy.ma  # which NumPy itself imports when it is first needed
from pathlib import Path
from drywarp.kernel.launch.arguments import make_launch
from drywarp.execution.emulator import emulate
from drywarp.errors import EmulationError
from drywarp.frontends.cuda.compile import compile_cuda

source = Path(sys.argv[1])
compiled = sys.argv[2] == "compiled"
kernels = {name: compile_cuda(source, arch=sys.argv[3], entry=name) for name in ("warm", "everything", "astray")}
x = np.arange(1000, dtype=np.float32)
text = np.frombuffer(b"/etc/passwd\0    ", np.int8).copy()
launches = {
    "warm": make_launch(kernels["warm"], (8, 1, 1), (128, 1, 1), {"x": x, "n": 1000}),
    "everything": make_launch(kernels["everything"], (8, 1, 1), (128, 1, 1), {"x": x, "path": text, "n": 1000}),
    "astray": make_launch(kernels["astray"], (8, 1, 1), (128, 1, 1), {"x": x, "n": 1000}),
}

def run(name):
    try:
        return emulate(kernels[name], launches[name], blocks="all", compiled=compiled).profile.steps
    except EmulationError as error:
        return str(error)

run(sys.argv[4])
WATCHED = (
    "open", "os.", "subprocess.", "socket.", "shutil.", "tempfile.", "import", "compile", "exec", "ctypes.dlopen",
    "pty.", "signal.pthread_kill", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.", "mmap.", "fcntl.",
)
# An anonymous map is memory; a map of a file would have opened it.
ALLOWED = ("mmap.__new__",)
seen = []
watching = True

def hook(event, arguments):
    if watching and event.startswith(WATCHED) and event not in ALLOWED:
        seen.append(f"{event} {str(arguments)[:200]}")

sys.addaudithook(hook)
results = {name: run(name) for name in ("everything", "astray")}
watching = False
for name, result in results.items():
    print(name, result)
for event in seen:
    print("SEEN", event)
# The hook does see what it is to see.
watching = True
open(sys.argv[1]).close()
watching = False
assert len(seen) and seen[-1].startswith("open"), seen
"""


def watched(tmp_path: Path, mode: str, arch: str, warm_up: str) -> list[str]:
    (tmp_path / "k.cu").write_text(KERNELS)
    (tmp_path / "watch.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "watch.py"), str(tmp_path / "k.cu"), mode, arch, warm_up]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_nothing_of_the_host_is_touched(tmp_path: Path) -> None:
    for mode, arch in (("compiled", "sm_80"), ("numpy", "sm_90")):
        everything, astray, *seen = watched(tmp_path, mode, arch, "warm")
        assert int(everything.split()[1]) > 1000
        assert "outside every buffer" in astray or "beyond" in astray
        assert seen == []
    # What the kernel prints goes nowhere, and it leaves nothing behind.
    assert {path.name for path in tmp_path.iterdir()} == {"k.cu", "watch.py"}
