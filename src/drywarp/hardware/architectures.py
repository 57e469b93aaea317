"""Which packaged architecture a compute capability belongs to, and what it says: what a new GPU file builds on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from .resolve import Resolved, resolve
from .toml_file import DATA, read


def architecture_of(compute_capability: str) -> str:
    """The name that a GPU file of this compute capability inherits from, such as ``arch/ga100`` for ``"8.0"``.

    Raises UsageError where no packaged architecture is of that capability.
    """
    known: dict[str, str] = {}
    for path in sorted((DATA / "arch").glob("*.toml")):
        name = f"arch/{path.stem}"
        parents = read(name, path).content.get("inherits", [])
        for parent in parents if isinstance(parents, list) else [parents]:
            if parent.startswith("cc/") and parent != "cc/sources":
                known[parent.removeprefix("cc/")] = name
    try:
        return known[compute_capability]
    except KeyError:
        there = ", ".join(sorted(known, key=lambda c: tuple(map(int, c.split(".")))))
        raise UsageError(
            f"no packaged architecture of compute capability {compute_capability} to build on; there are: {there}"
        ) from None


def values_of(architecture: str) -> Mapping[str, Any]:
    """The sections of an architecture with plain values, everything inherited included."""
    return _resolved(architecture).values


def _resolved(architecture: str) -> Resolved:
    return resolve(architecture, DATA / f"{architecture}.toml")
