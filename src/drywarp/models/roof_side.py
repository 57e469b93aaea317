"""Whether memory or computation determines the roof."""

from __future__ import annotations

from .inputs import ModelInputs


def roof_side(inputs: ModelInputs) -> str:
    """``memory`` if the memory instructions' Σλ is that of the busiest subsystem, else ``computation``."""
    busiest = inputs.busy.get(inputs.roof_bound, 0.0)
    return "memory" if busiest <= inputs.memory.count * inputs.memory.lambda_ else "computation"
