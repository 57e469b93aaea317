"""What figures need of an answer, and how they say that it is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..detail import Detail
from ..errors import UsageError
from ..models.base import Prediction


class Fits(Protocol):
    """The launch's own place on the curves."""

    @property
    def warps_per_sm(self) -> int: ...  # noqa: D102


class Answer(Protocol):
    """An analysis, as `drywarp.result.Analysis` is one."""

    @property
    def kernel(self) -> str: ...  # noqa: D102
    @property
    def gpu_title(self) -> str: ...  # noqa: D102
    @property
    def occupancy(self) -> Fits: ...  # noqa: D102
    @property
    def predictions(self) -> Mapping[str, Prediction]: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def advice(self) -> Any: ...  # noqa: D102
    @property
    def detail(self) -> Detail | None: ...  # noqa: D102


def detail_of(answer: Answer, figure: str) -> Detail:
    """The answer's detail. Raises UsageError saying how to get one."""
    if answer.detail is None:
        raise UsageError(f"figure {figure}: the answer holds no detail (expected drywarp.analyze(…, detail=100_000))")
    return answer.detail


def missing(figure: str, why: str) -> UsageError:
    """The error of a figure for which the answer has nothing to draw."""
    return UsageError(f"figure {figure}: {why}")
