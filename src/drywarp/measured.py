"""A bound kernel and what a profiler measured of it: figures of the profile in place of emulated ones, and why
prediction and measurement differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .binding import Binding, bind
from .errors import UsageError
from .kernel.measured import MeasuredKernel
from .memory.averaged import NOTHING_SAID, averaged, averages_from
from .memory.behaviour import MemoryBehaviour
from .models.base import Prediction
from .ready import BoundKernel
from .result import MeasuredComparison, Term

MAPPERS = ("emulated", "averaged")
"""How memory accesses may be judged: each by its own addresses, or all by their mean."""
_COUNTED_ALIKE = 0.005
"""Relative difference of instruction counts that is not worth a word."""
_EXECUTED = "smsp__inst_executed.sum"

Ask = Callable[[BoundKernel], Prediction]


def check_mapper(mapper: str | None) -> None:
    """Raise UsageError for a mapper that does not exist."""
    if mapper is not None and mapper not in MAPPERS:
        raise UsageError(f"memory mapper {mapper!r}: expected one of {', '.join(MAPPERS)}")


def with_memory(ready: BoundKernel, mapper: str | None, measured: MeasuredKernel | None) -> BoundKernel:
    """The kernel with its accesses judged by the chosen mapper; by averages where a profile is given and none named."""
    chosen = mapper or ("averaged" if measured else "emulated")
    if chosen == "emulated":
        return ready
    sector_bytes = ready.gpu.memory.sector_bytes
    said = averages_from(measured.metrics, sector_bytes) if measured else NOTHING_SAID
    behaviour = averaged(ready.profile, ready.behaviour, sector_bytes, said)
    source = f"taken from the profile: {', '.join(said.said)}" if said.said else "those of the emulation"
    note = f"memory: every access to a space behaves as the mean one; {source}"
    return _bound_again(ready, replace(behaviour, notes=(*behaviour.notes, note)), ready.bound.clock_hz / 1e6)


def _bound_again(ready: BoundKernel, behaviour: MemoryBehaviour, clock_mhz: float) -> BoundKernel:
    binding = Binding(clock_mhz, ready.bound.policy, ready.fits.blocks_per_sm)
    bound = bind(ready.workload, behaviour, ready.gpu, binding)
    return replace(ready, behaviour=behaviour, bound=bound)


@dataclass(frozen=True)
class CountRatio:
    """Warp instructions as measured over those emulated; 1 where no profile says. `start_s` does not grow with them."""

    ratio: float = 1.0
    start_s: float = 0.0

    @property
    def matters(self) -> bool:
        """Whether the counts differ by more than half a percent."""
        return abs(self.ratio - 1) > _COUNTED_ALIKE

    def time(self, time_s: float) -> float:
        """A time for so many more instructions."""
        return self.start_s + (time_s - self.start_s) * self.ratio

    def scale(self, prediction: Prediction) -> Prediction:
        """A prediction for so many more instructions in the same mixture: all times grow alike."""
        if not self.matters:
            return prediction
        factor = self.ratio
        return replace(
            prediction,
            cycles=prediction.cycles * factor,
            time_s=self.time(prediction.time_s),
            curve=tuple(
                replace(point, time_s=self.time(point.time_s), warps_per_cycle=point.warps_per_cycle / factor)
                for point in prediction.curve
            ),
            headroom={name: cycles * factor for name, cycles in prediction.headroom.items()},
            stalls={name: cycles * factor for name, cycles in prediction.stalls.items()},
            node_stalls={
                node: {name: cycles * factor for name, cycles in stalls.items()}
                for node, stalls in prediction.node_stalls.items()
            },
            notes=(
                *prediction.notes,
                f"the profile counts {factor:.3f} times the warp instructions that were emulated: times are scaled so",
            ),
        )


def count_ratio(ready: BoundKernel, measured: MeasuredKernel | None) -> CountRatio:
    """How the profile's count of warp instructions compares with the emulated one."""
    counted = measured.metrics.get(_EXECUTED) if measured else None
    emulated = float(ready.profile.executions().sum())
    return CountRatio(counted / emulated, ready.bound.start_s) if counted and emulated else CountRatio()


def compare_with(ready: BoundKernel, measured: MeasuredKernel, ask: Ask) -> MeasuredComparison:
    """Predicted against measured time, and how much of the difference each measured figure explains.

    `ready` is the kernel as emulated. One after the other the profile's clock, instruction count and memory figures
    take the place of ours; what each changes is its term, what is left is the model's.
    """
    time = measured.time_s
    if not time:
        raise UsageError(f"{measured.place}: the profile has no time of the kernel")
    now = ask(ready).time_s
    predicted, terms = now, []
    if measured.clock_hz:
        ready = _bound_again(ready, ready.behaviour, measured.clock_hz / 1e6)
        at_clock = ask(ready).time_s
        said = f"measured at {measured.clock_hz / 1e6:.0f} MHz"
        terms.append(Term("clock", at_clock / now, said))
        now = at_clock
    counts = count_ratio(ready, measured)
    if counts.matters:
        counted = counts.time(now)
        terms.append(Term("instructions", counted / now, f"{counts.ratio:.3f} times as many were counted"))
        now = counted
    scaled = with_memory(ready, "averaged", measured)
    if averages_from(measured.metrics, ready.gpu.memory.sector_bytes).said:
        with_profile = counts.time(ask(scaled).time_s)
        terms.append(Term("memory", with_profile / now, "sectors, hit rates and conflicts as measured"))
        now = with_profile
    terms.append(Term("model", time / now, "not explained by any figure of the profile"))
    return MeasuredComparison(time, predicted, predicted / time, tuple(terms), measured.place)
