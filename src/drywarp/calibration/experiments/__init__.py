"""The experiments in the order in which they run, by the names that `--only` takes."""

from __future__ import annotations

from collections.abc import Callable

from ..result import Findings
from ..session import Session
from . import (
    barrier,
    block_launch,
    caches,
    chains,
    conflicts,
    dram,
    issue,
    l2,
    l2_size,
    load,
    mix,
    random_access,
    round_trips,
    tensor,
)

Experiment = Callable[[Session, Findings], None]

EXPERIMENTS: dict[str, Experiment] = {
    "issue": issue.measure,
    "chains": chains.measure,
    "round-trips": round_trips.measure,
    "mix": mix.measure,
    "barrier": barrier.measure,
    "shared": conflicts.measure,
    "tensor": tensor.measure,
    "caches": caches.measure,
    "l2": l2.measure,
    "dram": dram.measure,
    "l2-size": l2_size.measure,
    "random": random_access.measure,
    "load": load.measure,
    "blocks": block_launch.measure,
}
"""What each does stands in its module."""
