"""benchmarks/gluon_tutorials.py: the published figures, and which launches share a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import gluon_tutorials
from benchmarks.accuracy.rows import read


def test_kept_rows_are_published_figures() -> None:
    published = {f"{case.tutorial[:2]}: {case.name}": case.time_us for case in gluon_tutorials.cases()}
    rows = read("gluon_gb200")
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.measured == pytest.approx(published[row.name], rel=1e-3), row.name


def test_figures_that_the_tutorials_give_twice_agree() -> None:
    """The first tutorial states a time and a rate, the sixth tables of both; times have two or three digits."""
    by_name = {case.name: case for case in gluon_tutorials.cases()}
    for name, stated_ms in {
        "copy by one thread": 16 / 666.24 * 1e3,
        "blocked product, tile 64 x 64 x 64, K 16384": 3.27,
        "blocked product, tile 128 x 128 x 128, K 16384": 2.16,
        "softmax 32768 x 16384": 0.600,
        "softmax 8192 x 262144": 3.627,
    }.items():
        assert by_name[name].time_us == pytest.approx(stated_ms * 1e3, rel=2e-3), name


def test_a_process_makes_no_two_launches_of_one_shape() -> None:
    cases = [case for case in gluon_tutorials.cases() if case.tutorial.startswith("07")]
    rounds = gluon_tutorials.rounds(cases)
    assert sorted(case.name for one in rounds for case in one) == sorted(case.name for case in cases)
    for one in rounds:
        shapes = [{k: v for k, v in case.call.items() if k not in ("k", "group")} for case in one]
        assert all(shape not in shapes[:place] for place, shape in enumerate(shapes))


def test_copies_are_edited_for_the_compiler(tmp_path: Path) -> None:
    source = tmp_path / "python/tutorials/gluon"
    source.mkdir(parents=True)
    (source / "14-multicta.py").write_text("f([a], multicast=True)\n\nbenchmark_multicta_softmax_f32()\n")
    gluon_tutorials.tutorials(tmp_path, tmp_path / "out")
    assert (tmp_path / "out/14-multicta.py").read_text().split() == ["f([a],", "multicast=True,", "two_ctas=True)"]
