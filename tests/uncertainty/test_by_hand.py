"""The parts of a band worked out by hand: what is tried for each assumption, and what a part makes of the band."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.analysis.uncertainty import MODEL, band_of
from drywarp.analysis.uncertainty.constants import (
    CLOCK,
    LEAST_USE,
    LEAST_WAIT,
    MOST_NODES,
    Change,
    Probe,
    combine,
    far_share,
    few_kinds,
    part,
    scaled,
    weak_groups,
)
from drywarp.analysis.uncertainty.uncertainty import sort_of, uncertainty
from drywarp.analysis.uncertainty.variants import LEAST_WARM, Variant, clock_range_mhz, variants, with_l1_misses
from drywarp.hardware import Gpu, load_gpu
from drywarp.kernel.profile import SPACE_GLOBAL, SPACE_SHARED, Sampling
from drywarp.memory.behaviour import AccessBehaviour, MemoryBehaviour, with_dram_reads
from drywarp.models import get_model
from drywarp.models.base import Prediction
from drywarp.pipeline import Share, SimulationResult, simulate
from drywarp.pipeline.reasons import POLICIES
from drywarp.workload.build import Node, Path, Workload
from drywarp.workload.cost import BlockType, CostedWorkload
from tests.round_gpu import MIB, round_gpu

KNOWN = uncertainty()
LOOP = """__global__ void loop(float* x, int n) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll 1
  for (int k = 0; k < n; ++k) v = v * v + 1.5f;
  x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
