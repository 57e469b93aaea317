"""A whole calibration of a device made of formulas: every experiment, also what the simulation does not have."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.errors import UsageError
from drywarp.experiments.calibrate import FIRST, Calibration, calibrate, chains, experiment_names, issue
from drywarp.experiments.calibrate import chains as operations
from drywarp.experiments.calibrate.card import SimulatedCard
from drywarp.experiments.calibrate.device import Program
from drywarp.experiments.calibrate.journal import cycles_between_loads, loop_of
from drywarp.experiments.calibrate.load import occupancy_over_time
from drywarp.hardware import gpu_names, load_gpu
from tests.effort import first

from .model_card import (
    FAR,
    FLAT,
    L2_END,
    L2_TO_DRAM,
    LOADED,
    NEAR,
    RANDOM_DRAM,
    RANDOM_L2,
    SLOPE,
    SYNC_COST,
    UNDER_WAY,
    WARP_TAKES,
    ModelCard,
)

CLASSES = ("fp32", "sfu", "shuffle")


@pytest.fixture(scope="module")
def found() -> Calibration:
    few = [operation for operation in operations.OPERATIONS if operation.class_ in CLASSES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "for_architecture", lambda arch: few)
        return calibrate(ModelCard(), repeats=3)


def value(found: Calibration, key: str) -> float:
    return next(f.value for f in found.figures if f.key == key)


@pytest.mark.exhaustive
def test_its_constants_come_out(found: Calibration) -> None:
    assert found.experiments == tuple(experiment_names())
    assert value(found, "scheduler.partitions") == 4
    for class_ in CLASSES:
        assert value(found, f"classes.{class_}.latency") == pytest.approx(FLAT, rel=0.01)
        assert value(found, f"classes.{class_}.lambda") == pytest.approx(SLOPE * 4, rel=0.02)
    assert value(found, "memory.shared.banks") == 32
    assert value(found, "memory.shared.bytes_per_cycle") == pytest.approx(128 / SLOPE, rel=0.01)
    assert value(found, "memory.dram.read_gbs") == pytest.approx(500, rel=0.01)
    assert value(found, "device.block_launch_latency") == pytest.approx(300, rel=0.01)


@pytest.mark.exhaustive
def test_what_the_simulation_does_not_have_shows_on_a_card_that_has_it(found: Calibration) -> None:
    assert value(found, "memory.l2.near_latency_ns") == pytest.approx(NEAR, rel=0.01)
    assert value(found, "memory.l2.far_latency_ns") == pytest.approx(FAR, rel=0.01)
    assert value(found, "accesses in flight") == pytest.approx(UNDER_WAY, rel=0.01)
    # A TLB miss stays out of Λ of DRAM.
    assert value(found, "memory.dram.latency_ns") == pytest.approx((NEAR + FAR) / 2 + L2_TO_DRAM, rel=0.01)
    # Random access is slower than coalesced access, and an L2 that keeps nothing ends between two footprints.
    assert value(found, "random sectors from L2") == pytest.approx(RANDOM_L2, rel=0.01)
    assert value(found, "random sectors from DRAM") == pytest.approx(RANDOM_DRAM, rel=0.01)
    end = next(f for f in found.figures if f.key == "end of the L2")
    assert abs(end.value - L2_END / (1 << 20)) <= end.spread < 0.5
    assert "% of the reported 4 MiB" in end.how
    assert not {"end of the L2", "TLB", "two halves of the L2", "limit of accesses in flight"} & set(found.silent)


@pytest.mark.exhaustive
def test_the_file_passes_the_schema_and_names_its_source(found: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text(found.gpu_file)
    gpu = load_gpu(str(path))
    assert gpu.title == "Model card"
    fact = gpu.fact("classes.sfu.latency")
    assert fact.value == pytest.approx(FLAT, rel=0.01)
    assert "Model card" in gpu.sources[fact.source]
    assert re.search(r"± .* = .* ns; dependent chain", fact.note)
    assert "classes.move.lambda" in found.inherited
    assert "classes.sfu.lambda" not in found.inherited


def test_gamma_is_what_barriers_add_over_what_they_would_add_with_one() -> None:
    """GPUPerf, Eqs. 7 and 8: F_sync = Γ · avg_DRAM_lat · #mem_insts / #insts, by the loops of the compiled kernels."""
    card = ModelCard()
    found = calibrate(card, only=["sync"], repeats=3)
    shares, added = [], []
    for length in issue.COMPUTING:
        plain, meets = (card.code(Program("sync", (("LENGTH", str(length)), *more))) for more in ((), (("SYNC", ""),)))
        shares.append(sum(i.opcode == "LDG" for i in loop_of(plain)) / len(loop_of(plain)))
        # The barrier itself takes some cycles of the warp's code.
        code = cycles_between_loads(meets, "LDG") - cycles_between_loads(plain, "LDG")
        added.append(SYNC_COST + code / 32)
    assert value(found, "parameters.sync_gamma") == pytest.approx(sum(added) / (LOADED * sum(shares)))
    curve = next(c for c in found.curves if c.name == "synchronisation")
    assert curve.y == pytest.approx(added)
    assert curve.x == pytest.approx([LOADED * share for share in shares])


