"""The teaching notebook runs, says what the thesis found, and is committed as its source makes it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

for package in ("jupytext", "nbclient", "ipykernel", "matplotlib"):
    pytest.importorskip(package, reason=f"{package} makes and runs the notebook, the extras `test` and `plot`")

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
SOURCE = FOLDER / "latency_hiding.py"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    found = importlib.util.spec_from_file_location("make_notebooks", FOLDER / "make.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def notebook(make: ModuleType) -> Any:
    return make.run(make.read(SOURCE))


@pytest.fixture(scope="module")
def committed() -> Any:
    return json.loads(SOURCE.with_suffix(".ipynb").read_text(encoding="utf-8"))


def printed(notebook: Any) -> str:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    texts = (output["text"] for output in outputs if output["output_type"] == "stream")
    return "".join(text if isinstance(text, str) else "".join(text) for text in texts)


def figure(notebook: Any, number: int) -> str:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    found = [output["data"]["image/svg+xml"] for output in outputs if "data" in output]
    return found[number] if isinstance(found[number], str) else "".join(found[number])


def test_what_is_committed_is_what_the_source_makes(notebook: Any, committed: Any) -> None:
    """Else `python docs/notebooks/make.py` makes it again. Figures may differ between versions of Matplotlib."""
    assert [cell["source"] for cell in notebook.cells] == ["".join(cell["source"]) for cell in committed["cells"]]
    assert printed(notebook) == printed(committed)
    assert len(figure(notebook, 5)) > 5_000
    assert "".join(figure(committed, 3)).count("<svg") == 1


def test_it_is_small_and_says_nothing_of_the_machine_that_made_it(committed: Any) -> None:
    text = SOURCE.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert not re.search(r"/home/|/tmp/|/root/|0x[0-9a-f]{8}", text)
    assert all(cell["metadata"] == {} for cell in committed["cells"])


def test_what_the_thesis_found(notebook: Any) -> None:
    said = printed(notebook)
    # Section 4.3: similar numbers of warps for arithmetic and memory latency.
    assert "per cycle = 24.0 warps" in said
    assert "per cycle = 30.0 warps" in said
    # Section 4.5: the cusp at about 49, and some 54 warps there.
    cusp = re.search(r"both full at α = ([\d.]+): ([\d.]+) warps", said)
    assert cusp is not None
    assert float(cusp[1]) == pytest.approx(49, abs=1)
    assert float(cusp[2]) == pytest.approx(54, abs=1)
    # Section 4.3: 40 warps for 90 % of the memory peak in practice, 46 for 95 %; its model with contention says so too.
    by_share = dict(re.findall(r"(\d+)% of the peak: .* roof, (\d+) with contention", said))
    assert int(by_share["90"]) == pytest.approx(40, abs=2)
    assert int(by_share["95"]) == pytest.approx(46, abs=1)


def test_add_or_overlap_each_fits_at_one_end_only(notebook: Any) -> None:
    rows = re.findall(r"volkov ([\d.]+), kothapalli_max ([\d.]+), kothapalli_sum ([\d.]+)", printed(notebook))
    (few_v, few_max, few_sum), (many_v, many_max, many_sum) = ([float(value) for value in row] for row in rows)
    assert [few_v, few_sum, many_v, many_max] == pytest.approx([1, 1, 1, 1], abs=0.03)
    assert few_max > 1.4
    assert many_sum < 0.7


def test_mwp_cwp_forgets_the_latency_of_additions(notebook: Any) -> None:
    found = re.search(r"α = 64,  4 warps: .* volkov ([\d.]+) of that, mwp_cwp ([\d.]+)", printed(notebook))
    assert found is not None
    assert float(found[1]) == pytest.approx(1.0, abs=0.02)
    assert float(found[2]) == pytest.approx(1.96, abs=0.05)  # 752 cycles against 384, the fifth exercise
