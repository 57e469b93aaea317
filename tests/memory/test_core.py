"""The core's loops over runs against Python's sets, and how the core is built and loaded."""

from __future__ import annotations

import ctypes
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.core import build, library
from drywarp.memory.footprint import Moved, Runs, difference, from_points, intersection, new_in_turn, union

POINTS = st.lists(st.integers(-40, 200), max_size=60)


def runs_of(points: list[int]) -> Runs:
    return from_points(np.array(points, np.int64))


def members(runs: Runs) -> list[int]:
    return [n for start, end in runs.tolist() for n in range(start, end)]


@given(left=POINTS, right=POINTS)
def test_two_sets(left: list[int], right: list[int]) -> None:
    one, other = set(left), set(right)
    for found, expected in (
        (union(runs_of(left), runs_of(right)), one | other),
        (intersection(runs_of(left), runs_of(right)), one & other),
        (difference(runs_of(left), runs_of(right)), one - other),
    ):
        assert members(found) == sorted(expected)
        # Sorted, disjoint, and no two that touch.
        assert all(end < start for (_, end), (start, _) in zip(found.tolist(), found.tolist()[1:], strict=False))


@given(sets=st.lists(st.tuples(POINTS, st.integers(-30, 30)), max_size=6), known=POINTS)
def test_new_members_of_sets_in_turn(sets: list[tuple[list[int], int]], known: list[int]) -> None:
    counts, kept = new_in_turn([Moved(runs_of(points), by) for points, by in sets], runs_of(known))
    seen, expected = set(known), []
    for points, by in sets:
        fresh = {point + by for point in points} - seen
        expected.append(len(fresh))
        seen |= fresh
    assert counts == expected
    assert members(kept) == sorted(seen)


def test_a_library_of_other_sources_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(build.FOLDER / "native", tmp_path / "native")
    stale = tmp_path / "_core.so"
    monkeypatch.delenv(library.LIBRARY_VARIABLE, raising=False)
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    for module in (build, library):
        monkeypatch.setattr(module, "LIBRARY", stale)
    # What matters here is which library is loaded, not how fast it is.
    monkeypatch.setattr(build, "FLAGS", ("-std=c11", "-O0", "-fPIC", "-shared"))
    build.digest.cache_clear()
    build.build(stale)
    first = build.digest()
    (tmp_path / "native" / "more.c").write_text("// nothing\n")
    build.digest.cache_clear()
    assert build.digest() != first
    found = library.library.__wrapped__()
    found.drywarp_digest.restype = ctypes.c_char_p
    assert found.drywarp_digest().decode() == build.digest()
    build.digest.cache_clear()


def test_without_a_compiler_the_message_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ziglang", None)
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    assert build.compiler() is None
    with pytest.raises(RuntimeError, match="no C compiler found"):
        build.build(tmp_path / "_core.so")


def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", f"{sys.executable} -c 'import sys; sys.exit(sys.stderr.write(\"broken\") and 1)'")
    with pytest.raises(RuntimeError, match="failed on drywarp's core: broken"):
        build.build(tmp_path / "_core.so")
    assert not list(tmp_path.iterdir()), "nothing is left behind"
