"""Calls about order: streams, events, captured graphs."""

from __future__ import annotations

from . import properties as cuda
from .calls import REQUESTS, Answer, Graph, Numbers, State, request
from .timeline import Event, Stream

_NODE_TYPES = ("launch", "copy", "fill", "host_function")
"""In the order of CUDA's node types."""


class OrderCalls(State):
    """Handles these calls."""

    @request
    def _stream_create(self, n: Numbers, data: bytes) -> Answer:
        handle = self.timeline.handle()
        self.timeline.streams[handle] = Stream(not n[0] & 1, n[1], self.timeline.host, device=self.device)
        return Answer(values=(handle,))

    @request
    def _stream_destroy(self, n: Numbers, data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if self.timeline.stream(n[0]) else cuda.INVALID_HANDLE)

    @request
    def _stream_flags(self, n: Numbers, data: bytes) -> Answer:
        stream = self.timeline.stream(n[0])
        return (
            Answer(values=(int(not stream.blocking), stream.priority, stream.device))
            if stream
            else Answer(cuda.INVALID_HANDLE)
        )

    @request
    def _capture_state(self, n: Numbers, data: bytes) -> Answer:
        graph = self.capturing.get(n[0])
        return Answer(values=(1, graph.handle) if graph else (0,))

    @request
    def _stream_wait(self, n: Numbers, data: bytes) -> Answer:
        if self.timeline.stream(n[0]) is None:
            return Answer(cuda.INVALID_HANDLE)
        if n[0] in self.capturing:
            return Answer(cuda.CAPTURE_UNSUPPORTED)
        self.timeline.wait_for(n[0])
        return Answer()

    @request
    def _stream_wait_event(self, n: Numbers, data: bytes) -> Answer:
        event = self.timeline.events.get(n[1])
        if event is None or self.timeline.stream(n[0]) is None:
            return Answer(cuda.INVALID_HANDLE)
        if event.captured in self.capturing:
            self.capturing[n[0]] = self.capturing[event.captured]
        else:
            self.timeline.follow(n[0], event)
        return Answer()

    @request
    def _host_function(self, n: Numbers, data: bytes) -> Answer:
        if n[0] in self.capturing:
            self.capturing[n[0]].steps.append(("host_function", n, b""))
            return Answer(values=(0,))
        self.timeline.wait_for(n[0])
        return Answer(values=(1,))

    @request
    def _event_create(self, n: Numbers, data: bytes) -> Answer:
        handle = self.timeline.handle()
        self.timeline.events[handle] = Event(device=self.device)
        return Answer(values=(handle,))

    @request
    def _event_destroy(self, n: Numbers, data: bytes) -> Answer:
        return Answer(cuda.SUCCESS if self.timeline.events.pop(n[0], None) else cuda.INVALID_HANDLE)

    @request
    def _event_record(self, n: Numbers, data: bytes) -> Answer:
        event = self.timeline.events.get(n[0])
        stream = self.timeline.stream(n[1])
        if event is None or stream is None or event.device != stream.device:
            return Answer(cuda.INVALID_HANDLE)
        event.captured = n[1] if n[1] in self.capturing else -1
        if event.captured < 0:
            self.timeline.record(event, n[1])
        return Answer()

    @request
    def _event_wait(self, n: Numbers, data: bytes) -> Answer:
        event = self.timeline.events.get(n[0])
        if event is None:
            return Answer(cuda.INVALID_HANDLE)
        if event.at is not None:
            self.timeline.wait(event.at)
        return Answer()

    @request
    def _event_elapsed(self, n: Numbers, data: bytes) -> Answer:
        first, last = self.timeline.events.get(n[0]), self.timeline.events.get(n[1])
        if first is None or last is None or first.at is None or last.at is None or first.device != last.device:
            return Answer(cuda.INVALID_HANDLE)
        return Answer(values=(round((last.at - first.at) * 1e9),))

    @request
    def _capture_begin(self, n: Numbers, data: bytes) -> Answer:
        if n[0] == 0 or n[0] in self.capturing:
            return Answer(cuda.CAPTURE_UNSUPPORTED)
        graph = self.capturing[n[0]] = Graph()
        self._held(graph)
        return Answer()

    def _held(self, graph: Graph) -> int:
        """Keep a graph; its handle is also that of a stream, which adds to the graph whatever is submitted to it."""
        handle = graph.handle = self.timeline.handle()
        self.graphs[handle] = self.capturing[handle] = graph
        self.timeline.streams[handle] = Stream(False, 0, 0.0, device=self.device)
        return handle

    @request
    def _graph_create(self, n: Numbers, data: bytes) -> Answer:
        return Answer(values=(self._held(Graph()),))

    @request
    def _capture_end(self, n: Numbers, data: bytes) -> Answer:
        if n[0] in self.graphs or n[0] not in self.capturing:
            return Answer(cuda.INVALID_VALUE)
        graph = self.capturing.pop(n[0])
        # Streams that waited for an event of the captured one were captured with it.
        self.capturing = {one: made for one, made in self.capturing.items() if made is not graph or one == graph.handle}
        return Answer(values=(graph.handle,))

    @request
    def _graph_instantiate(self, n: Numbers, data: bytes) -> Answer:
        if n[0] not in self.graphs:
            return Answer(cuda.INVALID_VALUE)
        return Answer(values=(self._held(Graph(list(self.graphs[n[0]].steps))),))

    @request
    def _graph_append(self, n: Numbers, data: bytes) -> Answer:
        graph, child = self.graphs.get(n[0]), self.graphs.get(n[1])
        if graph is None or child is None:
            return Answer(cuda.INVALID_VALUE)
        graph.steps += child.steps
        return Answer()

    @request
    def _graph_replace(self, n: Numbers, data: bytes) -> Answer:
        """The last step of a graph replaces another one."""
        graph = self.graphs.get(n[0])
        if graph is None or not 0 <= n[1] < len(graph.steps) - 1:
            return Answer(cuda.INVALID_VALUE)
        graph.steps[n[1]] = graph.steps.pop()
        return Answer()

    @request
    def _graph_update(self, n: Numbers, data: bytes) -> Answer:
        made, graph = self.graphs.get(n[0]), self.graphs.get(n[1])
        if made is None or graph is None:
            return Answer(cuda.INVALID_VALUE)
        if [name for name, _, _ in made.steps] != [name for name, _, _ in graph.steps]:
            return Answer(cuda.GRAPH_UPDATE_FAILURE)
        made.steps[:] = graph.steps
        return Answer()

    @request
    def _graph_step_type(self, n: Numbers, data: bytes) -> Answer:
        return Answer(values=(_NODE_TYPES.index(self.graphs[n[0]].steps[n[1]][0]),))

    @request
    def _graph_size(self, n: Numbers, data: bytes) -> Answer:
        graph = self.graphs.get(n[0])
        return Answer(values=(len(graph.steps),)) if graph else Answer(cuda.INVALID_VALUE)

    @request
    def _graph_launch(self, n: Numbers, data: bytes) -> Answer:
        self.timeline.called()
        return self._graph_size(n, data)

    @request
    def _graph_step(self, n: Numbers, data: bytes) -> Answer:
        """One step of a graph: done here, or given to the program to move bytes (1) or to call a function (2)."""
        name, numbers, content = self.graphs[n[0]].steps[n[1]]
        place = {"launch": 8, "copy": 7, "fill": 5, "host_function": 0}[name]
        given = (*numbers[:place], n[2], *numbers[place + 1 :])
        host = self.timeline.host
        answer: Answer = getattr(self, REQUESTS[name])(given, content)
        # The host submits a graph's work in one call.
        self.timeline.host = host
        if answer.status:
            return answer
        if name == "copy":
            return Answer(values=(answer.values[0], *given[:6]))
        return Answer(values=(2, given[1], given[2])) if name == "host_function" else Answer(values=(0,))

    @request
    def _graph_destroy(self, n: Numbers, data: bytes) -> Answer:
        if self.graphs.pop(n[0], None) is None:
            return Answer(cuda.INVALID_VALUE)
        del self.capturing[n[0]], self.timeline.streams[n[0]]
        return Answer()
