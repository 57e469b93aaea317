"""GPUPerf's benefits over a space and over several kernels: what is compared with what, and the figures told of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import drywarp
from drywarp.cli.main import run
from drywarp.errors import DrywarpError, InputFileError, UsageError
from drywarp.experiments.benefits import Agreement, Benefits, Choice, Step, Variant
from drywarp.experiments.sweep import figure_names, sweep
from drywarp.experiments.sweep.result import SweepResult
from drywarp.experiments.sweep.study import BASELINE
from drywarp.models.gpuperf_terms import BENEFITS, CHARTED
from drywarp.report.benefits import render_benefits, render_study
from drywarp.report.ranking import render_sweep
from drywarp.report.text import json_text

from .spaces import EXAMPLES, SAXPY

SOURCE = """
__global__ void work(const float* x, float* y) {
  __shared__ float held[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  float value = x[i];
#if SHARED
  held[threadIdx.x] = value;
  __syncthreads();
  value = held[127 - threadIdx.x];
#endif
  for (int k = 0; k < TURNS; ++k) value = value * 1.5f + 0.25f;
  y[i] = value;
}
"""
OPTIMISATIONS = {
    "fewer": {"set": {"TURNS": 8}, "benefits": ["b_fp", "b_itilp"]},
    "shared": {"set": {"SHARED": 1}, "benefits": ["b_memlp"]},
}


def space(**changes: Any) -> dict[str, Any]:
    return {
        "kernel": SOURCE,
        "gpus": ["a100"],
        "parameters": {"TURNS": [64, 8, 16], "SHARED": [0, 1]},
        "grid": 432,
        "block": 128,
        "args": {"x": "f32[55296]:random", "y": "f32[55296]"},
        "models": ["roofline", "gpuperf"],
        "optimisations": OPTIMISATIONS,
        "steps": ["shared", "fewer"],
        **changes,
    }


@cache
def found() -> SweepResult:
    return sweep(space(), jobs=0, benefits=True)


def test_every_row_has_the_chart() -> None:
    columns = [f"{name}_cycles" for name in CHARTED]
    assert set(columns) < set(found().columns())
    for row in found().cells():
        exposed = row["t_mem_cycles"] - row["t_overlap_cycles"]
        assert row["t_exec_cycles"] == pytest.approx(row["t_comp_cycles"] + exposed)
        parts = sum(row[f"{name}_cycles"] for name in ("t_fp", "b_itilp", "b_fp", "b_serial"))
        assert parts == pytest.approx(row["t_comp_cycles"])
        assert row["b_memlp_cycles"] == pytest.approx(max(0.0, exposed - row["t_mem_min_cycles"]))
        assert row["benefits_not_applicable"] is None
    # The model's own time is that of its T_exec, and the same start for all.
    starts = [row["gpuperf_s"] - row["t_exec_cycles"] / (row["clock_mhz"] * 1e6) for row in found().cells()]
    assert starts == pytest.approx([starts[0]] * 6, abs=1e-12)


def test_without_benefits_there_are_no_columns_and_no_studies() -> None:
    plain = sweep(space(parameters={"TURNS": [64], "SHARED": [0]}, optimisations={}, steps=[]), jobs=0)
    assert not {f"{name}_cycles" for name in CHARTED} & set(plain.columns())
    assert plain.to_dict()["benefits"] is None
    with pytest.raises(UsageError, match="expected --benefits"):
        _ = plain.studies


def test_a_study_leads_from_the_baseline_along_the_steps() -> None:
    (study,) = found().studies
    assert study.baseline.name == BASELINE
    assert {variant.name for variant in study.variants} == {
        BASELINE, "fewer", "shared", "fewer+shared", "TURNS=16", "shared+TURNS=16",
    }  # fmt: skip
    assert [(s.optimisation, s.before.name, s.after.name) for s in study.steps] == [
        ("shared", BASELINE, "shared"), ("fewer", "shared", "fewer+shared"),
    ]  # fmt: skip
    # An optimisation applies where the baseline's value stands, whatever the other parameters are.
    applied = {name: sorted((s.before.name, s.after.name) for s in steps) for name, steps in study.applied.items()}
    assert applied == {
        "fewer": [(BASELINE, "fewer"), ("shared", "fewer+shared")],
        "shared": [("TURNS=16", "shared+TURNS=16"), (BASELINE, "shared"), ("fewer", "fewer+shared")],
    }
    assert [step.after.name for step in study.alone] == ["fewer", "shared"]
    for step in study.all_steps:
        rows = {variant.name: variant for variant in study.variants}
        assert step.saved == pytest.approx(1 - rows[step.after.name].time_s / rows[step.before.name].time_s)
        assert step.aims == tuple(OPTIMISATIONS[step.optimisation]["benefits"])  # type: ignore[arg-type]


def test_a_space_without_optimisations_compares_its_values() -> None:
    (study,) = sweep(space(optimisations={}, steps=[]), jobs=0, benefits=True).studies
    assert list(study.applied) == ["TURNS=8", "TURNS=16", "SHARED=1"]
    assert study.steps == ()
    assert study.choice.variants == 0  # what a value aims at is not known
    assert "aimed_at" not in Agreement(study.all_steps).rank_correlation


def test_json_follows_its_schema_and_text_says_the_same() -> None:
    schema = json.loads((files("drywarp") / "report" / "schema" / "sweep.schema.json").read_text(encoding="utf-8"))
    told = json.loads(json_text(found().to_dict()))
    jsonschema.validate(told, schema)
    (study,) = told["benefits"]
    text = render_study(found().studies[0]).plain
    for step in study["steps"]:
        line = next(line for line in text.splitlines() if line.startswith(f"+ {step['optimisation']} "))
        assert f" {step['speedup']:.2f} " in line
        after = found().studies[0].steps[study["steps"].index(step)].after
        assert all(f"{after.share(name):.1%}" in line for name in BENEFITS)
    # Roofline knows neither barriers nor latency: GPUPerf's order is told beside it.
    assert list(study["models"]) == ["gpuperf"]
    variants = found().studies[0].variants
    best = min(variants, key=lambda one: one.times["gpuperf"])
    assert study["models"]["gpuperf"]["regret"] == best.time_s / min(one.time_s for one in variants) - 1
    assert f"gpuperf orders the variants with ρ {study['models']['gpuperf']['rank_correlation']:+.2f}" in text
    assert f"{study['agreement']['faster']} of {study['agreement']['steps']} steps are faster" in text


def test_rows_of_a_file_give_the_same_study(tmp_path: Path) -> None:
    where = tmp_path / "rows.csv"
    first = sweep(space(kernel=SOURCE), jobs=1, out=where, benefits=True)
    again = sweep(space(kernel=SOURCE), jobs=1, out=where, benefits=True)
    assert again.there == 6
    assert again.to_dict()["benefits"] == first.to_dict()["benefits"]
    with pytest.raises(InputFileError, match="holds rows with other columns"):
        sweep(space(kernel=SOURCE), jobs=1, out=where)


@pytest.mark.parametrize(("changes", "said"), [
    ({"steps": ["faster"]}, "steps: 'faster': expected names of optimisations, each once; there are: fewer, shared"),
    ({"steps": ["fewer", "fewer"]}, "steps: 'fewer': expected names of optimisations, each once"),
    ({"optimisations": {"a": {"set": {"NONE": 1}}}, "steps": []}, "optimisations.a: no parameter 'NONE' to choose"),
    ({"optimisations": {"a": {"set": {"TURNS": 64}}}, "steps": []}, "optimisations.a: TURNS = 64, expected 8 or 16"),
    ({"optimisations": {"a": {"set": {}}}, "steps": []}, "optimisations"),
    ({"optimisations": {"a": {"set": {"SHARED": 1}, "benefits": ["b_all"]}}, "steps": []}, "b_all"),
    ({"restrictions": ["SHARED == 0 or TURNS > 8"]},
     "steps: fewer leads to TURNS=8 SHARED=1, which is not a configuration of the space"),
])  # fmt: skip
def test_bad_optimisations_are_refused_before_anything_is_predicted(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputFileError) as error:
        sweep(space(**changes), jobs=0, benefits=True)
    assert said in str(error.value)


def test_a_baseline_that_fails_is_named() -> None:
    broken = SOURCE.replace("#if SHARED", "#if SHARED == 0\n#error no\n#elif SHARED")
    failed = sweep(space(kernel=broken, steps=[]), jobs=0, benefits=True)
    reason = "the baseline, TURNS=64 SHARED=0, has no time"
    assert failed.studies == ()
    assert failed.to_dict()["benefits"] == []
    assert f"no comparison on a100: {reason}" in render_sweep(failed).plain
    with pytest.raises(UsageError, match=reason):
        failed.figure("variants")


def test_steps_end_where_a_variant_fails() -> None:
    broken = SOURCE.replace("#if SHARED", "#if SHARED && TURNS == 8\n#error no\n#elif SHARED")
    (study,) = sweep(space(kernel=broken), jobs=0, benefits=True).studies
    assert [step.optimisation for step in study.steps] == ["shared"]
    assert [step.before.name for step in study.applied["fewer"]] == [BASELINE]


def test_the_figures_of_a_space() -> None:
    assert figure_names(space()) == ["steps", "variants", "alone", "fewer", "shared"]
    assert figure_names(space(optimisations={}, steps=[])) == ["variants", "alone", "TURNS=8", "TURNS=16", "SHARED=1"]
    listed = {"configurations": [{"a": 1, "b": 2}, {"a": 3, "b": 2}], "parameters": {}}
    assert figure_names(space(optimisations={}, steps=[], **listed)) == ["variants", "alone", "a=3"]


# ---- What is worked out from steps


def variant(name: str, time_s: float, **shares: float) -> Variant:
    cycles = dict.fromkeys(CHARTED, 0.0) | {"t_exec": 1000.0} | {key: 1000 * share for key, share in shares.items()}
    return Variant(name, time_s, "fma", {"pipeline": time_s}, cycles)


def step(name: str, before: Variant, after: float, aims: Sequence[str] = ("b_fp",)) -> Step:
    return Step(name, before, variant("after", after), tuple(aims))


def test_shares_by_hand() -> None:
    one = variant("one", 2.0, b_fp=0.5, b_memlp=0.25, b_itilp=-0.1)
    assert one.largest == "b_fp"
    assert (one.share("b_fp"), one.share("b_itilp"), one.share("all_four")) == (0.5, 0.0, 0.75)
    made = Step("x", one, variant("two", 1.5, b_fp=0.2), ("b_memlp",))
    assert made.saved == 0.25
    assert made.aimed is False
    assert made.collected("b_fp") == pytest.approx(0.3)
    assert Step("x", one, one).aimed is None
    assert variant("none", 1.0).largest is None


def test_rank_correlation_by_hand() -> None:
    """The more B_fp promises the more is saved; B_memlp says the contrary."""
    steps = tuple(step("x", variant("v", 1.0, b_fp=s, b_memlp=1 - s), 1 - s / 2) for s in (0.1, 0.2, 0.4, 0.8))
    over = Agreement(steps)
    assert (over.faster, over.aimed) == (4, (1, 4))
    assert over.rank_correlation == {
        "b_itilp": None, "b_memlp": -1.0, "b_fp": 1.0, "b_serial": None, "all_four": None, "aimed_at": 1.0,
    }  # fmt: skip
    assert over.speedup == pytest.approx((0.95 * 0.9 * 0.8 * 0.6) ** -0.25)
    assert set(Agreement(steps[:2]).rank_correlation.values()) == {None}
    assert Agreement(()).to_dict()["steps"] == 0


def test_the_choice_by_hand() -> None:
    """Two variants with two optimisations each; a third has no choice."""
    first, second, third = variant("1", 1.0, b_fp=0.5), variant("2", 1.0, b_memlp=0.5), variant("3", 1.0, b_fp=1)
    steps = [
        step("a", first, 0.5), step("b", first, 0.9, ["b_memlp"]),  # the better one aims at the largest
        step("a", second, 0.5), step("b", second, 0.9, ["b_memlp"]),  # here the worse one does
        step("a", third, 0.5),
    ]  # fmt: skip
    assert Choice.among(steps) == Choice(variants=2, hits=1, chance=1.0)
    assert Choice.among([step("a", first, 0.5, []), step("b", first, 0.9)]).variants == 0


# ---- Several kernels


@cache
def reductions() -> Benefits:
    ladder = EXAMPLES / "ladders" / "reduction"
    small: Mapping[str, Any] = {"grid": 1024, "args": {"n": 262144}}
    return drywarp.benefits([(ladder / name, small) for name in ("k1_strided.cu", "k2_sequential.cu")], gpu="a100")


def test_several_kernels_are_steps_of_each_other() -> None:
    one, two = reductions().kernels
    assert (one.name, two.name) == ("k1_strided", "k2_sequential")
    (only,) = reductions().steps
    assert (only.before, only.after, only.aims) == (one, two, ())
    schema = json.loads((files("drywarp") / "report" / "schema" / "benefits.schema.json").read_text(encoding="utf-8"))
    told = json.loads(json_text(reductions().to_dict()))
    jsonschema.validate(told, schema)
    text = render_benefits(reductions()).plain
    assert f"{told['steps'][0]['speedup']:.2f}" in text
    assert all(f"{kernel.share(name):.1%}" in text for kernel in reductions().kernels for name in BENEFITS)


def test_the_launch_of_one_kernel_is_joined_to_that_of_all() -> None:
    args = {"a": 2.0, "x": "f32[65536]", "y": "f32[65536]"}
    small, large = drywarp.benefits(
        [(SAXPY, {"args": {"n": 32768}, "defines": {"A": "1"}}), (SAXPY, {"grid": 256})],
        gpu="h100", grid=128, block=256, args=args | {"n": 65536}, defines={"B": "2"},
    ).kernels  # fmt: skip
    assert (small.name, large.name) == ("saxpy A=1", "saxpy")
    alone = drywarp.benefits([SAXPY], gpu="h100", grid=256, block=256, args=args | {"n": 65536}).kernels[0]
    assert alone.time_s == large.time_s


def test_an_error_names_the_kernel(tmp_path: Path) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text("__global__ void f(int* p) { *p = }\n")
    with pytest.raises(DrywarpError, match=r"broken\.cu"):
        drywarp.benefits([SAXPY, broken], grid=1, block=32)
    with pytest.raises(UsageError, match="expected one file or more"):
        drywarp.benefits([])
    with pytest.raises(UsageError, match="expected chart or bars"):
        reductions().figure("pie")


# ---- The command line


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return str(err)


def test_figures_of_a_sweep_are_checked_before_anything_is_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work.cu").write_text(SOURCE)
    (tmp_path / "space.toml").write_text(
        'kernel = "work.cu"\ngrid = 432\nblock = 128\nmodels = ["roofline", "gpuperf"]\nsteps = ["shared"]\n'
        'args = { x = "f32[55296]:random", y = "f32[55296]" }\nparameters = { TURNS = [8], SHARED = [0, 1] }\n'
        "[optimisations]\nshared = { set = { SHARED = 1 } }\n"
    )
    line = f"sweep {tmp_path}/space.toml --jobs 1 --figure"
    assert "--figure requires --benefits" in refused(f"{line} steps={tmp_path}/a.svg", capsys)
    expected = "expected NAME=FILE with one of steps, variants, alone, shared"
    assert expected in refused(f"{line} pie={tmp_path}/a.svg --benefits", capsys)
    assert "ends in .svg or .png" in refused(f"{line} steps={tmp_path}/a.txt --benefits", capsys)
    assert "--figure-theme requires" in refused(f"sweep {tmp_path}/space.toml --figure-theme dark", capsys)
    assert run(shlex.split(f"{line} steps={tmp_path}/a.svg --figure shared={tmp_path}/b.svg --benefits --json")) == 0
    assert [one["gpu"] for one in json.loads(capsys.readouterr().out)["benefits"]] == ["a100"]
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("a.svg", "b.svg"))


def test_the_figures_of_several_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"benefits {SAXPY} '{SAXPY} --block 128' --grid 200 --gpu h100"
    assert "--figure-theme requires --plot FILE or --bars FILE" in refused(f"{line} --figure-theme dark", capsys)
    assert "--bars" in refused(f"{line} --bars {tmp_path}/none/a.svg", capsys)
    assert run(shlex.split(f"{line} --plot {tmp_path}/a.svg --bars {tmp_path}/b.svg --figure-theme dark")) == 0
    assert "saxpy (2)" in capsys.readouterr().out
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("a.svg", "b.svg"))
