"""Options that many verbs take, declared once as a dataclass and spread out on each verb's command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar, get_type_hints

R = TypeVar("R")


def spread(command: Callable[..., R]) -> Callable[..., R]:
    """Turn each parameter whose type is a dataclass into one option for each field of it.

    The fields are what typer takes as parameters (see `options`); `PANEL` is their heading in --help. The command
    gets the dataclass made of them.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hints[name] for name in inspect.signature(command).parameters if is_dataclass(hints[name])}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameters += _of_fields(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]

    @wraps(command)
    def run(**given: Any) -> R:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        return command(**given, **made)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters], return_annotation=hints.get("return")
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": hints.get("return")}
    return run


def _of_fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            f.name,
            kind,
            default=None if f.default is MISSING else f.default,
            annotation=_in_panel(hints[f.name], group.PANEL),
        )
        for f in fields(group)
    ]


def _in_panel(hint: Any, panel: str) -> Any:
    """The same option in a panel of --help of its own."""
    option = copy(hint.__metadata__[0])
    option.rich_help_panel = panel
    return Annotated[hint.__origin__, option]
