"""`drywarp explain`: what a rule of the advice looks for, and what to do about it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="explain")(command)


def command(
    rule: Annotated[str | None, typer.Argument(help="A rule that `drywarp analyze` named.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """List the rules of the advice, or explain one: what it finds, why that costs time, what to change."""
    from ..advice.rules import rule_texts
    from ..report.explain import render_rule, render_rules, rules_dict
    from ..report.json_text import json_text

    texts = rule_texts(rule)
    if json:
        sys.stdout.write(json_text(rules_dict(texts)))
    else:
        typer.echo(render_rules(texts) if rule is None else render_rule(texts[0]))
