"""The settings of an abstract kernel, and the costs of its classes on one GPU at one occupancy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from ...errors import InputFileError, UsageError
from ...hardware import ClassCost, Gpu
from ...kernel.profile import SPACE_GLOBAL
from ...memory.behaviour import AccessBehaviour
from ...support.expressions import ExpressionError, Number, evaluate
from ..cost import CostedNode, Level, to_ticks
from ..memory_costs import MemoryCosts
from .check import OCCUPANCY, AbstractFile, did_you_mean
from .file import AbstractClass, Amount, Costs, Cycles, Measured


def settings_of(file: AbstractFile, given: Mapping[str, float | str]) -> dict[str, Number]:
    """Every setting's value. Raises UsageError for an unknown name or a value out of its range."""
    declared = file.kernel.settings
    values: dict[str, Number] = {name: setting.default for name, setting in declared.items()}
    for name, value in given.items():
        if name not in declared:
            raise UsageError(f"--set {name}: {file.name} has no such setting{did_you_mean(name, declared)}")
        values[name] = number = _number(name, value)
        least, most = declared[name].least, declared[name].most
        if (least is not None and number < least) or (most is not None and number > most):
            bounds = " and ".join(
                f"{word} {bound:g}" for word, bound in (("at least", least), ("at most", most)) if bound is not None
            )
            raise UsageError(f"--set {name}={number:g}: expected {bounds}")
    return values


def _number(name: str, value: float | str) -> Number:
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"--set {name}={value}: expected a number") from None
    if abs(number) > 1e15 or number != number:
        raise UsageError(f"--set {name}={value}: expected a number within ±1e15")
    return int(number) if number.is_integer() else number


@dataclass(frozen=True)
class Settings:
    """The settings' values with the file that declares them."""

    file: AbstractFile
    values: Mapping[str, Number]

    def number(self, key: str, value: Amount, more: Mapping[str, Number] | None = None) -> Number:
        """The value of a number or expression."""
        if not isinstance(value, str):
            return value
        try:
            return evaluate(value, {**self.values, **(more or {})})
        except ExpressionError as error:
            raise self._error(key, str(error)) from None

    def whole(self, key: str, value: Amount, least: int = 0) -> int:
        """A whole number of at least `least`."""
        number = self.number(key, value)
        if number != int(number) or number < least:
            said = f"{value!r} = {number:g}" if isinstance(value, str) else f"{number:g}"
            raise self._error(key, f"expected a whole number of at least {least}, got {said}")
        return int(number)

    def cycles(self, key: str, value: Cycles, occupancy: int) -> float:
        """λ or Λ at an occupancy."""
        if isinstance(value, Measured):
            return _between(value, occupancy)
        number = float(self.number(key, value, {OCCUPANCY: occupancy}))
        if number < 0:
            raise self._error(key, f"expected 0 or more cycles, got {value!r} = {number:g}")
        return number

    def _error(self, key: str, problem: str) -> InputFileError:
        return self.file.error(key, problem)


def _between(table: Measured, occupancy: int) -> float:
    at, cycles = table.occupancy, table.cycles
    if occupancy <= at[0]:
        return cycles[0]
    for place in range(1, len(at)):
        if occupancy < at[place]:
            if table.steps:
                return cycles[place - 1]
            part = (occupancy - at[place - 1]) / (at[place] - at[place - 1])
            return cycles[place - 1] + part * (cycles[place] - cycles[place - 1])
    return cycles[-1]


# Costs of the classes of an abstract kernel on one GPU at one occupancy.

Lambdas = tuple[float, float]
"""λ and Λ in cycles."""

MOST_RATIO = 256.0
"""Most bytes that DRAM may move per byte that is accessed: 32 lanes that each read a byte of 8 sectors of their own."""


