"""The noise on simulated times, and the GPUs that can stand in for a card."""

from __future__ import annotations

import numpy as np
import pytest

from drywarp.errors import UsageError
from drywarp.experiments.measure.simulated import noisy, simulated_gpu


def test_noise_is_of_its_size_and_of_its_key() -> None:
    drawn = noisy(200.0, 0.01, 4000, "0 run")
    assert np.mean(drawn) == pytest.approx(200, rel=1e-3)
    assert np.std(drawn) == pytest.approx(2, rel=0.05)
    assert noisy(200.0, 0.01, 4000, "0 run") == drawn
    assert noisy(200.0, 0.01, 4000, "1 run") != drawn
    assert noisy(200.0, 0.0, 2, "0 run") == [200.0, 200.0]


def test_only_gpus_of_nvidias_machine_code_are_simulated() -> None:
    assert simulated_gpu("a100").name == "a100"
    for name in ("mi210", "papers/example"):
        with pytest.raises(UsageError, match="cannot be simulated here"):
            simulated_gpu(name)