@pytest.mark.parametrize("name", first(["a100", *sorted({name for name in gpu_names() if "/" not in name} - {"a100"})]))
def test_packaged_gammas_are_those_of_the_experiment(name: str) -> None:
    """A GPU file whose costs change needs another Γ: `drywarp calibrate --simulated NAME --only sync`."""
    gpu = load_gpu(name)
    if gpu.is_amd:
        assert gpu.parameters.sync_gamma is None
        return
    found = calibrate(SimulatedCard(name, noise=0.0), only=["sync"], repeats=3)
    assert gpu.parameters.sync_gamma == pytest.approx(value(found, "parameters.sync_gamma"), rel=0.01)


def test_single_latencies_are_told_as_volkov_tells_them(tmp_path: Path) -> None:
    """His Table 6.6: minimum, percentiles and maximum at each throughput; 201 latencies, one cycle apart."""
    journal = tmp_path / "journal.jsonl"
    found = calibrate(ModelCard(), only=["latencies"], repeats=3, journal=journal)
    told = [figure for figure in found.figures if figure.key.startswith("latency of single accesses")]
    assert [figure.key.split(", ")[1] for figure in told] == ["1 warps", "4 warps", "16 warps", "32 warps"]
    for figure in told:
        assert figure.value == LOADED + 100
        assert figure.spread == pytest.approx(180 / 3.29)
        assert "; min 500, 5 % 510, 25 % 550, 50 % 600, 75 % 650, 95 % 690, max 700;" in figure.how
    curve = next(c for c in found.curves if c.name == "latencies-16")
    assert curve.x == pytest.approx([LOADED + 2 * percent for percent in range(1, 100)])
    # And again from the journal alone, which a card that cannot be watched shows.
    silent = ModelCard()
    silent.watch = None  # type: ignore[assignment, method-assign]
    assert calibrate(silent, only=["latencies"], repeats=3, journal=journal).figures == found.figures


def test_occupancy_over_time_is_that_of_the_warps() -> None:
    """Blocks of 17 warps, one on an SM at a time, each warp of which ends a cycle after the one before."""
    found = calibrate(ModelCard(), only=["occupancy"], repeats=3)
    mean = value(found, "active warps, blocks of 17")
    # Four blocks, the last of which has no wait behind it.
    assert mean == pytest.approx(4 * sum(WARP_TAKES + n for n in range(17)) / (4 * (WARP_TAKES + 17) - 1))
    curve = next(c for c in found.curves if c.name == "occupancy-17")
    assert curve.y[:4] == (17, 17, 16, 16)
    assert curve.x[:4] == (0, WARP_TAKES, WARP_TAKES, WARP_TAKES + 1)
    assert curve.y[-1] == 0


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)).map(lambda its: (its[0], its[0] + its[1])), min_size=1)
)
def test_active_warps_over_time_are_the_warps_lives(lives: list[tuple[int, int]]) -> None:
    moments, active = occupancy_over_time(lives)
    assert moments == sorted(set(moments))
    assert active[-1] == 0
    area = sum(now * (after - before) for now, before, after in zip(active, moments, moments[1:], strict=False))
    assert area == sum(end - start for start, end in lives)
    assert max(active) == max(sum(start <= moment < end for start, end in lives) for moment, _ in lives)


def test_the_simulation_shows_what_volkov_saw() -> None:
    """§5.8: a block of 17 warps on four schedulers leaves some of them ahead; §6.6: latencies spread under load."""
    found = calibrate(SimulatedCard("a100"), only=["latencies", "occupancy"], repeats=1)
    assert value(found, "active warps, blocks of 17") < 0.9 * 17
    assert value(found, "active warps, blocks of 4") > 0.95 * 64
    few, many = (
        next(f for f in found.figures if f.key == f"latency of single accesses, {warps} warps") for warps in (1, 64)
    )
    assert many.value > 1.3 * few.value
    assert many.spread > few.spread
    assert few.value == pytest.approx(load_gpu("a100").memory.dram.latency_ns * found.clock_mhz / 1000, rel=0.02)


def test_only_some_experiments(tmp_path: Path) -> None:
    found = calibrate(ModelCard(), only=["blocks"], repeats=3)
    assert found.experiments == (FIRST, "blocks")
    assert found.gpu_file == ""
    assert "memory.dram.read_gbs: not measured" in found.inherited
    with pytest.raises(UsageError, match="unknown experiment 'chain'; there are: issue, chains"):
        calibrate(ModelCard(), only=["chain"])


def test_an_unknown_architecture_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no packaged architecture has compute capability 8\.8"):
        calibrate(ModelCard(capability="8.8"), only=["dram"], repeats=3)


@pytest.mark.parametrize("stated", [0.0, 400.0, 900.0])
def test_a_file_comes_out_whatever_the_driver_states_of_the_memory(stated: float, tmp_path: Path) -> None:
    card = ModelCard()
    card.attributes = replace(card.attributes, memory_peak_gbs=stated)
    path = tmp_path / "model.toml"
    path.write_text(calibrate(card, only=["dram"], repeats=3).gpu_file)
    gpu = load_gpu(str(path))
    peak, read = gpu.fact("memory.dram.peak_gbs"), gpu.fact("memory.dram.read_gbs")
    assert peak.value == pytest.approx(stated or 500, rel=0.01)
    assert peak.kind == ("documented" if stated else "assumed")
    assert read.value == pytest.approx(min(500, stated or 500), rel=0.01)
    # A rate above the peak is not the file's, and the note says what was measured.
    assert ("500 measured, limited to the driver's peak" in read.note) == (stated == 400)
