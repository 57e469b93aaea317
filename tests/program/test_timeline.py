"""When the work of streams runs: small cases worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drywarp.hardware import load_gpu
from drywarp.program import timeline
from drywarp.program.result import ProcessRun
from drywarp.program.sum_up import finished
from drywarp.program.timeline import Event, Overlap, Stream, Timeline
from tests.program.conftest import built

GPU = load_gpu("h100")
LAUNCH, WAIT, COPY = GPU.host.launch_ns * 1e-9, GPU.host.wait_ns * 1e-9, GPU.host.copy_gbs * 1e9  # type: ignore[union-attr]
MS = 1e-3


def with_streams(count: int, blocking: bool = True) -> tuple[Timeline, list[int]]:
    line = Timeline(GPU)
    handles = [line.handle() for _ in range(count)]
    line.streams |= {handle: Stream(blocking) for handle in handles}
    return line, handles


@pytest.mark.parametrize(("name", "linked"), [("h100", True), ("a100", False)])
def test_copies_between_devices_have_links_of_their_own_where_there_are_some(name: str, linked: bool) -> None:
    """Over NVLink they have its rate and leave the bus alone; else they take the bus of both devices."""
    gpu = load_gpu(name)
    assert gpu.host is not None
    line = Timeline(gpu, 2)
    handles = [line.handle() for _ in range(2)]
    line.streams |= {handle: Stream(False) for handle in handles}
    between = line.copy(handles[0], "copy between devices", 10**9, False, (0, 1))
    to_host = line.copy(handles[1], "copy to host", 10**9, False)
    assert close(between.end_s - between.start_s, 1 / (gpu.device.peer_gbs if linked else gpu.host.copy_gbs))
    assert (to_host.start_s < between.end_s) == linked
    assert close(to_host.end_s - to_host.start_s, 1 / gpu.host.copy_gbs)


@pytest.mark.parametrize("kind", ["fill", "copy on device"])
def test_fills_and_copies_on_a_device_take_as_long_as_a_kernel_that_does_nothing(kind: str) -> None:
    line, least = Timeline(GPU), GPU.device.kernel_start_ns * 1e-9  # type: ignore[operator]
    none, small, large = (line.seconds_of(kind, size) for size in (0, 8 << 10, 1 << 30))
    assert none == least > 1e-6
    assert least < small < 1.02 * least
    rate = GPU.memory.dram.write_gbs if kind == "fill" else GPU.memory.dram.copy_gbs / 2
    assert close(large, least + (1 << 30) / (rate * 1e9))


def close(one: float, other: float) -> bool:
    return abs(one - other) < 1e-12


def test_work_of_a_stream_runs_in_order_and_the_host_does_not_wait() -> None:
    line = Timeline(GPU)
    first, second = line.kernel(0, "a", MS, 1.0, 0), line.kernel(0, "b", MS, 1.0, 1)
    assert close(first.start_s, LAUNCH)
    assert close(second.start_s, first.end_s)
    assert second.after == 0
    assert close(line.host, 2 * LAUNCH)
    line.wait_for(0)
    assert close(line.host, second.end_s + WAIT)
    assert line.end == line.host


def test_kernels_share_the_device_as_far_as_their_blocks_fit() -> None:
    line, (one, two, three) = with_streams(3)
    first, second = line.kernel(one, "a", MS, 0.5, 0), line.kernel(two, "b", 2 * MS, 0.5, 1)
    third = line.kernel(three, "c", MS, 0.25, 2)
    assert close(second.start_s, 2 * LAUNCH)
    assert close(third.start_s, first.end_s)
    assert third.after == 0


def test_the_default_stream_waits_for_all_blocking_streams() -> None:
    line, (blocking,) = with_streams(1)
    apart = line.handle()
    line.streams[apart] = Stream(blocking=False)
    first = line.kernel(blocking, "a", MS, 0.1, 0)
    beside = line.kernel(apart, "b", MS, 0.1, 1)
    default = line.kernel(0, "c", MS, 0.1, 2)
    later = line.kernel(blocking, "d", MS, 0.1, 3)
    assert beside.start_s < first.end_s
    assert close(default.start_s, first.end_s)
    assert close(later.start_s, default.end_s)


def test_each_direction_has_one_engine() -> None:
    line, (one, two) = with_streams(2)
    size = int(COPY * MS)
    first, second = line.copy(one, "copy to device", size, False), line.copy(two, "copy to device", size, False)
    back = line.copy(two, "copy to host", size, False)
    assert close(first.end_s - first.start_s, size / COPY)
    assert close(second.start_s, first.end_s)
    assert close(back.start_s, second.end_s)  # in order on its stream
    beside = line.copy(one, "copy to host", size, False)
    assert close(beside.start_s, back.end_s)


def test_events_join_streams() -> None:
    line, (one, two) = with_streams(2)
    event = Event()
    line.kernel(one, "a", MS, 0.1, 0)
    line.record(event, one)
    line.follow(two, event)
    after = line.kernel(two, "b", MS, 0.1, 1)
    assert event.at is not None
    assert close(after.start_s, event.at)
    assert after.after == 0


def test_a_synchronous_copy_holds_the_host() -> None:
    line = Timeline(GPU)
    span = line.copy(0, "copy to host", 1 << 20, True)
    assert close(line.host, span.end_s + WAIT)


def test_very_many_equal_launches_share_a_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_SPANS", 2)
    line = Timeline(GPU)
    for launch in (0, 1, 1, 1, 2):
        line.kernel(0, "a", MS, 1.0, launch)
    assert [(span.launch, span.count) for span in line.spans] == [(0, 1), (1, 3), (2, 1)]
    assert close(line.spans[1].end_s, LAUNCH + 4 * MS)
    assert close(line.spans[2].start_s, line.spans[1].end_s)


def test_the_critical_path_is_what_the_end_waited_for() -> None:
    line, (one, two) = with_streams(2)
    line.kernel(one, "long", 3 * MS, 0.5, 0)
    line.kernel(two, "short", MS, 0.5, 1)
    line.wait_for()
    for _ in range(20_000):  # each awaited, so that the host's calls lie between all of them
        line.kernel(one, "step", MS, 1.0, 2)
        line.wait_for(one)
    run = finished((), 0, [ProcessRun(line)], 1e9)
    path = dict(run.critical)
    assert close(path["long"], 3 * MS)
    assert "short" not in path
    assert path["step"] == pytest.approx(20_000 * MS)
    assert sum(path.values()) == pytest.approx(line.spans[-1].end_s)
    assert run.busy_s == pytest.approx(20_003 * MS)


def test_a_launch_that_may_start_early_waits_for_the_end_of_the_one_before() -> None:
    """The first kernel takes half of the SMs for 1 ms and lets the next one start after 0.6 ms."""
    first_alone = Overlap(lets_s=0.6 * MS)

    def second(overlap: Overlap, share: float = 0.5, first: Overlap = first_alone) -> tuple[float, float]:
        """Start and end of the next launch, in seconds from the first one's start."""
        line = Timeline(GPU)
        begin = line.kernel(0, "a", MS, share, 0, overlap=first).start_s
        span = line.kernel(0, "b", MS, 0.5, 1, overlap=overlap)
        return span.start_s - begin, span.end_s - begin

    assert second(Overlap()) == pytest.approx((MS, 2 * MS))
    # Until its wait it works for 0.2 ms, and then waits for another 0.2 ms; or it waits for nothing.
    early = Overlap(False, 0.1 * MS, 0.2 * MS)
    assert second(early) == pytest.approx((0.6 * MS, 1.8 * MS))
    assert second(Overlap(False, 0.1 * MS, None)) == pytest.approx((0.6 * MS, 1.6 * MS))
    # 0.7 ms of work before the wait end later than the first kernel.
    assert second(Overlap(False, 0.1 * MS, 0.7 * MS)) == pytest.approx((0.6 * MS, 1.6 * MS))
    # Without room only its start is hidden; so it is where the first kernel lets nothing start before it ends.
    assert second(early, share=1.0) == pytest.approx((0.9 * MS, 1.9 * MS))
    assert second(early, first=Overlap()) == pytest.approx((MS, 2 * MS - 0.2 * MS + 0.2 * MS))


