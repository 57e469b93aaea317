"""What a change of a kernel costs or gains: two answers compared by GPU and by line.

Each side is a kernel, or its saved answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...errors import DrywarpError, UsageError
from ...hardware import Gpu, load_gpu
from ..counters.count import counts_of
from ..prepared import Prepared
from ..request import LaunchRequest, Options
from ..result import Analysis
from ..several_gpus import ALL, SeveralGpus, chosen_gpus, launch_and_options
from ..stages import answer_prepared
from .judge import is_saved, judge, read_saved
from .result import Comparison, Side, SideError, side_of

DEFAULT_GPU = "a100"
_BY_NAME = ("args", "constants", "defines")
"""Launch keys that map names to values, of which one side may override some."""


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
    """Predict how a change of a kernel affects its time, limiter, occupancy, counts and lines.

    `old` and `new` are sources as for `analyze`, an `Analysis`, or a ``.json`` file with a saved one, which also gives
    the GPU; without `new`, the same kernel is compared with another launch. `gpu` is a name, several (``"a100,h100"``
    or a list) or ``"all"``, which omits GPUs that neither side can run on. `launch` (grid, block, args, defines, … as
    for `analyze`) applies to both sides; `old_launch` and `new_launch` override it on their side. Fields of `Options`
    may be given by name as well. `fail_above` is the slowdown, as a fraction, above which a GPU counts as regressed.
    Raises DrywarpError with a one-line explanation.
    """
    if fail_above is not None and not (math.isfinite(fail_above) and fail_above >= 0):
        raise UsageError(f"fail_above {fail_above}: expected a fraction, 0 or more")
    if new is None:
        if not (old_launch or new_launch):
            raise UsageError("only one kernel given: expected a second one, or different launches for old and new")
        new = old
    # One point of the curve, one model: the time is what is compared. Loops that a limit cut short would not compare.
    one = replace(options or Options(), models=("pipeline",), occupancies=range(0), findings=False, fall_back=False)
    common, chosen = launch_and_options(launch, one)
    sides = [_Side("old", old, common, old_launch or {}, chosen), _Side("new", new, common, new_launch or {}, chosen)]
    if common and all(side.saved for side in sides):
        raise UsageError(f"{next(iter(common))}: applies to kernels, but both sides are saved answers")
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
            raise UsageError(f"{name}: {next(iter(own))} applies to kernels, but this is a saved answer")
        self._kernel = None if self.saved else SeveralGpus(LaunchRequest.of(source, **_merged(common, own)), options)
        self._last: tuple[Gpu, Side] | None = None

    def on(self, gpu: Gpu | None) -> Side:
        """The answer on `gpu`; None means the saved one."""
        if self.saved is not None:
            return self.saved
        assert self._kernel is not None
        assert gpu is not None
        if self._last is not None and self._last[0] is gpu:
            return self._last[1]
        try:
            answered = _answered(self._kernel.prepare(gpu), self._options)
        except DrywarpError as error:
            error.args = (f"{self.name}: {error}", *error.args[1:])
            raise
        self._last = (gpu, answered)
        return answered


def _on_neither(sides: Sequence[_Side], gpu: Gpu) -> DrywarpError | None:
    """Why neither side runs on a GPU; None if one does, in which case the other's failure is an error."""
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


def _answered(prepared: Prepared, options: Options) -> Side:
    answer = answer_prepared(prepared, options)
    content = answer.to_dict()
    sampling = prepared.profile.sampling
    # Lanes under guards are counted only if all of the code was run.
    whole = prepared.static is None and not (sampling and sampling.extrapolated_loops)
    if whole and not prepared.gpu.is_amd and prepared.gpu.machine_code is None:
        content["counts"] = dict(counts_of(prepared, options, simulated=False).counts)
    try:
        return side_of(content)
    except SideError as error:
        raise UsageError(f"{answer.kernel} on {answer.gpu}: {error}") from None


def _gpus(sides: Sequence[_Side], wanted: Any) -> list[Gpu | None]:
    """The GPUs to compare on; None means the GPU of two saved answers."""
    saved = [side.saved for side in sides if side.saved]
    if not saved:
        return list(chosen_gpus(wanted or DEFAULT_GPU))
    if wanted is None:
        return [None if len(saved) == len(sides) else load_gpu(saved[0].gpu)]
    gpus = chosen_gpus(wanted)
    if [gpu.name for gpu in gpus] != [saved[0].gpu]:
        raise UsageError(f"the saved answer is for {saved[0].gpu}: omit the GPU, or name that one")
    return list(gpus)


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: {**(common.get(key) or {}), **value} if key in _BY_NAME else value for key, value in own.items()}
    return {**common, **own}


__all__ = ["Comparison", "compare"]
