"""Bounds on work that do not depend on the speed of the machine: counted calls and lines, and a stop for a hang."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

HANG_SECONDS = 600
"""After so long a test ends that would not end by itself: an outer stop, which no test's claim rests on."""


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions, Python's and C's, the work calls."""
    count = 0

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def lines_of(work: Callable[[], Any]) -> int:
    """How many lines of Python the work runs."""
    count = 0

    def traced(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@contextmanager
def no_hang(seconds: float = HANG_SECONDS) -> Iterator[None]:
    """End work that does not end: for inputs so large that anything but linear work would take hours."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still at work after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
