"""Compares predictions with measurements: reads a table of times, predicts each row, and reports the errors."""

from ..rows.predict import Settings
from .accuracy import ModelAccuracy, ValidationReport
from .compare import RatioReport, compare_rows
from .row import RowResult
from .run import report_again, validate

__all__ = [
    "ModelAccuracy",
    "RatioReport",
    "RowResult",
    "Settings",
    "ValidationReport",
    "compare_rows",
    "report_again",
    "validate",
]
