"""`drywarp reproduce`: the published numbers of the papers, computed again."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="reproduce")(command)


def command(
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/reproduction.md.")] = False,
) -> int:
    """Compute every published number of the papers again; exit status 1 if one fails."""
    from ..errors import UsageError
    from ..report.json_text import json_text
    from ..report.reproduction import render_reproduction, reproduction_dict, reproduction_markdown
    from ..reproduction.reproduce import reproduce, totals

    if json and markdown:
        raise UsageError("--json and --markdown: expected one of them")
    rows = reproduce()
    count = totals(rows)
    if json:
        sys.stdout.write(json_text(reproduction_dict(rows, count)))
    elif markdown:
        sys.stdout.write(reproduction_markdown(rows, count))
    else:
        from rich.console import Console

        Console(highlight=False).print(render_reproduction(rows, count), soft_wrap=True)
    return 1 if count["failed"] else 0
