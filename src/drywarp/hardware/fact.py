"""The names that a GPU file may use (instruction classes, scheduler policies, tensor input types), and its facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from ..kernel.isa.nvidia.opcodes import CLASSES

Policy = Literal[
    "loose_round_robin", "greedy_then_round_robin", "greedy_then_oldest", "greedy_then_youngest", "oldest_first"
]
Scope = Literal["partition", "sm"]

CLASS_NAMES = frozenset(CLASSES)
"""Every instruction class of a machine-code kernel; a GPU that runs such kernels gives costs for all of them."""

TENSOR_MEMORY_CLASSES = frozenset({"tcgen05", "tensor_load", "tensor_store"})
"""The classes that only GPUs with tensor memory have: compute capability 10.x."""

AMD_CLASS_NAMES = (
    CLASS_NAMES
    - {"predicate", "vote", "reduce", "convergence", "mbarrier", "wgmma", "bulk_copy"}
    - TENSOR_MEMORY_CLASSES
)
"""The classes that AMD machine code uses."""


def classes_of(arch: str) -> frozenset[str]:
    """The classes that machine code for an architecture uses."""
    if arch.startswith("gfx"):
        return AMD_CLASS_NAMES
    return CLASS_NAMES if arch.startswith("sm_10") else CLASS_NAMES - TENSOR_MEMORY_CLASSES


TENSOR_TYPES = (
    *("fp16", "bf16", "tf32", "fp64", "int8", "fp8", "fp8_scaled", "fp4"),
    *("fp32", "bf16_narrow", "fp32_blocks", "fp16_blocks", "bf16_blocks", "int8_blocks", "fp64_blocks"),
    *("fp16_sparse", "bf16_sparse", "int8_sparse", "fp8_sparse"),
)
"""Input types that section `[tensor]` may give a rate for; the second and third lines are AMD's.

`fp8_scaled` is of 8-bit floats with scale factors; where it is not given, they run at the rate of `fp8`.
"""


# A value in a GPU file together with its source.

Kind = Literal["measured", "documented", "datasheet", "derived", "proxy", "inherited", "assumed"]

KINDS: dict[str, str] = {
    "measured": "measured on this GPU or chip; SM values also on another chip with the same SM",
    "documented": "from the vendor's documentation",
    "datasheet": "from a datasheet or whitepaper, or a collection of them",
    "derived": "computed from measured or documented values, or read from the compiler's schedule",
    "proxy": "the value of the nearest GPU or architecture",
    "inherited": "inherited from the parent GPU file",
    "assumed": "no source found; the note gives the reason for this value",
}
"""The meaning of each kind, from the most to the least reliable."""

Value = int | float | bool | str | tuple[int, ...]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact as written in a file: an inline table with these keys."""

    value: int | float | bool | str | list[int]
    source: str
    kind: Kind
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its unit (`""` for a count or a name), the key of its source, its kind and a note.

    `file` is the GPU file that gives it, e.g. ``arch/ga100``.
    """

    value: Value
    unit: str
    source: str
    kind: Kind
    note: str
    file: str

    def inherited(self) -> Fact:
        """The same fact as seen from a GPU file that inherits it."""
        if self.kind == "inherited":
            return self
        note = f"{self.file}: {self.kind}{f', {self.note}' if self.note else ''}"
        return replace(self, kind="inherited", note=note)

    def __str__(self) -> str:
        text = ", ".join(map(str, self.value)) if isinstance(self.value, tuple) else str(self.value)
        return f"{text} {self.unit}".rstrip()
