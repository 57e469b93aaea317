"""Files of rows: whose they are, who writes them, and what a refusal leaves alone."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from drywarp.errors import DrywarpError, InputFileError
from drywarp.experiments.rows.row_file import Form, RowFile, journal_of, parquet_rows, write_parquet

Pair = tuple[str, float]


def form(*further: str) -> Form[Pair]:
    """Pairs of a name and a number, with more columns that hold nothing."""
    columns = ("name", "number", *further)

    def cells(row: Pair) -> Mapping[str, Any]:
        return {"name": row[0], "number": row[1], **dict.fromkeys(further)}

    def read(found: Mapping[str, Any], there: Sequence[str], place: str) -> Pair:
        if missing := [name for name in columns if name not in there]:
            raise InputFileError(f"{place}: no column {missing[0]!r}")
        return str(found["name"]), float(found["number"])

    return Form("test", columns, cells, read, lambda row: row[0])


FOREIGN = {
    "csv": ["a,b\n1,2\n3,4", "a,b", "name", "nam\n1", "name,number,more\nx,1,2\ny,2", "x", "\xff\n\xfe"],
    "jsonl": ['{"a": 1}\n{"a": 2}', '{"a": 1}', '{"name": 1}', "text", "1\n2", "[1]", '{"number": '],
}


@pytest.mark.parametrize(("suffix", "text"), [(s, text) for s, texts in FOREIGN.items() for text in texts])
def test_what_is_not_ours_is_left_alone(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"mine.{suffix}"
    path.write_bytes(text.encode("latin-1"))
    if suffix == "csv" and text == "name":  # the torn beginning of our own header
        with RowFile(path, form()) as file:
            assert file.rows() == []
        assert path.read_bytes() == b"name,number\n"
        return
    with pytest.raises(DrywarpError), RowFile(path, form()) as file:
        file.rows()
    assert path.read_bytes() == text.encode("latin-1")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_torn_line_of_ours_is_cut_off(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.{suffix}"
    with RowFile(path, form()) as file:
        file.append(("a", 1.0))
        file.append(("b", 2.0))
    whole = path.read_bytes()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        with RowFile(path, form()) as file:
            there = file.rows()
            assert there == [("a", 1.0), ("b", 2.0)][: len(there)]
            for row in [("a", 1.0), ("b", 2.0)][len(there) :]:
                file.append(row)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("killed", [True, False])
def test_a_refused_parquet_keeps_all_its_columns(tmp_path: Path, killed: bool) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "rows.parquet"
    with RowFile(path, form("more")) as file:
        file.append(("a", 1.0))
        if killed:
            left = journal_of(path).read_bytes()
    if killed:
        path.unlink()
        journal_of(path).write_bytes(left)
    before = {found.name: found.read_bytes() for found in tmp_path.iterdir()}
    with pytest.raises(DrywarpError, match="other columns"), RowFile(path, form()) as file:
        file.rows()
    assert {found.name: found.read_bytes() for found in tmp_path.iterdir()} == before
    with RowFile(path, form("more")) as file:
        assert file.rows() == [("a", 1.0)]
    assert [found.name for found in tmp_path.iterdir()] == ["rows.parquet"]


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_is_replaced_before_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"name,number\na,1.0\n")
    locked = 0

    def lock(file: int, how: int) -> None:
        nonlocal locked
        locked += 1
        if locked == 1:  # another process ends between our opening and our lock
            path.unlink()
            if not gone:
                path.write_bytes(b"name,number\nb,2.0\n")

    monkeypatch.setattr(fcntl, "flock", lock)
    gc.collect()  # what earlier tests have left behind is closed now, not in between
    opened = len(os.listdir("/proc/self/fd"))
    with RowFile(path, form()) as file:
        there = file.rows()
        file.append(("c", 3.0))
    assert len(os.listdir("/proc/self/fd")) <= opened
    assert there == ([] if gone else [("b", 2.0)])
    assert path.read_bytes() == b"name,number\n" + b"b,2.0\n" * (not gone) + b"c,3.0\n"
    assert locked == 2


def test_a_parquet_column_holds_texts_only_where_one_of_its_values_is_one(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [
        {"whole": 1, "part": 2, "name": "a", "both": 3, "exact": 4},
        {"whole": None, "part": 0.5, "name": None, "both": "b", "exact": 4.5},
    ]
    path = tmp_path / "rows.parquet"
    write_parquet(path, list(rows[0]), rows, exact=("whole", "exact"))
    assert list(parquet_rows(path)) == [
        {"whole": 1, "part": 2.0, "name": "a", "both": "3", "exact": "4"},
        {"whole": None, "part": 0.5, "name": None, "both": "b", "exact": "4.5"},
    ]
