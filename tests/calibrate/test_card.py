"""The card through a driver that is not there: what is launched with what, and what is made of the clocks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from drywarp.errors import ToolError
from drywarp.experiments.calibrate import card as module
from drywarp.experiments.calibrate.card import Card, cycles_of, lives_of
from drywarp.experiments.calibrate.device import Program, Run, Zeros
from drywarp.experiments.device import Card as DeviceCard
from drywarp.experiments.device.driver import Driver

from ..device.fake_driver import ATTRIBUTES, LAUNCH_MS, FakeDriver


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    monkeypatch.setattr(module, "WARM_UP_S", 0.0)
    return FakeDriver()


def test_a_launch_has_its_arguments_and_its_time(fake: FakeDriver) -> None:
    card = Card(card=DeviceCard(Driver(fake)))
    assert card.attributes.sm_count == ATTRIBUTES["MULTIPROCESSOR_COUNT"]
    assert card.attributes.memory_peak_gbs == pytest.approx(3352, rel=0.001)
    run = Run(
        Program("shared", (("OP_LDS", ""), ("LENGTH", "4"))),
        2,
        64,
        {"iterations": 3, "every": 1, "stride": 2, "out": Zeros(4 * 128)},
        shared=4096,
    )
    timings = card.time(run, 2)
    assert len(timings) == 2
    assert fake.launches == 3, "one launch before those that count"
    assert {(grid, block) for _, grid, block, _ in fake.seen} == {((2, 1, 1), (64, 1, 1))}
    assert all(t.ns == pytest.approx(LAUNCH_MS * 1e6) and t.cycles > 0 for t in timings)
    # Without NVML the clock is the one that the driver states.
    assert {t.sm_mhz for t in timings} == {ATTRIBUTES["CLOCK_RATE"] / 1000}


def test_buffers_are_kept_from_launch_to_launch(fake: FakeDriver) -> None:
    card = Card(card=DeviceCard(Driver(fake)))
    program = Program("stream", (("READ", ""),))
    for grid, nbytes in ((3, 1 << 16), (2, 1 << 15), (1, 1 << 16)):
        data = Zeros(1 << 16)
        card.time(Run(program, grid, 64, {"steps": 2, "from": data, "to": Zeros(nbytes), "out": Zeros(64)}), 1)
    sizes = sorted(array.nbytes for array in fake.held.values())
    assert sizes == sorted([3 * 48, 64, 1 << 16, 1 << 16, 2 * ATTRIBUTES["L2_CACHE_SIZE"]])


def test_cycles_are_those_of_the_sm_that_took_longest() -> None:
    rows = [(0, 100, 180), (1, 5000, 5500), (0, 150, 260), (1, 5100, 5450), (0, 0, 0)]
    assert cycles_of(np.array(rows, np.uint64)) == 500
    with pytest.raises(ToolError, match="recorded no clocks"):
        cycles_of(np.zeros(6, np.uint64))


def test_lives_are_those_of_the_warps_of_one_sm(fake: FakeDriver) -> None:
    rows = [(0, 100, 180), (1, 5000, 5500), (1, 5100, 5450), (0, 0, 0)]
    assert lives_of(np.array(rows, np.uint64)) == ((0.0, 500.0), (100.0, 450.0))
    with pytest.raises(ToolError, match="recorded no clocks"):
        lives_of(np.zeros((2, 3), np.uint64))
    card = Card(card=DeviceCard(Driver(fake)))
    given = {"steps": 3, "data": Zeros(1 << 16), "out": Zeros(64), "latencies": Zeros(4 * 64 * 2)}
    seen = card.watch(Run(Program("latency"), 2, 32, given))
    assert fake.launches == 2
    assert min(start for start, _ in seen.warps) == 0
    assert list(seen.latencies) == sorted(seen.latencies)


def test_what_is_too_old_or_absent_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(attributes=SimpleNamespace(compute_capability="6.1", name="GTX 1080"))
    with pytest.raises(ToolError, match=r"GTX 1080 has compute capability 6\.1: expected 7\.5 or later"):
        Card(card=old)  # type: ignore[arg-type]

    def absent(number: int) -> None:
        raise ToolError("no GPU can be used: none is there")

    monkeypatch.setattr(module.device, "open_card", absent)
    with pytest.raises(ToolError, match="none is there; --simulated NAME_OR_FILE"):
        Card()
