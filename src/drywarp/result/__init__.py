"""What an answer holds: plain data, finished before any report is made of it."""

from .answer import (
    Analysis,
    Band,
    BandPart,
    LineCost,
    MeasuredComparison,
    MemoryBounds,
    MemoryResult,
    OccupancyResult,
    Term,
    Timing,
)
from .to_json import SCHEMA_VERSION
from .verdict import limit_words, verdict

__all__ = [
    "SCHEMA_VERSION",
    "Analysis",
    "Band",
    "BandPart",
    "LineCost",
    "MeasuredComparison",
    "MemoryBounds",
    "MemoryResult",
    "OccupancyResult",
    "Term",
    "Timing",
    "limit_words",
    "verdict",
]
