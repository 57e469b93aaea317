"""When the work of streams runs: small cases worked out by hand."""

from __future__ import annotations

import pytest

from drywarp.hardware import load_gpu
from drywarp.program import timeline
from drywarp.program.result import ProcessRun
from drywarp.program.sum_up import finished
from drywarp.program.timeline import Event, Stream, Timeline

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
