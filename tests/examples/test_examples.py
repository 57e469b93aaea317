"""Every example, run whole on emulated machine code of both architectures, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drywarp.arguments import make_launch
from drywarp.emulator import emulate
from drywarp.frontends.cuda import CudaOptions, compile_cuda

from .references import EXAMPLES, Example

FOLDER = Path(__file__).parents[2] / "examples"


def _ulps(left: np.ndarray, right: np.ndarray) -> int:
    """Largest distance in units in the last place; both are finite and of one sign here."""
    return int(np.abs(left.view(np.int32).astype(np.int64) - right.view(np.int32)).max())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.file + "".join(f"-{v}" for v in e.defines.values()))
def test_example_computes_what_numpy_does(example: Example, arch: str) -> None:
    kernel = compile_cuda(FOLDER / example.file, arch=arch, options=CudaOptions(example.defines))
    launch = make_launch(kernel, example.grid, example.block, example.arguments)
    run = emulate(kernel, launch, blocks="all")
    for name, expected in example.reference(example.arguments).items():
        actual = run.buffer(name)
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype
        if expected.dtype.kind == "f":
            assert _ulps(actual, expected) <= example.ulps
        else:
            np.testing.assert_array_equal(actual, expected)


def test_every_example_file_has_a_reference() -> None:
    assert {path.name for path in FOLDER.glob("*.cu")} == {example.file for example in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.file)
def test_the_callers_arrays_stay_as_they_were(example: Example) -> None:
    before = {name: np.copy(value) for name, value in example.arguments.items()}
    kernel = compile_cuda(FOLDER / example.file, arch="sm_80", options=CudaOptions(example.defines))
    emulate(kernel, make_launch(kernel, example.grid, example.block, example.arguments), blocks=1)
    for name, value in before.items():
        np.testing.assert_array_equal(example.arguments[name], value)
