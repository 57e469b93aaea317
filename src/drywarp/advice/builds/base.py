"""A kernel made anew: which arguments of `api.bind_kernel` differ, and what then has to hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...ready import BoundKernel


@dataclass(frozen=True)
class Build:
    """Bind the kernel with `changes`. `rule` is the rule whose remedy that is, empty for none.

    `kind` is as in `drywarp.finding.WhatIfAnswer`. `remedy` is the sentence for a finding. `refuse` says why the
    outcome is not what was asked for, or gives an empty text. `reason` is why it is not even tried.
    """

    name: str
    kind: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    remedy: str = ""
    reason: str = ""
    refuse: Callable[[BoundKernel], str] = lambda made: ""
