"""What a what-if is: a name, a sentence, and a function from a setting to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..setting import Setting


@dataclass(frozen=True)
class WhatIf:
    """A change to be simulated. `apply` gives None where it would change nothing in this kernel.

    `name` says what is different in a few words, and tells two what-ifs apart; `kind` is as in
    `drywarp.finding.WhatIfAnswer`.
    """

    name: str
    kind: str
    apply: Callable[[Setting], Setting | None]
