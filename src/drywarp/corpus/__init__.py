"""A whole folder of kernels in one run: which of them can be analysed, what each takes, and why one fails."""

from .files import Module, find_modules
from .result import CorpusReport, Row, Totals
from .run import run_corpus
from .settings import Settings

__all__ = ["CorpusReport", "Module", "Row", "Settings", "Totals", "find_modules", "run_corpus"]
