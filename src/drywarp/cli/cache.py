"""`drywarp cache`: what is kept between runs."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer


class Action(StrEnum):
    """What may be done with the cache."""

    show = "show"
    clear = "clear"


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="cache")(command)


def command(
    action: Annotated[Action, typer.Argument(help="show says where it is and what it holds.")] = Action.show,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Show or clear what is kept between runs: compiled kernels and loops, emulations, answers of rows, headers."""
    from .. import __version__
    from ..frontends import cache
    from ..report.json_text import json_text
    from ..report.units import bytes_text
    from ..result import SCHEMA_VERSION

    held = cache.clear() if action is Action.clear else cache.usage()
    if json:
        body = {"folder": str(held.folder), "entries": held.entries, "bytes": held.bytes, "writable": held.writable}
        head = {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}, "action": action.value}
        sys.stdout.write(json_text({**head, **body}))
        return
    done = "cleared" if action is Action.clear else "holds"
    size = bytes_text(held.bytes)
    print(f"{held.folder}: {done} {held.entries} kernels, {size} with emulations, answers, compiled loops and headers")
