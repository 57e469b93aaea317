"""The suite's kernels, run whole on emulated machine code, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drywarp.execution.emulator import emulate
from drywarp.experiments.measure.configuration import Configuration, configurations, read_suite
from drywarp.experiments.measure.row import difference, expected_outputs, inputs_of
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.loaded import launch_comment, launch_options
from drywarp.kernel.launch.arguments import make_launch
from tests.effort import in_turn, some

FOLDER = Path(__file__).parents[2] / "suite"
KERNELS = {kernel.entry.name: kernel for kernel in read_suite(FOLDER)}
OWN = [name for name, kernel in KERNELS.items() if kernel.group == "kernels"]
OTHERS = [name for name in KERNELS if name not in OWN]
TABLE_9 = """Fan2 nw_kernel1 kmeans_kernel_c kmeans_swap lud_perimeter lud_internal hotspot opt_srad1 opt_srad2
    bpnn_layerforward bpnn_adjust_weights compute_step_factor time_step compute_flux""".split()


def off_by(chosen: Configuration, arch: str) -> dict[str, float]:
    """How far each output is from NumPy's, every block run."""
    entry = chosen.kernel.entry
    kernel = compile_cuda(chosen.source, arch=arch, entry=entry.entry, options=CudaOptions(chosen.defines))
    launch = make_launch(kernel, chosen.grid, chosen.block, chosen.args, dynamic_shared=chosen.shared)
    expected = expected_outputs(chosen, kernel, launch, inputs_of(kernel, launch))
    run = emulate(kernel, launch, blocks="all")
    return {name: difference(run.buffer(name), array) for name, array in expected.items()}


def test_the_fourteen_are_there() -> None:
    assert OWN == TABLE_9


@pytest.mark.parametrize(("name", "arch"), in_turn(OWN, ["sm_75", "sm_80", "sm_90", "sm_86", "sm_89"], share=2))
def test_a_kernel_computes_what_numpy_does(name: str, arch: str) -> None:
    kernel = KERNELS[name]
    found = off_by(configurations(kernel, small=True)[0], arch)
    assert found
    assert max(found.values()) <= kernel.entry.tolerance, found


@pytest.mark.parametrize("name", some(OTHERS, 20))
def test_an_example_and_a_rung_compute_what_numpy_does(name: str) -> None:
    kernel = KERNELS[name]
    found = off_by(configurations(kernel, small=True)[-1], "sm_80")
    assert found
    assert max(found.values()) <= kernel.entry.tolerance, found


@pytest.mark.parametrize("name", some(OWN, 14))
def test_every_block_size_computes_the_same(name: str) -> None:
    kernel = KERNELS[name]
    others = configurations(kernel, small=True)[1:]
    assert others, "a single block size"
    for chosen in others:
        found = off_by(chosen, "sm_90")
        assert max(found.values()) <= kernel.entry.tolerance, (chosen.variant, found)


@pytest.mark.parametrize("name", OWN)
def test_the_launch_of_the_first_variant_is_that_of_the_file(name: str) -> None:
    first = configurations(KERNELS[name])[0]
    said = launch_comment(first.source.read_text(), first.source.name)
    mine = launch_comment(f"// drywarp: {first.launch_text(0)}", "mine")
    assert (mine.grid, mine.block) == (said.grid, said.block)
    assert mine.arguments == said.arguments
    assert not said.defines


@pytest.mark.parametrize("name", OWN)
def test_block_sizes_are_macros_and_dynamic_shared_memory_is_left_alone(name: str) -> None:
    kernel = KERNELS[name]
    text = kernel.source.read_text()
    assert "extern __shared__" not in text
    assert "blockDim" not in text
    chosen = configurations(kernel)
    assert len({(c.block, c.variant) for c in chosen}) == 3
    assert len(chosen) == (6 if kernel.entry.large else 3)
    assert {c.name for c in chosen} <= {name, f"{name} large"}
    for macro in {key for variant in kernel.entry.variants for key in variant}:
        assert f"#ifndef {macro}" in text or "cfd.cuh" in text


@pytest.mark.parametrize("name", OWN)
def test_a_size_is_there_that_gives_every_sm_of_today_several_blocks(name: str) -> None:
    largest = max(configurations(KERNELS[name]), key=lambda c: c.grid[0] * c.grid[1])
    assert largest.grid[0] * largest.grid[1] >= 7 * 132


def test_every_example_in_cuda_but_textures_is_in_the_suite() -> None:
    examples = {path.name for path in (FOLDER.parent / "examples").glob("*.cu")}
    measured = {kernel.source.name for kernel in KERNELS.values() if kernel.group == "examples"}
    assert examples - measured == {"texture_filter.cu"}


def test_every_rung_of_the_ladders_is_in_the_suite() -> None:
    rungs = {path.name for path in (FOLDER.parent / "examples" / "ladders").glob("*/*.cu")}
    assert {kernel.source.name for kernel in KERNELS.values() if kernel.group == "ladders"} == rungs


def test_a_wrong_output_is_seen() -> None:
    right = np.array([1.0, -2.0, 0.0], np.float32)
    assert difference(right, right) == 0
    assert difference(right + np.float32(0.5), right) == pytest.approx(0.5 / np.sqrt(5 / 3))
    assert difference(np.array([1.0, np.nan, 0.0], np.float32), right) == np.inf
    assert difference(np.array([1, 2]), np.array([1, 3])) == np.inf
    # NaN in what is expected: not compared, but nothing compared at all is no agreement.
    assert difference(np.array([1.0, 7.0], np.float32), np.array([1.0, np.nan])) == 0
    assert difference(np.array([7.0], np.float32), np.array([np.nan])) == np.inf


def test_macros_are_all_defined_and_the_reference_has_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "scale.cu").write_text(
        'extern "C" __global__ void scale(float* out) { out[threadIdx.x] = ALPHA * offset_ + TILE; }\n'
    )
    (tmp_path / "check.py").write_text(
        "import numpy as np\n"
        "def scale(g):\n"
        "    return {'out': np.full(32, g['ALPHA'] * g['offset_'] + g['TILE'] + 0 * g['rows'], np.float32)}\n"
    )
    (tmp_path / "kernels.toml").write_text(
        '[[kernel]]\nname = "scale"\nfile = "scale.cu"\ngrid = "1"\nblock = "32"\nreference = "check.py:scale"\n'
        'args = {out = "f32[32]"}\nmacros = {ALPHA = 0.5, offset_ = 3}\n'
        'compiler_options = ["-fmad=false"]\nvariants = [{TILE = "16", rows = 7}]\n'
    )
    (chosen,) = configurations(read_suite(tmp_path)[0])
    assert chosen.defines == {"ALPHA": "0.5", "offset_": "3", "TILE": "16"}
    assert off_by(chosen, "sm_80") == {"out": 0}
    assert chosen.options.compiler_options == ("--fmad=false",)
    assert launch_options(chosen.launch_text(0), "").options.compiler_options == ("--fmad=false",)
