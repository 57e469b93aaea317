"""Files that `drywarp analyze` writes beside what it prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .figures import Figures

if TYPE_CHECKING:
    from ..result import Analysis

PROFILE_EVENTS = 100_000
"""Instructions of the execution profile of an HTML report and of figures, unless told."""

FEWEST_TRACE_EVENTS = 1000


@dataclass(frozen=True)
class OutputFiles:
    """`--trace`, `--html`, `--figure`, and `--events` of them. Places that cannot be are refused first."""

    trace: str | None
    html: str | None
    events: int | None
    figures: Figures

    def __post_init__(self) -> None:
        if self.events is not None and not self:
            raise UsageError("--events is for --trace FILE, --html FILE and --figure NAME=FILE")
        if self.trace and self.events is not None and self.events < FEWEST_TRACE_EVENTS:
            raise UsageError(f"--events {self.events}: expected {FEWEST_TRACE_EVENTS} or more with --trace")
        for option, name in (("--trace", self.trace), ("--html", self.html)):
            if name is not None and (Path(name).is_dir() or not Path(name).parent.is_dir()):
                raise UsageError(f"{option} {name}: expected the name of a file in a folder that exists")

    def __bool__(self) -> bool:
        return self.trace is not None or self.html is not None or bool(self.figures)

    def __str__(self) -> str:
        return "--trace" if self.trace is not None else "--html" if self.html is not None else "--figure"

    def settings(self) -> dict[str, Any]:
        """As fields of `drywarp.Options`."""
        from ..execution_trace import DEFAULT_EVENTS

        events = self.events
        profile = PROFILE_EVENTS if events is None else events
        return {
            "trace": None if self.trace is None else DEFAULT_EVENTS if events is None else events,
            "detail": self.figures.detail(profile) if self.html is None else profile,
        }

    def write(self, result: Analysis) -> list[str]:
        """Write them, and say so: lines for the terminal."""
        said = []
        if self.trace is not None:
            from ..report.trace import write_trace

            events = write_trace(result, self.trace)
            said.append(f"{events:,} events in {self.trace}: open it at https://ui.perfetto.dev")
        if self.html is not None:
            from ..report.html import html_page

            try:
                Path(self.html).write_text(html_page(result), encoding="utf-8")
            except OSError as error:
                raise UsageError(f"--html {self.html}: cannot be written ({error.strerror})") from None
        self.figures.write(result)
        return said
