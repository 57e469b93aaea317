"""What fits an SM of a launch, and the sizes of the memories that serve it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from drywarp.analysis.fits import geometry_of, occupancy_of
from drywarp.errors import UsageError
from drywarp.hardware import Gpu, load_gpu, occupancy
from drywarp.kernel.kernel import Kernel, Resources
from drywarp.kernel.launch.launch import Launch
from tests.listing import code
from tests.round_gpu import MIB, round_gpu


def kernel(**resources: int) -> Kernel:
    return Kernel(
        "k", "k", "sm_80", code("EXIT"), (), 0, Resources(**{"registers": 32, "shared_bytes": 0, **resources})
    )


def launch(threads: int = 256, dynamic: int = 0, grid: int = 8) -> Launch:
    return Launch((grid, 1, 1), (threads, 1, 1), dynamic_shared=dynamic)


def test_static_and_dynamic_shared_memory_count_together() -> None:
    gpu = round_gpu()
    # 20 + 12 KiB and the reserve of 1 KiB: 4 blocks in 164 KiB, where 8 would fit otherwise.
    found = occupancy_of(kernel(shared_bytes=20 * 1024), launch(dynamic=12 * 1024), gpu)
    assert (found.blocks_per_sm, found.limiting, found.shared_bytes_per_block) == (4, ("shared_memory",), 33 * 1024)
    assert found == occupancy(gpu.occupancy, 32, 32 * 1024, 256)
    assert occupancy_of(kernel(), launch(), gpu).blocks_per_sm == 8
    assert occupancy_of(kernel(registers=64), launch(), gpu).blocks_per_sm == 4


def test_scalar_registers_are_those_of_a_warp() -> None:
    gpu = load_gpu("mi300x")
    limits = gpu.occupancy
    found = occupancy_of(kernel(scalar_registers=100), replace(launch(), warp_size=64), gpu)
    assert found == occupancy(limits, 32, 0, 256, 100)


def test_more_threads_than_the_code_is_for_are_refused() -> None:
    gpu = round_gpu()
    assert occupancy_of(kernel(max_threads=256), launch(256), gpu)
    with pytest.raises(UsageError, match=r"k: 257 threads per block, its __launch_bounds__ allow 256$"):
        occupancy_of(kernel(max_threads=256), launch(257), gpu)
    amd = load_gpu("mi300x")
    with pytest.raises(UsageError, match=r"its code is for at most 256 \(OpenCL's"):
        occupancy_of(kernel(max_threads=256), launch(257), amd)
    with pytest.raises(UsageError, match="block extent 65 in z"):
        occupancy_of(kernel(), Launch((1, 1, 1), (1, 1, 65)), gpu)


def with_memory(gpu: Gpu, **levels: object) -> Gpu:
    memory = msgspec.structs.replace(gpu.memory, **levels)
    return replace(gpu, sections={**gpu.sections, "memory": memory})


def test_the_l1_has_what_shared_memory_leaves_unless_it_is_a_memory_of_its_own() -> None:
    gpu = round_gpu()
    fits = occupancy_of(kernel(shared_bytes=16 * 1024), launch(), gpu)
    found = geometry_of(gpu, fits)
    assert (found.l1_bytes, found.shared_banks_serve_l1) == (fits.l1_bytes, True)
    assert (found.sector_bytes, found.line_bytes, found.banks, found.bank_bytes) == (32, 128, 32, 4)
    assert (found.l2_bytes, found.l3_bytes, found.dirty_share) == (MIB, 0, gpu.memory.l2.dirty_share or 1.0)
    # 10 SMs with the blocks that fit.
    assert (found.sm_count, found.blocks_per_sm, found.wave_blocks) == (10, fits.blocks_per_sm, 10 * fits.blocks_per_sm)
    own = with_memory(gpu, l1=msgspec.structs.replace(gpu.memory.l1, bytes=48 * 1024))
    assert (geometry_of(own, fits).l1_bytes, geometry_of(own, fits).shared_banks_serve_l1) == (48 * 1024, False)
    for stated, share in ((0.25, 0.25), (0.0, 0.0), (None, 1.0)):
        other = with_memory(gpu, l2=msgspec.structs.replace(gpu.memory.l2, dirty_share=stated))
        assert geometry_of(other, fits).dirty_share == share


def test_a_table_of_a_paper_states_the_caches_beside_it() -> None:
    gpu = load_gpu("papers/analysis-tonga")
    stated = gpu.machine_code
    assert stated is not None
    sizes = msgspec.structs.replace(
        stated, transaction_bytes=64, line_bytes=256, shared_banks=16, l1_bytes=8192, l2_bytes=MIB
    )
    gpu = replace(gpu, sections={**gpu.sections, "machine_code": sizes})
    fits = occupancy_of(kernel(), replace(launch(), warp_size=64), gpu)
    found = geometry_of(gpu, fits)
    assert (found.sector_bytes, found.line_bytes, found.banks, found.bank_bytes) == (64, 256, 16, 4)
    assert (found.l1_bytes, found.l2_bytes, found.l3_bytes, found.shared_banks_serve_l1) == (8192, MIB, 0, False)
    assert found.wave_blocks == gpu.device.sm_count * fits.blocks_per_sm
