"""When each launch and copy of a program runs: streams, copy engines, and the host that submits them.

The host's own work between its calls takes no time here, so that every machine gives the same answer; its calls take
what `[host]` of the GPU file says, in each of its threads. Work of a stream runs in order. Kernels of several streams
run at the same time as far as their blocks fit on the SMs together; each then takes as long as alone, which is a lower
bound. Each direction over the bus has one copy engine on each device; a copy between two devices takes one on either,
at the bus's rate.

A launch with programmatic stream serialization starts as soon as all blocks of the kernel before it on its stream have
called `griddepcontrol.launch_dependents` or ended, and there is room beside it; its `griddepcontrol.wait` lasts until
that kernel has ended (CUDA C++ Programming Guide 13, "Programmatic Dependent Launch").
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..hardware import Gpu

LEGACY, PER_THREAD = 1, 2
"""Handles of the default streams, besides 0."""
MOST_SPANS = 50_000
"""Spans after which a launch that repeats the previous one on its stream only lengthens that one's span."""
_NANO = 1e-9


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of work on the device: what it is, on which stream, and from when to when in seconds.

    `kind` is kernel, copy to device, copy to host, copy on device, copy between devices or fill; `launch` numbers the
    launches. `after` is the number of the span that it waited for, or -1 for the host's call. `count` launches of a
    program that makes very many share one span. `device` is that of the stream.
    """

    kind: str
    name: str
    stream: int
    start_s: float
    end_s: float
    size: int = 0
    launch: int = -1
    after: int = -1
    count: int = 1
    device: int = 0


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a launch may overlap with those before and after it on its stream, in seconds from its start.

    `serial` is False for a launch that may start early. Its first `start_s` need no room on the SMs, and it waits for
    the earlier kernel's end after `waits_s` (None: never). The next one may start from `lets_s` on (None: at the end).
    """

    serial: bool = True
    start_s: float = 0.0
    waits_s: float | None = 0.0
    lets_s: float | None = None


@dataclass
class Stream:
    """`ready` is when its last work ends, and `last` the number of that span.

    `lets` is from when on a launch may start that need not wait for that end; None where nothing may.
    """

    blocking: bool = True
    priority: int = 0
    ready: float = 0.0
    last: int = -1
    device: int = 0
    lets: float | None = None


@dataclass
class Event:
    """`at` is None until it is recorded; `captured` is the stream that records it for a graph, if one does."""

    at: float | None = None
    span: int = -1
    device: int = 0
    captured: int = -1


