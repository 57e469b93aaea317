"""Rules: functions, each of which detects one problem; and what `explain` knows, from `rules.toml`, `limits.toml`.

Other packages add theirs under the entry point group ``drywarp.rules`` (docs/extending.md).

To add a rule, add a function under `base.rule`, together with its what-if unless other rules share that, and its texts
in `rules.toml`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

import msgspec

from ....errors import UsageError
from ....support.by_name import plugins
from ...result.answer import limit_names
from ...result.detail import RuleText
from .base import Rule, registered

GROUP = "drywarp.rules"
"""Entry points: classes of rules, or modules that register some."""


def all_rules() -> dict[str, Rule]:
    """Every rule by name."""
    for file in iter_modules(__path__):
        import_module(f".{file.name}", __name__)
    plugins(GROUP)  # loading a rule registers it
    return dict(sorted(registered().items()))


def rule_named(name: str) -> Rule:
    """One rule by name. Raises UsageError that lists the known names."""
    rules = all_rules()
    if name not in rules:
        raise UsageError(f"no rule {name!r}: expected one of {', '.join(rules)}")
    return rules[name]


def rule_texts(name: str | None = None) -> list[RuleText]:
    """The documentation of every rule, or of one."""
    rules = all_rules().values() if name is None else [rule_named(name)]
    own = _content("rules.toml")
    return [msgspec.convert({"name": rule.name, **(own.get(rule.name) or _brought(rule))}, RuleText) for rule in rules]


def _brought(rule: Any) -> dict[str, Any]:
    """The texts that a rule of another package brings."""
    return {"title": rule.title, **asdict(rule.documentation)}


@cache
def _content(name: str) -> dict[str, Any]:
    """What a file of texts in the parent folder holds."""
    return msgspec.toml.decode(Path(__file__).parent.with_name(name).read_bytes(), type=dict[str, Any])


# What stall reasons and limiters mean: texts in limits.toml.

_KINDS: dict[str, Literal["stall reason", "limiter"]] = {"reasons": "stall reason", "limiters": "limiter"}


@dataclass(frozen=True, slots=True)
class Meaning:
    """A stall reason (Nsight Compute's name) or a limiter (a subsystem): what it means, and what helps."""

    name: str
    kind: Literal["stall reason", "limiter"]
    title: str
    what: str
    helps: str
    rules: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        found = asdict(self)
        return {**found, "rules": list(self.rules)}


@cache
def meanings() -> tuple[Meaning, ...]:
    """Every stall reason, then every limiter."""
    return tuple(
        msgspec.convert({**row, "name": name, "kind": kind}, Meaning)
        for table, kind in _KINDS.items()
        for name, row in _content("limits.toml")[table].items()
    )


def explained(word: str) -> list[RuleText | Meaning]:
    """What has this name, or the one name that begins like it; several things may share a name.

    Case, hyphens and underscores do not matter. Raises UsageError that lists the candidates, or the nearest names.
    """
    known: Sequence[RuleText | Meaning] = [*rule_texts(), *meanings()]
    names = sorted({found.name for found in known})
    wanted = _plain(word).removeprefix("the-")
    by_plain = {name: _plain(name) for name in names}
    chosen = (
        [name for name, plain in by_plain.items() if plain == wanted]
        or [name for name, plain in by_plain.items() if wanted and plain.startswith(wanted)]
        # Reports say `DRAM bandwidth`, `the load-store unit` and `lsu pipe`.
        or [name for name in names if wanted and _plain(limit_names().get(name, "")).removeprefix("the-") == wanted]
        or [name for name, plain in by_plain.items() if wanted.startswith(f"{plain}-")]
    )
    if len(chosen) > 1:
        raise UsageError(f"{word!r} may be {', '.join(chosen)} (expected one of them)")
    if chosen:
        return [found for found in known if found.name == chosen[0]]
    near = difflib.get_close_matches(wanted, by_plain.values(), n=3)
    nearest = [name for name in names if by_plain[name] in near or (wanted and wanted in by_plain[name])]
    said = f"nearest: {', '.join(nearest)}; " if nearest else ""
    raise UsageError(f"nothing called {word!r}: {said}drywarp explain lists all names")


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")
