"""Work that may take so long and no longer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTimeError(BaseException):
    """The time of a box is over. No `Exception`: what runs in the box is not to catch it."""


def start(seconds: float) -> None:
    """Have OutOfTimeError raised in the main thread when `seconds` of wall time have passed."""

    def over(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"{seconds:g} s")

    signal.signal(signal.SIGALRM, over)
    # Once more every second: an exception in a callback of compiled code gets lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)


def stop() -> None:
    """End what `start` began."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def time_box(seconds: float) -> Iterator[None]:
    """`start`, and `stop` at the end of a `with` block. Boxes do not nest."""
    before = signal.getsignal(signal.SIGALRM)
    start(seconds)
    try:
        yield
    finally:
        stop()
        signal.signal(signal.SIGALRM, before)
