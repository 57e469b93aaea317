"""A search strategy for Kernel Tuner that measures configurations predicted to be fast first.

Kernel Tuner accepts any object with a method ``tune`` for `strategy=`, and wraps algorithms (`OptAlg`) that are called
with a cost function and a search space. `PredictedOrder` is both.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....errors import ToolError, UsageError
from ....hardware import Gpu, load_gpu
from ...sweep.prune import share_of
from .predicting import predict
from .predictions import Correction, Predictions
from .space import space_of

_COST_FUNCTION = {"scaling": False, "snap": False}


class PredictedOrder:
    """Measures configurations in the order of their predicted times.

    `keep` keeps the share of the space (or, above 1, the number of configurations) predicted fastest, and drops the
    rest; `then` names a Kernel Tuner strategy that searches the remaining ones instead of measuring them in order.
    `correct` adjusts the order with the errors found by the measurements so far.

    `predictions` are those of an earlier run, or a file of rows (`Predictions.read`). Without them, the whole space of
    the kernel given to `tune_kernel` is predicted first, on `gpu` (None: an A100), in `jobs` parallel processes, and
    stored in `predictions` and, if given, in the file `out` (see `predict`). `compiler_options` are used to compile the
    kernel, `clock` is the SM clock in MHz. Configurations without a prediction come last, or are dropped with `keep`.
    """

    costfunc_kwargs = _COST_FUNCTION
    constraint_aware = False

    def __init__(
        self,
        *,
        gpu: str | Path | Gpu | None = None,
        predictions: Predictions | str | Path | None = None,
        out: str | Path | None = None,
        keep: float | None = None,
        then: str | None = None,
        correct: bool = True,
        clock: float | None = None,
        jobs: int | None = None,
        compiler_options: Sequence[str] = (),
        quiet: bool = False,
    ) -> None:
        if keep is not None and not keep > 0:
            raise UsageError(f"keep={keep}: expected a share of the space, such as 0.05, or a number of configurations")
        if then is not None and keep is None:
            raise UsageError(f"then={then!r}: expected keep as well, the share of the space to search")
        self.gpu = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu or "a100"))
        if isinstance(predictions, str | Path):
            predictions = Predictions.read(predictions, gpu=self.gpu.name if gpu else None)
        self._given = predictions
        self.predictions: Predictions | None = self._given
        self.keep, self.then, self.correct = keep, then, correct
        self.out, self.clock, self.jobs, self.quiet = out, clock, jobs, quiet
        self.compiler_options = tuple(compiler_options)

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> Any:
        """Search; called by `kernel_tuner.tune_kernel`. Returns the measurements."""
        common = _loaded("kernel_tuner.strategies.common")
        if self.then is not None:
            best = self._kept(self._order(searchspace, runner, tuning_options))
            return _searched(best, self.then, searchspace, runner, tuning_options)
        cost = common.CostFunc(searchspace, tuning_options, runner, **self.costfunc_kwargs)
        try:
            self(cost, searchspace)
        except _loaded("kernel_tuner.util").StopCriterionReached as reached:
            if tuning_options.verbose:
                print(reached)
        return cost.results

    def __call__(self, func: Any, searchspace: Any) -> tuple[tuple[Any, ...], float]:
        """Search with Kernel Tuner's cost function; returns the best configuration and its cost."""
        names = tuple(searchspace.param_names)
        ordered = self._kept(self._order(searchspace, func.runner, func.tuning_options))
        held = set(map(tuple, ordered))
        others = [] if self.keep is not None else [c for c in searchspace.list if tuple(c) not in held]
        best: tuple[tuple[Any, ...], float] = ((), math.inf)
        correction = self._correction(func, names, ordered)
        for place in range(len(ordered)) if correction is None else correction.places():
            cost = func(ordered[place], check_restrictions=False)
            best = min(best, (tuple(ordered[place]), cost), key=lambda one: one[1])
            if correction is not None:
                correction.learn(place, cost)
        for configuration in others:
            cost = func(configuration, check_restrictions=False)
            best = min(best, (tuple(configuration), cost), key=lambda one: one[1])
        return best

    def _correction(self, func: Any, names: Sequence[str], ordered: Sequence[Any]) -> Correction | None:
        """The correction; None if the objective is not time, which predictions could not be compared with."""
        if not self.correct or self.predictions is None or list(func.tuning_options.objective) != ["time"]:
            return None
        times = self.predictions.times
        return Correction(ordered, [times[self.predictions.key(c, names)] for c in ordered])

    def _order(self, searchspace: Any, runner: Any, tuning_options: Any) -> list[Any]:
        names = tuple(searchspace.param_names)
        known = (self._given or self._predicted(searchspace, runner, tuning_options)).over(names)
        self.predictions = known
        order: list[Any] = known.ordered(searchspace.list, names, tuning_options.get("seed"))
        if not order:
            raise UsageError(f"none of {searchspace.size} configurations is among the predictions ({', '.join(names)})")
        return order

    def _kept(self, order: list[Any]) -> list[Any]:
        if self.keep is None:
            return order
        count = share_of(len(order), self.keep) if self.keep <= 1 else int(self.keep)
        return order[:count]

    def _predicted(self, searchspace: Any, runner: Any, tuning_options: Any) -> Predictions:
        space = space_of(runner, tuning_options, self.compiler_options)
        names = tuple(searchspace.param_names)
        wanted = [dict(zip(names, values, strict=True)) for values in searchspace.list]

        def on_row(configuration: Mapping[str, Any], found: float | str, done: int, of: int) -> None:
            if not self.quiet and (done == of or done % max(1, of // 20) == 0):
                print(f"drywarp: {done} of {of} configurations predicted", file=sys.stderr)

        return predict(
            space, gpu=self.gpu, configurations=wanted, out=self.out, clock=self.clock, jobs=self.jobs, on_row=on_row
        )


def _searched(best: Sequence[Any], strategy: str, searchspace: Any, runner: Any, tuning_options: Any) -> Any:
    """The result of another strategy that searches only `best`."""
    interface, constraint = _loaded("kernel_tuner.interface"), _loaded("constraint")
    if strategy not in interface.strategy_map:
        raise UsageError(
            f"then={strategy!r}: not a strategy of Kernel Tuner; expected one of: {', '.join(interface.strategy_map)}"
        )
    held = set(map(tuple, best))
    among = constraint.FunctionConstraint(lambda *values: values in held)
    smaller = type(searchspace)(searchspace.tune_params, [among], searchspace.max_threads)
    return interface.strategy_map[strategy].tune(smaller, runner, tuning_options)


def _loaded(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ToolError(f"{name} cannot be loaded ({error}): pip install 'drywarp[kernel-tuner]'") from None
