"""Uses a profiler's measurements of a kernel: its figures in place of emulated ones, and why prediction and
measurement differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import UsageError
from ..kernel.profile import MeasuredKernel
from ..memory.averaged import NOTHING_SAID, averaged, averages_from
from ..memory.behaviour import MemoryBehaviour
from ..models.base import Model, Prediction
from ..workload.cost_model import Conditions, assign_costs
from .prepared import Prepared
from .result import MeasuredComparison, Term

MAPPERS = ("emulated", "averaged")
"""How memory accesses are modelled: each by its own addresses, or all by their average."""
_COUNTED_ALIKE = 0.005
"""Relative difference of instruction counts that is negligible."""
_EXECUTED = "smsp__inst_executed.sum"


def check_mapper(mapper: str | None) -> None:
    """Raise UsageError for a mapper that does not exist."""
    if mapper is not None and mapper not in MAPPERS:
        raise UsageError(f"memory mapper {mapper!r}: expected one of {', '.join(MAPPERS)}")


def with_memory(prepared: Prepared, mapper: str | None, measured: MeasuredKernel | None) -> Prepared:
    """The kernel with its accesses modelled by the chosen mapper; the default is averaged with a profile."""
    chosen = mapper or ("averaged" if measured else "emulated")
    if chosen == "emulated":
        return prepared
    sector_bytes = prepared.gpu.memory.sector_bytes
    said = averages_from(measured.metrics, sector_bytes) if measured else NOTHING_SAID
    behaviour = averaged(prepared.profile, prepared.behaviour, sector_bytes, said)
    source = f"from the profile: {', '.join(said.said)}" if said.said else "with emulated values"
    note = f"memory: every access to a space is modelled as the average one; {source}"
    return _bound_again(prepared, replace(behaviour, notes=(*behaviour.notes, note)), prepared.costed.clock_hz / 1e6)


def _bound_again(prepared: Prepared, behaviour: MemoryBehaviour, clock_mhz: float) -> Prepared:
    conditions = Conditions(clock_mhz, prepared.costed.policy, prepared.fits.blocks_per_sm)
    costed = assign_costs(prepared.workload, behaviour, prepared.gpu, conditions)
    return replace(prepared, behaviour=behaviour, costed=costed)


@dataclass(frozen=True)
class CountRatio:
    """Measured over emulated warp instructions; 1 if no profile counts them. `start_s` does not grow with them."""

    ratio: float = 1.0
    start_s: float = 0.0

    @property
    def matters(self) -> bool:
        """Whether the counts differ by more than half a percent."""
        return abs(self.ratio - 1) > _COUNTED_ALIKE

    def time(self, time_s: float) -> float:
        """A time scaled to the measured instruction count."""
        return self.start_s + (time_s - self.start_s) * self.ratio

    def scale(self, prediction: Prediction) -> Prediction:
        """A prediction scaled to the measured instruction count, with the same mix: all times scale alike."""
        if not self.matters:
            return prediction
        factor = self.ratio
        return replace(
            prediction,
            cycles=prediction.cycles * factor,
            time_s=self.time(prediction.time_s),
            tail_s=None if prediction.tail_s is None else prediction.tail_s * factor,
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
                f"the profile counts {factor:.3f} times the emulated warp instructions: times are scaled accordingly",
            ),
        )


def count_ratio(prepared: Prepared, measured: MeasuredKernel | None) -> CountRatio:
    """The profile's warp-instruction count compared with the emulated one."""
    counted = measured.metrics.get(_EXECUTED) if measured else None
    emulated = float(prepared.profile.executions().sum())
    return CountRatio(counted / emulated, prepared.costed.start_s) if counted and emulated else CountRatio()


def compare_with(prepared: Prepared, measured: MeasuredKernel, model: Model) -> MeasuredComparison:
    """Compare predicted and measured time, and attribute the difference to the measured figures.

    `prepared` is the kernel as emulated, `model` the model to run. The profile's clock, instruction count and memory
    figures replace ours one after another; each change is a term, and the remainder is the model's.
    """
    time = measured.time_s
    if not time:
        raise UsageError(f"{measured.place}: the profile has no time for the kernel")
    now = model.predict(prepared.costed, [prepared.costed.warps_per_sm]).time_s
    predicted, terms = now, []
    if measured.clock_hz:
        prepared = _bound_again(prepared, prepared.behaviour, measured.clock_hz / 1e6)
        at_clock = model.predict(prepared.costed, [prepared.costed.warps_per_sm]).time_s
        said = f"measured at {measured.clock_hz / 1e6:.0f} MHz"
        terms.append(Term("clock", at_clock / now, said))
        now = at_clock
    counts = count_ratio(prepared, measured)
    if counts.matters:
        counted = counts.time(now)
        terms.append(Term("instructions", counted / now, f"the profile counts {counts.ratio:.3f} times as many"))
        now = counted
    scaled = with_memory(prepared, "averaged", measured)
    if averages_from(measured.metrics, prepared.gpu.memory.sector_bytes).said:
        with_profile = counts.time(model.predict(scaled.costed, [scaled.costed.warps_per_sm]).time_s)
        terms.append(Term("memory", with_profile / now, "sectors, hit rates and conflicts as measured"))
        now = with_profile
    terms.append(Term("model", time / now, "not explained by any figure of the profile"))
    return MeasuredComparison(time, predicted, predicted / time, tuple(terms), measured.place)
