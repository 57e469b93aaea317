"""`drywarp doctor`: what is installed, and what each missing part would add."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="doctor")(command)


def command(json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False) -> int:
    """Check the installation; exit status 1 where a needed part is missing."""
    from ..doctor import checkup, doctor_dict, healthy
    from ..report.gpus import aligned
    from ..report.json_text import json_text

    parts = checkup()
    if json:
        sys.stdout.write(json_text(doctor_dict(parts)))
    else:
        rows = [[p.name, p.state, p.version, p.purpose + (f" ({p.remedy})" if p.remedy else "")] for p in parts]
        print("\n".join(aligned(rows)))
    return 0 if healthy(parts) else 1
