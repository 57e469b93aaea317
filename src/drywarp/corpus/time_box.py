"""A part of a module's work that may take so long and no longer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTimeError(BaseException):
    """The time of a box is over. No `Exception`: what runs in the box is not to catch it."""


@contextmanager
def time_box(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the main thread when `seconds` of wall time have passed. Boxes do not nest."""

    def over(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, over)
    # Once more every second: an exception in a callback of compiled code gets lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
