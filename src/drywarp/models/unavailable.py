"""What models have in common that are listed, but not available."""

from __future__ import annotations

from collections.abc import Sequence

from ..bound import BoundWorkload
from .base import NotApplicable, Prediction


class Unavailable:
    """A model whose `predict` says why there is no prediction."""

    name: str
    summary: str
    reason: str

    def predict(self, workload: BoundWorkload, occupancies: Sequence[int]) -> Prediction:
        """Raises `NotApplicable` with the reason."""
        raise NotApplicable(f"not available: {self.reason}")
