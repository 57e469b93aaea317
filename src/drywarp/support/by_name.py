"""Code that is found by name when it is needed: extensions by other packages, and what displays results.

Extensions come through entry points (docs/extending.md). Notebook users expect results to display themselves (`figure`,
`_repr_html_`, `to_pandas`), but rendering belongs in `report` alone, on which the packages that define results must not
depend.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ..errors import UsageError

T = TypeVar("T")


@cache
def plugins(group: str) -> Mapping[str, Any]:
    """The objects that installed packages declare under an entry point group, such as ``drywarp.models``, by name.

    Raises UsageError that names the package if an entry point cannot be loaded.
    """
    if not _any_declared():
        return MappingProxyType({})
    from importlib.metadata import entry_points  # slow to import

    found = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            found[point.name] = point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            raise UsageError(f"{package}: entry point {group}: {point.name}: {type(error).__name__}: {error}") from None
    return MappingProxyType(found)


@cache
def _any_declared() -> bool:
    """Whether an installed package may declare an entry point of drywarp's; places other than folders may.

    Reads a few small files, a tenth of the time that `importlib.metadata` takes.
    """
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            if os.path.exists(place):  # an archive
                return True
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", ".egg")):
                inner = "EGG-INFO" if name.endswith(".egg") else ""
                if _declares(os.path.join(place, name, inner, "entry_points.txt")):
                    return True
    return False


def _declares(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return re.search(rb"^\[\s*drywarp\.", file.read(), re.MULTILINE) is not None
    except OSError:
        return False


@cache
def version_of(package: str) -> str:
    """The version of an installed package as pip recorded it; empty if it is not installed.

    The names of folders say it, without `importlib.metadata`, which takes longer to load than NumPy's core.
    """
    recorded = re.compile("[-_.]".join(package.split("-")) + r"-([^-]+)\.dist-info", re.IGNORECASE)
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        if found := next(filter(None, map(recorded.fullmatch, names)), None):
            return found[1]
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def plugins_of(group: str, kind: type[T]) -> list[T]:
    """Those that must be objects of a type. Raises UsageError that names the entry point of one that is not."""
    for name, found in plugins(group).items():
        if not isinstance(found, kind):
            raise UsageError(f"entry point {group}: {name}: expected a {kind.__name__}, got a {type(found).__name__}")
    return list(plugins(group).values())


def figures() -> Any:
    """The module `drywarp.report.figures`."""
    return import_module("drywarp.report.figures")


def notebook() -> Any:
    """The module `drywarp.report.notebook`."""
    return import_module("drywarp.report.notebook")


def folders_of(package: str) -> list[Path]:
    """The folders of an installed package, which is not imported; none if it is not installed."""
    spec = find_spec(package)
    return [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
