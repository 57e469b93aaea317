"""Answers kept between runs: read where all that they depend on is the same, and only then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from drywarp.experiments import rows as predicting
from drywarp.experiments.rows import SPENT, Answer, Settings, predict_row
from drywarp.frontends import cache as disk
from drywarp.hardware import load_gpu
from drywarp.pipeline import CURVE_BUDGET, LAUNCH_BUDGET

KERNEL = """__global__ void scale(float* a, float f) { a[blockIdx.x * blockDim.x + threadIdx.x] *= f + N; }
"""
LAUNCH = {"grid": 64, "block": 128, "args": {"a": "f32[8192]", "f": 2.0}, "defines": {"N": "3"}}
BRIEF = Settings(models=("pipeline",), band=False)


@pytest.fixture(autouse=True)
def folder(own_results: Path) -> Iterator[Path]:
    disk.damaged.clear()  # what other tests in this process have found
    yield own_results / "answers"
    disk.damaged.clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that are asked, as they are."""
    names: list[str] = []
    ask = predicting.get_model

    def counted(name: str, **kwargs: Any) -> Any:
        names.append(name)
        return ask(name, **kwargs)

    monkeypatch.setattr(predicting, "get_model", counted)
    return names


def same(one: Answer, other: Answer) -> bool:
    """To the last digit, and whole numbers as whole numbers."""

    def bare(answer: Answer) -> str:
        return repr(replace(answer, facts={name: value for name, value in answer.facts.items() if name not in SPENT}))

    return bare(one) == bare(other)


def test_a_second_run_reads_what_the_first_one_found(asked: list[str], folder: Path) -> None:
    first = predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    again = predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    assert asked == ["pipeline"]
    assert same(first, again)
    assert again.facts["models_s"] == again.facts["emulate_s"] == 0.0
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("band", "budget"), [(True, LAUNCH_BUDGET), (False, CURVE_BUDGET)])
def test_rows_without_a_band_are_estimated_from_less(band: bool, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    models = []
    ask = predicting.get_model
    monkeypatch.setattr(predicting, "get_model", lambda *args, **how: models.append(ask(*args, **how)) or models[-1])
    predict_row(KERNEL, load_gpu("a100"), LAUNCH, replace(BRIEF, band=band))
    assert [model.launch_budget for model in models] == [budget]


@pytest.mark.parametrize(
    ("gpu", "launch", "settings"),
    [
        ("a100-sxm4-80gb", {}, {}),
        ("a100", {"clock_mhz": 900.0}, {}),
        ("a100", {"block": 64}, {}),
        ("a100", {"args": {"a": "f32[8192]:random", "f": 2.0}}, {}),
        ("a100", {"defines": {"N": "4"}}, {}),
        ("a100", {"max_registers": 24}, {}),
        ("a100", {}, {"warm_l2": True}),
        ("a100", {}, {"models": ("volkov",)}),
        ("a100", {}, {"full_simulation": True}),
        ("a100", {}, {"band": True}),
        ("a100", {}, {"scheduler": "oldest_first"}),
    ],
)
def test_another_question_is_asked_anew(
    gpu: str, launch: dict[str, Any], settings: dict[str, Any], asked: list[str]
) -> None:
    predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    asked.clear()
    predict_row(KERNEL, load_gpu(gpu), {**LAUNCH, **launch}, replace(BRIEF, **settings))
    assert asked


def test_another_version_of_drywarp_asks_anew(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    monkeypatch.setattr(predicting, "sources_digest", lambda **_: "others")
    predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    assert asked == ["pipeline", "pipeline"]


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 200])
def test_a_damaged_answer_is_made_anew(damage: bytes, asked: list[str], folder: Path) -> None:
    first = predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    (entry,) = folder.iterdir()
    entry.write_bytes(damage)
    again = predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    assert same(first, replace(again, notes=()))
    assert len(asked) == 2
    assert any("damaged" in note for note in again.notes)


def test_what_a_limit_cut_short_is_not_kept(asked: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drywarp.analysis.emulation_cache.LASTING", ())
    for _ in range(2):
        predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    assert len(asked) == 2
    assert not folder.exists()


def test_a_gpu_that_was_changed_in_python_is_another_one(asked: list[str]) -> None:
    gpu = load_gpu("a100")
    device = msgspec.structs.replace(gpu.device, sm_count=54)
    changed = replace(gpu, sections={**gpu.sections, "device": device})
    assert changed.file_hash == gpu.file_hash
    first = predict_row(KERNEL, gpu, LAUNCH, BRIEF)
    second = predict_row(KERNEL, changed, LAUNCH, BRIEF)
    assert len(asked) == 2
    assert first.facts["waves"] != second.facts["waves"]


def test_clearing_the_cache_clears_them(folder: Path) -> None:
    predict_row(KERNEL, load_gpu("a100"), LAUNCH, BRIEF)
    assert list(folder.iterdir())
    disk.clear()
    assert not folder.exists()
