"""Loops kept as machine code: the same answers, without Numba."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drywarp.pipeline.blocks import deal
from drywarp.support.folders import cache_folder
from drywarp.support.stored_code import FOLDER, Stored

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


READ = "len(twice.stats.cache_hits)"


def run(code: str, folder: Path) -> list[object]:
    environment = {**os.environ, "DRYWARP_CACHE_DIR": str(folder)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    found: list[object] = json.loads(ran.stdout)
    return found


def test_stored_loops_run_without_numba() -> None:
    code = RUN.format(here=str(HERE))
    first, second = run(code, cache_folder()), run(code, cache_folder())
    assert second[0] is False
    assert first[1] == second[1]


@pytest.mark.exhaustive
def test_stored_loops_do_what_numba_has_compiled(tmp_path: Path) -> None:
    code = RUN.format(here=str(HERE))
    first, second = run(code, tmp_path), run(code, tmp_path)
    assert first[0] is True
    assert second[0] is False
    assert first[1] == second[1]
    names = {path.name.rsplit("-", 1)[0] for path in (tmp_path / FOLDER).glob("*.o")}
    assert {"run_in_order", "run_dataflow"} <= names


def test_a_damaged_file_counts_as_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        stored = Stored(deal.function, deal.jit, "test")  # type: ignore[attr-defined]
        order = np.zeros(5, np.int64)
        stored(np.array([0.5, 0.5]), np.zeros(2), order)
        assert order.tolist() == [0, 1, 0, 1, 0]
        (path,) = (tmp_path / FOLDER).glob("*.o")
        path.write_bytes(path.read_bytes()[:-100])


def test_arrays_that_are_not_plain_go_through_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path))
    stored = Stored(deal.function, deal.jit, "test")  # type: ignore[attr-defined]
    order = np.zeros(10, np.int64)[::2]
    stored(np.array([0.5, 0.5]), np.zeros(2), order)
    assert order.tolist() == [0, 1, 0, 1, 0]
    assert not [*(tmp_path / FOLDER).glob("*.o")]


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    stored = Stored(deal.function, deal.jit, "test")  # type: ignore[attr-defined]
    order = np.zeros(3, np.int64)
    stored(np.array([1.0]), np.zeros(1), order)
    assert order.tolist() == [0, 0, 0]


def test_an_edit_of_what_a_function_calls_is_compiled_anew(tmp_path: Path) -> None:
    """Numba alone asks the date of the function's own file, and would run the old code on."""
    package = tmp_path / "edited"
    package.mkdir()
    (package / "outer.py").write_text(
        f"from inner import amount\nfrom drywarp.support.stored_code import cached\n"
        f"@cached({str(package)!r})\ndef twice(x):\n    return 2 * amount(x)\n"
    )
    code = f"import sys; sys.path.insert(0, {str(package)!r}); from outer import twice; print(twice(10), {READ})"
    found = []
    for amount in ("x + 1", "x + 1", "x - 1"):
        (package / "inner.py").write_text(f"from numba import njit\n@njit\ndef amount(x):\n    return {amount}\n")
        os.utime(package / "inner.py", (0, 0))
        environment = {**os.environ, "DRYWARP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        found.append(ran.stdout.split())
    assert found == [["22", "0"], ["22", "1"], ["18", "0"]]


def test_what_is_compiled_is_made_of_the_sources_that_its_name_stands_for() -> None:
    """Compiled functions and their constants come from the folders that the digest covers."""
    from drywarp.execution.emulator.compiled import pointers as jit
    from drywarp.pipeline import columns as compiled

    root = Path(jit.__file__).parents[3]
    for sources in (jit.SOURCES, compiled.SOURCES):
        assert all((root / source).exists() for source in sources)
    compiled_here = re.compile(r"^@(inner|outer|step|part|loop|_loop)\b", re.MULTILINE)
    for folder, sources in (("execution/emulator/compiled", jit.SOURCES), ("pipeline", compiled.SOURCES)):
        for path in (root / folder).glob("*.py"):
            text = path.read_text()
            if compiled_here.search(text):
                for dots, name in re.findall(r"^from (\.+)([\w.]*)", text, re.MULTILINE):
                    place = path.parents[len(dots) - 1] / name.replace(".", "/")
                    inside = place.relative_to(root).as_posix()
                    assert any(inside.startswith(source.removesuffix(".py")) for source in sources), (path, inside)
