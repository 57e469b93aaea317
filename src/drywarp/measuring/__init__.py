"""Kernels measured on a real GPU: which ones, at which block sizes and occupancies, and the table that comes out."""

from .counters import Counters, find_ncu
from .on_card import CardRunner
from .row import FAILED, OK, WRONG, MeasuredLaunch
from .run import Measured, measure
from .runner import Runner
from .simulated import SimulatedRunner

__all__ = [
    "FAILED",
    "OK",
    "WRONG",
    "CardRunner",
    "Counters",
    "Measured",
    "MeasuredLaunch",
    "Runner",
    "SimulatedRunner",
    "find_ncu",
    "measure",
]
