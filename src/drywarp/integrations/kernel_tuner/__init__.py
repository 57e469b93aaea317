"""Kernel Tuner: its spaces predicted without a GPU, and its searches ordered or pruned by prediction.

    import kernel_tuner
    from drywarp.integrations.kernel_tuner import PredictedOrder
    kernel_tuner.tune_kernel(..., strategy=PredictedOrder(gpu="a100"), strategy_options={"max_fevals": 20})

docs/tuners.md says more.
"""

from .measured import measured_space
from .predicting import predict
from .predictions import Predictions
from .script import read_script
from .space import TuningSpace, tuning_space
from .strategy import PredictedOrder

__all__ = [
    "PredictedOrder",
    "Predictions",
    "TuningSpace",
    "measured_space",
    "predict",
    "read_script",
    "tuning_space",
]
