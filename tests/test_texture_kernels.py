"""Kernels with textures and surfaces, from the source to the answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import drywarp
from drywarp.analysis.counters.count import count

from .effort import first

EXAMPLE = Path(__file__).parents[1] / "examples" / "texture_filter.cu"
SIDE = 1024
COPY = """
__global__ void copy(cudaTextureObject_t from, cudaSurfaceObject_t to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  surf2Dwrite(tex2D<float>(from, x + 0.5f, y + 0.5f), to, 4 * x, y);
}"""


def copied(gpu: str, **options: str) -> drywarp.Analysis:
    arguments = {
        "from": drywarp.texture(f"f32[{SIDE},{SIDE}]:iota", address="clamp", **options),
        "to": drywarp.surface(f"f32[{SIDE},{SIDE}]"),
    }
    return drywarp.analyze(COPY, gpu=gpu, grid=(SIDE // 32, SIDE // 8), block=(32, 8), args=arguments)


@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_a_copy_moves_every_texel_once(gpu: str) -> None:
    answer = copied(gpu)
    sectors = SIDE * SIDE * 4 // 32
    assert answer.memory.global_load_sectors == answer.memory.global_store_sectors == sectors
    assert answer.memory.l1_hit_rate == 0
    assert answer.memory.dram_read_bytes == answer.memory.dram_write_bytes == 4 * SIDE * SIDE
    assert answer.memory.l2_method == "affine"
    # A fetch and a store for each warp.
    assert answer.by_class["texture"] == 2 * SIDE * SIDE / 32
    assert any("row by row" in note for note in answer.notes)
    assert answer.arguments["from"] == f"texture(clamp):f32[{SIDE},{SIDE}]:iota"


def test_filtering_reads_the_neighbours_from_the_l1() -> None:
    plain, filtered = copied("a100"), copied("a100", filter="linear")
    # Of each warp's two rows, and of the sector on its right, the next row's and the next block's warps read the same.
    rows, columns = SIDE, SIDE // 32
    sectors = 2 * rows * (5 * (columns - 1) + 4) - (5 * (columns - 1) + 4)
    assert filtered.memory.global_load_sectors == sectors
    assert filtered.memory.l1_hit_rate is not None
    assert 0.4 < filtered.memory.l1_hit_rate < 1 - plain.memory.global_load_sectors / sectors
    assert filtered.memory.dram_read_bytes == plain.memory.dram_read_bytes


@pytest.mark.parametrize("gpu", first(["a100", "h100"]))
def test_the_example_is_answered(gpu: str) -> None:
    answer = drywarp.analyze(EXAMPLE, gpu=gpu)
    # The image is turned: most of it is read once, and the output is written once.
    image = 4 * 2048 * 2048
    assert 0.7 * image < answer.memory.dram_read_bytes < 1.1 * image
    assert answer.memory.dram_write_bytes == image
    assert 0 < answer.time_s < 1e-3
    assert answer.arguments["image"] == "texture(linear,clamp):f32[2048,2048]:random"
    # Lines of the compiler's own header are those of the calls.
    assert {line.file for line in answer.lines} == {str(EXAMPLE)}


def test_counts_speak_of_the_texture_pipe() -> None:
    source = COPY.replace("surf2Dwrite(", "surf2Dwrite(surf2Dread<float>(to, 4 * x, y) + ")
    arguments = {"from": "texture:f32[64,64]", "to": "surface:f32[64,64]"}
    found = count(source, gpu="a100", grid=(2, 8), block=(32, 8), args=arguments).counts
    for what in ("texture", "surface_op_ld", "surface_op_st"):
        assert found[f"l1tex__t_requests_pipe_tex_mem_{what}.sum"] == 128
        assert found[f"l1tex__t_sectors_pipe_tex_mem_{what}.sum"] == 512
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 0
    assert found["lts__t_sectors_op_read.sum"] == found["lts__t_sectors_op_write.sum"] * 2 == 1024


def test_an_array_may_be_given_where_the_pipeline_is_whole() -> None:
    image = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    answer = drywarp.analyze(
        COPY, gpu="t4", grid=(1, 8), block=(32, 8), args={"from": drywarp.texture(image), "to": "surface:f32[64,32]"}
    )
    assert answer.arguments == {"from": "texture:f32[64,32]:array", "to": "surface:f32[64,32]:zeros"}
