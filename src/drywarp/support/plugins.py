"""Extensions of drywarp by other packages, through entry points (docs/extending.md)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, TypeVar

from ..errors import UsageError

T = TypeVar("T")


@cache
def plugins(group: str) -> Mapping[str, Any]:
    """The objects that installed packages declare under an entry point group, such as ``drywarp.models``, by name.

    Raises UsageError that names the package if an entry point cannot be loaded.
    """
    found = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            found[point.name] = point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            raise UsageError(f"{package}: entry point {group}: {point.name}: {type(error).__name__}: {error}") from None
    return MappingProxyType(found)


def plugins_of(group: str, kind: type[T]) -> list[T]:
    """Those that must be objects of a type. Raises UsageError that names the entry point of one that is not."""
    for name, found in plugins(group).items():
        if not isinstance(found, kind):
            raise UsageError(f"entry point {group}: {name}: expected a {kind.__name__}, got a {type(found).__name__}")
    return list(plugins(group).values())
