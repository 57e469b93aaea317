"""Atomics that want the same address: the L2 does them one lane after the other."""

from __future__ import annotations

import numpy as np
import pytest

import drywarp
from drywarp.analysis.prepare import prepare_kernel
from drywarp.hardware import load_gpu
from tests.effort import first, some

BLOCKS, THREADS = 512, 128
LANES = BLOCKS * THREADS
KERNEL = """
extern "C" __global__ void f(float* sums, unsigned* words, void* doubles) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  BODY
}
"""
RETRY = "unsigned old = words[0], was; do { was = old; old = atomicCAS(words, was, was * 3 + 1); } while (old != was);"


def asked(body: str, blocks: int = BLOCKS, threads: int = THREADS) -> dict[str, object]:
    arguments = {"sums": f"f32[{LANES}]", "words": f"u32[{LANES}]", "doubles": f"f64[{LANES}]"}
    return {"source": KERNEL.replace("BODY", body), "gpu": "a100", "grid": blocks, "block": threads, "args": arguments}


def cycles(body: str) -> float:
    return drywarp.analyze(**asked(body)).prediction.cycles  # type: ignore[arg-type]


def wanted(body: str, blocks: int = BLOCKS, threads: int = THREADS) -> float:
    """Lanes of the whole grid at the address that most of them want."""
    found = prepare_kernel(**asked(body, blocks, threads)).behaviour.accesses  # type: ignore[arg-type]
    return sum(access.same_address * access.executions for access in found.values())


@pytest.mark.parametrize(
    ("body", "lanes"),
    some(
        [
            ("atomicAdd(sums, 1.0f);", LANES),
            ("atomicAdd(sums + i % 2, 1.0f);", LANES / 2),
            ("if (threadIdx.x % 4 == 0) atomicAdd(sums, 1.0f);", LANES / 4),
            ("atomicAdd(sums, 1.0f); atomicAdd(sums, 2.0f);", 2 * LANES),
            ("atomicAdd(sums, 1.0f); atomicAdd(sums + 1, 2.0f);", LANES),
            ("atomicAdd(sums + threadIdx.x, 1.0f);", BLOCKS),
            ("atomicAdd(sums + blockIdx.x, 1.0f);", THREADS),
            ("atomicAdd(sums + i, 1.0f);", 1),
            ("sums[0] = 1.0f;", 0),
            ("__shared__ float s[32]; atomicAdd(s + threadIdx.x % 32, 1.0f); sums[i] = s[0];", 0),
        ],
        2,
    ),
)
def test_the_busiest_address_is_counted_over_the_grid(body: str, lanes: float) -> None:
    assert wanted(body) == pytest.approx(lanes)
    assert wanted(body, blocks=4) == pytest.approx(
        lanes
        if lanes in (0, 1, THREADS)
        else lanes * 4 / BLOCKS  # each block adds as many, but to addresses of its own
    )


def test_lanes_at_one_address_take_the_published_rate() -> None:
    """One lane a cycle, however many SMs there are, floats a third of that; slices take doubles lane by lane."""
    memory = load_gpu("a100").memory
    l2, slices = memory.l2, memory.l2.bytes_per_cycle / memory.sector_bytes
    assert l2.atomics_per_cycle
    assert l2.float_atomics_per_cycle
    assert l2.double_atomic_lane_cycles
    assert cycles("atomicInc(words, i);") == pytest.approx(LANES / l2.atomics_per_cycle, rel=0.05)
    assert cycles("atomicAdd(sums, 1.0f);") == pytest.approx(LANES / l2.float_atomics_per_cycle, rel=0.02)
    assert cycles("atomicAdd(sums + i % 2, 1.0f);") == pytest.approx(LANES / 2 / l2.float_atomics_per_cycle, rel=0.03)
    repeated = "for (int k = 0; k < 50; k++) atomicAdd((double*)doubles + i, 1.0);"
    assert cycles(repeated) == pytest.approx(50 * LANES * l2.double_atomic_lane_cycles / slices, rel=0.1)


def test_few_addresses_lie_on_few_slices() -> None:
    """512 bytes are served by one slice, whatever address a lane aims at; 2 KiB by four."""
    l2 = load_gpu("a100").memory.l2
    assert l2.double_atomic_lane_cycles
    assert l2.atomic_sector_cycles
    for words, slices in ((64, 1), (256, 4)):
        doubles = cycles(f"for (int k = 0; k < 20; k++) atomicAdd((double*)doubles + i % {words}, 1.0);")
        assert doubles == pytest.approx(20 * LANES * l2.double_atomic_lane_cycles / slices, rel=0.1)
    # Each lane of a warp aims at a sector of its own: 32 of 4 KiB, on eight slices.
    alone = cycles("for (int k = 0; k < 20; k++) atomicInc(words + i % 32 * 32, i);")
    assert alone == pytest.approx(20 * LANES / 8 * l2.atomic_sector_cycles, rel=0.1)


