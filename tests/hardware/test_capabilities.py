"""Occupancy from compute capability 1.0 to 12.1: NVIDIA's tables, and cases worked out by hand."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drywarp.errors import UsageError
from drywarp.hardware import OccupancyLimits, capabilities, check_extents, limits_of, occupancy

LIMITS = {capability: limits_of(capability) for capability in capabilities()}

# Warps and blocks per SM, registers per SM, per block and per thread, KiB of shared memory per SM and per
# block at most, and the shared memory sizes in KiB.
TABLE: dict[str, tuple[int, int, int, int, int, int, int, list[int]]] = {
    "1.0": (24, 8, 8192, 8192, 124, 16, 16, [16]),
    "1.3": (32, 8, 16384, 16384, 124, 16, 16, [16]),
    "2.0": (48, 8, 32768, 32768, 63, 48, 48, [16, 48]),
    "3.0": (64, 16, 65536, 65536, 63, 48, 48, [16, 32, 48]),
    "3.5": (64, 16, 65536, 65536, 255, 48, 48, [16, 32, 48]),
    "3.7": (64, 16, 131072, 65536, 255, 112, 48, [80, 96, 112]),
    "5.0": (64, 32, 65536, 65536, 255, 64, 48, [64]),
    "5.2": (64, 32, 65536, 32768, 255, 96, 48, [96]),
    "5.3": (64, 32, 65536, 32768, 255, 64, 48, [64]),
    "6.0": (64, 32, 65536, 65536, 255, 64, 48, [64]),
    "6.1": (64, 32, 65536, 65536, 255, 96, 48, [96]),
    "7.0": (64, 32, 65536, 65536, 255, 96, 96, [0, 8, 16, 32, 64, 96]),
    "7.5": (32, 16, 65536, 65536, 255, 64, 64, [32, 64]),
    "8.0": (64, 32, 65536, 65536, 255, 164, 163, [0, 8, 16, 32, 64, 100, 132, 164]),
    "8.6": (48, 16, 65536, 65536, 255, 100, 99, [0, 8, 16, 32, 64, 100]),
    "8.7": (48, 16, 65536, 65536, 255, 164, 163, [0, 8, 16, 32, 64, 100, 132, 164]),
    "8.9": (48, 24, 65536, 65536, 255, 100, 99, [0, 8, 16, 32, 64, 100]),
    "9.0": (64, 32, 65536, 65536, 255, 228, 227, [0, 8, 16, 32, 64, 100, 132, 164, 196, 228]),
    "10.0": (64, 32, 65536, 65536, 255, 228, 227, [0, 8, 16, 32, 64, 100, 132, 164, 196, 228]),
    "11.0": (48, 24, 65536, 65536, 255, 228, 227, [0, 8, 16, 32, 64, 100, 132, 164, 196, 228]),
    "12.0": (48, 24, 65536, 65536, 255, 100, 99, [0, 8, 16, 32, 64, 100]),
}


@pytest.mark.parametrize("capability", TABLE)
def test_nvidias_table(capability: str) -> None:
    limits = LIMITS[capability]
    assert TABLE[capability] == (
        limits.max_warps_per_sm,
        limits.max_blocks_per_sm,
        limits.registers_per_sm,
        limits.max_registers_per_block,
        limits.max_registers_per_thread,
        limits.shared_bytes_per_sm / 1024,
        limits.shared_bytes_per_block_optin / 1024,
        [size / 1024 for size in limits.carveout_bytes],
    )


@pytest.mark.parametrize("capability", capabilities())
def test_extents_and_threads_of_the_guide(capability: str) -> None:
    """Appendix F of the CUDA guide 4.2 and the tables of guide 13: threads, extents, 48 KiB without opting in."""
    limits, major = LIMITS[capability], int(capability.partition(".")[0])
    threads = 512 if major < 2 else 1024
    assert limits.max_threads_per_block == threads
    assert limits.max_threads_per_sm == limits.max_warps_per_sm * limits.warp_size
    assert limits.max_block_extent == (threads, threads, 64)
    rows = 65535
    x = 2**31 - 1 if major >= 3 else rows
    assert limits.max_grid_extent == (x, rows, 1 if major < 2 else rows)
    assert limits.shared_bytes_per_block_default == (16 if major < 2 else 48) * 1024


def test_the_list_runs_from_the_oldest_to_the_newest() -> None:
    listed = capabilities()
    assert (listed[0], listed[-1]) == ("1.0", "12.1")
    assert listed.index("9.0") < listed.index("10.0") < listed.index("12.0")
    assert set(TABLE) <= set(listed)


def test_relatives_are_alike() -> None:
    for one, other in (("1.0", "1.1"), ("2.0", "2.1"), ("10.0", "10.3"), ("8.9", "12.1"), ("3.2", "3.5")):
        assert LIMITS[one] == LIMITS[other], (one, other)


def test_tensor_memory_is_what_10_0_adds_to_9_0() -> None:
    with_it = msgspec.structs.replace(LIMITS["9.0"], tensor_columns_per_sm=512)
    assert with_it == LIMITS["10.0"]


def test_a_capability_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"^no occupancy limits are known for compute capability '8\.8'; did you mean"):
        limits_of("8.8")


# Capability, registers per thread, shared bytes, threads per block -> blocks, limiting resources.
CASES: list[tuple[str, int, int, int, int, tuple[str, ...]]] = [
    # G80: 8 warps of 10 registers are 2560, a multiple of 256: 3.2. The programming guide's own example.
    ("1.0", 10, 0, 256, 3, ("warps", "registers")),
    ("1.0", 11, 0, 256, 2, ("registers",)),  # 2816: 2.9
    ("1.0", 10, 0, 96, 6, ("registers",)),  # 3 warps count as 4: 1280: 6.4
    ("1.0", 9, 0, 96, 6, ("registers",)),  # 1152 rounds to 1280: 6.4
    ("1.0", 8, 0, 96, 8, ("warps", "registers", "blocks")),  # 1024
    ("1.3", 16, 0, 256, 4, ("warps", "registers")),  # 4096
    ("1.3", 17, 0, 256, 3, ("registers",)),  # 4352 rounds to 4608: 3.6
    ("1.3", 16, 3000, 64, 5, ("shared_memory",)),  # 3072: 5.3
    # Fermi: 21·32 = 672 -> 704 a warp: 16384/704 = 23 in each half, 46 warps of 8: 5.
    ("2.0", 21, 0, 256, 5, ("registers",)),
    ("2.0", 20, 0, 256, 6, ("warps", "registers")),  # 640: 25 each, 50 warps
    ("2.0", 63, 0, 192, 2, ("registers",)),  # 2016 -> 2048: 8 each, 16 warps of 6
    ("2.0", 16, 6145, 64, 7, ("shared_memory",)),  # 6272: 7.8
    ("2.0", 16, 0, 64, 8, ("blocks",)),
    ("2.0", 63, 0, 256, 2, ("registers",)),  # 8 each: 16 warps of 8; three parts of an SM would hold 15
    # Kepler: 33·32 = 1056 -> 1280: 12 in each quarter, 48 warps.
    ("3.0", 33, 0, 256, 6, ("registers",)),
    ("3.0", 32, 0, 64, 16, ("blocks",)),
    ("3.5", 255, 0, 256, 1, ("registers",)),  # 8192: 2 each
    ("3.7", 64, 0, 256, 8, ("warps", "registers")),  # twice the registers: 16 each
    ("3.7", 32, 16384, 128, 7, ("shared_memory",)),  # 112/16
    ("5.0", 32, 0, 64, 32, ("warps", "registers", "blocks")),
    ("5.2", 32, 12288, 128, 8, ("shared_memory",)),
    # GP100 has two halves: 36·32 = 1152 -> 1280: 25 each, 50 warps; four quarters have 12 each, 48 warps.
    ("6.0", 36, 0, 160, 10, ("registers",)),
    ("6.1", 36, 0, 160, 9, ("registers",)),
    ("7.0", 32, 98304, 256, 1, ("shared_memory",)),
    ("7.0", 32, 10000, 64, 9, ("shared_memory",)),  # 10240: 9.6
    ("7.5", 64, 0, 256, 4, ("warps", "registers")),  # 2048: 8 each
    ("7.5", 32, 0, 32, 16, ("blocks",)),
    ("7.5", 32, 32768, 256, 2, ("shared_memory",)),
    ("8.6", 40, 0, 128, 12, ("warps", "registers")),  # 1280: 12 each, 48 warps
    ("8.6", 32, 0, 64, 16, ("blocks",)),
    ("8.9", 32, 0, 64, 24, ("warps", "blocks")),
    ("8.9", 32, 49152, 256, 2, ("shared_memory",)),  # 50176: 2.04
    ("8.6", 32, 50177, 256, 1, ("shared_memory",)),  # 51201 -> 51328: 1.995
    ("10.0", 64, 32768, 256, 4, ("registers",)),  # 33792: 6.9
    ("12.0", 64, 0, 256, 4, ("registers",)),  # 2048: 8 each, 32 warps
    ("12.0", 42, 0, 1024, 1, ("warps", "registers")),  # 1536: 10 each, 40 warps of 32
]


@pytest.mark.parametrize(("capability", "registers", "shared", "threads", "blocks", "limiting"), CASES)
def test_by_hand(
    capability: str, registers: int, shared: int, threads: int, blocks: int, limiting: tuple[str, ...]
) -> None:
    result = occupancy(LIMITS[capability], registers, shared, threads)
    assert (result.blocks_per_sm, result.limiting) == (blocks, limiting)


@pytest.mark.parametrize(
    ("capability", "shared", "threads", "carved", "l1"),
    [
        ("2.0", 2048, 192, 16, 48),  # 8 blocks of 2 KiB
        ("2.0", 4096, 192, 48, 16),
        ("3.0", 2048, 128, 32, 32),  # 16 blocks of 2 KiB
        ("3.7", 0, 128, 80, 48),
        ("5.2", 0, 128, 96, 0),  # apart from L1
        ("7.0", 0, 128, 0, 128),
        ("7.5", 0, 128, 32, 64),
        ("8.6", 0, 128, 16, 112),  # 12 blocks' reserve of 1 KiB each
    ],
)
def test_carveout_and_l1(capability: str, shared: int, threads: int, carved: int, l1: int) -> None:
    result = occupancy(LIMITS[capability], 16, shared, threads)
    assert (result.carveout_bytes, result.l1_bytes) == (carved * 1024, l1 * 1024)


@pytest.mark.parametrize(
    ("capability", "registers", "shared", "threads", "message"),
    [
        ("1.0", 10, 0, 513, "513 threads per block: this GPU allows 1 to 512"),
        ("1.0", 17, 0, 512, "17 registers per thread and 16 warps need 8704 registers per block: this GPU has 8192"),
        ("2.0", 64, 0, 32, "64 registers per thread: this GPU allows 1 to 63"),
        ("5.2", 33, 0, 1024, "33 registers per thread and 32 warps need 40960 registers per block: this GPU has 32768"),
        ("6.1", 32, 49153, 32, "49153 bytes of shared memory per block: this GPU allows 0 to 49152"),
        ("8.6", 32, 101377, 32, "101377 bytes of shared memory per block: this GPU allows 0 to 101376"),
    ],
)
def test_a_launch_beyond_the_limits(capability: str, registers: int, shared: int, threads: int, message: str) -> None:
    with pytest.raises(UsageError) as error:
        occupancy(LIMITS[capability], registers, shared, threads)
    assert str(error.value) == message


def test_gp100_refuses_what_its_relatives_cannot_hold() -> None:
    """Fourteen warps of 4352 registers would fit into two halves; counted as sixteen they do not."""
    assert occupancy(LIMITS["6.0"], 128, 0, 448).blocks_per_sm == 1
    with pytest.raises(UsageError, match="14 warps need 69632 registers per block"):
        occupancy(LIMITS["6.0"], 135, 0, 448)


def test_extents_of_old() -> None:
    check_extents(LIMITS["3.0"], (2**31 - 1, 1, 1), (1024, 1, 1))
    with pytest.raises(UsageError, match="grid extent 65536 in x exceeds the limit of 65535"):
        check_extents(LIMITS["2.0"], (65536, 1, 1), (1024, 1, 1))
    with pytest.raises(UsageError, match="grid extent 2 in z exceeds the limit of 1"):
        check_extents(LIMITS["1.3"], (1, 1, 2), (512, 1, 1))


@given(st.sampled_from(capabilities()), st.integers(1, 255), st.integers(0, 232448), st.integers(1, 1024))
def test_what_fits_fits(capability: str, registers: int, shared: int, threads: int) -> None:
    limits: OccupancyLimits = LIMITS[capability]
    try:
        result = occupancy(limits, registers, shared, threads)
    except UsageError:
        assume(False)
        return
    assert 1 <= result.blocks_per_sm <= limits.max_blocks_per_sm
    assert result.warps_per_sm <= limits.max_warps_per_sm
    assert result.blocks_per_sm * result.registers_per_block <= limits.registers_per_sm
    assert result.blocks_per_sm * result.shared_bytes_per_block <= result.carveout_bytes
