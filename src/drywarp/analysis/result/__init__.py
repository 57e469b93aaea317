"""The contents of an answer: plain data, complete before any report is written."""

from .analysis import SCHEMA_VERSION, Analysis, headed
from .answer import (
    Band,
    BandPart,
    GpuBeside,
    LineCost,
    MeasuredComparison,
    MemoryBounds,
    MemoryResult,
    OccupancyResult,
    Rate,
    Term,
    Timing,
    limit_words,
    unit_words,
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
    "Rate",
    "Term",
    "Timing",
    "headed",
    "limit_words",
    "unit_words",
    "verdict",
]
