"""Saved answers: read in again they say the same; others and damaged ones are refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drywarp
from drywarp.errors import DrywarpError, InputFileError, UsageError
from drywarp.report.text import json_text

SAXPY = Path(__file__).parents[2] / "examples" / "saxpy.cu"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "base.json"
    path.write_text(json_text(drywarp.analyze(SAXPY).to_dict()))
    return path


def changed(saved: Path, tmp_path: Path, **values: Any) -> Path:
    """A copy with values set at dotted keys; None takes the key away."""
    content = json.loads(saved.read_text())
    for key, value in values.items():
        *above, last = key.split("__")
        place = content
        for name in above:
            place = place[name]
        if value is None:
            del place[last]
        else:
            place[last] = value
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(content))
    return path


def test_a_saved_answer_is_the_answer(saved: Path) -> None:
    for pair in ((saved, saved), (saved, SAXPY), (SAXPY, saved), (saved, drywarp.analyze(SAXPY))):
        (gpu,) = drywarp.compare(*pair, fail_above=0.0).gpus
        assert gpu.change == 0.0
        assert gpu.lines == ()
        assert [c for c in gpu.counts if c.old != c.new] == []


def test_a_slower_one_is_a_regression(saved: Path, tmp_path: Path) -> None:
    time = json.loads(saved.read_text())["prediction"]["time_s"]
    slower = changed(saved, tmp_path, prediction__time_s=time * 1.06)
    (gpu,) = drywarp.compare(saved, slower, fail_above=0.05).gpus
    assert gpu.regressed
    assert gpu.change == pytest.approx(0.06)
    assert not drywarp.compare(saved, slower, fail_above=0.07).regressed


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"schema_version": 3}, "schema_version: 3, expected 2"),
        ({"schema_version": None}, "schema_version: none, expected 2"),
        ({"schema_version": True}, "schema_version: True"),
        ({"prediction": None}, "required field prediction"),
        ({"prediction__time_s": "soon"}, "prediction.time_s: expected float, got str"),
        ({"prediction__time_s": 0}, "prediction.time_s: expected a positive number"),
        ({"prediction__time_s": -1.0}, "prediction.time_s: expected a positive number"),
        ({"assumptions__clock_hz": 0}, "assumptions.clock_hz: expected a positive number"),
        ({"lines": [1]}, "expected object, got int"),
        ({"launches": []}, "holds several launches"),
        ({"launch__grid": [1, 2]}, "launch.grid"),
    ],
)
def test_others_are_refused(values: dict[str, Any], expected: str, saved: Path, tmp_path: Path) -> None:
    path = changed(saved, tmp_path, **values)
    with pytest.raises(InputFileError) as error:
        drywarp.compare(saved, path)
    assert str(path) in str(error.value)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "1", "null", "{", "[" * 100_000, '{"schema_version": 1}', "\ufeff{}"])
def test_what_is_no_answer_is_refused(text: str, saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(InputFileError, match=r"wrong\.json"):
        drywarp.compare(path, saved)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputFileError, match=r"wrong\.json"):
        drywarp.compare(path, saved)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_ends_in_one_line_or_does_no_harm(data: st.DataObject, saved: Path, tmp_path: Path) -> None:
    content = bytearray(saved.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    length = data.draw(st.integers(0, 40))
    content[at : at + length] = data.draw(st.binary(max_size=8))
    path = tmp_path / "damaged.json"
    path.write_bytes(bytes(content))
    said = ""
    try:
        drywarp.compare(saved, path)
    except DrywarpError as error:
        said = str(error)
    assert "\n" not in said


def test_what_does_not_go_with_saved_answers(saved: Path) -> None:
    with pytest.raises(UsageError, match="grid: applies to kernels"):
        drywarp.compare(saved, saved, grid=1)
    with pytest.raises(UsageError, match="old: grid applies to kernels"):
        drywarp.compare(saved, SAXPY, old_launch={"grid": 1})
    with pytest.raises(UsageError, match="the saved answer is for a100"):
        drywarp.compare(saved, SAXPY, gpu="h100")
    with pytest.raises(UsageError, match="clock_hz"):
        drywarp.compare(saved, SAXPY, clock_mhz=1000)
    assert drywarp.compare(saved, SAXPY, gpu="a100").gpus[0].change == 0.0
