"""What verbs print and draw: figures are checked before any expensive work, and written once there is a result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..support.folders import write_file

if TYPE_CHECKING:
    from ..analysis.result import Analysis

PROFILE_EVENTS = 100_000
"""Default number of instructions in the execution profile of HTML reports and figures."""
FEWEST_TRACE_EVENTS = 1000


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    from ..report.text import json_text

    sys.stdout.write(json_text(value))


def print_text(text: Any) -> None:
    """Print rendered text. Lines are not wrapped, and brackets are no markup."""
    from rich.console import Console

    Console(highlight=False).print(text, markup=False, soft_wrap=True)


def show(json: bool, told: Callable[[], dict[str, Any]], shown: Callable[[], Any]) -> None:
    """Print a result as one JSON object, or as text."""
    print_json(told()) if json else print_text(shown())


def named_figures(
    texts: Sequence[str] | None, known: Collection[str], form: str = "NAME=FILE"
) -> list[tuple[str, Path]]:
    """The `known` figures that `--figure` names, with their files. Raises UsageError for unusable ones."""
    wanted: dict[Path, str] = {}
    for text in texts or ():
        from ..report.figures import check_place

        name = max((one for one in known if text.startswith(f"{one}=")), key=len, default="")
        file = text.removeprefix(f"{name}=")
        if not (name and file):
            raise UsageError(f"--figure {text!r}: expected {form} with one of {', '.join(known)}")
        if Path(file) in wanted:
            raise UsageError(f"--figure {text}: {file} is given twice")
        check_place(Path(file), "--figure")
        wanted[Path(file)] = name
    return [(name, path) for path, name in wanted.items()]


def write_figures(result: Any, wanted: Sequence[tuple[str, Path]], theme: str | None) -> None:
    """Draw the figures that `named_figures` found. Raises UsageError if the result lacks what one of them needs."""
    from ..report.figures import write

    for name, path in wanted:
        write(result.figure(name, theme=theme or "light"), path, "--figure")


def check_plot(plot: str | None, theme: str | None, option: str = "--plot") -> None:
    """Raise UsageError if the file cannot be written, before any expensive work."""
    from ..report.figures import check_place

    check_theme(theme, plot is not None, f"{option} FILE")
    if plot is not None:
        check_place(Path(plot), option)


def write_plot(result: Any, plot: str | None, theme: str | None, option: str = "--plot", name: str = "") -> None:
    """Draw a result's figure, or the one of that name, and write it."""
    from ..report.figures import write

    if plot is not None:
        write(result.figure(*filter(None, [name]), theme=theme or "light"), Path(plot), option)


def check_theme(theme: str | None, used: bool, option: str) -> None:
    """Raise UsageError for an unknown theme, or for a theme without a figure."""
    from ..report.figures.theme import theme_named

    if theme is not None:
        theme_named(theme)
        if not used:
            raise UsageError(f"--figure-theme requires {option}")


@dataclass(frozen=True)
class OutputFiles:
    """The options `--trace`, `--html`, `--figure` and `--events`. Unusable paths are rejected first."""

    trace: str | None
    html: str | None
    events: int | None
    figures: list[tuple[str, Path]]
    theme: str | None = None

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
        from ..report.figures import NEEDS_DETAIL, NEEDS_EVENTS

        events, drawn = self.events, {name for name, _ in self.figures}
        detail: int | None = PROFILE_EVENTS if events is None else events
        if self.html is None and not drawn & {*NEEDS_EVENTS}:
            detail = 0 if drawn & {*NEEDS_DETAIL} else None
        return {"trace": None if self.trace is None else DEFAULT_EVENTS if events is None else events, "detail": detail}

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
        write_figures(result, self.figures, self.theme)
        return said + [f"{name} figure in {path}" for name, path in self.figures]
