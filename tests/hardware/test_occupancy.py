"""Occupancy: cases worked out by hand from the allocation rules, and laws that hold for every launch."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drywarp.errors import UsageError
from drywarp.hardware import Occupancy, blocks_by_shared, carveout, clusters_at_once, limits_of, load_gpu, occupancy
from drywarp.hardware.occupancy import RESOURCES

LIMITS = {name: load_gpu(name).occupancy for name in ("a100", "h100")}

# GPU, registers per thread, shared bytes, threads per block -> blocks, limiting resources.
CASES: list[tuple[str, int, int, int, int, tuple[str, ...]]] = [
    # 8 warps; 32·32 = 1024 registers a warp: 16384/1024 = 16 in each partition, 64 warps, 8 blocks.
    ("a100", 32, 0, 256, 8, ("warps", "registers")),
    # 33 registers round up to 1280 a warp: 12 in each partition, 48 warps, 6 blocks.
    ("a100", 33, 0, 256, 6, ("registers",)),
    ("a100", 40, 0, 256, 6, ("registers",)),
    ("a100", 41, 0, 256, 5, ("registers",)),  # 1536 a warp: 10 each, 40 warps
    ("a100", 64, 0, 256, 4, ("registers",)),  # 2048: 8 each, 32 warps
    ("a100", 65, 0, 256, 3, ("registers",)),  # 2304: 7 each, 28 warps, 3.5 blocks
    ("a100", 128, 0, 256, 2, ("registers",)),  # 4096: 4 each, 16 warps
    ("a100", 255, 0, 256, 1, ("registers",)),  # 8160 rounds to 8192: 2 each, 8 warps
    ("a100", 255, 0, 32, 8, ("registers",)),
    ("a100", 168, 0, 96, 4, ("registers",)),  # 5376: 3 each, 12 warps of 3
    ("a100", 16, 0, 32, 32, ("blocks",)),  # 64 warps would fit, 32 blocks may
    ("a100", 16, 0, 64, 32, ("warps", "blocks")),
    ("a100", 16, 0, 1024, 2, ("warps",)),
    ("a100", 32, 0, 1024, 2, ("warps", "registers")),
    ("a100", 33, 0, 1024, 1, ("registers",)),  # 48 warps, one block of 32
    ("a100", 64, 0, 1024, 1, ("registers",)),
    ("a100", 32, 0, 768, 2, ("warps", "registers")),  # 24 warps, 64/24
    ("a100", 32, 0, 33, 32, ("warps", "registers", "blocks")),  # 2 warps
    ("a100", 32, 0, 65, 21, ("warps", "registers")),  # 3 warps
    # Shared memory: 16384 + 1024 = 17408 a block, 167936/17408 = 9.6.
    ("a100", 32, 16384, 128, 9, ("shared_memory",)),
    ("h100", 32, 16384, 128, 13, ("shared_memory",)),  # 233472/17408 = 13.4
    ("a100", 32, 49152, 256, 3, ("shared_memory",)),  # 50176: 3.3
    ("h100", 32, 49152, 256, 4, ("shared_memory",)),  # 4.65
    ("a100", 32, 166912, 256, 1, ("shared_memory",)),
    ("h100", 32, 232448, 256, 1, ("shared_memory",)),
    # 9216 + 1024 = 10240: 16.4; 9217 rounds up to 10368: 16.2; 9473 to 10624: 15.8.
    ("a100", 32, 9217, 128, 16, ("warps", "registers", "shared_memory")),
    ("a100", 32, 9473, 128, 15, ("shared_memory",)),
    ("a100", 64, 40000, 256, 4, ("registers", "shared_memory")),  # 41024 rounds to 41088: 4.09
    ("h100", 64, 40000, 256, 4, ("registers",)),
    ("h100", 168, 0, 384, 1, ("registers",)),
]


@pytest.mark.parametrize(("gpu", "registers", "shared", "threads", "blocks", "limiting"), CASES)
def test_by_hand(gpu: str, registers: int, shared: int, threads: int, blocks: int, limiting: tuple[str, ...]) -> None:
    result = occupancy(LIMITS[gpu], registers, shared, threads)
    assert (result.blocks_per_sm, result.limiting) == (blocks, limiting)
    assert result.limited_by == limiting[0]
    assert result.warps_per_sm == blocks * -(-threads // 32)
    assert result.fraction == result.warps_per_sm / 64


def test_all_that_a_launch_takes() -> None:
    assert occupancy(LIMITS["a100"], 33, 16384, 256) == Occupancy(
        blocks_per_sm=6,
        warps_per_sm=48,
        fraction=0.75,
        limited_by="registers",
        limiting=("registers",),
        limits={"warps": 8, "registers": 6, "shared_memory": 9, "blocks": 32},
        registers_per_block=8 * 1280,
        shared_bytes_per_block=17408,
        carveout_bytes=132 * 1024,  # 6 · 17408 = 102 KiB, above the 100 KiB configuration
        l1_bytes=60 * 1024,
    )


@pytest.mark.parametrize(
    ("gpu", "threads", "shared", "carved", "l1"),
    [
        ("a100", 1024, 0, 8, 184),  # two blocks' reserve of 1 KiB each
        ("a100", 32, 0, 32, 160),  # 32 blocks' reserve
        ("a100", 256, 0, 8, 184),
        ("a100", 256, 7 * 1024, 64, 128),  # 8 · 8 KiB
        ("a100", 256, 163 * 1024, 164, 28),
        ("h100", 256, 163 * 1024, 164, 92),
        ("h100", 256, 227 * 1024, 228, 28),
        ("h100", 1024, 90 * 1024, 196, 60),
    ],
)
def test_carveout_and_l1(gpu: str, threads: int, shared: int, carved: int, l1: int) -> None:
    result = occupancy(LIMITS[gpu], 32, shared, threads)
    assert (result.carveout_bytes, result.l1_bytes) == (carved * 1024, l1 * 1024)


def test_carveout_is_the_smallest_that_fits() -> None:
    assert [carveout(LIMITS["a100"], n) for n in (0, 1, 8192, 8193, 167936)] == [0, 8192, 8192, 16384, 167936]


def test_blocks_by_shared() -> None:
    assert blocks_by_shared(LIMITS["a100"], 0) == 164  # the reserve alone
    assert blocks_by_shared(LIMITS["a100"], 16384) == 9


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "message"),
    [
        (32, 0, 1025, "1025 threads per block: this GPU allows 1 to 1024"),
        (32, 0, 0, "0 threads per block: this GPU allows 1 to 1024"),
        (256, 0, 32, "256 registers per thread: this GPU allows 1 to 255"),
        (0, 0, 32, "0 registers per thread: this GPU allows 1 to 255"),
        (32, 166913, 32, "166913 bytes of shared memory per block: this GPU allows 0 to 166912"),
        (32, -1, 32, "-1 bytes of shared memory per block: this GPU allows 0 to 166912"),
        (65, 0, 1024, "65 registers per thread and 32 warps need 73728 registers per block: this GPU has 65536"),
    ],
)
def test_a_launch_beyond_the_limits(registers: int, shared: int, threads: int, message: str) -> None:
    with pytest.raises(UsageError) as error:
        occupancy(LIMITS["a100"], registers, shared, threads)
    assert str(error.value) == message


def test_the_launch_check_counts_warps_in_fours() -> None:
    """Nine warps of 7168 registers are 64512, which would fit; counted as twelve they do not."""
    assert occupancy(LIMITS["a100"], 224, 0, 256).blocks_per_sm == 1
    with pytest.raises(UsageError, match="9 warps need 86016 registers per block"):
        occupancy(LIMITS["a100"], 224, 0, 288)


launches = st.tuples(
    st.sampled_from(["a100", "h100"]),
    st.integers(1, 255),
    st.integers(0, 232448),
    st.integers(1, 1024),
)


def run(gpu: str, registers: int, shared: int, threads: int) -> Occupancy | None:
    try:
        return occupancy(LIMITS[gpu], registers, shared, threads)
    except UsageError:
        return None


@given(launches)
def test_a_legal_launch_fits_within_the_limits(launch: tuple[str, int, int, int]) -> None:
    result = run(*launch)
    assume(result is not None)
    assert result is not None
    limits = LIMITS[launch[0]]
    assert 1 <= result.blocks_per_sm <= limits.max_blocks_per_sm
    assert result.warps_per_sm <= limits.max_warps_per_sm
    assert 0 < result.fraction <= 1
    assert result.blocks_per_sm * result.registers_per_block <= limits.registers_per_sm
    assert result.blocks_per_sm * result.shared_bytes_per_block <= result.carveout_bytes
    assert result.carveout_bytes + result.l1_bytes == limits.unified_bytes_per_sm
    assert result.limiting == tuple(name for name in RESOURCES if result.limits.get(name) == result.blocks_per_sm)
    assert all(count is None or count >= result.blocks_per_sm for count in result.limits.values())


@pytest.mark.parametrize(
    ("columns", "blocks", "limiting"), [(0, 32, "blocks"), (32, 16, "tensor_memory"), (512, 1, "tensor_memory")]
)
def test_tensor_memory_limits_the_blocks_of_an_sm(columns: int, blocks: int, limiting: str) -> None:
    found = occupancy(limits_of("10.0"), 16, 0, 32, tensor_columns=columns)
    assert (found.blocks_per_sm, found.limited_by) == (blocks, limiting)


@given(launches, st.integers(0, 255), st.integers(0, 232448))
def test_taking_more_never_fits_more(launch: tuple[str, int, int, int], registers: int, shared: int) -> None:
    gpu, own_registers, own_shared, threads = launch
    more = run(gpu, own_registers + registers, own_shared + shared, threads)
    if more is not None:
        less = run(*launch)
        assert less is not None
        assert less.blocks_per_sm >= more.blocks_per_sm


@given(launches, st.integers(0, 1023))
def test_larger_blocks_are_never_more_of_them(launch: tuple[str, int, int, int], extra: int) -> None:
    gpu, registers, shared, threads = launch
    larger = run(gpu, registers, shared, threads + extra)
    if larger is not None:
        smaller = run(*launch)
        assert smaller is not None
        assert smaller.blocks_per_sm >= larger.blocks_per_sm


def test_clusters_lie_within_a_gpc():
    """15 clusters of 8 blocks fill 120 of an H100's 132 SMs (accel-sim gpu-app-collection 87; CUTLASS 1921)."""
    gpcs = load_gpu("h100").device.gpc_sms
    assert sum(gpcs) == load_gpu("h100").device.sm_count
    assert max(gpcs) <= 18
    assert [clusters_at_once(gpcs, 1, blocks) for blocks in (1, 2, 8)] == [132, 66, 15]


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=10), st.integers(1, 32), st.integers(1, 16), st.integers(1, 16)
)
def test_laws_of_clusters(gpcs, each, blocks, more):
    found = clusters_at_once(gpcs, each, blocks)
    assert found * blocks <= sum(gpcs) * each
    assert clusters_at_once(gpcs, each + more, blocks) >= found
    assert clusters_at_once(gpcs, each, 1) == sum(gpcs) * each
    # One GPC of all SMs holds at least as many.
    assert clusters_at_once([sum(gpcs)], each, blocks) >= found
