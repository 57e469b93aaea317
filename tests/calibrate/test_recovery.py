"""Constants that are put into a GPU file come out of timings of the simulation, within 3 %.

The files differ from the packaged ones in every constant that is asked for, so that nothing can have been read.
`benchmarks/calibration_recovery.py` does the same for all that is measured.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drywarp.experiments.calibrate import Calibration, caches, calibrate, chains
from drywarp.experiments.calibrate import caches as conflicts
from drywarp.experiments.calibrate import chains as operations
from drywarp.experiments.calibrate import dram as l2
from drywarp.experiments.calibrate import dram as random_access
from drywarp.experiments.calibrate.card import SimulatedCard
from drywarp.hardware import load_gpu

pytestmark = pytest.mark.exhaustive  # by default `test_model_card.py` runs every experiment
CLASSES = ("sfu", "fp64", "fp32", "shuffle")
ONLY = ("issue", "chains", "barrier", "shared", "caches", "l2", "dram", "random", "blocks")
WITHIN = 0.03

A100 = {
    "scheduler.taken_cycles": 19,
    "device.block_launch_latency": 433,
    "classes.sfu.lambda": 11,
    "classes.sfu.latency": 23,
    "classes.fp64.lambda": 5,
    "classes.fp64.latency": 13,
    "classes.fp32.lambda": 3,
    "classes.shuffle.lambda": 1.5,
    "classes.shuffle.latency": 31,
    "classes.barrier.lambda": 3,
    "classes.barrier.latency": 37,
    "classes.shared_load.lambda": 2,
    "classes.shared_store.lambda": 3,
    "classes.shared_atomic.lambda": 4,
    "classes.global_load.lambda": 2,
    "classes.global_store.lambda": 3,
    "classes.global_atomic.lambda": 5,
    "memory.shared.latency": 41,
    "memory.shared.bytes_per_cycle": 160,
    "memory.l1.latency": 47,
    "memory.l2.near_latency_ns": 190,
    "memory.l2.far_latency_ns": 190,
    "memory.l2.bytes_per_cycle": 2500,
    "memory.l2.bytes_per_cycle_per_sm": 48,
    "memory.dram.latency_ns": 520,
    "memory.dram.read_gbs": 1100,
    "memory.dram.write_gbs": 900,
    "memory.dram.copy_gbs": 1000,
}
RTX3090 = {
    "scheduler.taken_cycles": 9,
    "device.block_launch_latency": 120,
    "classes.sfu.lambda": 6,
    "classes.sfu.latency": 30,
    "classes.fp64.lambda": 40,
    "classes.fp32.lambda": 1.6,
    "classes.shuffle.lambda": 3,
    "classes.shuffle.latency": 19,
    "classes.barrier.lambda": 1.25,
    "classes.barrier.latency": 15,
    "classes.shared_load.lambda": 1.4,
    "classes.shared_store.lambda": 1.8,
    "classes.shared_atomic.lambda": 3,
    "classes.global_load.lambda": 1.5,
    "classes.global_store.lambda": 2.5,
    "classes.global_atomic.lambda": 3.5,
    "memory.shared.latency": 28,
    "memory.shared.bytes_per_cycle": 100,
    "memory.l1.latency": 38,
    "memory.l2.near_latency_ns": 120,
    "memory.l2.far_latency_ns": 120,
    "memory.l2.bytes_per_cycle": 1000,
    "memory.l2.bytes_per_cycle_per_sm": 40,
    "memory.dram.latency_ns": 260,
    "memory.dram.read_gbs": 700,
    "memory.dram.write_gbs": 500,
    "memory.dram.copy_gbs": 600,
}


CASES = (("a100", A100), ("rtx3090", RTX3090))


def perturbed(folder: Path, name: str, constants: dict[str, float]) -> Path:
    """A copy of a packaged GPU with other constants."""
    tables: dict[str, list[str]] = {}
    for key, value in constants.items():
        table, _, leaf = key.rpartition(".")
        tables.setdefault(table, []).append(f'{leaf} = {{ value = {value}, source = "here", kind = "derived" }}')
    lines = ["format = 1", 'title = "Another"', f'inherits = "{name}"', "", "[sources]", 'here = "made up"']
    for table, rows in tables.items():
        lines += ["", f"[{table}]", *rows]
    path = folder / f"other-{name}.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0])
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Calibration, dict[str, float], Path]:
    name, constants = request.param
    folder = tmp_path_factory.mktemp(name)
    path = perturbed(folder, name, constants)
    few = [operation for operation in operations.OPERATIONS if operation.class_ in CLASSES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "for_architecture", lambda arch: few)
        # Fewer points than a real run takes, so that the test is quick.
        for module in (chains, caches, conflicts):
            patch.setattr(module, "occupancies", lambda most: [n for n in (1, 2, 4, 16, 32, 48) if n <= most])
        patch.setattr(conflicts, "STRIDES", (1, 2, 8, 16, 32))
        patch.setattr(l2, "FOOTPRINTS", (1 << 12, 1 << 13, 1 << 16))
        patch.setattr(l2, "PLACES", 4)
        patch.setattr(random_access, "WARPS", (32,))
        patch.setattr(random_access, "OF_L2", ())
        patch.setattr(random_access, "OUTSIDE", ())
        found = calibrate(SimulatedCard(str(path), seed=5), only=ONLY)
    return found, constants, folder


def test_every_changed_constant_comes_out(case: tuple[Calibration, dict[str, float], Path]) -> None:
    found, constants, _ = case
    measured = {figure.key: figure for figure in found.figures}
    off = {key: measured[key].value / value - 1 for key, value in constants.items()}
    assert {key: f"{error:+.1%}" for key, error in off.items() if abs(error) > WITHIN} == {}


def test_spreads_are_of_the_size_of_the_errors(case: tuple[Calibration, dict[str, float], Path]) -> None:
    found, constants, _ = case
    measured = {figure.key: figure for figure in found.figures}
    beyond = [key for key, value in constants.items() if abs(measured[key].value - value) > 5 * measured[key].spread]
    # What the distances of the code or the rounding of ticks add is not noise; few figures are off by it.
    assert len(beyond) <= len(constants) // 4, beyond
    assert all(figure.spread >= 0 for figure in found.figures)


def test_the_file_that_comes_out_holds_them(case: tuple[Calibration, dict[str, float], Path]) -> None:
    found, constants, folder = case
    path = folder / "out.toml"
    path.write_text(found.gpu_file)
    gpu = load_gpu(str(path))
    for key, value in constants.items():
        fact = gpu.fact(key)
        assert fact.value == pytest.approx(value, rel=WITHIN), key
        assert fact.source == "calibrated"
    assert "--simulated" in gpu.sources["calibrated"]


def test_random_sectors_show_the_bandwidths_that_were_put_in(
    case: tuple[Calibration, dict[str, float], Path],
) -> None:
    found, constants, _ = case
    measured = {figure.key: figure.value for figure in found.figures if not figure.in_file}
    from_l2 = constants["memory.l2.bytes_per_cycle"] / random_access.SECTOR
    from_dram = constants["memory.dram.read_gbs"] * 1000 / found.clock_mhz / random_access.SECTOR
    assert measured["random sectors from L2"] == pytest.approx(from_l2, rel=WITHIN)
    assert measured["random sectors from DRAM"] == pytest.approx(from_dram, rel=WITHIN)


@pytest.mark.parametrize("mib", [4.5, 7.25])
def test_the_l2_ends_where_it_was_made_to_whatever_the_driver_states(tmp_path: Path, mib: float) -> None:
    card = SimulatedCard(str(perturbed(tmp_path, "rtx3090", {"memory.l2.bytes": int(mib * (1 << 20))})), seed=5)
    card.attributes = replace(card.attributes, l2_bytes=6 << 20)
    found = calibrate(card, only=["l2-size"])
    end = next(figure for figure in found.figures if figure.key == "end of the L2")
    assert end.value == pytest.approx(mib, rel=WITHIN)
    assert "of the reported 6 MiB" in end.how
    assert abs(end.value - mib) < 5 * end.spread
