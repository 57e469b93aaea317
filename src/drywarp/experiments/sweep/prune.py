"""The configurations worth trying on hardware, and the expected loss from omitting the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ...errors import UsageError
from ...support.text import json_of
from .regret import chance_of_best, expected_regret
from .row import SweepRow
from .space import Cell


class _Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    value: Annotated[float, msgspec.Meta(gt=0)]
    kind: Literal["measured", "derived", "assumed"]
    source: str
    note: str = ""


class _OrderError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sigma: _Figure


@dataclass(frozen=True)
class Kept:
    """The best configurations for one problem on one GPU, the fastest first.

    `of` counts the predicted configurations. `regret` is the expected slowdown, as a fraction, of the fastest of these
    compared with the fastest of all; `chance` is the probability that the fastest of all is among these.
    """

    gpu: str
    problem: Mapping[str, Cell]
    rows: tuple[SweepRow, ...]
    of: int
    regret: float
    chance: float


@dataclass(frozen=True)
class Pruned:
    """The best share of a sweep for each GPU and problem; `sigma` is the spread used to compute regrets."""

    share: float
    sigma: float
    groups: tuple[Kept, ...]

    @property
    def rows(self) -> tuple[SweepRow, ...]:
        """The configurations of all GPUs and problems."""
        return tuple(row for kept in self.groups for row in kept.rows)

    @property
    def regret(self) -> float:
        """The largest regret of all."""
        return max(kept.regret for kept in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """As in JSON."""
        groups = [{**json_of(kept, "gpu problem of regret chance"), "kept": len(kept.rows)} for kept in self.groups]
        return {**json_of(self, "share sigma"), "groups": groups}


@cache
def order_sigma() -> float:
    """The packaged spread of measured over predicted times within a kernel (order_error.toml)."""
    text = (Path(__file__).parent / "order_error.toml").read_bytes()
    return msgspec.toml.decode(text, type=_OrderError).sigma.value


def competing(rows: Sequence[SweepRow], problem: Sequence[str]) -> list[list[SweepRow]]:
    """The rows that compete with each other: of one GPU, with equal values of the parameters `problem`."""
    groups: dict[tuple[object, ...], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault((row.gpu, *(row.parameters[name] for name in problem)), []).append(row)
    return list(groups.values())


def ranked(rows: Sequence[SweepRow]) -> list[SweepRow]:
    """Predicted rows, fastest first; ties in canonical order."""
    found = [row for row in rows if row.time_s is not None]
    return sorted(found, key=lambda row: (row.time_s, row.number))


def share_of(count: int, share: float) -> int:
    """The number of items in a share of `count`, rounded up, at least one; tolerates rounding noise (0.07 · 100)."""
    return max(1, math.ceil(share * count - 1e-9))


def prune(rows: Sequence[SweepRow], share: float, problem: Sequence[str] = (), sigma: float | None = None) -> Pruned:
    """Keep the fastest `share` of the predicted rows of each GPU and problem, at least one.

    Raises UsageError for a share outside 0..1, and if nothing was predicted.
    """
    if not 0 < share <= 1:
        raise UsageError(f"prune {share:g}: expected a fraction above 0 and at most 1, such as 0.05")
    spread = order_sigma() if sigma is None else sigma
    found = []
    for group in competing(rows, problem):
        order = ranked(group)
        if not order:
            continue
        count = share_of(len(order), share)
        times = [row.time_s or 0.0 for row in order]
        regret = expected_regret(times[:count], times[count:], spread)
        chance = chance_of_best(times[:count], times[count:], spread)
        at = {name: order[0].parameters[name] for name in problem}
        found.append(Kept(order[0].gpu, at, tuple(order[:count]), len(order), regret, chance))
    if not found:
        raise UsageError("nothing was predicted: no configuration to keep")
    return Pruned(share, spread, tuple(found))
