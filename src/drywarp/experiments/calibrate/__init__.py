"""Builds a GPU file from measurements: micro-benchmarks and fits to them.

`device.py` defines a device: something that runs one of our kernels and reports how long it took. `card.py` has two:
a real GPU and drywarp's own simulation. `experiments/` choose the runs, `fits.py` has the papers' formulas; both see
only timings and what a driver reports.
"""

from .calibrate import calibrate, experiment_names
from .result import Calibration

__all__ = ["Calibration", "calibrate", "experiment_names"]
