"""Tunes transpose.cu with Kernel Tuner, which measures the five configurations that drywarp predicts to be the fastest.

Needs a GPU and `pip install 'drywarp[kernel-tuner]'`. Without a GPU, `read_script` of
`drywarp.experiments.tuners.kernel_tuner` takes the space from here and `predict` says what to expect of each
configuration.
"""

import kernel_tuner
import numpy as np

from drywarp.experiments.tuners.kernel_tuner import PredictedOrder

n = np.int32(2048)
numbers = np.random.default_rng(1).random((n, n), dtype=np.float32)
arguments = [np.zeros_like(numbers), numbers, n]

tune_params = {"block_size_x": [16, 32, 64], "block_size_y": [1, 2, 4, 8, 16, 32], "padding": [0, 1]}
restrictions = ["block_size_x % block_size_y == 0", "block_size_x * block_size_y >= 64"]

results, environment = kernel_tuner.tune_kernel(
    "transpose",
    "transpose.cu",
    (int(n), int(n)),
    arguments,
    tune_params,
    grid_div_y=["block_size_x"],
    restrictions=restrictions,
    answer=[numbers.T.copy(), None, None],
    strategy=PredictedOrder(gpu="a100", keep=5),
)
print(environment["best_config"])