def test_lanes_of_a_request_at_one_address_hold_their_slice_up() -> None:
    """Each warp aims at one of four neighbours: their slice does one lane after the other."""
    l2 = load_gpu("a100").memory.l2
    assert l2.float_atomics_per_cycle
    assert l2.atomic_sector_cycles
    request = l2.atomic_sector_cycles + 31 / l2.float_atomics_per_cycle
    assert cycles("atomicAdd(sums + i / 32 % 4, 1.0f);") == pytest.approx(LANES / 32 * request, rel=0.03)


@pytest.mark.parametrize(("bins", "slices"), [(101, 1), (1000, 8)])
def test_a_slice_has_no_fewer_lanes_than_the_mean_of_its_buffer(bins: int, slices: int) -> None:
    """Where addresses come from sorted data, no two of the emulated blocks aim at the same ones."""
    given = asked("atomicAdd(sums + words[i], 1.0f);")
    order = (np.arange(LANES) * bins // LANES).astype(np.uint32)
    given["args"] = {"sums": f"f32[{bins}]", "words": order, "doubles": "f64[1]"}
    found = prepare_kernel(**given).behaviour.accesses  # type: ignore[arg-type]
    assert sum(access.same_slice * access.executions for access in found.values()) >= 0.999 * LANES / slices


def test_it_is_what_limits_the_kernel_and_the_advice_knows_it() -> None:
    answer = drywarp.analyze(**asked("atomicAdd(sums, 1.0f);"))  # type: ignore[arg-type]
    assert answer.limiter == "atomics"
    assert "atomics in the L2" in answer.verdict
    rule = next(finding for finding in answer.findings if finding.rule == "atomics")
    assert rule.gain is not None
    assert rule.gain > 5


def test_a_contended_compare_and_swap_is_told() -> None:
    alone, several = (drywarp.analyze(**asked(RETRY, blocks, 64)) for blocks in (1, 16))  # type: ignore[arg-type]
    assert not any("compare-and-swap" in note for note in alone.notes)
    assert "contention" not in {part.name for part in alone.band.parts}  # type: ignore[union-attr]
    assert "compare-and-swap" in several.notes[0]
    parts = {part.name: part for part in several.band.parts}  # type: ignore[union-attr]
    assert parts["contention"].high == 16
    assert parts["contention"].low == 1
    once = drywarp.analyze(**asked("atomicCAS(words, 0u, i);"))  # type: ignore[arg-type]
    assert not any("compare-and-swap" in note for note in once.notes)


def _of_grid(index: str, grid: tuple[int, int]) -> float:
    """Lanes that the busiest word of the whole grid has, by running the index's expression over all blocks."""
    x, y = np.meshgrid(np.arange(grid[0]), np.arange(grid[1]))
    t = np.arange(32)
    words = eval(index.replace("/", "//"), {}, {"x": x[..., None], "y": y[..., None], "t": t})
    words = np.broadcast_to(words, (*x.shape, len(t)))
    return float(np.bincount(words.reshape(-1)).max())


@pytest.mark.parametrize(
    ("index", "grid"),
    first(
        [
            ("x / 4", (4096, 1)),
            ("x / 64", (4096, 1)),
            ("x / 300", (4096, 1)),
            ("x % 16", (4096, 1)),
            ("x + t", (4096, 1)),
            ("x", (512, 512)),
            ("y", (512, 512)),
            ("x / 2 * 32 + t", (2048, 1)),
            ("x / 8 + y / 8 * 64", (512, 512)),
            ("(x + y) % 512", (512, 512)),
        ],
        3,
    ),
)
def test_a_word_that_some_blocks_share_is_counted_for_those_alone(index: str, grid: tuple[int, int]) -> None:
    source = (
        'extern "C" __global__ void f(float* s) { int x = blockIdx.x, y = blockIdx.y, t = threadIdx.x;'
        f" atomicAdd(s + ({index}) + 0 * (x + y + t), 1.0f); }}"
    )
    found = prepare_kernel(source, gpu="a100", grid=grid, block=32, args={"s": "f32[65536]"})
    assert len(found.profile.blocks) < 64
    lanes = sum(access.same_address * access.executions for access in found.behaviour.accesses.values())
    assert lanes == pytest.approx(_of_grid(index, grid), rel=0.1), found.behaviour.method


@pytest.mark.parametrize(
    ("place", "use", "decides"),
    [
        ("i ^ 32", "sums[v % 64] = 1.0f;", True),
        ("i ^ 1", "sums[v % 64] = 1.0f;", False),  # written by the same block
        ("i ^ 32", "sums[i] = v;", False),  # nothing follows from it but a value
    ],
)
def test_a_read_of_what_another_block_writes_is_told_where_an_address_follows(
    place: str, use: str, decides: bool
) -> None:
    """Two blocks of 32 threads: `i ^ 32` lies in the other one."""
    body = f"words[i] = i * 3; __threadfence(); unsigned v = ((volatile unsigned*)words)[{place}]; {use}"
    found = prepare_kernel(**asked(body, blocks=2, threads=32))  # type: ignore[arg-type]
    at = found.behaviour.dependent
    assert (at is not None) == decides
    if at is not None:
        memory = found.kernel.instructions[at].memory
        assert memory is not None
        assert memory.kind == "load"
