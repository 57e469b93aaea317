"""Kernel Tuner: predicts its spaces without a GPU, and orders or prunes its searches by prediction.

    import kernel_tuner
    from drywarp.experiments.tuners.kernel_tuner import PredictedOrder
    kernel_tuner.tune_kernel(..., strategy=PredictedOrder(gpu="a100"), strategy_options={"max_fevals": 20})

See docs/tuners.md.
"""

from .predicting import predict
from .predictions import Predictions, measured_space
from .script import read_script
from .space import TuningSpace, tuning_space
from .strategy import PredictedOrder

__all__ = ["PredictedOrder", "Predictions", "TuningSpace", "measured_space", "predict", "read_script", "tuning_space"]
