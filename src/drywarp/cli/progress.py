"""What is being done, on standard error while it takes long, and only where a person looks on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """A function to tell each stage to; it shows a line that vanishes at the end, or nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield lambda stage: status.update(stage)


@contextmanager
def counter() -> Iterator[Callable[[str, int, int], None]]:
    """A function to tell each finished item to, with how many are done of how many.

    On a terminal one line shows the latest and vanishes at the end; elsewhere a line comes every few seconds.
    """
    if not sys.stderr.isatty():
        told = monotonic()

        def tell(what: str, done: int, of: int) -> None:
            nonlocal told
            if monotonic() - told >= _SECONDS_BETWEEN_LINES or done == of:
                told = monotonic()
                print(f"[{done}/{of}] {what}", file=sys.stderr, flush=True)

        yield tell
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield lambda what, done, of: status.update(f"[{done}/{of}] {what}".replace("[", r"\["))