@dataclass
class Timeline:
    """The work that a program has submitted so far. Times are in seconds from the program's first call.

    Handles of the default streams mean those of `device`, which the calling thread has chosen among `devices`.
    """

    gpu: Gpu
    devices: int = 1
    device: int = 0
    thread: int = 0
    """The host thread that calls now: each has its own time."""
    spans: list[Span] = field(default_factory=list)
    streams: dict[int, Stream] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    _engines: dict[tuple[int, str], tuple[float, int]] = field(default_factory=dict)
    _running: dict[int, list[tuple[float, float, int]]] = field(default_factory=dict)
    _hosts: dict[int, float] = field(default_factory=dict)
    _handles: int = 0x1000

    def __post_init__(self) -> None:
        for device in range(self.devices):
            self.streams[_default(0, device)] = Stream(device=device)
            self.streams[_default(PER_THREAD, device)] = Stream(device=device)

    @property
    def host(self) -> float:
        """The time of the calling thread; one that calls for the first time has that of the first."""
        return self._hosts.setdefault(self.thread, next(iter(self._hosts.values()), 0.0))

    @host.setter
    def host(self, time: float) -> None:
        self._hosts[self.thread] = time

    def created(self, thread: int) -> None:
        """The calling thread has started another thread."""
        self._hosts.setdefault(thread, self.host)

    def joined(self, thread: int) -> None:
        """The calling thread has joined another thread."""
        self.host = max(self.host, self._hosts.pop(thread, 0.0))

    def handle(self) -> int:
        """A unique number for a stream, an event or a graph."""
        self._handles += 8
        return self._handles

    def stream(self, handle: int) -> Stream | None:
        """The stream with this handle."""
        return self.streams.get(_default(handle, self.device) if handle in (0, LEGACY, PER_THREAD) else handle)

    def called(self) -> None:
        """Account for a submission by the host."""
        if self.gpu.host:
            self.host += self.gpu.host.launch_ns * _NANO

    def kernel(
        self,
        stream: int,
        name: str,
        seconds: float,
        share: float,
        launch: int,
        by_host: bool = True,
        overlap: Overlap = Overlap(),
    ) -> Span:
        """Submit a launch; `share` is the fraction of the SMs' room that its blocks take."""
        if by_host:
            self.called()
        start, after = self._begin(stream)
        queue = self.stream(stream) or self.streams[0]
        early = not overlap.serial and queue.lets is not None and after == queue.last and start == queue.ready
        earlier_s, first_s = start, max(queue.lets or 0.0, self.host)
        if early:
            start = min(start, first_s)
        place = queue.device
        running = self._running.setdefault(place, [])
        # Kernels submitted earlier keep their place; this one starts when there is room beside them.
        while (taken := sum(part for _, part, _ in running)) and taken + share > 1:
            end, part, number = min(running)
            running.remove((end, part, number))
            if end > start:
                start, after = end, number
        end_s = start + seconds
        if early:
            start = max(first_s, start - overlap.start_s)
            held = 0.0 if overlap.waits_s is None else earlier_s + seconds - overlap.waits_s
            end_s = max(start + seconds, held)
        span = self._add(Span("kernel", name, stream, start, end_s, 0, launch, after, device=place))
        queue.ready = max(queue.ready, earlier_s if early else 0.0)
        queue.lets = start + min(overlap.lets_s, end_s - start) if overlap.lets_s is not None else end_s
        running[:] = [one for one in running if one[0] > start] + [(span.end_s, share, len(self.spans) - 1)]
        return span

    def copy(self, stream: int, kind: str, size: int, waits: bool, ends: tuple[int, int] | None = None) -> Span:
        """Submit a copy or a fill; `waits`: the host waits for it. `ends` are the devices between which it moves."""
        self.called()
        start, after = self._begin(stream)
        place = (self.stream(stream) or self.streams[0]).device
        source, to = ends or (place, place)
        engines = [(source if kind == "copy to host" else to, kind)]
        if kind == "copy between devices":
            out, into = ("to peers", "from peers") if self._linked() else ("copy to host", "copy to device")
            engines = [(source, out), (to, into)]
        for free, number in (self._engines.get(engine, (0.0, -1)) for engine in engines):
            if free > start:
                start, after = free, number
        end = start + self.seconds_of(kind, size)
        span = self._add(Span(kind, kind, stream, start, end, size, -1, after, device=place))
        for engine in engines:
            self._engines[engine] = span.end_s, len(self.spans) - 1
        if waits:
            self.wait(span.end_s)
        return span

    def _linked(self) -> float | None:
        """The rate of copies between two of these GPUs over links of their own, if they have such."""
        return None if self.gpu.machine_code else self.gpu.device.peer_gbs

    def seconds_of(self, kind: str, size: int) -> float:
        """How long a copy or a fill takes."""
        if kind == "copy between devices" and (linked := self._linked()):
            return size / (linked * 1e9)
        if kind in ("copy to device", "copy to host", "copy between devices"):
            return size / (self.gpu.host.copy_gbs * 1e9) if self.gpu.host else 0.0
        if self.gpu.machine_code:
            return 0.0
        # Both are done by kernels of the driver, which take at least as long as one that does nothing.
        least, dram = (self.gpu.device.kernel_start_ns or 0.0) * _NANO, self.gpu.memory.dram
        return least + (size / (dram.write_gbs * 1e9) if kind == "fill" else 2 * size / (dram.copy_gbs * 1e9))

    def _begin(self, handle: int) -> tuple[float, int]:
        """The earliest start of a stream's next work, and the span that it waits for."""
        stream = self.stream(handle) or self.streams[0]
        others, default = [stream], self.streams[_default(0, stream.device)]
        if stream is default:
            others += [one for one in self.streams.values() if one.blocking and one.device == stream.device]
        elif stream.blocking:
            others.append(default)
        latest = max(others, key=lambda one: one.ready)
        return (latest.ready, latest.last) if latest.ready > self.host else (self.host, -1)

    def _add(self, span: Span) -> Span:
        last = self.spans[-1] if len(self.spans) >= MOST_SPANS else None
        ours = ("kernel", span.name, span.device, span.stream, span.launch)
        if last and (last.kind, last.name, last.device, last.stream, last.launch) == ours:
            self.spans[-1] = replace(last, end_s=span.end_s, count=last.count + 1)
        else:
            self.spans.append(span)
        stream = self.stream(span.stream) or self.streams[0]
        stream.ready, stream.last, stream.lets = span.end_s, len(self.spans) - 1, None
        return span

    # Events and waits ----------------------------------------------------------------------------------------------

    def record(self, event: Event, handle: int) -> None:
        """An event happens when all work before it on the stream is done."""
        start, after = self._begin(handle)
        event.at, event.span = start, after

    def follow(self, handle: int, event: Event) -> None:
        """Further work of the stream waits for the event."""
        stream = self.stream(handle)
        if stream and event.at is not None and event.at > stream.ready:
            stream.ready, stream.last, stream.lets = event.at, event.span, None

    def wait(self, until: float) -> None:
        """Let the host wait for work on the device."""
        self.host = max(self.host, until) + (self.gpu.host.wait_ns * _NANO if self.gpu.host else 0.0)

    def wait_for(self, handle: int | None = None) -> None:
        """The host waits for a stream (None: for all of its device)."""
        if handle is None:
            return self.wait(max(one.ready for one in self.streams.values() if one.device == self.device))
        stream = self.stream(handle)
        return self.wait(stream.ready if stream else 0.0)

    @property
    def end(self) -> float:
        """When everything is done."""
        return max([self.host, *self._hosts.values(), *(span.end_s for span in self.spans)])


def _default(handle: int, device: int) -> int:
    """The handle under which a default stream of a device is held: those of the first are the program's own."""
    return (0 if handle == LEGACY else handle) - 4 * device
