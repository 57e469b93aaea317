"""How the functions of the verbs become command lines: their parameters with the help texts in `options.csv`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .._version import __version__
from ..support.folders import cache_folder, packaged_rows, start, use_threads
from .values import check_positive


class Shown:
    """What this process prints in addition to results."""

    whole_logs = False


def _show_whole_logs(wanted: bool) -> None:
    Shown.whole_logs = Shown.whole_logs or wanted


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"drywarp {__version__}")
        raise typer.Exit


def _use_threads(count: int | None) -> int | None:
    use_threads(count)
    return count


def _stop_after(seconds: float | None) -> float | None:
    """Start the timer that ends the whole command; `main` stops it."""
    if seconds is not None:
        check_positive(seconds, "--seconds")
        start(seconds)
    return seconds


CALLBACKS: dict[str, Callable[[Any], Any]] = {
    "seconds": _stop_after,
    "jobs": _use_threads,
    "verbose": _show_whole_logs,
    "version": _print_version,
}
"""What happens as soon as one of these options is read, where it means what it means for most verbs."""


@cache
def _rows() -> dict[tuple[str, str], dict[str, str]]:
    """The rows of `options.csv` by verb, and by every way to write the option as a Python name."""
    found = {}
    for row in packaged_rows(Path(__file__).with_name("options.csv")):
        for written in row["option"].partition("/")[0].split():
            found[row["verb"], written.lstrip("-").replace("-", "_")] = row
    return found


def declared(name: str, type_: Any, verb: str = "", panel: str | None = None) -> Any:
    """The type of a verb's parameter, annotated with what typer needs to know; `panel` is its heading in --help."""
    key = name.strip("_")
    row = _rows().get((verb, key)) or _rows()["", key]
    least, most = (int(row[bound]) if row[bound] else None for bound in ("least", "most"))
    given: dict[str, Any] = {"help": row["help"], "min": least, "max": most, "rich_help_panel": panel}
    given["metavar"] = row["metavar"] or ("" if type_ is bool else None)  # a flag shows no type
    if not row["option"].startswith("-"):
        return Annotated[type_, typer.Argument(**given)]
    if not row["verb"]:
        given["callback"] = CALLBACKS.get(key)
    given["show_default"] = "(default: " not in row["help"]
    return Annotated[type_, typer.Option(*row["option"].split(), **given)]


def as_command(verb: str, function: Callable[..., Any], compiles: bool = False) -> Callable[..., Any]:
    """The command of a verb: each parameter of its function is an option.

    One whose type is a dataclass becomes an option for each field, under the heading `PANEL`; the function receives the
    dataclass made of them. A verb that compiles has the option --verbose as well.
    """
    hints = get_type_hints(function)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []

    def add(name: str, default: Any, type_: Any, panel: str | None = None) -> None:
        taken = declared(name, type_, verb, panel)
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=taken))

    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            types = get_type_hints(groups[name])
            for field in fields(groups[name]):
                add(field.name, field.default, types[field.name], groups[name].PANEL)
        else:
            add(name, parameter.default, hints[name])
    if compiles:
        add("verbose", False, bool)

    @wraps(function)
    def run(**given: Any) -> Any:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        if not compiles:
            return function(**given, **made)
        del given["verbose"]
        status = function(**given, **made)
        _mention_unusable_cache()
        return status

    run.__signature__ = inspect.Signature(parameters, return_annotation=hints.get("return"))  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": hints.get("return")}
    return run


def _mention_unusable_cache() -> None:
    from ..frontends.cache import writable

    if not writable():
        hint = "so every run starts from scratch (set DRYWARP_CACHE_DIR to use another)"
        print(f"drywarp: the cache {cache_folder()} is not writable, {hint}", file=sys.stderr)


def without_validators(command: Any) -> Any:
    """The same command; typer loads pydantic, which takes as long as NumPy, only for values that have to be converted.

    Options that were not given, strings and lists of strings are passed on unchanged.
    """
    for one in (command, *getattr(command, "commands", {}).values()):
        for option in one.get_params(typer.Context(one)):  # that of --help too, which is made here
            option.get_runtime_param = partial(_Unvalidated, option, option.get_runtime_param)
    return command


class _Unvalidated:
    """Replaces typer's `RuntimeParam` of an option, which `validator` makes."""

    def __init__(self, option: Any, validator: Callable[[], Any]) -> None:
        self.option, self.validator = option, validator

    def coerce(self, value: Any, **given: Any) -> Any:
        """The option's value, converted to its type."""
        type_ = self.option.type_descriptor
        if value is None:
            return () if self.option.multiple or self.option.nargs == -1 else None
        if type_.parameter_info.parser is None and not (type_.is_path or type_.is_ranged):
            if type_.annotation in (str, int, float, bool) and type(value) is type_.annotation:
                return value
            if type_.annotation == list[str] and isinstance(value, (list, tuple)) and {*map(type, value)} <= {str}:
                return [*value]
        return self.validator().coerce(value, **given)
