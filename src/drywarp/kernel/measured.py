"""What a profiler measured of one kernel launch: the form that every reader of profiler exports delivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .launch import Dim3

TIME = "gpu__time_duration.sum"
SM_CLOCK = "smsp__cycles_elapsed.avg.per_second"


@dataclass(frozen=True)
class MeasuredKernel:
    """One profiled launch.

    `name` as the profiler prints it; `grid` and `block` None where the export does not say. `metrics` maps
    Nsight Compute's names to values in base units: seconds, bytes, hertz, percent, plain counts. `place` is the file
    and line that it was read from.
    """

    name: str
    grid: Dim3 | None
    block: Dim3 | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    device: str = ""
    place: str = ""

    @property
    def time_s(self) -> float | None:
        """The measured time of the launch in seconds."""
        return self.metrics.get(TIME)

    @property
    def clock_hz(self) -> float | None:
        """The SM clock while it was measured, in hertz."""
        return self.metrics.get(SM_CLOCK)
