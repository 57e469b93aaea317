"""The configurations that are worth trying on hardware, and what is lost by leaving the others out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ..errors import UsageError
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

    `of` counts the configurations that were predicted. `regret` is how much slower than the fastest of all the fastest
    of these is expected to be, as a fraction; `chance` the probability that the fastest of all is among these.
    """

    gpu: str
    problem: Mapping[str, Cell]
    rows: tuple[SweepRow, ...]
    of: int
    regret: float
    chance: float


@dataclass(frozen=True)
class Pruned:
    """The best share of a sweep, for each GPU and problem by itself; `sigma` is what regrets were worked out with."""

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
    """Predicted rows, the fastest first; those predicted alike in canonical order."""
    found = [row for row in rows if row.time_s is not None]
    return sorted(found, key=lambda row: (row.time_s, row.number))


def share_of(count: int, share: float) -> int:
    """How many a share of so many is, rounded up, at least one: 7 % of 100 is 7, though 0.07 · 100 is a little more."""
    return max(1, math.ceil(share * count - 1e-9))


def prune(rows: Sequence[SweepRow], share: float, problem: Sequence[str] = (), sigma: float | None = None) -> Pruned:
    """Keep the `share` of each GPU's and problem's predicted rows that is predicted fastest, at least one.

    Raises UsageError for a share outside 0..1, and where nothing was predicted.
    """
    if not 0 < share <= 1:
        raise UsageError(f"prune {share:g}: expected a share above 0 and up to 1, as 0.05")
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
