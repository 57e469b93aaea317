"""The one interface of all models, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..bound import BoundWorkload
from ..errors import DrywarpError, UsageError
from ..pipeline.occupancy import OccupancyTrace


class NotApplicable(DrywarpError):  # noqa: N818 - it reads as what it says in `raise`
    """A model cannot say anything about this workload; the text is the reason, as one clause."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A model's answer at one occupancy.

    `warps_per_cycle` (WPC) is warps finished per cycle and SM; `cycles_per_run` (CPR) the time from ω
    warps starting together until the last has ended, nothing replacing them (None where the model
    has no such notion); `time_s` the kernel's time at this occupancy; `bound` what limits it: a
    subsystem's name, ``issue`` or ``latency``.
    """

    occupancy_warps: int
    warps_per_cycle: float
    time_s: float
    bound: str
    cycles_per_run: float | None = None


UNKNOWN_LIMIT = "unknown"
"""The limiter where what is known leaves several."""


@dataclass(frozen=True)
class Prediction:
    """A model's answer for one workload: the curve, and this launch's own point.

    `cycles` and `time_s` are those of the launch at its own occupancy. `limiter` names what limits
    it, `utilization` maps subsystem to the fraction 0..1 of the time that it is busy, `headroom` maps
    subsystem (and ``latency``) to the cycles that the kernel would take if that were the only limit.

    What only a simulation knows; other models leave it out. `stalls` says where the warps' time goes:
    warp-cycles of one SM with its share of the grid, by stall reason (Nsight Compute's names, see
    `drywarp.pipeline.reasons`). They add up to the active warps summed over the time, so that `stalls` /
    `cycles` is how many warps are in that state in the mean. `node_stalls` divides the same by the
    instruction that waits, its index in the kernel. `achieved_occupancy_warps` is the mean number of active
    warps of that SM, `occupancy_trace` their number over time, on request.
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


class Model(Protocol):
    """What every model is: a name, one sentence, and `predict`."""

    name: str
    summary: str

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies` (warps per SM, whole blocks)."""
        ...


@runtime_checkable
class Simulating(Protocol):
    """A model that can be told to simulate every instruction rather than jump or extrapolate."""

    full_simulation: bool


_REGISTRY: dict[str, Callable[[], Model]] = {}


def register(name: str) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
    """Class decorator: makes a model known under `name`; plug-ins use it too."""

    def add(factory: Callable[[], Model]) -> Callable[[], Model]:
        if name in _REGISTRY:
            raise ValueError(f"a model named {name} is registered already")
        _REGISTRY[name] = factory
        return factory

    return add


def model_names() -> tuple[str, ...]:
    """Names of all registered models, in order of registration."""
    return tuple(_REGISTRY)


@runtime_checkable
class Brief(Protocol):
    """A model that can be told to answer with time, limiter, utilisation and occupancy alone, which takes less."""

    brief: bool


def get_model(name: str, *, full_simulation: bool = False, brief: bool = False) -> Model:
    """The model registered under `name`, told to simulate in full where it simulates, and to be `brief` where it can.

    Raises UsageError naming those that exist.
    """
    if name not in _REGISTRY:
        raise UsageError(f"unknown model {name!r}; known: {', '.join(_REGISTRY)}")
    model = _REGISTRY[name]()
    if full_simulation and isinstance(model, Simulating):
        model.full_simulation = True
    if brief and isinstance(model, Brief):
        model.brief = True
    return model
