"""Atomics that want the same address: the L2 does them one lane after the other."""

from __future__ import annotations

import pytest

import drywarp
from drywarp.api import bind_kernel
from drywarp.hardware import load_gpu

BLOCKS, THREADS = 512, 128
LANES = BLOCKS * THREADS
KERNEL = """
extern "C" __global__ void f(float* sums, unsigned* words) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  BODY
}
"""
RETRY = "unsigned old = words[0], was; do { was = old; old = atomicCAS(words, was, was * 3 + 1); } while (old != was);"


def asked(body: str, blocks: int = BLOCKS, threads: int = THREADS) -> dict[str, object]:
    arguments = {"sums": f"f32[{LANES}]", "words": f"u32[{LANES}]"}
    return {"source": KERNEL.replace("BODY", body), "gpu": "a100", "grid": blocks, "block": threads, "args": arguments}


def cycles(body: str) -> float:
    return drywarp.analyze(**asked(body)).prediction.cycles  # type: ignore[arg-type]


def wanted(body: str, blocks: int = BLOCKS, threads: int = THREADS) -> float:
    """Lanes of the whole grid at the address that most of them want."""
    found = bind_kernel(**asked(body, blocks, threads)).behaviour.accesses  # type: ignore[arg-type]
    return sum(access.same_address * access.executions for access in found.values())


@pytest.mark.parametrize(
    ("body", "lanes"),
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
)
def test_the_busiest_address_is_counted_over_the_grid(body: str, lanes: float) -> None:
    assert wanted(body) == pytest.approx(lanes)
    assert wanted(body, blocks=4) == pytest.approx(
        lanes
        if lanes in (0, 1, THREADS)
        else lanes * 4 / BLOCKS  # each block adds as many, but to addresses of its own
    )


def test_lanes_at_one_address_take_the_published_rate() -> None:
    """One lane a cycle, however many SMs there are; what goes elsewhere takes no time of it."""
    rate = load_gpu("a100").memory.l2.atomics_per_cycle
    assert rate is not None
    assert cycles("atomicAdd(sums, 1.0f);") == pytest.approx(LANES / rate, rel=0.02)
    assert cycles("atomicAdd(sums + i % 2, 1.0f);") == pytest.approx(LANES / 2 / rate, rel=0.03)
    assert cycles("atomicAdd(sums + i, 1.0f);") < LANES / 10


def test_it_is_what_limits_the_kernel_and_the_advice_knows_it() -> None:
    answer = drywarp.analyze(**asked("atomicAdd(sums, 1.0f);"))  # type: ignore[arg-type]
    assert answer.limiter == "atomics"
    assert "atomics on one address" in answer.verdict
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
