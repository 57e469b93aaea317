"""What predictions depend on: arrays and files by what they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drywarp.errors import UsageError
from drywarp.experiments.rows import Settings
from drywarp.experiments.rows.identity import changed, content_of, fingerprint, identity
from drywarp.experiments.rows.recipe import Recipe, as_value
from drywarp.hardware import load_gpu


@pytest.mark.parametrize("text", ["@{}", "f32[5000]:@{}"])
def test_a_file_counts_by_what_it_holds(tmp_path: Path, text: str) -> None:
    array = np.arange(5000, dtype=np.float32)
    paths = [tmp_path / "a.npy", tmp_path / "sub" / "a.npy", tmp_path / "b.npy"]
    paths[1].parent.mkdir()
    for path in paths:
        np.save(path, array)
    said = [content_of(text.format(path)) for path in paths]
    assert said[0] == said[1] == said[2]
    array[2500] = -1
    np.save(paths[1], array)
    assert content_of(text.format(paths[1])) != said[0]
    missing = content_of(text.format(tmp_path / "none.npy"))
    assert missing not in said
    assert content_of("f32[5000]") != content_of("f32[5000]:random")


def test_one_element_in_the_middle_is_another_launch(tmp_path: Path) -> None:
    gpu, settings, array = load_gpu("a100"), Settings(), np.zeros(5000, np.float32)
    other = array.copy()
    other[2500] = 1
    first, same, second = (Recipe(args={"x": value}) for value in (array, array.copy(), other))
    assert fingerprint("k", gpu, first, settings) == fingerprint("k", gpu, same, settings)
    assert fingerprint("k", gpu, first, settings) != fingerprint("k", gpu, second, settings)
    said = changed(identity("k", gpu, first, settings), identity("k", gpu, second, settings))
    assert said == "another launch"
    assert content_of(array) != content_of(array.reshape(50, 100))
    assert content_of(array) != content_of(array.view(np.int32))


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    gpu = load_gpu("a100")
    assert identity(tmp_path, gpu, Recipe(), Settings()) == identity(tmp_path / "..", gpu, Recipe(), Settings())


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("128", 128),
        (" -3 ", -3),
        ("2.5e3", 2500.0),
        ("True", 1),
        ("1_8192", "1_8192"),
        ("1_000.5", "1_000.5"),
        ("", ""),
    ],
)
def test_a_cell_is_a_number_only_if_it_is_written_as_one(cell: str, value: float | str) -> None:
    assert as_value(cell) == value


@pytest.mark.parametrize("config", ["best:x", "best:0", "best:", "bestof"])
def test_a_choice_of_configurations_that_is_none_is_refused_before_any_row(config: str) -> None:
    with pytest.raises(UsageError, match=r"expected a number, best, or best:N"):
        Recipe(config=config)


def test_choices_of_configurations() -> None:
    assert [Recipe(config=config).config for config in ("best", "best:3", "{n}", "2")] == ["best", "best:3", "{n}", "2"]
