"""A value of a GPU file together with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import msgspec

Kind = Literal["measured", "documented", "datasheet", "derived", "proxy", "inherited", "assumed"]

KINDS: dict[str, str] = {
    "measured": "measured on this GPU or on its chip; figures of an SM, on a chip with the same SM",
    "documented": "in the vendor's documentation",
    "datasheet": "in a datasheet or whitepaper, or in a collection of them",
    "derived": "computed from measured or documented figures, or read off the compiler's schedule",
    "proxy": "the nearest GPU's or architecture's value",
    "inherited": "taken over from the GPU file that this one inherits from",
    "assumed": "no source was found; the note says why this value",
}
"""What each kind means, from the firmest to the weakest."""

Value = int | float | bool | str | tuple[int, ...]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact as it stands in a file: an inline table with these keys."""

    value: int | float | bool | str | list[int]
    source: str
    kind: Kind
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its unit (`""`: a count or a name), the key of its source, its kind and a note.

    `file` is the GPU file that states it, e.g. ``arch/ga100``.
    """

    value: Value
    unit: str
    source: str
    kind: Kind
    note: str
    file: str

    def inherited(self) -> Fact:
        """The same fact as another GPU's file sees it that inherits from the one that states it."""
        if self.kind == "inherited":
            return self
        note = f"{self.file}: {self.kind}{f', {self.note}' if self.note else ''}"
        return replace(self, kind="inherited", note=note)

    def __str__(self) -> str:
        text = ", ".join(map(str, self.value)) if isinstance(self.value, tuple) else str(self.value)
        return f"{text} {self.unit}".rstrip()
