"""What Google's document "Trace Event Format" demands of a file, as far as traces of ours use it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def check_format(content: Any) -> None:
    """Assert that a decoded file is in the JSON Object Format and follows the rules of each phase of event.

    Besides: events that have a time come in its order, complete events of a thread nest or follow one another exactly,
    and times are whole numbers. Perfetto multiplies by a thousand and cuts off what is left behind the point, and
    drops slices that overlap by as little as that.
    """
    assert isinstance(content, dict)
    assert "displayTimeUnit" not in content, "some readers take it for the unit of ts"
    assert isinstance(content["traceEvents"], list)
    assert next(iter(content)) == "traceEvents", "early readers stop at a key that they do not know"
    latest = 0
    open_slices: dict[tuple[int, int], list[int]] = defaultdict(list)
    named: set[int] = set()
    for event in content["traceEvents"]:
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int
        if event["ph"] == "M":
            _check_metadata(event)
            named |= {event["tid"]} if event["name"] == "thread_name" else set()
            continue
        assert type(event["ts"]) is int
        assert event["ts"] >= latest
        latest = event["ts"]
        if event["ph"] == "C":
            assert event["args"]
            assert all(type(value) in (int, float) for value in event["args"].values())
        else:
            assert event["ph"] == "X", "a phase that traces of ours have no use for"
            assert event["tid"] in named
            _check_slice(event, open_slices[event["pid"], event["tid"]])


def _check_metadata(event: dict[str, Any]) -> None:
    key, kind = METADATA[event["name"]]
    assert set(event["args"]) == {key}
    assert type(event["args"][key]) is kind
    if event["name"].startswith("thread"):
        assert type(event["tid"]) is int


def _check_slice(event: dict[str, Any], ends: list[int]) -> None:
    assert type(event["tid"]) is int
    assert isinstance(event["cat"], str)
    assert type(event["dur"]) is int
    assert event["dur"] >= 0
    assert isinstance(event.get("args", {}), dict)
    start, end = event["ts"], event["ts"] + event["dur"]
    while ends and ends[-1] <= start:
        ends.pop()
    assert not ends or end <= ends[-1], "slices of a thread overlap without nesting"
    ends.append(end)
