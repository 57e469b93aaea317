"""Builds a GPU file from measurements: runs micro-benchmarks in order, and fits formulas to them.

`device.py` defines a device: something that runs one of our kernels and reports how long it took. `card.py` has two:
a real GPU and drywarp's own simulation. The experiments (`EXPERIMENTS`) choose the runs, `fits.py` has the papers'
formulas; both see only timings and what a driver reports.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic

from ..._version import __version__
from ...errors import UsageError
from ...frontends.cache import tool_versions
from . import caches, chains, dram, issue, load
from .device import TEMPLATES, Device
from .gpu_file import gpu_file, missing_figures
from .journal import REPEATS, Journal, Session
from .result import Calibration, Findings

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
"""In the order in which they run, by their names for `--only`; each is described in its module."""
FIRST = "issue"
"""This experiment always runs: the others need the number of partitions and the issue limit."""


def experiment_names() -> list[str]:
    """Names of the experiments, in the order in which they run."""
    return list(EXPERIMENTS)


def calibrate(
    device: Device,
    *,
    only: Sequence[str] = (),
    journal: Path | None = None,
    settings: dict[str, object] | None = None,
    repeats: int = REPEATS,
    tell: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> Calibration:
    """Measure `device`. `only` names experiments; unless `dram` is among them, the GPU file is empty.

    `journal` stores raw timings, so that an interrupted calibration resumes; `settings` must match the run that started
    it. `tell` is called with what is being measured, the number of experiments done, and the total. Raises UsageError
    for an unknown experiment or another device's journal.
    """
    unknown = [name for name in only if name not in EXPERIMENTS]
    if unknown:
        raise UsageError(f"unknown experiment {unknown[0]!r}; there are: {', '.join(EXPERIMENTS)}")
    wanted = [name for name in EXPERIMENTS if not only or name in only or name == FIRST]
    began = monotonic()
    findings = Findings(clock_mhz=device.attributes.clock_mhz)
    with Journal(journal, device.attributes, {**_made_with(repeats), **(settings or {})}) as kept:
        session = Session(device, kept, repeats)
        for number, name in enumerate(wanted):
            tell(name, number, len(wanted))
            session.tell = lambda program, name=name, number=number: tell(f"{name}: {program}", number, len(wanted))  # type: ignore[misc]
            EXPERIMENTS[name](session, findings)
            findings.clock_mhz = statistics.median(session.clocks)
    tell("done", len(wanted), len(wanted))
    clocks = (min(session.clocks), max(session.clocks))
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    text, inherited = "", [f"{key}: not measured" for key in missing_figures(findings)]
    if not inherited:
        text, inherited = gpu_file(device.attributes, findings, date, clocks)
    return Calibration(
        device=device.attributes,
        date=date,
        clock_mhz=findings.clock_mhz,
        clock_range_mhz=clocks,
        figures=tuple(findings.figures.values()),
        curves=tuple(findings.curves),
        silent=findings.silent,
        inherited=tuple(inherited),
        gpu_file=text,
        experiments=tuple(wanted),
        launches=session.launches,
        seconds=monotonic() - began,
    )


def _made_with(repeats: int) -> dict[str, object]:
    """What timings depend on besides the device: what determines the machine code."""
    versions = {"drywarp": __version__, "compiler": tool_versions()["nvrtc"]}
    return {"repeats": repeats, "kernels": _kernels(), **versions}


def _kernels() -> str:
    """A digest of the kernels' sources: timings of other sources are not comparable."""
    texts = [path.read_bytes() for path in sorted(TEMPLATES.iterdir()) if path.suffix in (".cu", ".cuh")]
    return sha256(b"\0".join(texts)).hexdigest()[:16]


__all__ = ["Calibration", "calibrate", "experiment_names"]
