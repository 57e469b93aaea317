"""The experiments in the order in which they run, by their names for `--only`."""

from __future__ import annotations

from collections.abc import Callable

from ..journal import Session
from ..result import Findings
from . import caches, chains, dram, issue, load
from . import caches as conflicts
from . import caches as l2_size
from . import chains as tensor
from . import dram as l2
from . import dram as random_access
from . import issue as barrier
from . import issue as block_launch
from . import issue as synchronisation
from . import load as latencies
from . import load as mix
from . import load as occupancy
from . import load as round_trips

Experiment = Callable[[Session, Findings], None]

EXPERIMENTS: dict[str, Experiment] = {
    "issue": issue.measure_issue,
    "chains": chains.measure_chains,
    "round-trips": round_trips.measure_round_trips,
    "mix": mix.measure_mix,
    "barrier": barrier.measure_barrier,
    "shared": conflicts.measure_conflicts,
    "tensor": tensor.measure_tensor,
    "caches": caches.measure_caches,
    "l2": l2.measure_l2,
    "dram": dram.measure_dram,
    "l2-size": l2_size.measure_l2_size,
    "random": random_access.measure_random_access,
    "load": load.measure_load,
    "latencies": latencies.measure_latencies,
    "sync": synchronisation.measure_synchronisation,
    "blocks": block_launch.measure_block_launch,
    "occupancy": occupancy.measure_occupancy,
}
"""Each is described in its module."""