"""


def of_kind(gpu: Gpu, kind: str) -> Gpu:
    return replace(gpu, known={key: replace(fact, kind=kind) for key, fact in gpu.facts()})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def ready() -> Prepared:
    """Eight warps on each SM, two in each partition; every number of the GPU is assumed."""
    gpu = of_kind(round_gpu(), "assumed")
    return prepare_kernel(LOOP, gpu=gpu, grid=20, block=128, args={"x": "f32[2560]", "n": 64})


@pytest.fixture(scope="module")
def prediction(ready: Prepared) -> Prediction:
    return get_model("pipeline").predict(ready.costed, ())


def idle(prediction: Prediction, **busy: float) -> Prediction:
    """Nothing is in use but what is named, and nobody waits for anything."""
    return replace(prediction, utilization=busy, stalls={"selected": 1.0})


def tried(ready: Prepared, prediction: Prediction, **options: Any) -> dict[str, Variant]:
    return {one.name: one for one in variants(ready, Options(**options), prediction, KNOWN)}


# Memory ---------------------------------------------------------------------------------------------------------


def behaviour(*accesses: AccessBehaviour, read: float = 1000.0) -> MemoryBehaviour:
    return MemoryBehaviour(dict(enumerate(accesses)), 0, 0, 0, None, None, None, read, 500.0, "affine")


def test_a_warm_l2_spares_its_share_of_the_reads() -> None:
    before = behaviour(AccessBehaviour(1, SPACE_GLOBAL, 8, 2, 0.5, 0.2, dram_read=4, dram_write=1))
    after = with_dram_reads(before, 0.75 * before.dram_read_bytes)
    # 4 · 3/4 = 3 sectors from DRAM; of what reaches the L2 0.8 · 3/4 = 0.6 still misses it.
    assert after.accesses[0] == replace(before.accesses[0], dram_read=3, l2_hit=pytest.approx(0.4))
    assert (after.dram_read_bytes, after.dram_write_bytes) == (750, 500)
    whole = with_dram_reads(before, 0.0)
    assert (whole.accesses[0].dram_read, whole.accesses[0].l2_hit, whole.dram_read_bytes) == (0, 1, 0)


@pytest.mark.parametrize(
    ("factor", "l1_hit", "l2_hit"),
    [
        # A fifth misses the L1, half of that the L2: 0.1 of all comes from DRAM, whatever the L1 does.
        (1.5, 0.7, 1 - 0.1 / 0.3),
        (0.75, 0.85, 1 - 0.1 / 0.15),
        (5.0, 0.0, 0.9),  # 5 · 0.2 is all of them
        (50.0, 0.0, 0.9),
        (0.25, 0.95, 0.0),  # 0.05 of all miss the L1, fewer than came from DRAM: none hits the L2
    ],
)
def test_more_misses_of_the_l1_bring_no_more_from_dram(factor: float, l1_hit: float, l2_hit: float) -> None:
    some = AccessBehaviour(1, SPACE_GLOBAL, 8, 2, 0.8, 0.5, dram_read=4)
    kept = [replace(some, l1_hit=0.0), replace(some, l1_hit=1.0), replace(some, space=SPACE_SHARED)]
    after = with_l1_misses(behaviour(some, *kept), factor)
    found = after.accesses[0]
    assert (found.l1_hit, found.l2_hit) == (pytest.approx(l1_hit), pytest.approx(l2_hit))
    assert found.dram_read == 4
    # Where the L1 hits always, never, or is not asked, nothing changes.
    assert [after.accesses[n] for n in (1, 2, 3)] == kept
    assert after.dram_read_bytes == 1000


def test_another_compiler_changes_what_does_not_wait_for_memory(ready: Prepared, prediction: Prediction) -> None:
    """Busiest memory is in use for 60 % of the time: 40 % grow with the operations; none from a cubin."""
    factor = KNOWN.code.operations.value
    found = tried(ready, idle(prediction, dram=0.6, l2=0.3, fma=0.9))["compiler"]
    assert found.factors == (pytest.approx(0.6 + 0.4 / factor), pytest.approx(0.6 + 0.4 * factor))
    started = replace(ready, costed=replace(ready.costed, start_s=0.3 * prediction.time_s))
    assert tried(started, idle(prediction, dram=0.6))["compiler"].factors[1] == pytest.approx(0.9 + 0.1 * factor)
    assert "compiler" not in tried(ready, idle(prediction, dram=1.0))
    assert "compiler" not in tried(replace(ready, compiled=False), idle(prediction))


def test_atomics_may_take_longer_where_that_would_show(ready: Prepared, prediction: Prediction) -> None:
    mine = behaviour(AccessBehaviour(1, SPACE_GLOBAL, 4, 1, same_address=2, same_slice=8, lanes=32))
    factor = KNOWN.accesses.atomics.value
    with_atomics = replace(ready, behaviour=mine)
    (change,) = tried(with_atomics, idle(prediction, atomics=0.51 / factor))["atomics"].changes
    assert change.memory is not None
    assert change.memory.accesses[0] == replace(mine.accesses[0], atomics_factor=factor)
    assert "atomics" not in tried(with_atomics, idle(prediction, atomics=0.49 / factor))


def test_scattered_sectors_may_take_longer_than_a_stream(ready: Prepared, prediction: Prediction) -> None:
    """A request for 30 sectors in 29 lines is scattered, one for 16 in 4, or for 4 in 4, is not; 30 of 50 are asked."""
    far = AccessBehaviour(1, SPACE_GLOBAL, 30, 29)
    others = [replace(far, units=16, lines=4), replace(far, units=4, lines=4), replace(far, l1_hit=1.0)]
    mine = replace(ready, behaviour=behaviour(far, *others))
    factor = KNOWN.accesses.scattered.value
    found = tried(mine, idle(prediction, dram=0.51 / factor))["scattered accesses"]
    assert found.factors == (pytest.approx(1 + 0.6 * (factor - 1)),)
    assert "60% of the sectors" in found.reason
    assert "scattered accesses" not in tried(mine, idle(prediction, dram=0.49 / factor))
    assert "scattered accesses" not in tried(replace(ready, behaviour=behaviour(*others)), idle(prediction, dram=1.0))


def test_strided_stores_may_share_rows_of_dram(ready: Prepared, prediction: Prediction) -> None:
    """What they write opens no rows then, what they read still does; random stores were measured."""
    far = AccessBehaviour(1, SPACE_GLOBAL, 32, 32, dram_read=10, dram_write=30, apart=0.8)
    regular = replace(ready, behaviour=replace(behaviour(far, replace(far, dram_write=0)), method="affine"))
    (change,) = tried(regular, idle(prediction, dram=0.9))["scattered accesses"].changes
    assert change.memory is not None
    assert [change.memory.accesses[n].apart for n in (0, 1)] == [pytest.approx(0.2), 0.8]
    random = replace(regular, behaviour=replace(regular.behaviour, method="followed"))
    only_read = replace(regular, behaviour=replace(regular.behaviour, accesses={0: replace(far, dram_write=0)}))
    for other, dram in ((random, 0.9), (only_read, 0.9), (regular, 0.01)):
        variant = tried(other, idle(prediction, dram=dram)).get("scattered accesses")
        assert variant is None or not variant.changes


def test_the_state_of_the_l2_matters_where_it_holds_enough_of_what_is_read(
    ready: Prepared, prediction: Prediction
) -> None:
    def state(read: float, **options: Any) -> Variant | None:
        mine = replace(ready, behaviour=replace(ready.behaviour, dram_read_bytes=read))
        return tried(mine, idle(prediction), **options).get("L2 state")

    # The L2 holds 1 MiB: of 4 MiB a quarter may be there.
    quarter = state(4 * MIB)
    assert quarter is not None
    assert quarter.reason.startswith("25% of")
    (change,) = quarter.changes
    assert change.memory is not None
    assert change.memory.dram_read_bytes == 3 * MIB
    (all_of_it,) = (state(MIB / 2) or quarter).changes
    assert all_of_it.memory is not None
    assert all_of_it.memory.dram_read_bytes == 0
    assert state(MIB / LEAST_WARM * 1.01) is None
    assert state(MIB / LEAST_WARM * 0.99) is not None
    assert state(0) is None
    assert state(4 * MIB, warm_l2=True) is None


def test_what_a_profile_says_of_memory_is_certain(ready: Prepared, prediction: Prediction) -> None:
    hits = {n: replace(a, l1_hit=0.5) for n, a in ready.behaviour.accesses.items()}
    waiting = replace(prediction, stalls={"long_scoreboard": 1.0})
    partly = replace(ready, behaviour=replace(ready.behaviour, accesses=hits))
    assert {"L1 hit rate", "L2 state"} <= set(tried(partly, waiting))
    measured = SimpleNamespace()  # any profile at all
    averaged = replace(partly.behaviour, method="averaged")
    assert {"L1 hit rate", "L2 state"} <= set(tried(replace(partly, behaviour=averaged), waiting))
    assert {"L1 hit rate", "L2 state"} <= set(tried(replace(partly, measured=measured), waiting))  # type: ignore[arg-type]
    both = replace(partly, behaviour=averaged, measured=measured)  # type: ignore[arg-type]
    assert not {"L1 hit rate", "L2 state"} & set(tried(both, waiting))


def test_misses_of_constants_may_cost_nothing_or_twice_as_much(ready: Prepared, prediction: Prediction) -> None:
    assert "constant misses" not in tried(ready, prediction)
    missing = replace(ready, behaviour=replace(ready.behaviour, constant_misses={3: 0.5}))
    changes = tried(missing, prediction)["constant misses"].changes
    assert [change.memory.constant_misses for change in changes if change.memory] == [{3: 0.0}, {3: 1.0}]


def test_misses_of_the_l1_matter_where_the_l2_is_busy_or_warps_wait(ready: Prepared, prediction: Prediction) -> None:
    def l1(seen: Prediction, hit: float = 0.5) -> Variant | None:
        hits = {n: replace(a, l1_hit=hit) for n, a in ready.behaviour.accesses.items()}
        return tried(replace(ready, behaviour=replace(ready.behaviour, accesses=hits)), seen).get("L1 hit rate")

    factor = KNOWN.caches.l1_misses.value
    busy = LEAST_USE / factor
    assert l1(idle(prediction, l2=busy * 0.99)) is None
    found = l1(idle(prediction, l2=busy * 1.01))
    assert found is not None
    missed = [1 - next(iter(c.memory.accesses.values())).l1_hit for c in found.changes if c.memory]
    assert missed == [pytest.approx(0.5 / factor), pytest.approx(min(1, 0.5 * factor))]
    # The share of the time that goes by waiting for memory.
    for share, matters in ((LEAST_WAIT * 0.99, False), (LEAST_WAIT * 1.01, True)):
        waits = replace(
            idle(prediction), stalls={"selected": 1 - share, "long_scoreboard": share / 2, "lg_throttle": share / 2}
        )
        assert (l1(waits) is not None) == matters
    # Nothing to be wrong about where all sectors hit, or none.
    assert l1(idle(prediction, l2=1.0), hit=0.0) is None
    assert l1(idle(prediction, l2=1.0), hit=1.0) is None


# Scheduler, sample, clock ---------------------------------------------------------------------------------------


def test_other_policies_are_tried_where_a_partition_has_a_choice(ready: Prepared, prediction: Prediction) -> None:
    found = tried(ready, idle(prediction))["scheduler"]
    assert {change.policy for change in found.changes} == set(POLICIES) - {ready.costed.policy}
    assert "scheduler" not in tried(ready, idle(prediction), scheduler="oldest_first")
    assert "scheduler" not in tried(replace(ready, gpu=of_kind(ready.gpu, "documented")), idle(prediction))
    unknown = replace(ready.gpu, known={k: f for k, f in ready.gpu.facts() if k != "scheduler.policy"})
    assert "scheduler" not in tried(replace(ready, gpu=unknown), idle(prediction))
    # 4 warps on 4 partitions: each has one; 5 leave a choice.
    for warps, has in ((4, False), (5, True)):
        few = replace(ready, costed=replace(ready.costed, warps_per_block=warps, blocks_per_sm=1))
        assert ("scheduler" in tried(few, idle(prediction))) == has


@pytest.mark.parametrize(
    ("low", "high", "estimate", "factors"),
    [
        (80.0, 150.0, 100.0, (0.8, 1.5)),
        (0.5, 150.0, 100.0, (0.01, 1.5)),  # at least one instruction runs
        (100.0, 100.0, 100.0, None),
        (None, 150.0, 100.0, None),
        (80.0, None, 100.0, None),
        (0.0, 1.0, 0.0, None),
    ],
)
def test_the_interval_of_the_sample_is_a_factor(
    ready: Prepared, prediction: Prediction, low: Any, high: Any, estimate: float, factors: Any
) -> None:
    sampling = Sampling(3, 20, estimate, low, high, "estimated")
    mine = replace(ready, profile=replace(ready.profile, sampling=sampling))
    found = tried(mine, idle(prediction)).get("sampled blocks")
    assert (found.factors if found else None) == factors
    assert found is None or "3 of 20 blocks" in found.reason
    assert "sampled blocks" not in tried(
        replace(ready, profile=replace(ready.profile, sampling=None)), idle(prediction)
    )


def test_the_clock_is_tried_at_the_ends_of_its_range(ready: Prepared, prediction: Prediction) -> None:
    # Base 500 MHz, boost 1000 MHz, which is the usual one.
    assert clock_range_mhz(ready.gpu, Options()) == (500, 1000)
    assert clock_range_mhz(ready.gpu, Options(clock_mhz=800.0)) is None
    (change,) = tried(ready, idle(prediction))[CLOCK].changes
    assert change == Change(clock_mhz=500)
    assert CLOCK not in tried(ready, idle(prediction), clock_mhz=1000.0)

    def device(**values: float) -> Gpu:
        import msgspec

        sections = {**ready.gpu.sections, "device": msgspec.structs.replace(ready.gpu.device, **values)}
        return replace(ready.gpu, sections=sections)

    assert clock_range_mhz(device(max_clock_mhz=1200.0), Options()) == (500, 1200)
    assert clock_range_mhz(device(base_clock_mhz=1000.0), Options()) is None
    faster = replace(ready, gpu=device(max_clock_mhz=1200.0))
    assert [c.clock_mhz for c in tried(faster, idle(prediction))[CLOCK].changes] == [500, 1200]


# Constants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "sort"),
    [
        ("classes.fp32.lambda", "class_lambda"),
        ("classes.fp32.latency", "class_latency"),
        ("classes.fp32.subsystem", None),
        ("device.block_launch_latency", "class_latency"),
        ("device.sm_count", None),
        ("memory.dram.peak_gbs", None),
        ("memory.dram.read_gbs", "bandwidth"),
        ("memory.l2.bytes_per_cycle", "bandwidth"),
        ("memory.l2.bytes_per_cycle_per_sm", "bandwidth"),
        ("memory.l2.near_latency_ns", "memory_latency"),
        ("memory.l1.latency", "memory_latency"),
        ("memory.l2.bytes", None),
        ("occupancy.latency", None),
    ],
)
def test_what_a_key_is(key: str, sort: str | None) -> None:
    assert sort_of(key) == sort


def groups(gpu: Gpu, prediction: Prediction, *classes: str) -> dict[str, dict[str, float]]:
    return {group.name: dict(group.logs) for group in weak_groups(gpu, prediction, classes, KNOWN)}


def test_a_rate_matters_where_its_uncertainty_would_fill_half_of_the_time(prediction: Prediction) -> None:
    gpu = of_kind(round_gpu(), "assumed")
    bandwidth, lambda_ = KNOWN.assumed.bandwidth.value, KNOWN.assumed.class_lambda.value
    pipe = gpu.classes["fp32"].subsystem
    for name, subsystem, factor in (
        ("DRAM bandwidth", "dram", bandwidth),
        ("L2 bandwidth", "l2", bandwidth),
        (f"λ of the {pipe} pipe", pipe, lambda_),
        ("launch of blocks", "launch", lambda_),
    ):
        for share, has in ((0.99, False), (1.01, True)):
            found = groups(gpu, idle(prediction, **{subsystem: LEAST_USE / factor * share}), "fp32")
            assert (name in found) == has
            assert not set(found) - {name}
    dram = groups(gpu, idle(prediction, dram=1.0))["DRAM bandwidth"]
    assert dram == {f"memory.dram.{n}_gbs": math.log(bandwidth) for n in ("copy", "read", "write")}
    fma = groups(gpu, idle(prediction, **{pipe: 1.0}), "fp32", "sfu")[f"λ of the {pipe} pipe"]
    assert fma == {"classes.fp32.lambda": math.log(lambda_)}
    lsu = groups(gpu, idle(prediction, lsu=1.0), "global_load")["λ of the lsu pipe"]
    assert set(lsu) == {"classes.global_load.lambda", "memory.l1.bytes_per_cycle", "memory.shared.bytes_per_cycle"}


def test_latencies_matter_where_warps_wait(prediction: Prediction) -> None:
    gpu = of_kind(round_gpu(), "assumed")

    def waiting(reason: str, share: float) -> dict[str, dict[str, float]]:
        stalls = {reason: share, "selected": 1 - share}
        return groups(gpu, replace(prediction, utilization={}, stalls=stalls), "fp32", "global_load")

    for reason in ("long_scoreboard", "lg_throttle"):
        assert set(waiting(reason, LEAST_WAIT * 1.01)) == {"memory latency"}
        assert not waiting(reason, LEAST_WAIT * 0.99)
    for reason in ("short_scoreboard", "mio_throttle", "barrier", "membar", "drain"):
        assert set(waiting(reason, LEAST_WAIT * 1.01)) == {"other latencies"}
        assert not waiting(reason, LEAST_WAIT * 0.99)
    assert not waiting("math_pipe_throttle", 0.9)
    far = {"memory.l2.near_latency_ns", "memory.l2.far_latency_ns", "memory.dram.latency_ns"}
    assert set(waiting("long_scoreboard", 0.5)["memory latency"]) == far
    near = {"classes.fp32.latency", "memory.l1.latency", "memory.shared.latency", "device.block_launch_latency"}
    assert set(waiting("barrier", 0.5)["other latencies"]) == near


def test_the_share_of_waiting_for_memory(prediction: Prediction) -> None:
    stalls = {"long_scoreboard": 3.0, "lg_throttle": 1.0, "barrier": 2.0, "selected": 2.0}
    assert far_share(replace(prediction, stalls=stalls)) == 0.5
    assert far_share(replace(prediction, stalls={})) == 1.0


def test_a_group_names_three_of_its_constants_and_their_kinds(prediction: Prediction) -> None:
    gpu = of_kind(round_gpu(), "assumed")
    busy = idle(prediction, dram=1.0)
    (three,) = weak_groups(gpu, busy, (), KNOWN)
    assert three.reason == "memory.dram.copy_gbs, memory.dram.read_gbs, memory.dram.write_gbs: assumed"
    waits = replace(prediction, utilization={}, stalls={"barrier": 1.0})
    (four,) = weak_groups(gpu, waits, ("fp32",), KNOWN)
    assert four.reason.count(",") == 3
    assert ", …: assumed" in four.reason
    one = replace(
        gpu, known={**gpu.known, "memory.dram.read_gbs": replace(gpu.fact("memory.dram.read_gbs"), kind="proxy")}
    )
    (mixed,) = weak_groups(one, busy, (), KNOWN)
    assert mixed.reason.endswith(": assumed and proxy")
    assert mixed.logs["memory.dram.read_gbs"] == math.log(KNOWN.proxy.bandwidth.value)


def test_constants_are_tried_at_both_ends(ready: Prepared, prediction: Prediction) -> None:
    found = tried(ready, idle(prediction, dram=1.0))["DRAM bandwidth"]
    factor = KNOWN.assumed.bandwidth.value
    rates = [change.gpu.memory.dram.read_gbs for change in found.changes if change.gpu]
    assert rates == [pytest.approx(100 / factor), pytest.approx(100 * factor)]


# The stand-in ---------------------------------------------------------------------------------------------------


def test_the_stand_in_takes_the_time_of_what_it_is_told(ready: Prepared) -> None:
    probe = Probe(ready)
    usual = probe.seconds()
    # Twice the time a cycle is twice the time, but for what DRAM takes in nanoseconds.
    assert 1.5 * usual < probe.seconds(Change(clock_mhz=500.0)) < 2 * usual
    slow = scaled(ready.gpu, {f"classes.{name}.latency": 2.0 for name in ("fp32", "branch", "int")})
    assert probe.seconds(Change(gpu=slow)) > usual
    # A policy alone leaves everything else as it is.
    assert probe.seconds(Change(policy=ready.costed.policy)) == usual == probe.seconds(Change())
    free = replace(ready.behaviour, accesses={n: replace(a, l1_hit=1.0) for n, a in ready.behaviour.accesses.items()})
    assert probe.seconds(Change(memory=free)) < usual


def test_frequent_kinds_are_kept_until_their_paths_have_enough_nodes() -> None:
    def path(nodes: int) -> Path:
        return Path((Node(0, (), -1, -1, 1),) * nodes, (), (32.0,) * nodes)

    half = MOST_NODES // 2
    paths = (path(half), path(half - 1), path(10), path(20))
    kinds = (BlockType((0,), 5.0), BlockType((1, 2), 3.0), BlockType((3, 3), 2.0), BlockType((2, 0), 9.0))
    made = Workload(None, None, paths, kinds)  # type: ignore[arg-type]
    few = few_kinds(made)
    # By weight: paths 2 and 0 (half and 10 nodes), path 0 (nothing new), paths 1 and 2: 2 · half - 1 + 10 are enough.
    assert [kind.weight for kind in few.block_types] == [9, 5, 3]
    assert few.paths == (paths[0], paths[1], paths[2])
    assert [kind.paths for kind in few.block_types] == [(2, 0), (0,), (1, 2)]
    # One node fewer than enough: the last kind comes too.
    less = replace(made, paths=(paths[0], path(half - 11), *paths[2:]))
    assert [kind.weight for kind in few_kinds(less).block_types] == [9, 5, 3, 2]
    assert few_kinds(less).block_types[-1].paths == (3, 3)


def test_the_stand_in_has_some_whole_waves_and_the_partial_last_one() -> None:
    """Launches of twice the whole waves have the same stand-in; one of a block more on some SMs has a longer one."""
    gpu = round_gpu()
    args = {"x": "f32[512]", "n": 256}
    source = LOOP.replace("blockIdx.x * blockDim.x + ", "")

    def seconds(blocks: int) -> float:
        return Probe(prepare_kernel(source, gpu=gpu, grid=blocks, block=512, args=args)).seconds()

    resident = prepare_kernel(source, gpu=gpu, grid=10, block=512, args=args).costed.blocks_per_sm
    some, more = seconds(10 * resident * 1000), seconds(10 * resident * 2000)
    assert some == pytest.approx(more, rel=1e-3)
    assert seconds(10 * resident * 1000 + 1) > 1.05 * some


@pytest.mark.parametrize("together", [False, True])
def test_iterations_are_left_out_unless_warps_wait_for_each_other_in_them(
    together: bool, ready: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 iterations of 8 warps are far more than 100 instructions; all blocks run at once, so that none is left out.

    The line through two lengths then stands for all iterations.
    """
    if together:
        loop = LOOP.replace("v = v * v + 1.5f;", '{ v = v * v + 1.5f; asm volatile("bar.sync 1, 64;"); }')
        half = loop.replace("#pragma", "  if (threadIdx.x < 64)\n#pragma")
        ready = prepare_kernel(half, gpu=ready.gpu, grid=20, block=128, args={"x": "f32[2560]", "n": 64})
    assert ready.costed.synchronises == together
    ran: list[int] = []

    def counted(workload: CostedWorkload, share: Share, **options: Any) -> SimulationResult:
        result = simulate(workload, share, **options)
        ran.append(result.issued)
        return result

    monkeypatch.setattr("drywarp.pipeline.extrapolate.simulate", counted)
    whole = Probe(ready).seconds()
    monkeypatch.setattr("drywarp.analysis.uncertainty.constants.BUDGET", 100)
    assert Probe(ready).seconds() == (whole if together else pytest.approx(whole, rel=0.05))
    everything, *shorter = ran
    assert (shorter == [everything]) if together else (len(shorter) == 2 and sum(shorter) < everything / 2)


