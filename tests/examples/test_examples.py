"""Every example, run whole on emulated machine code of all architectures, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Texture
from tests.effort import first, some

from .references import EXAMPLES, Example

FOLDER = Path(__file__).parents[2] / "examples"


def _name(example: Example) -> str:
    return "-".join([example.file, *example.defines.values()])


def _array(value: Any) -> Any:
    """The array of a texture, or the value itself."""
    return value.buffer.array if isinstance(value, Texture) else value


def _ulps(left: np.ndarray, right: np.ndarray) -> int:
    """Largest distance in units in the last place; both are finite and of one sign here."""
    bits = np.dtype(f"i{left.itemsize}")
    return int(np.abs(left.view(bits).astype(np.int64) - right.view(bits)).max())


ARCHITECTURES = ["sm_80", "sm_75", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]


@pytest.mark.parametrize("arch", first(ARCHITECTURES))
@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
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


@pytest.mark.parametrize("example", some(EXAMPLES, 4), ids=_name)
def test_the_callers_arrays_stay_as_they_were(example: Example) -> None:
    before = {name: np.copy(_array(value)) for name, value in example.arguments.items()}
    kernel = compile_cuda(FOLDER / example.file, arch="sm_80", options=CudaOptions(example.defines))
    emulate(kernel, make_launch(kernel, example.grid, example.block, example.arguments), blocks=1)
    for name, value in before.items():
        np.testing.assert_array_equal(_array(example.arguments[name]), value)


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_the_sample_counts_what_the_whole_grid_runs(example: Example) -> None:
    kernel = compile_cuda(FOLDER / example.file, arch="sm_80", options=CudaOptions(example.defines))
    launch = make_launch(kernel, example.grid, example.block, example.arguments)
    sample, whole = emulate(kernel, launch).profile, emulate(kernel, launch, blocks="all").profile
    sampled, blocks = len(sample.blocks), len(whole.blocks)
    assert sampled < blocks, "the reduced launch has too few blocks to sample from"
    estimate, truth = sample.executions().sum(), whole.executions().sum()
    if example.data_dependent:
        lengths = np.array([block.end - block.start for block in whole.cfg.blocks])
        per_path = [lengths[path.blocks].sum() for path in whole.paths]
        per_block = [sum(per_path[number] for number in block.paths) for block in whole.blocks]
        # Three standard deviations of the mean of so many independent blocks.
        assert abs(estimate - truth) <= 3 * blocks * np.std(per_block) / np.sqrt(sampled)
    else:
        assert estimate == truth
