"""Every registered model's curve for one workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..bound import BoundWorkload
from ..detail import Curve
from ..errors import UsageError
from ..models.base import NotApplicable, Prediction, get_model, model_names


def all_curves(
    bound: BoundWorkload, occupancies: Sequence[int], known: Mapping[str, Prediction], full: bool
) -> tuple[tuple[Curve, ...], dict[str, str]]:
    """The curves, and of each model that cannot be applied why not. What is `known` is not asked again."""
    curves: list[Curve] = []
    refused: dict[str, str] = {}
    for name in dict.fromkeys([*known, *model_names()]):
        model = get_model(name, full_simulation=full)
        try:
            found = known[name] if name in known else model.predict(bound, occupancies)
        except (NotApplicable, UsageError) as reason:
            refused[name] = str(reason)
            continue
        curves.append(Curve(name, model.summary, found.curve, found.time_s, found.limiter))
    return tuple(curves), refused