def global_lambdas(ratio: float, dram: Lambdas, cache: Lambdas) -> Lambdas:
    """λ_global and Λ_global from R, those of DRAM and those of the L2 (analysis §6.3).

    Below 1 they are means, weighted by R and 1 − R; above, DRAM takes R λ_DRAM, and the last byte arrives
    (R − 1) λ_DRAM after the first.
    """
    if ratio < 1:
        return ratio * dram[0] + (1 - ratio) * cache[0], ratio * dram[1] + (1 - ratio) * cache[1]
    return ratio * dram[0], dram[1] + (ratio - 1) * dram[0]


def local_lambdas(degree: float, local: Lambdas) -> Lambdas:
    """λ'_local and Λ'_local from the degree D of bank conflicts (analysis §6.3): (1 + D) λ and Λ + D λ."""
    return (1 + degree) * local[0], local[1] + degree * local[0]


SHARED_CLASSES = ("shared_load", "shared_store", "shared_atomic")


@dataclass(frozen=True)
class Machine:
    """The GPU, the index of each subsystem, costs of its memory levels (None if it has none), warps per SM.

    `memory` takes the bytes read from and written to DRAM, which determine its bandwidth.
    """

    gpu: Gpu
    index: dict[str, int]
    memory: Callable[[float, float], MemoryCosts] | None
    occupancy: int


def node_of(name: str, machine: Machine, settings: Settings) -> CostedNode:
    """A class's costs as a node without dependences."""
    return _ClassCosts(name, machine, settings).node()


