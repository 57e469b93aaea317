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


@contextmanager
def rated() -> Iterator[Callable[[str, int, int], None]]:
    """As `counter`, with rows per second and the time that is left; the rate is that of this run.

    On a terminal a bar stands above the latest item, elsewhere a line comes every few seconds.
    """
    began, first = monotonic(), -1

    def pace(done: int, of: int) -> tuple[float, float]:
        nonlocal first
        # Items that were there before the run count as done, not as work of it.
        first = done - 1 if first < 0 else first
        rate = (done - first) / max(monotonic() - began, 1e-9)
        return rate, (of - done) / rate

    if not sys.stderr.isatty():
        with counter() as tell:

            def line(what: str, done: int, of: int) -> None:
                rate, left = pace(done, of)
                tell(f"{rate:.2f} rows/s, {_clock(left)} left; {what}", done, of)

            yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"), TextColumn("{task.fields[what]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, pace="", what="starting", start=True)

        def update(what: str, done: int, of: int) -> None:
            rate, left = pace(done, of)
            said = f"{rate:.2f} rows/s, {_clock(left)} left"
            bar.update(task, total=of, completed=done, pace=said, what=what.replace("[", r"\["))

        yield update


def _clock(seconds: float) -> str:
    """Minutes and seconds, or hours and minutes: 3:07, 2 h 05."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d}"