def test_only_the_kernel_right_before_lets_a_launch_start_early() -> None:
    line, (one, two) = with_streams(2)
    line.kernel(one, "a", MS, 0.25, 0, overlap=Overlap(lets_s=0.0))
    copied = line.copy(one, "fill", 1 << 20, False)
    after_copy = line.kernel(one, "b", MS, 0.25, 1, overlap=Overlap(False, 0.0, 0.0))
    assert after_copy.start_s == copied.end_s
    event = Event()
    line.kernel(two, "c", 4 * MS, 0.25, 2)
    line.record(event, two)
    line.follow(one, event)
    assert line.kernel(one, "d", MS, 0.25, 3, overlap=Overlap(False, 0.0, 0.0)).start_s == event.at
    # One that waits for nothing may end first, but what comes next waits for both.
    line.kernel(one, "e", 4 * MS, 0.25, 4, overlap=Overlap(lets_s=0.0))
    ends = line.spans[-1].end_s
    assert line.kernel(one, "f", MS, 0.25, 5, overlap=Overlap(False, 0.0, None)).end_s < ends
    assert line.kernel(one, "g", MS, 0.25, 6).start_s == ends


def test_a_program_that_lets_a_kernel_start_early(run: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Both kernels spend nearly all of their time before the wait, so that together they take little more than one."""
    made = built(Path(__file__).with_name("dependent.cu"), tmp_path_factory.getbasetemp(), "sm_90a")

    def device_s(early: str) -> tuple[float, float]:
        """How long the device works on kernels, and the time of the second one alone."""
        ran = run(early, options=("--gpu", "h100"), started=made)
        whole = sum(16 * sms // 4 for sms in GPU.device.gpc_sms)  # 16 blocks of 128 threads an SM, clusters of 4
        alone = sum(sms // 4 for sms in GPU.device.gpc_sms)
        assert ran.output == f"0 wrong\n{whole} clusters, {alone} with an SM for each block\n"
        times = {one["kernel"].split("(")[0]: one["time_s"] for one in ran.result["kernels"]}
        assert set(times) == {"produce", "consume"}
        return ran.result["busy_s"] - sum(one["time_s"] for one in ran.result["copies"]), times["consume"]

    apart, alone = device_s("0")
    together, _ = device_s("1")
    assert apart == pytest.approx(2 * alone, rel=0.05)
    assert together == pytest.approx(alone, rel=0.1)
