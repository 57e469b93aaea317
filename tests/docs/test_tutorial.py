"""The tutorial: its kernels compute a product, and its page says what is predicted now."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from docs.site.tutorial import PAGE, Step, ask, block, command, files, in_full, known, placed, summary, written

import drywarp
from drywarp.execution.emulator import emulate
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.loaded import launch_comment
from drywarp.kernel.launch.arguments import make_launch, parse_dim3
from tests.effort import first, some

ROOT = Path(__file__).parents[2]
FILES = files()
STEPS = known()


@pytest.mark.parametrize("file", some(FILES, 3))
def test_a_step_computes_the_product(file: str) -> None:
    """Every step adds the products in the order of k, each rounded once, so that all digits are known."""
    n, full = 128, 2048
    a, b = np.random.default_rng(5).random((2, n, n), dtype=np.float32)
    expected = np.zeros((n, n), np.float32)
    for k in range(n):
        expected = (a[:, k : k + 1].astype(np.float64) * b[k : k + 1, :] + expected).astype(np.float32)
    comment = launch_comment((ROOT / file).read_text(), file)
    grid = tuple(max(1, extent * n // full) for extent in parse_dim3(comment.grid or "", "grid")[:2])
    kernel = compile_cuda(ROOT / file, arch="sm_80", options=CudaOptions({}))
    args = {"A": a, "B": b, "C": np.zeros((n, n), np.float32), "n": n}
    launch = make_launch(kernel, (*grid, 1), parse_dim3(comment.block or "", "block"), args)
    np.testing.assert_array_equal(emulate(kernel, launch, blocks="all").buffer("C").reshape(n, n), expected)


@pytest.mark.parametrize("step", first(STEPS, 0), ids=lambda step: step.file)
def test_the_page_says_what_is_predicted(step: Step) -> None:
    """Times within 3 %; the top finding, where it needs no other build, with its gain within 0.03."""
    now = drywarp.analyze(str(ROOT / step.file), gpu="a100", full_simulation=in_full(step.file))
    again = "run python -m docs.site.tutorial"
    assert now.time_s == pytest.approx(step.time_s, rel=0.03), again
    assert now.limiter == step.limiter, again
    assert now.occupancy.warps_per_sm == step.warps, again
    rule, gain = step.findings[0]
    if rule not in ("occupancy-registers", "unrolling"):
        found = {finding.rule: finding.gain for finding in now.findings}
        assert found[rule] == pytest.approx(gain, abs=0.03 * gain), again


def test_the_page_is_written_from_these_figures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, STEPS) == page, "run python -m docs.site.tutorial"
    assert [step.file for step in STEPS] == FILES
    assert page.count("\n## Step ") == len(FILES)


def test_each_step_is_faster_and_what_the_text_says_of_ratios_holds() -> None:
    times = [step.time_s for step in STEPS]
    assert all(later < before for before, later in pairwise(times))
    # Prose that names a gain writes it as "**2.64**".
    page = PAGE.read_text(encoding="utf-8")
    named = [float(text) for text in re.findall(r"\*\*(\d+\.\d+)\*\*", page)]
    gains = [before / later for before, later in pairwise(times)]
    promised = [gain for step in STEPS for _, gain in step.findings]
    assert named
    for value in named:
        assert min(abs(value - known) for known in (*gains, *promised, times[0] / times[-1])) <= 0.006


def test_the_parts_of_the_page(tmp_path: Path) -> None:
    findings = (("tail-effect", 3.0), ("uncoalesced-access", 2.0))
    step = Step(FILES[0], 2e-3, "lsu", 64, findings, "2 ms  predicted")
    faster = Step(FILES[-1], 1e-3, "fma", 32, (), "")
    table = summary([step, faster]).splitlines()
    assert table[3] == "| [2](#step-2) | 1.00 ms | 2.00 | 2.00 (`uncoalesced-access`) | 2.0 | fma |"
    assert command(FILES[0]) in block(step)
    assert placed("<!-- a -->\nold\n<!-- /a -->", "a", "new") == "<!-- a -->\n\nnew\n\n<!-- /a -->"
    with pytest.raises(SystemExit, match="expected <!-- b -->"):
        placed("", "b", "")


@pytest.mark.exhaustive
def test_asking_gives_a_step() -> None:
    step = ask(FILES[2], advice=False)
    assert step.limiter == "lsu"
    assert step.findings[0][0] == "redundant-loads"
    assert step.text.startswith(("3.", "4."))
    assert "What would help" in step.text
