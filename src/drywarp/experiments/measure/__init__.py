"""Measures kernels on a real GPU over block sizes and occupancies, and writes a table of times."""

from .on_card import CardRunner, Counters, find_ncu
from .row import FAILED, OK, WRONG, MeasuredLaunch
from .run import Measured, measure
from .simulated import Runner, SimulatedRunner

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
