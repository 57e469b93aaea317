"""A page for each verb of the command line, from its own help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from drywarp.cli.main import whole_app

from .escape import cell, inline, table
from .page import Page


def command_pages() -> Iterator[Page]:
    """The list first, then each verb with its arguments and options under the headings of `--help`."""
    verbs: dict[str, Any] = get_command(whole_app()).commands  # type: ignore[attr-defined]
    rows = [
        [f'<a href="{cell(name)}.html"><code>{cell(name)}</code></a>', cell(verb.help)] for name, verb in verbs.items()
    ]
    yield Page(
        "commands/index.md",
        "All commands",
        "# Commands\n\nWhat `drywarp VERB --help` prints. Exit status 0: done; 1: a comparison or check failed; 2: "
        "wrong usage or bad input, with one line on standard error.\n\n" + table(["verb", "what it does"], rows) + "\n",
    )
    for name, verb in verbs.items():
        yield Page(f"commands/{name}.md", name, _page(name, verb))


def _page(name: str, verb: Any) -> str:
    parts = [f"# drywarp {inline(name)}", inline(verb.help or "")]
    arguments = [p for p in verb.params if p.param_type_name == "argument"]
    if arguments:
        rows = [[f"<code>{cell(p.name.upper())}</code>", cell(p.help or "")] for p in arguments]
        parts += ["## Arguments", table(["argument", "meaning"], rows)]
    groups: dict[str, list[Any]] = {}
    for option in verb.params:
        if option.param_type_name == "option" and not option.hidden:
            groups.setdefault(getattr(option, "rich_help_panel", None) or "Options", []).append(option)
    for heading, options in groups.items():
        rows = [[f"<code>{cell(_spelt(option))}</code>", cell(option.help or "")] for option in options]
        parts += [f"## {inline(heading)}", table(["option", "meaning"], rows)]
    return "\n\n".join([*parts, "[All commands](index.md)."]) + "\n"


def _spelt(option: Any) -> str:
    names = ", ".join(option.opts)
    return names if option.is_flag else f"{names} {option.metavar or 'VALUE'}"
