"""What one page may ask of this machine."""

from __future__ import annotations

from dataclasses import dataclass

MOST_BODY = 512 * 1024
"""Bytes of a request."""

MOST_SOURCE = 256 * 1024
"""Characters of a pasted kernel."""

MOST_LAUNCH = 8 * 1024
"""Characters of the launch options."""

MOST_EVENTS = 20_000
"""Issues of the execution profile, of one wave."""

MOST_LOG = 20_000
"""Characters of a compiler's log that are shown."""

MOST_AT_ONCE = 8
"""Connections that are open at once; more are turned away."""

READ_SECONDS = 10.0
"""Within which a request must have arrived as a whole."""

MOVE_SECONDS = 60.0
"""What one move of a slider may take."""

MEMORY_BYTES = 32 * 2**30
"""Address space of the process that compiles, emulates and simulates."""

LEAST_FACTOR, MOST_FACTOR = 0.05, 20.0
"""By which λ and Λ may be multiplied."""


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """What the command line sets: limits of an emulation as `analyze` has them, and seconds of a whole analysis.

    An analysis that takes longer is ended with its process, whatever it is doing.
    """

    lane_steps: int = 2_000_000_000
    analysis_seconds: float = 300.0
