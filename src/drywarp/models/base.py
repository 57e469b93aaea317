"""The one interface of all models, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..errors import DrywarpError, UsageError
from ..pipeline.occupancy import OccupancyTrace
from ..support.by_name import plugins
from ..workload.cost import CostedWorkload


class NotApplicable(DrywarpError):  # noqa: N818 - it reads as what it says in `raise`
    """A model does not apply to this workload; the text is the reason, as one clause."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A model's answer at one occupancy.

    `warps_per_cycle` (WPC) is warps finished per cycle and SM; `cycles_per_run` (CPR) the time from ω warps starting
    together until the last has ended, with no replacements (None if the model does not define it); `time_s` is the
    kernel's time at this occupancy; `bound` is its limiter: a subsystem's name, ``issue`` or ``latency``.
    """

    occupancy_warps: int
    warps_per_cycle: float
    time_s: float
    bound: str
    cycles_per_run: float | None = None


UNKNOWN_LIMIT = "unknown"
"""The limiter if several remain possible."""


@dataclass(frozen=True)
class Prediction:
    """A model's answer for one workload: the curve, and this launch's own point.

    `cycles` and `time_s` are those of the launch at its own occupancy. `limiter` names what limits
    it, `utilization` maps subsystem to the fraction 0..1 of the time that it is busy, `headroom` maps
    subsystem (and ``latency``) to the cycles that the kernel would take if that were the only limit.

    The following come from a simulation only; other models leave them out. `stalls` divides the warps' time:
    warp-cycles of one SM with its share of the grid, by stall reason (Nsight Compute's names, see
    `drywarp.pipeline.reasons`). They sum to the active warps integrated over time, so `stalls` / `cycles` is the mean
    number of warps in that state. `node_stalls` divides the same by the waiting instruction, its index in the kernel.
    `achieved_occupancy_warps` is the mean number of active warps of that SM, `occupancy_trace` their number over time,
    on request. `tail_s` is how long that SM has fewer blocks than fit, because none is left, in seconds.
    """

    model: str
    cycles: float
    time_s: float
    limiter: str
    curve: tuple[CurvePoint, ...]
    utilization: dict[str, float] = field(default_factory=dict)
    headroom: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stalls: dict[str, float] = field(default_factory=dict)
    node_stalls: dict[int, dict[str, float]] = field(default_factory=dict)
    achieved_occupancy_warps: float | None = None
    occupancy_trace: OccupancyTrace | None = None
    tail_s: float | None = None


class Model(Protocol):
    """What every model is: a name, one sentence, and `predict`."""

    name: str
    summary: str

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies` (warps per SM, whole blocks)."""
        ...


@runtime_checkable
class Simulating(Protocol):
    """A model that can simulate every instruction rather than jump or extrapolate."""

    full_simulation: bool


GROUP = "drywarp.models"
"""Entry points: classes of models, or modules that register some."""
_REGISTRY: dict[str, Callable[[], Model]] = {}


def register(name: str) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
    """Class decorator: registers a model under `name`; plug-ins use it too."""

    def add(factory: Callable[[], Model]) -> Callable[[], Model]:
        if name in _REGISTRY:
            raise ValueError(f"a model named {name} is already registered")
        _REGISTRY[name] = factory
        return factory

    return add


def model_names() -> tuple[str, ...]:
    """Names of all models in alphabetical order, including those of other packages."""
    return tuple(sorted(_known()))


def _known() -> Mapping[str, Callable[[], Model]]:
    plugins(GROUP)  # loading a model registers it
    return _REGISTRY


@runtime_checkable
class Brief(Protocol):
    """A model that can answer with time, limiter, utilisation and occupancy only, which is faster."""

    brief: bool


def get_model(name: str, *, full_simulation: bool = False, brief: bool = False) -> Model:
    """The model registered under `name`, simulating in full if it simulates, and `brief` if it can be.

    Raises UsageError listing the known models.
    """
    factory = _REGISTRY.get(name) or _known().get(name)
    if factory is None:
        raise UsageError(f"unknown model {name!r}; known: {', '.join(model_names())}")
    model = factory()
    if full_simulation and isinstance(model, Simulating):
        model.full_simulation = True
    if brief and isinstance(model, Brief):
        model.brief = True
    return model
