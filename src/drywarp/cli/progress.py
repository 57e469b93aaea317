"""Progress on standard error for commands that take long, and what an interrupted one has saved.

A terminal shows one transient line; elsewhere, a command that takes more than ten seconds prints lines. With
``DRYWARP_PROGRESS=off`` there is neither.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, RLock, Thread
from time import monotonic
from types import FrameType

from ..errors import InterruptedRunError, UsageError
from ..support.folders import Progress, listening

SILENT_S, LEAST_S = 10.0, 1.0
"""Seconds before a command without a terminal prints anything, and the shortest phase that it then prints."""
_TICK_S = 0.5
_SECONDS_BETWEEN_LINES = 5.0
_COUNTED = re.compile(r"(?:^|\s)(\d+) of (\d+): ")
"""A stage that says which of several it belongs to, as in: configuration 3 of 12: simulating."""

Tell = Callable[[str, int, int], None]
"""Reports a finished item, the number done and the total."""


VARIABLE = "DRYWARP_PROGRESS"


def _off() -> bool:
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", "off"):
        raise UsageError(f"{VARIABLE} is {asked!r}: expected off or nothing")
    return asked == "off"


@dataclass
class _Phase:
    """Something that takes time: when it began, and how much of it is done."""

    name: str
    began: float
    done: Progress | None = None

    def text(self, now: float) -> str:
        """What it does, elapsed and expected time."""
        spent = now - self.began
        if spent < LEAST_S:
            return self.name
        return f"{self.name}, {clock_text(spent)}{self.left(spent)}"

    def left(self, spent: float) -> str:
        if self.done is None:
            return ""
        if not self.done.done:
            return ""
        left = spent * (self.done.of - self.done.done) / self.done.done
        return f", {'at most' if self.done.at_most else 'about'} {clock_text(left)} left"


@dataclass
class Phases:
    """The phases of a command. `show` displays a line; `lines`: only phases that last, a line each.

    A stage may tell which of several it belongs to (`_COUNTED`); together these are one phase.
    """

    show: Callable[[str], None]
    lines: bool
    began: float = field(default_factory=lambda: monotonic())
    finished: int = 0
    _stage: _Phase | None = None
    _series: _Phase | None = None
    _shown: str = ""
    _lock: RLock = field(default_factory=RLock)

    def stage(self, name: str) -> None:
        """The next stage begins."""
        with self._lock:
            self.finished += self._stage is not None
            self._stage = _Phase(name, monotonic())
            found = _COUNTED.search(name)
            if found is None:
                self._series = None
            else:
                number, of = int(found[1]), int(found[2])
                if self._series is None or self._series.name != found[2]:
                    self._series = _Phase(found[2], monotonic())
                self._series.done = Progress(number - 1, of)
            self.look()

    def hear(self, told: Progress) -> None:
        """Record progress within the stage."""
        with self._lock:
            if self._stage is not None and self._stage.name.rpartition(": ")[2].startswith(told.stage):
                self._stage.done = told

    def look(self) -> None:
        """Show what is running now."""
        with self._lock:
            now, phase = monotonic(), self._stage
            if phase is None:
                return
            whole = self._series
            text = phase.text(now)
            if whole is not None and now - whole.began >= LEAST_S and whole.done is not None and whole.done.done:
                text = f"{phase.name}, {clock_text(now - whole.began)}{whole.left(now - whole.began)}"
            if not self.lines:
                self.show(text)
            elif now - self.began >= SILENT_S and now - phase.began >= LEAST_S:
                key = phase.name.rpartition(": ")[0] if whole is not None else phase.name
                if key != self._shown:
                    self._shown = key
                    self.show(text)

    def interrupted(self) -> str:
        """Where the command was interrupted, and what was saved."""
        where = f" while {self._stage.name}" if self._stage else ""
        spent = clock_text(monotonic() - self.began)
        if not self.finished:
            return f"interrupted after {spent}{where}; nothing was saved"
        return (
            f"interrupted after {spent}{where}; compiled kernels and finished emulations are in"
            " the cache, and the same command will not repeat them"
        )


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """A callback that reports each stage; an interruption is reported with what was saved."""
    with _shown("starting") as (show, terminal):
        phases = Phases(show, not terminal)
        over = Event()
        thread = Thread(target=_tick, args=(phases, over), daemon=True)
        thread.start()
        try:
            with listening(phases.hear):
                yield phases.stage
        except KeyboardInterrupt:
            raise InterruptedRunError(phases.interrupted()) from None
        finally:
            over.set()
            thread.join()


def _tick(phases: Phases, over: Event) -> None:
    while not over.wait(_TICK_S):
        phases.look()


@contextmanager
def _shown(first: str) -> Iterator[tuple[Callable[[str], None], bool]]:
    """A function that shows a line: on a terminal a transient one, elsewhere one that stays."""
    stream = sys.stderr
    if _off():
        yield lambda text: None, False
        return
    if not stream.isatty():
        yield lambda text: print(f"drywarp: {text}", file=stream, flush=True), False
        return
    from rich.console import Console

    with Console(stderr=True).status(first) as status:
        yield lambda text: status.update(text.replace("[", r"\[")), True


@contextmanager
def counter(silent_s: float = 0.0) -> Iterator[Tell]:
    """A callback that reports each finished item, the number done and the total.

    On a terminal, a transient status line shows the latest item; otherwise a line is printed every few seconds, and
    none in the first `silent_s`.
    """
    if _off():
        yield lambda what, done, of: None
        return
    if not sys.stderr.isatty():
        began = told = monotonic()

        def tell(what: str, done: int, of: int) -> None:
            nonlocal told
            now = monotonic()
            if now - began >= silent_s and (now - told >= _SECONDS_BETWEEN_LINES or done == of):
                told = now
                print(f"[{done}/{of}] {what}", file=sys.stderr, flush=True)

        yield tell
        return
    with _shown("starting") as (show, _):
        yield lambda what, done, of: show(f"[{done}/{of}] {what}")


@contextmanager
def rated(silent_s: float = 0.0) -> Iterator[Tell]:
    """Like `counter`, but also shows rows per second and the time left; the rate is that of this run only.

    On a terminal, a progress bar shows the latest item.
    """
    began, first = monotonic(), -1

    def pace(done: int, of: int) -> tuple[float, float]:
        nonlocal first
        # Items from earlier runs count as done, but not towards this run's rate.
        first = done - 1 if first < 0 else first
        rate = (done - first) / max(monotonic() - began, 1e-9)
        return rate, (of - done) / rate

    if _off() or not sys.stderr.isatty():
        with counter(silent_s) as tell:

            def line(what: str, done: int, of: int) -> None:
                rate, left = pace(done, of)
                tell(f"{rate:.2f} rows/s, {clock_text(left)} left; {what}", done, of)

            yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    fields = (TextColumn("{task.fields[pace]}"), TextColumn("{task.fields[what]}"))
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), *fields)
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, pace="", what="starting", start=True)

        def update(what: str, done: int, of: int) -> None:
            rate, left = pace(done, of)
            said = f"{rate:.2f} rows/s, {clock_text(left)} left"
            bar.update(task, total=of, completed=done, pace=said, what=what.replace("[", r"\["))

        yield update


@contextmanager
def resumable(tell: Tell, out: str | None, option: str = "--out") -> Iterator[Tell]:
    """A callback for finished rows; an interruption is reported with the number of rows done, and where they are."""
    latest = (0, 0)

    def on_row(what: str, done: int, of: int) -> None:
        nonlocal latest
        latest = (done, of)
        tell(what, done, of)

    with terminated():
        try:
            yield on_row
        except KeyboardInterrupt:
            done, of = latest
            if not done:
                kept = f"; {out} holds the rows of earlier runs, if any" if out else ""
                raise InterruptedRunError(f"interrupted before another row was done{kept}") from None
            saved = f"they are saved in {out}; rerun the same command to resume"
            end = saved if out else f"none was saved (use {option} FILE to save rows)"
            raise InterruptedRunError(f"interrupted after {done} of {of} rows; {end}") from None


@contextmanager
def terminated() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C: workers are stopped and files closed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def clock_text(seconds: float) -> str:
    """Minutes and seconds, or hours and minutes: 3:07, 2 h 05."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d}"
