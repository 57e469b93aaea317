"""What rules about latency share: whether waiting is what limits, and where warps wait."""

from __future__ import annotations

from ...finding import Place
from ..case import Case

FULL = 0.98
"""Use of a part of the machine from which on hiding latency gains less than a finding must."""


def can_be_hidden(case: Case) -> bool:
    """Whether nothing is in use all the time, so that shorter waits would help."""
    return max(case.prediction.utilization.values(), default=0.0) < FULL


def dependent_on(case: Case, *reasons: str) -> tuple[Place, ...]:
    """The lines that wait longest for these reasons, together most of that time."""
    waits = {index: case.waiting(index, *reasons) for index in case.prediction.node_stalls}
    total = sum(waits.values())
    order, covered = [], 0.0
    for index in sorted(waits, key=lambda index: -waits[index]):
        if covered >= 0.9 * total or not waits[index]:
            break
        order.append(index)
        covered += waits[index]
    return case.setting.places(order)
