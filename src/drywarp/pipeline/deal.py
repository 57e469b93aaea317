"""Compiled: the types of many blocks in launch order."""

from __future__ import annotations

from typing import Any

from .compiled import loop


@loop
def deal(shares: Any, given: Any, order: Any) -> None:
    """Fill `order` as `blocks.type_order` does, with the same roundings.

    `shares` are the weights divided by their sum; `given` is zero for each.
    """
    for number in range(len(order)):
        kind = 0
        most = shares[0] * (number + 1) - given[0]
        for other in range(1, len(shares)):
            behind = shares[other] * (number + 1) - given[other]
            if behind > most:
                kind, most = other, behind
        order[number] = kind
        given[kind] += 1.0
