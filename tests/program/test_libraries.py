"""What frameworks ask of the runtime, and closed libraries, which never fail in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SOURCE = """
#include <cstdio>
extern "C" {
int cublasCreate_v2(void**) __attribute__((weak));
int cudnnCreate(void**) __attribute__((weak));
int cufftPlan1d(void*, int, int, int) __attribute__((weak));
}
__global__ void one(int* x) { *x = 1; }
int main() {
  int* x;
  void* handle;
  cudaStream_t stream;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
  unsigned long long id = 77;
  cudaMalloc(&x, 4);
  cudaStreamCreate(&stream);
  int said = cudaStreamGetCaptureInfo(stream, &status, &id);
  std::printf("%d %d %llu\\n", said, (int)status, id);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  one<<<1, 1, 0, stream>>>(x);
  said = cudaStreamGetCaptureInfo(stream, &status, &id);
  cudaGraph_t graph, other;
  const cudaGraphNode_t* after;
  size_t count = 5;
#if CUDART_VERSION >= 13000
  int full = cudaStreamGetCaptureInfo(stream, &status, &id, &other, &after, nullptr, &count);
#else
  int full = cudaStreamGetCaptureInfo_v2(stream, &status, &id, &other, &after, &count);
#endif
  cudaStreamEndCapture(stream, &graph);
  cudaGraph_t none;
  int open = cudaStreamEndCapture(reinterpret_cast<cudaStream_t>(graph), &none) || cudaStreamEndCapture(stream, &none);
  int wrong = (int)count + !open + cudaGraphDestroy(graph);
  std::printf("%d %d %d %d %d %d\\n", said, (int)status, id != 77, full, graph == other, wrong);
  std::printf("%d %d %d\\n", cublasCreate_v2(&handle), cudnnCreate(&handle), cufftPlan1d(&handle, 8, 0, 1));
  return 0;
}
"""


@pytest.mark.usefixtures("program")
def test_what_frameworks_ask_first(run: Any, tmp_path: Path) -> None:
    source = tmp_path / "asks.cu"
    source.write_text(SOURCE)
    ran = run(started=source)
    assert ran.output.splitlines() == ["0 0 77", "0 1 1 0 1 0", "1 1 5"], ran.report
    counted = {"cublasCreate_v2": 1, "cudnnCreate": 1, "cufftPlan1d": 1}
    assert ran.result["not_modelled"] == counted
    assert "cublasCreate_v2 (1)" in ran.report


def test_tensors_of_pytorch_are_computed(run: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.version.cuda:
        pytest.skip("PyTorch without CUDA")
    script = tmp_path / "tensors.py"
    script.write_text(
        "import torch\n"
        "x = torch.arange(1000, dtype=torch.float32, device='cuda')\n"
        "print(torch.softmax(x * 0.5, 0).sum().item(), (x + 1).sum().item())\n"
    )
    ran = run(started=script)
    assert ran.output == "1.0 500500.0\n", ran.report
    assert all(one["computed"] == one["launches"] for one in ran.result["kernels"])
