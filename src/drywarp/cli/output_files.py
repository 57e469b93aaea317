"""Files that `drywarp analyze` writes in addition to its terminal output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..support.folders import write_file
from .output import check_theme

if TYPE_CHECKING:
    from ..analysis.result import Analysis

PROFILE_EVENTS = 100_000
"""Default number of instructions in the execution profile of HTML reports and figures."""
FEWEST_TRACE_EVENTS = 1000


@dataclass(frozen=True)
class Figures:
    """The figures requested by `--figure`: names and files, in the colours of `--figure-theme`."""

    wanted: tuple[tuple[str, Path], ...] = ()
    theme: str | None = None

    @classmethod
    def parse(cls, texts: Sequence[str] | None, theme: str | None) -> Figures:
        """Raises UsageError for an unknown name, suffix, folder or theme, and if Matplotlib is missing."""
        from ..report.figures import check_name, check_place

        check_theme(theme, bool(texts), "--figure NAME=FILE")
        wanted: dict[Path, str] = {}
        for text in texts or ():
            name, equals, file = text.partition("=")
            if not (name and equals and file):
                raise UsageError(f"--figure {text!r}: expected NAME=FILE, as in occupancy=curve.svg")
            check_name(name)
            if Path(file) in wanted:
                raise UsageError(f"--figure {text}: {file} is given twice")
            check_place(Path(file), "--figure")
            wanted[Path(file)] = name
        return cls(tuple((name, path) for path, name in wanted.items()), theme)

    def __bool__(self) -> bool:
        return bool(self.wanted)

    def detail(self, events: int) -> int | None:
        """The number of issue events that the result must hold for them; None if they need no detail."""
        from ..report.figures import NEEDS_DETAIL, NEEDS_EVENTS

        names = {name for name, _ in self.wanted}
        if names & set(NEEDS_EVENTS):
            return events
        return 0 if names & set(NEEDS_DETAIL) else None

    def write(self, answer: Any) -> None:
        """Draw and write them. Raises UsageError if the result lacks the data that a figure needs."""
        from ..report.figures import write

        for name, path in self.wanted:
            write(answer.figure(name, theme=self.theme or "light"), path, "--figure")


@dataclass(frozen=True)
class OutputFiles:
    """The options `--trace`, `--html`, `--figure` and `--events`. Unusable paths are rejected first."""

    trace: str | None
    html: str | None
    events: int | None
    figures: Figures

    def __post_init__(self) -> None:
        if self.events is not None and not self:
            raise UsageError("--events requires --trace FILE, --html FILE or --figure NAME=FILE")
        if self.trace and self.events is not None and self.events < FEWEST_TRACE_EVENTS:
            raise UsageError(f"--events {self.events}: expected {FEWEST_TRACE_EVENTS} or more with --trace")
        for option, name in (("--trace", self.trace), ("--html", self.html)):
            if name is not None and (Path(name).is_dir() or not Path(name).parent.is_dir()):
                raise UsageError(f"{option} {name}: expected a file in an existing folder")

    def __bool__(self) -> bool:
        return self.trace is not None or self.html is not None or bool(self.figures)

    def __str__(self) -> str:
        return "--trace" if self.trace is not None else "--html" if self.html is not None else "--figure"

    def settings(self) -> dict[str, Any]:
        """The fields of `drywarp.Options`."""
        from ..analysis.result.detail import DEFAULT_EVENTS

        events = self.events
        profile = PROFILE_EVENTS if events is None else events
        return {
            "trace": None if self.trace is None else DEFAULT_EVENTS if events is None else events,
            "detail": self.figures.detail(profile) if self.html is None else profile,
        }

    def write(self, result: Analysis) -> list[str]:
        """Write the files; returns lines that report them on the terminal."""
        said: list[str] = []
        if self.trace is not None:
            from ..report.trace import write_trace

            count = write_trace(result, self.trace)
            said += [f"{count:,} events in {self.trace}: open it at https://ui.perfetto.dev"]
        if self.html is not None:
            from ..report.html.page import html_page

            write_file(Path(self.html), html_page(result), "--html")
            said.append(f"report in {self.html}: open it in a browser")
        self.figures.write(result)
        return said + [f"{name} figure in {path}" for name, path in self.figures.wanted]
