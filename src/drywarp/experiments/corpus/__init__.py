"""A whole folder of kernels in one run: which can be analysed, what each costs, and why one fails."""

from .files import Module, Settings, find_modules
from .result import CorpusReport, Row, Totals
from .run import run_corpus

__all__ = ["CorpusReport", "Module", "Row", "Settings", "Totals", "find_modules", "run_corpus"]
