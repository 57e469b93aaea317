"""A GPU file from measurements: micro-benchmarks, the fits to them, and what comes out.

`device.py` says what a device is: something that runs one of our kernels and tells how long it took. A card
(`card.py`) and drywarp's own simulation (`simulated_card.py`) are two of them. `experiments/` choose the runs,
`fits/` are the papers' formulas, and neither sees anything but timings and what a driver states.
"""

from .calibrate import calibrate, experiment_names
from .result import Calibration

__all__ = ["Calibration", "calibrate", "experiment_names"]
