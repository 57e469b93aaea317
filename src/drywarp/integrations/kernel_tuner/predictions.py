"""Predicted times of a space's configurations, however they were come by."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import UsageError

Key = tuple[str, ...]
"""A configuration: its values as texts, in the order of the parameters."""


def key_text(value: Any) -> str:
    """A parameter's value as a text that does not depend on its type: 32, 32.0 and "32" are one, and so are 1, True."""
    if isinstance(value, bool):
        return str(int(value))
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() else repr(number)


@dataclass(frozen=True)
class Predictions:
    """Seconds of each configuration that could be predicted, and why others could not."""

    names: tuple[str, ...]
    times: Mapping[Key, float]
    failed: Mapping[Key, str] = field(default_factory=dict)

    def key(self, configuration: Mapping[str, Any] | Sequence[Any], names: Sequence[str] | None = None) -> Key:
        """The key of a configuration: a mapping, or values in the order of `names` (None: of the parameters)."""
        values = configuration
        if not isinstance(values, Mapping):
            values = dict(zip(names or self.names, values, strict=True))
        return tuple(key_text(values[name]) if name in values else "" for name in self.names)

    def ordered(self, configurations: Iterable[Sequence[Any]], names: Sequence[str], seed: Any = None) -> list[Any]:
        """Configurations with a prediction, the fastest first; those predicted alike in an order that `seed` draws."""
        listed = [c for c in configurations if self.key(c, names) in self.times]
        random.Random(seed).shuffle(listed)
        return sorted(listed, key=lambda c: self.times[self.key(c, names)])

    def over(self, names: Sequence[str]) -> Predictions:
        """The same by the parameters `names` alone. Raises UsageError where others differ among the predictions."""
        kept = [place for place, name in enumerate(self.names) if name in names]
        keys = {key: tuple(key[place] for place in kept) for key in (*self.times, *self.failed)}
        if len(set(keys.values())) < len(keys):
            others = ", ".join(name for name in self.names if name not in names) or "none"
            raise UsageError(f"the predictions differ in parameters that the space does not have ({others})")
        return Predictions(
            tuple(self.names[place] for place in kept),
            {keys[key]: time for key, time in self.times.items()},
            {keys[key]: reason for key, reason in self.failed.items()},
        )

    @classmethod
    def read(cls, rows: str | Path, *, model: str | None = None, gpu: str | None = None) -> Predictions:
        """Predictions that `drywarp sweep` or `drywarp validate` wrote, on `gpu`, which a sweep of several needs.

        `model` None is the one that was believed. Raises InputFileError or UsageError for a file that holds none.
        """
        from .row_files import read_predictions

        return read_predictions(Path(rows), model, gpu)
