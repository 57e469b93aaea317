"""`compare`: an old and a new kernel, or saved answers of them, on one or several GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..api import Options, analyze_bound
from ..counts_api import counts_of
from ..errors import DrywarpError, UsageError
from ..hardware import Gpu, load_gpu
from ..ready import BoundKernel
from ..result import Analysis
from ..several_gpus import ALL, SeveralGpus, chosen_gpus, launch_and_options
from .judge import judge
from .result import Comparison
from .saved import is_saved, read_saved
from .side import Side, SideError, side_of

DEFAULT_GPU = "a100"
_BY_NAME = ("args", "constants", "defines")
"""Keys of a launch that hold values by name: one side may change a few of them."""


def compare(
    old: object,
    new: object = None,
    *,
    gpu: str | Path | Gpu | Sequence[str | Path | Gpu] | None = None,
    fail_above: float | None = None,
    old_launch: Mapping[str, Any] | None = None,
    new_launch: Mapping[str, Any] | None = None,
    options: Options | None = None,
    **launch: Any,
) -> Comparison:
    """Predict what a change of a kernel does to its time, limiter, occupancy, counts and lines.

    `old` and `new` are what `analyze` takes, an `Analysis`, or a ``.json`` file with a saved one, which brings its GPU
    along; without `new` it is the same kernel with another launch. `gpu` is a name, several (``"a100,h100"`` or a
    list) or ``"all"``, which leaves those out that neither side can run on. `launch` (grid, block, args, defines, … as
    for `analyze`) holds for both sides, `old_launch` and `new_launch` go before it on their side; fields of `Options`
    may be given by name as well. `fail_above` is the slowdown, as a fraction, above which a GPU counts as regressed.
    Raises DrywarpError, with one line that says what is wrong.
    """
    if fail_above is not None and not (math.isfinite(fail_above) and fail_above >= 0):
        raise UsageError(f"fail_above {fail_above}: expected a fraction, 0 or more")
    if new is None:
        if not (old_launch or new_launch):
            raise UsageError("one kernel only: expected a second one, or a launch of old or new that differs")
        new = old
    # One point of the curve, one model: the time is what is compared.
    common, chosen = launch_and_options(
        launch, replace(options or Options(), models=("pipeline",), occupancies=range(0))
    )
    sides = [_Side("old", old, common, old_launch or {}, chosen), _Side("new", new, common, new_launch or {}, chosen)]
    if common and all(side.saved for side in sides):
        raise UsageError(f"{next(iter(common))}: for kernels, both sides are saved answers")
    found = []
    left_out: dict[str, DrywarpError] = {}
    for machine in _gpus(sides, gpu):
        if machine is not None and gpu == ALL and (reason := _on_neither(sides, machine)):
            left_out[machine.name] = reason
            continue
        before, after = (side.on(machine) for side in sides)
        found.append(judge(before, after, fail_above))
    if not found:
        raise next(iter(left_out.values()))
    reasons = {name: str(error) for name, error in left_out.items()}
    return Comparison(tuple(found), fail_above, {"drywarp": __version__}, reasons)


class _Side:
    """A source of answers, one for each GPU."""

    def __init__(
        self, name: str, source: object, common: Mapping[str, Any], own: Mapping[str, Any], options: Options
    ) -> None:
        self.name, self.saved, self._options = name, _saved(source), options
        if self.saved and own:
            raise UsageError(f"{name}: {next(iter(own))} is for kernels, this is a saved answer")
        self._kernel = None if self.saved else SeveralGpus(source, _merged(common, own), options)
        self._last: tuple[Gpu, Side] | None = None

    def on(self, gpu: Gpu | None) -> Side:
        """The answer on `gpu`; None: the saved one."""
        if self.saved is not None:
            return self.saved
        assert self._kernel is not None
        assert gpu is not None
        if self._last is not None and self._last[0] is gpu:
            return self._last[1]
        try:
            answered = _answered(self._kernel.bind(gpu), self._options)
        except DrywarpError as error:
            error.args = (f"{self.name}: {error}", *error.args[1:])
            raise
        self._last = (gpu, answered)
        return answered


def _on_neither(sides: Sequence[_Side], gpu: Gpu) -> DrywarpError | None:
    """Why no side runs on a GPU; None where one does, so that what the other says is an error."""
    reason = None
    for side in sides:
        try:
            side.on(gpu)
        except DrywarpError as error:
            reason = reason or error
        else:
            return None
    return reason


def _saved(source: object) -> Side | None:
    if isinstance(source, Analysis):
        return side_of(source.to_dict())
    return read_saved(source) if is_saved(source) else None


def _answered(ready: BoundKernel, options: Options) -> Side:
    answer = analyze_bound(ready, options)
    content = answer.to_dict()
    sampling = ready.profile.sampling
    # Lanes under guards are only counted where all of the code was run.
    whole = ready.static is None and not (sampling and sampling.extrapolated_loops)
    if whole and not ready.gpu.is_amd and ready.gpu.machine_code is None:
        content["counts"] = dict(counts_of(ready, options, simulated=False).counts)
    try:
        return side_of(content)
    except SideError as error:
        raise UsageError(f"{answer.kernel} on {answer.gpu}: {error}") from None


def _gpus(sides: Sequence[_Side], wanted: Any) -> list[Gpu | None]:
    """The GPUs to compare on; None stands for that of two saved answers."""
    saved = [side.saved for side in sides if side.saved]
    if not saved:
        return list(chosen_gpus(wanted or DEFAULT_GPU))
    if wanted is None:
        return [None if len(saved) == len(sides) else load_gpu(saved[0].gpu)]
    gpus = chosen_gpus(wanted)
    if [gpu.name for gpu in gpus] != [saved[0].gpu]:
        raise UsageError(f"the saved answer is for {saved[0].gpu}: leave the GPU out, or name that one")
    return list(gpus)


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(common)
    for key, value in own.items():
        merged[key] = {**(merged.get(key) or {}), **value} if key in _BY_NAME else value
    return merged
