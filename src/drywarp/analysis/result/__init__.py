"""The contents of an answer: plain data, complete before any report is written."""

from .analysis import SCHEMA_VERSION, Analysis
from .answer import (
    Band,
    BandPart,
    GpuBeside,
    LineCost,
    MeasuredComparison,
    MemoryBounds,
    MemoryResult,
    OccupancyResult,
    Term,
    Timing,
    limit_words,
    verdict,
)

__all__ = [
    "SCHEMA_VERSION",
    "Analysis",
    "Band",
    "BandPart",
    "GpuBeside",
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
