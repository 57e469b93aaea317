"""The experiments in the order in which they run, by their names for `--only`."""

from __future__ import annotations

from collections.abc import Callable

from ..journal import Session
from ..result import Findings
from . import caches, chains, dram, issue, load

Experiment = Callable[[Session, Findings], None]

EXPERIMENTS: dict[str, Experiment] = {
    "issue": issue.measure_issue,
    "chains": chains.measure_chains,
    "round-trips": load.measure_round_trips,
    "mix": load.measure_mix,
    "barrier": issue.measure_barrier,
    "shared": caches.measure_conflicts,
    "tensor": chains.measure_tensor,
    "caches": caches.measure_caches,
    "l2": dram.measure_l2,
    "dram": dram.measure_dram,
    "l2-size": dram.measure_l2_size,
    "random": dram.measure_random_access,
    "load": load.measure_load,
    "latencies": load.measure_latencies,
    "sync": issue.measure_synchronisation,
    "blocks": issue.measure_block_launch,
    "occupancy": load.measure_occupancy,
}
"""Each is described in its module."""
