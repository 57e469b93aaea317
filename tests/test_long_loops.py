"""Loops that turn too often to be run: followed once, the same as run to their ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drywarp.analysis.fits import geometry_of, occupancy_of
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.analysis.stages import analyze
from drywarp.execution import long_loops
from drywarp.execution.emulator import Limits
from drywarp.execution.long_loops import begins_alike, extrapolated
from drywarp.hardware import load_gpu
from drywarp.kernel.profile import Profile
from drywarp.memory.behaviour import analyse_memory
from tests.effort import only

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = sorted(EXAMPLES.glob("*.cu"))
KINDS = [path for path in FILES if path.stem in ("reduction", "softmax")]
"""One whose loops are followed, and one that is left alone."""
COLUMNS = """
// drywarp: --grid 8 --block 64 --arg n=%d --arg x=f32[%d,512] --arg out=f32[512]
__global__ void columns(const float* x, float* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[(long long)i * 512 + t];
  out[t] = sum;
}
"""
DATA = """
// drywarp: --grid 8 --block 64 --arg n=4000 --arg x=i32[512]:ones --arg out=i32[512]
__global__ void walk(const int* x, int* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, at = t;
  for (int i = 0; i < n; i += x[at]) at = (at + 7) & 511;
  out[t] = at;
}
"""


@pytest.fixture(autouse=True)
def short_trial(monkeypatch: pytest.MonkeyPatch, own_results: Path) -> None:
    monkeypatch.setattr(long_loops, "TRIAL_LANE_STEPS", 2000)


def run(source: object) -> Prepared:
    return prepare_kernel(source, gpu="a100", options=Options(full_emulation=True))


def same(ours: Profile, theirs: Profile) -> None:
    assert np.array_equal(ours.executions(), theirs.executions())
    assert [(b.linear, b.weight) for b in ours.blocks] == [(b.linear, b.weight) for b in theirs.blocks]
    for one, other in zip(ours.paths, theirs.paths, strict=True):
        assert np.array_equal(one.blocks, other.blocks)


@pytest.mark.parametrize("path", only(FILES, *KINDS), ids=lambda path: path.stem)
def test_every_example_is_left_alone_or_comes_out_the_same(path: Path) -> None:
    full = run(path)
    found = extrapolated(full.kernel, full.launch, Limits())
    expected = {"tiled_matmul", "reduction"}
    assert (found is not None) == (path.stem in expected)
    if found is None:
        return
    same(found, full.profile)
    machine = load_gpu("a100")
    behaviour = analyse_memory(found, geometry_of(machine, occupancy_of(full.kernel, full.launch, machine)))
    assert behaviour == full.behaviour
    ours, theirs = analyze(path, gpu="a100"), analyze(path, gpu="a100", full_emulation=True)
    assert ours.time_s == pytest.approx(theirs.time_s, rel=1e-3)
    assert ours.warp_instructions == theirs.warp_instructions


def test_it_is_flagged() -> None:
    result = analyze(COLUMNS % (4000, 4000), gpu="a100")
    assert result.sampling is not None
    assert result.sampling.extrapolated_loops == 1
    assert result.to_dict()["sampling"]["extrapolated_loops"] == 1
    assert any(note.startswith("long loops") for note in result.notes)
    full = analyze(COLUMNS % (4000, 4000), gpu="a100", full_emulation=True)
    assert "extrapolated_loops" not in full.to_dict()["sampling"]
    assert full.time_s == pytest.approx(result.time_s, rel=1e-3)
    assert full.warp_instructions == result.warp_instructions


def test_what_data_decides_is_run() -> None:
    bound = run(DATA)
    assert extrapolated(bound.kernel, bound.launch, Limits()) is None


def test_a_loop_too_long_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million iterations: counts as they must be, the figures of L2 and DRAM marked as estimates."""
    monkeypatch.setattr(long_loops, "MOST_ACCESSES", 200_000)
    iterations = 1_000_000
    found = analyze(COLUMNS % (iterations, iterations), gpu="a100")
    short = analyze(COLUMNS % (4000, 4000), gpu="a100", full_emulation=True)
    longer = analyze(COLUMNS % (8000, 8000), gpu="a100", full_emulation=True)
    per_iteration = (longer.warp_instructions - short.warp_instructions) / 4000
    assert found.warp_instructions == short.warp_instructions + (iterations - 4000) * per_iteration
    assert any("are estimates" in note for note in found.notes)


def test_what_does_not_begin_alike_is_not_taken() -> None:
    bound = run(EXAMPLES / "tiled_matmul.cu")
    profile = bound.profile
    one = replace(profile, blocks=profile.blocks[:1])
    assert begins_alike(profile, one)
    moved = replace(profile.accesses, base=profile.accesses.base + 4)
    assert not begins_alike(profile, replace(one, accesses=moved))
    other = tuple(replace(path, blocks=path.blocks[::-1]) for path in profile.paths)
    assert not begins_alike(profile, replace(one, paths=other))
