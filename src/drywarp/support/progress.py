"""How far a long phase is: code below tells, and whoever shows it (the command line) listens; else nothing happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Progress(NamedTuple):
    """How much of the current phase is done; `at_most`: it may end earlier. `part` says what is being done, if known."""

    done: float
    of: float
    at_most: bool = False
    part: str = ""


class _Listener:
    """Who listens in this process; workers that were forked from it do not show anything."""

    hear: Callable[[Progress], None] | None = None
    process = 0


@contextmanager
def listening(hear: Callable[[Progress], None]) -> Iterator[None]:
    """Call `hear` with all progress in this process."""
    before = _Listener.hear, _Listener.process
    _Listener.hear, _Listener.process = hear, os.getpid()
    try:
        yield
    finally:
        _Listener.hear, _Listener.process = before


def tell_progress(done: float, of: float, *, at_most: bool = False, part: str = "") -> None:
    """Say how much of the current phase is done."""
    if _Listener.hear is not None and _Listener.process == os.getpid():
        _Listener.hear(Progress(done, of, at_most, part))
