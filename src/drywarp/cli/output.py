"""What verbs print and draw: figures are checked before any expensive work, and written once there is a result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError


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
    wanted = []
    for text in texts or ():
        from ..report.figures import check_place

        name = max((one for one in known if text.startswith(f"{one}=")), key=len, default="")
        file = text.removeprefix(f"{name}=")
        if not (name and file):
            raise UsageError(f"--figure {text!r}: expected {form} with one of {', '.join(known)}")
        check_place(Path(file), "--figure")
        wanted.append((name, Path(file)))
    return wanted


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
