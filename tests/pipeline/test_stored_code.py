"""Loops kept as machine code: the same answers, without Numba."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drywarp.pipeline.deal import deal
from drywarp.stored_code import FOLDER, Stored

HERE = Path(__file__).parent
RUN = """
import json, sys
sys.path.insert(0, {here!r})
from dataclasses import replace
from pipeline_cases import lasting_workload
from drywarp.pipeline import share_of
from drywarp.pipeline.simulate import run_share
from drywarp.pipeline.state import Steady
found = []
for seed in range(30):
    for in_order in (True, False):
        work = lasting_workload(seed, in_order)
        result = run_share(work, share_of(work, work.blocks_per_sm), steady=Steady(least_gain=1, long_loop=3))
        found.append([result.total_ticks, result.issued, result.jumped, result.stall_ticks.tolist()])
print(json.dumps(["numba" in sys.modules, found]))
"""


def run(code: str, folder: Path) -> list[object]:
    environment = {**os.environ, "DRYWARP_CACHE_DIR": str(folder)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    found: list[object] = json.loads(ran.stdout)
    return found


def test_stored_loops_do_the_same_without_numba(tmp_path: Path) -> None:
    code = RUN.format(here=str(HERE))
    first, second = run(code, tmp_path), run(code, tmp_path)
    assert first[0] is True
    assert second[0] is False
    assert first[1] == second[1]
    names = {path.name.rsplit("-", 1)[0] for path in (tmp_path / FOLDER).iterdir()}
    assert {"run_in_order", "run_dataflow"} <= names


def test_a_damaged_file_counts_as_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        stored = Stored(deal.function, deal.jit, "test")  # type: ignore[attr-defined]
        order = np.zeros(5, np.int64)
        stored(np.array([0.5, 0.5]), np.zeros(2), order)
        assert order.tolist() == [0, 1, 0, 1, 0]
        (path,) = (tmp_path / FOLDER).iterdir()
        path.write_bytes(path.read_bytes()[:-100])


def test_arrays_that_are_not_plain_go_through_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path))
    stored = Stored(deal.function, deal.jit, "test")  # type: ignore[attr-defined]
    order = np.zeros(10, np.int64)[::2]
    stored(np.array([0.5, 0.5]), np.zeros(2), order)
    assert order.tolist() == [0, 1, 0, 1, 0]
    assert not (tmp_path / FOLDER).exists()


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    stored = Stored(deal.function, deal.jit, "test")  # type: ignore[attr-defined]
    order = np.zeros(3, np.int64)
    stored(np.array([1.0]), np.zeros(1), order)
    assert order.tolist() == [0, 0, 0]
