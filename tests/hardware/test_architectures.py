"""Which packaged architecture a GPU of a compute capability builds on."""

from __future__ import annotations

import pytest

from drywarp.errors import UsageError
from drywarp.experiments.calibrate.gpu_file import architecture_of
from drywarp.hardware import gpu_names, load_gpu


def test_a_product_builds_on_the_architecture_of_its_capability() -> None:
    asked = 0
    for name in gpu_names():
        gpu = load_gpu(name)
        if name.startswith(("papers/", "mi")):
            continue
        assert architecture_of(gpu.compute_capability).startswith("arch/")
        asked += 1
    assert asked > 15
    assert (architecture_of("8.0"), architecture_of("9.0")) == ("arch/ga100", "arch/gh100")
    assert (architecture_of("8.7"), architecture_of("10.3")) == ("arch/ga10b", "arch/gb110")
    assert architecture_of("7.5") == "arch/tu10x"  # not tu11x, which has no tensor cores


def test_an_unknown_capability_is_said_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"6\.1; expected one of: 7\.0, .*8\.0, .*9\.0, .*12\.0"):
        architecture_of("6.1")