class _ClassCosts:
    """One class with its settings applied, and the GPU's class that it takes its costs from."""

    def __init__(self, name: str, machine: Machine, settings: Settings) -> None:
        self.name, self.machine, self.settings = name, machine, settings
        self.key = f"classes.{name}"
        self.class_ = settings.file.kernel.classes[name]
        self.costs = _chosen(self.class_, settings)
        named = self.costs.from_
        self.names = [named] if isinstance(named, str) else named or []
        self.gpu_class = next((n for n in self.names if n in machine.gpu.classes), "")

    def node(self) -> CostedNode:
        lambda_, latency, levels = self._cycles()
        subsystem = self._subsystem()
        if self.class_.queued:
            ticks = to_ticks(lambda_)
            lambda_, levels = 0.0, (Level(subsystem, ticks, ticks), *levels)
        return CostedNode(
            instruction=-1,
            class_=self.name,
            subsystem=subsystem,
            lambda_ticks=to_ticks(lambda_),
            latency_ticks=to_ticks(latency),
            barrier=self.class_.kind == "barrier",
            async_result=self.class_.store,
            levels=levels,
            transactions=self._transactions() if self.class_.kind == "memory" else 0.0,
            dram_share=self._dram_share(),
            issues=self.settings.whole(f"{self.key}.issues", 1 if self.costs.issues is None else self.costs.issues),
        )

    def _dram_share(self) -> float:
        """The share of an access that DRAM serves, where the GPU has memory levels and the file states no Λ."""
        served = self.costs.latency is None and self.gpu_class and self.gpu_class not in SHARED_CLASSES
        if not served or self.machine.gpu.classes[self.gpu_class].latency is not None:
            return 0.0
        l1_hit, l2_hit = (self._amount(n, getattr(self.costs, n), 0, 1) for n in ("l1_hit", "l2_hit"))
        return (1 - l1_hit) * (1 - l2_hit)

    def _subsystem(self) -> int:
        name = self.costs.subsystem
        if name is None and self.gpu_class:
            name = self.machine.gpu.classes[self.gpu_class].subsystem
        if name is None and self.class_.fallback:
            name = self.class_.fallback.subsystem
        if name is None:
            raise self._absent()
        if name not in self.machine.index:
            problem = f"unknown subsystem {name!r}{did_you_mean(name, self.machine.index)}; or list it in [subsystems]"
            raise self.settings.file.error(f"{self.key}.subsystem", problem)
        return self.machine.index[name]

    def _cycles(self) -> tuple[float, float, tuple[Level, ...]]:
        """λ and Λ: the class's own, else those of the GPU's class, else the fallback."""
        lambda_, latency = self.costs.lambda_, self.costs.latency
        levels: tuple[Level, ...] = ()
        usual: tuple[Cycles, Cycles] | None = None
        if self.gpu_class:
            cost = self.machine.gpu.classes[self.gpu_class]
            if cost.latency is None:
                first, second, levels = self._access(cost)
                usual = (first, second)
            else:
                usual = self._from_memory((cost.lambda_, cost.latency))
        elif self.class_.fallback:
            usual = (self.class_.fallback.lambda_, self.class_.fallback.latency)
        if usual is not None:
            lambda_ = usual[0] if lambda_ is None else lambda_
            latency = usual[1] if latency is None else latency
        if lambda_ is None or latency is None:
            raise self._absent()
        at = self.machine.occupancy
        cycles = self.settings.cycles
        return cycles(f"{self.key}.lambda", lambda_, at), cycles(f"{self.key}.latency", latency, at), levels

    def _absent(self) -> Exception:
        gpu = self.machine.gpu
        wanted = " or ".join(self.names) or "for it"
        return self.settings.file.error(
            f"{self.key}.from",
            f"GPU {gpu.name} has no class {wanted}; expected one of {', '.join(gpu.classes)}, or a fallback",
        )

    def _access(self, cost: ClassCost) -> tuple[float, float, tuple[Level, ...]]:
        """λ, Λ and levels of an access on a GPU with memory levels."""
        if self.machine.memory is None:
            raise self._absent()
        if self.gpu_class in SHARED_CLASSES:
            return self.machine.memory(0, 0).cost(True, None, cost.lambda_)
        sectors = self._amount("sectors", self.costs.sectors, 4, 32)
        l1_hit, l2_hit = (self._amount(n, getattr(self.costs, n), 0, 1) for n in ("l1_hit", "l2_hit"))
        far = sectors * (1 - l1_hit) * (1 - l2_hit)
        read, write = (0.0, far) if self.class_.store else (far, 0.0)
        behaviour = AccessBehaviour(1, SPACE_GLOBAL, sectors, self._transactions(), l1_hit, l2_hit, read, write)
        return self.machine.memory(read, write).cost(False, behaviour, cost.lambda_)

    def _from_memory(self, own: Lambdas) -> Lambdas:
        """λ and Λ of a class of the papers, by where its accesses are served."""
        if self.costs.conflicts is not None:
            own = local_lambdas(self._amount("conflicts", self.costs.conflicts, 0, 31), own)
        if self.costs.dram_ratio is None:
            return own
        named = self.costs.cached
        names = [named] if isinstance(named, str) else named or []
        classes = self.machine.gpu.classes
        found = next((classes[n] for n in names if n in classes), None)
        cache = own if found is None or found.latency is None else (found.lambda_, found.latency)
        return global_lambdas(self._amount("dram_ratio", self.costs.dram_ratio, 1, MOST_RATIO), own, cache)

    def _transactions(self) -> float:
        return self._amount("transactions", self.costs.transactions, 1, 32)

    def _amount(self, name: str, value: Amount | None, otherwise: float, most: float) -> float:
        key = f"{self.key}.{name}"
        number = float(self.settings.number(key, otherwise if value is None else value))
        if not 0 <= number <= most:
            raise self.settings.file.error(key, f"expected a number from 0 to {most:g}, got {number:g}")
        return number


def _chosen(class_: AbstractClass, settings: Settings) -> Costs:
    """The class with its settings applied."""
    costs: Costs = class_
    for setting, change in class_.when.items():
        if settings.values[setting]:
            given = {name: v for name, v in msgspec.structs.asdict(change).items() if v is not None}
            costs = msgspec.structs.replace(costs, **given)
    return costs
