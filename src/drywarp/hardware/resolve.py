"""A file with all that it inherits: one tree of plain values, and the fact behind each of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputFileError
from .fact import Entry, Fact
from .schema import FORMAT, HEADER, SECTIONS, TABLES, convert, unit_of
from .toml_file import TomlFile, did_you_mean, find_parent, read

_ENTRY_KEYS = frozenset(Entry.__struct_fields__)
_PLAIN = 'expected {{ value = {}, source = "…", kind = "…" }}, because every number carries its source'


@dataclass
class Resolved:
    """What a GPU file says, inheritance followed.

    `values` is the tree of sections with plain values; `owners` names, per dotted key, the file that
    said it last; `header` holds the latest of the header's texts but for the title.
    """

    file: TomlFile
    header: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    owners: dict[str, TomlFile] = field(default_factory=dict)

    def error(self, key: str, problem: str) -> InputFileError:
        """An error at a dotted key, in the file that said it, or in the requested file."""
        return self.owners.get(key, self.file).error(key, problem)


def resolve(name: str, path: Path) -> Resolved:
    """Read a file and its ancestors and merge them, the nearest last."""
    requested = read(name, path)
    resolved = Resolved(requested)
    for file in ancestry(requested, ()):
        _merge(resolved, file)
    for key, fact in resolved.facts.items():
        owner = resolved.owners[key]
        if owner.is_gpu and owner is not resolved.file:  # an architecture's values are this GPU's own
            resolved.facts[key] = fact.inherited()
    return resolved


def ancestry(file: TomlFile, heirs: tuple[TomlFile, ...]) -> list[TomlFile]:
    """What a file inherits from, the farthest first, and the file itself at the end; each file once."""
    files: list[TomlFile] = []
    for name in _parents(file):
        parent, path = find_parent(file, name)
        if any(path.samefile(heir.path) for heir in (*heirs, file)):
            circle = " -> ".join([*(heir.name for heir in (*heirs, file)), parent])
            raise file.error("inherits", f"goes round in a circle: {circle}")
        known = {other.path for other in files}
        files += [f for f in ancestry(read(parent, path), (*heirs, file)) if f.path not in known]
    return [*files, file]


def _parents(file: TomlFile) -> list[str]:
    given = file.content.get("inherits", [])
    names = given if isinstance(given, list) else [given]
    for name in names:
        if not isinstance(name, str):
            raise file.error("inherits", f"expected the name of a GPU or architecture, got {name!r}")
    return names


def _merge(resolved: Resolved, file: TomlFile) -> None:
    _merge_header(resolved, file)
    for key, value, entry in leaves(file, {k: v for k, v in file.content.items() if k not in HEADER}, ""):
        for stale in [k for k in resolved.owners if f"{k}.".startswith(f"{key}.") or key.startswith(f"{k}.")]:
            del resolved.owners[stale]
            resolved.facts.pop(stale, None)
        _place(resolved.values, key.split("."), value)
        resolved.owners[key] = file
        if entry is not None:
            shown = tuple(value) if isinstance(value, list) else value
            resolved.facts[key] = Fact(shown, unit_of(key), entry.source, entry.kind, entry.note, file.name)
            _check_source(resolved, file, key, entry)


def _merge_header(resolved: Resolved, file: TomlFile) -> None:
    known = (*HEADER, *SECTIONS, *TABLES)
    for key, value in file.content.items():
        if key not in known:
            raise file.error(key, "unknown key" + did_you_mean(key, known))
        if key == "sources":
            _merge_sources(resolved, file, value)
        elif key in HEADER and key not in ("format", "inherits"):
            if not isinstance(value, str):
                raise file.error(key, f"expected text, got {value!r}")
            resolved.header[key] = value
        elif key not in HEADER and not isinstance(value, dict):
            raise file.error(key, f"expected a table, got {value!r}")
    if file.content.get("format") != FORMAT:
        raise file.error("format", f"expected format = {FORMAT}")
    if "title" not in file.content:
        raise file.error("title", "missing; expected the GPU's full name")


def _merge_sources(resolved: Resolved, file: TomlFile, table: Any) -> None:
    if not isinstance(table, dict):
        raise file.error("sources", f"expected a table, got {table!r}")
    for key, text in table.items():
        if not isinstance(text, str) or not text:
            raise file.error(f"sources.{key}", f"expected text that names the source, got {text!r}")
        if resolved.sources.setdefault(key, text) != text:
            raise file.error(f"sources.{key}", "an inherited file uses this key for another source")


def leaves(file: TomlFile, table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any, Entry | None]]:
    """Dotted key, plain value and fact of everything that a file says; names and switches need no fact."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and not _ENTRY_KEYS & value.keys():
            yield from leaves(file, value, f"{key}.")
        elif isinstance(value, dict):
            entry = convert(value, Entry, key, file.error)
            if isinstance(entry.value, float) and not math.isfinite(entry.value):
                raise file.error(key, f"expected a finite number, got {entry.value}")
            if entry.kind in ("proxy", "assumed", "inherited") and not entry.note:
                raise file.error(f"{key}.note", f"missing; expected a word on why, because kind is {entry.kind!r}")
            yield key, entry.value, entry
        elif isinstance(value, str | bool):
            yield key, value, None
        else:
            raise file.error(key, _PLAIN.format(value))


def _place(tree: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        if not isinstance(tree.get(name), dict):
            tree[name] = {}
        tree = tree[name]
    tree[names[-1]] = value


def _check_source(resolved: Resolved, file: TomlFile, key: str, entry: Entry) -> None:
    if entry.source not in resolved.sources:
        hint = did_you_mean(entry.source, resolved.sources)
        raise file.error(f"{key}.source", f"{entry.source!r} is not in [sources]{hint}")
