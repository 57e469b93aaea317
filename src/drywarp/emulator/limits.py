"""How far an emulation may go before it stops and says where it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one emulation: wall-clock `seconds`, and `lane_steps`, instructions times active lanes.

    Past either, `emulate` raises EmulationLimitError naming the loop that was running.
    """

    seconds: float = 20.0
    lane_steps: int = 2_000_000_000