def test_an_assumption_weighs_in_the_band_what_it_weighs_in_the_launch(
    ready: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40,000 iterations of arithmetic and 4 of loads: shortened to one scale, the loads would take most of the time."""
    loads = LOOP.replace(
        "  x[",
        "  int at = threadIdx.x;\n#pragma unroll 1\n"
        "  for (int k = 0; k < m; ++k) at = __float_as_int(x[at & 127]) & 1;\n  v += at;\n  x[",
        1,
    )
    loads = loads.replace("int n)", "int n, int m)").replace("float v = x[blockIdx.x * blockDim.x + threadIdx.x];",
                                                             "float v = n;")  # fmt: skip
    args = {"x": "f32[2560]", "n": 40_000, "m": 4}
    uneven = prepare_kernel(loads, gpu=ready.gpu, grid=20, block=128, args=args)
    far = {"memory.l1.latency": 200.0}
    slow = Change(gpu=scaled(uneven.gpu, far))

    def share_of_the_time(budget: int) -> float:
        monkeypatch.setattr("drywarp.analysis.uncertainty.constants.BUDGET", budget)
        probe = Probe(uneven)
        return probe.seconds(slow) / probe.seconds() - 1

    whole, small = share_of_the_time(10**9), share_of_the_time(4000)
    assert 0.005 < whole < 0.3
    assert small == pytest.approx(whole, rel=0.05)


# Put together ---------------------------------------------------------------------------------------------------


def test_two_and_three_parts_put_together() -> None:
    # Factors 4 and 8 are 2 and 3 doublings: √(2² + 3²) doublings together. The other way one halving alone.
    band = combine(10.0, 0.9, [part("a", [4.0], ""), part("b", [0.5, 8.0], "")])
    assert band.high_s == pytest.approx(10 * 2 ** math.sqrt(13), rel=1e-6)
    assert band.low_s == pytest.approx(5)
    # 3, 4 and 12 doublings make 13; the clock's factor 2 comes on top of that.
    three = [part("a", [8.0], ""), part("b", [16.0], ""), part("c", [4096.0], ""), part(CLOCK, [0.5, 2.0], "")]
    band = combine(1.0, 0.9, three, (1.0, 2.0))
    assert (band.high_at_clock_s, band.high_s) == (pytest.approx(2**13, rel=1e-6), pytest.approx(2**14, rel=1e-6))
    assert (band.low_at_clock_s, band.low_s, band.clock_hz) == (1, 0.5, (1.0, 2.0))
    # Without a part of the clock there is no range of clocks.
    assert combine(1.0, 0.9, three[:3], (1.0, 2.0)).clock_hz is None
    assert [p.name for p in band.parts] == ["c", "b", "a", CLOCK]
    assert band.level == 0.9
    # Six digits behind the point: more would differ from one mathematical library to the next.
    assert (part("a", [1.23456789, 0.123456789], "").high, part("a", [0.123456789], "").low) == (1.234568, 0.123457)


def test_a_kernel_of_which_all_is_known_keeps_what_is_left_to_the_model() -> None:
    options = Options(clock_mhz=1000.0, scheduler="oldest_first", warm_l2=True)
    sure = of_kind(round_gpu(), "measured")
    known = prepare_kernel(LOOP, gpu=sure, grid=20, block=128, args={"x": "f32[2560]", "n": 8}, options=options)
    known = replace(known, compiled=False)  # as if from a cubin
    seen = get_model("pipeline").predict(known.costed, ())
    band = band_of(known, options, seen)
    assert band is not None
    residual = KNOWN.model.rest.value
    assert [p.name for p in band.parts] == [MODEL]
    assert (band.low_s, band.high_s) == (
        pytest.approx(seen.time_s / residual, rel=1e-5),
        pytest.approx(seen.time_s * residual, rel=1e-5),
    )
    assert (band.level, band.clock_hz) == (KNOWN.level, None)
    # None of the kernels that the narrow factor comes from ran ahead of its warps.
    for class_ in ("bulk_copy", "wgmma", "tcgen05"):
        first, *others = known.kernel.instructions
        kernel = replace(known.kernel, instructions=(replace(first, class_=class_), *others))
        wide = band_of(replace(known, kernel=kernel), options, seen)
        assert wide is not None
        assert wide.high_s == pytest.approx(seen.time_s * KNOWN.model.asynchronous.value, rel=1e-5)
    # Only of the model whose error was measured, of what was emulated, and of a time.
    assert band_of(known, options, replace(seen, model="volkov")) is None
    assert band_of(known, options, replace(seen, time_s=0.0)) is None
    assert band_of(known, options, replace(seen, time_s=math.inf)) is None
    assert band_of(replace(known, static=SimpleNamespace()), options, seen) is None  # type: ignore[arg-type]


def test_each_part_is_the_ratio_to_the_usual_time(ready: Prepared, prediction: Prediction) -> None:
    options = Options(scheduler=ready.costed.policy, warm_l2=True)
    band = band_of(ready, options, idle(prediction))
    assert band is not None
    parts = {p.name: p for p in band.parts}
    probe = Probe(ready)
    slower = probe.seconds(Change(clock_mhz=500.0)) / probe.seconds()
    assert (parts[CLOCK].low, parts[CLOCK].high) == (1, pytest.approx(slower, abs=1e-6))
    assert band.clock_hz == (500e6, 1000e6)
    assert band.high_s == pytest.approx(slower * band.high_at_clock_s, rel=1e-5)
    assert band.low_s == band.low_at_clock_s


def test_constants_are_those_of_a_product() -> None:
    gpu = load_gpu("a100")
    twice = scaled(
        gpu, {"memory.l2.bytes_per_cycle": 2.0, "classes.fp32.lambda": 0.5, "device.block_launch_latency": 3.0}
    )
    assert twice.memory.l2.bytes_per_cycle == 2 * gpu.memory.l2.bytes_per_cycle
    assert twice.classes["fp32"].lambda_ == gpu.classes["fp32"].lambda_ / 2
    assert twice.device.block_launch_latency == 3 * gpu.device.block_launch_latency
    assert twice.memory.l1 == gpu.memory.l1
    assert twice.classes["fp64"] == gpu.classes["fp64"]
