"""Figures that a command line asks for: looked over before anything takes time, written when the answer is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UsageError

FigureFiles = Annotated[
    list[str] | None,
    typer.Option(
        help="Write a figure (occupancy, roofline, benefits, stalls, utilization, overlap, profile).",
        metavar="NAME=FILE.svg|FILE.png",
    ),
]
FigureTheme = Annotated[str | None, typer.Option(help="--figure, --plot: light or dark.", metavar="light|dark")]
Plot = Annotated[str | None, typer.Option(help="Draw it as a figure.", metavar="FILE.svg|FILE.png")]


@dataclass(frozen=True)
class Figures:
    """What `--figure` asks for: names and files, in the colours of `--figure-theme`."""

    wanted: tuple[tuple[str, Path], ...] = ()
    theme: str | None = None

    @classmethod
    def parse(cls, texts: Sequence[str] | None, theme: str | None) -> Figures:
        """Raises UsageError for a name, ending, folder or theme that there is not, and without Matplotlib."""
        from ..figures import check_name, check_place

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
        """How many single issues an answer must hold for them; None where it needs no detail at all."""
        from ..figures import NEEDS_DETAIL, NEEDS_EVENTS

        names = {name for name, _ in self.wanted}
        if names & set(NEEDS_EVENTS):
            return events
        return 0 if names & set(NEEDS_DETAIL) else None

    def write(self, answer: Any) -> None:
        """Draw and write them. Raises UsageError where the answer does not hold what one needs."""
        from ..figures import write

        for name, path in self.wanted:
            write(answer.figure(name, theme=self.theme or "light"), path, "--figure")


def check_plot(plot: str | None, theme: str | None) -> None:
    """Raise UsageError where `--plot` cannot be written, before anything takes time."""
    from ..figures import check_place

    check_theme(theme, plot is not None, "--plot FILE")
    if plot is not None:
        check_place(Path(plot), "--plot")


def write_plot(result: Any, plot: str | None, theme: str | None) -> None:
    """Draw the one figure of a result that has one, and write it."""
    from ..figures import write

    if plot is not None:
        write(result.figure(theme=theme or "light"), Path(plot), "--plot")


def check_theme(theme: str | None, used: bool, option: str) -> None:
    """Raise UsageError for a theme that there is not, or without a figure that has it."""
    from ..figures.theme import theme_named

    if theme is not None:
        theme_named(theme)
        if not used:
            raise UsageError(f"--figure-theme is for {option}")
