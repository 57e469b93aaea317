"""How far an emulation may go before it stops and says where it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one emulation: `lane_steps`, instructions times active lanes. No clock: all machines stop alike.

    Past it, `emulate` raises EmulationLimitError naming the loop that was running.
    """

    lane_steps: int = 2_000_000_000
