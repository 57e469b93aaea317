"""Spaces of real kernels predicted: scripts, caches and T4 files in, times out."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drywarp
from drywarp.errors import InputFileError, UsageError
from drywarp.experiments.tuners.kernel_tuner import Predictions, measured_space, predict, read_script, tuning_space

SCRIPT = Path(__file__).parents[2] / "examples/tuners/transpose_kernel_tuner.py"
KERNEL = SCRIPT.with_name("transpose.cu")
SUM = """
__constant__ float weights[8];
__global__ void weigh(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  extern __shared__ float held[];
  float sum = 0;
  for (int k = 0; k < repeats; ++k) sum += in[(i + k) % n] * weights[k % 8];
  held[threadIdx.x] = sum;
  out[i] = held[threadIdx.x];
}
"""


def test_a_script_is_read_up_to_its_call() -> None:
    here = os.getcwd()
    found = read_script(SCRIPT)
    assert os.getcwd() == here
    assert found.kernel_source == KERNEL
    assert (found.kernel_name, found.problem_size) == ("transpose", (2048, 2048))
    assert len(list(found.configurations())) == 26
    assert found.arguments[1].shape == (2048, 2048)


def test_times_are_those_of_an_analysis() -> None:
    space = read_script(SCRIPT)
    chosen = [{"block_size_x": 32, "block_size_y": 8, "padding": p} for p in (0, 1)]
    found = predict(space, gpu="a100", configurations=chosen, jobs=1)
    grid, block = (64, 64), (32, 8)
    args = {"out": "f32[2048,2048]", "in": "f32[2048,2048]:random", "n": 2048}
    for configuration in chosen:
        defines = {name: str(value) for name, value in configuration.items()}
        wanted = drywarp.analyze(KERNEL, gpu="a100", grid=grid, block=block, args=args, defines=defines, warm_l2=True)
        assert found.times[found.key(configuration)] == pytest.approx(wanted.time_s, rel=1e-12)
    assert found.times["32", "8", "1"] < found.times["32", "8", "0"]


@pytest.mark.exhaustive
def test_constant_memory_shared_memory_and_failures() -> None:
    space = tuning_space(
        "weigh",
        SUM,
        1 << 14,
        [np.zeros(1 << 14, np.float32), np.random.default_rng(1).random(1 << 14, np.float32), np.int32(1 << 14)],
        {"block_size_x": [64, 128], "repeats": [1, 40], "big": [0, 1]},
        smem_args={"size": lambda p: 1 << 20 if p["big"] else 4 * p["block_size_x"]},
        cmem_args={"weights": np.ones(8, np.float32)},
    )
    told: list[Any] = []
    found = predict(space, gpu="a100", jobs=1, on_row=lambda *row: told.append(row))
    assert {key[2] for key in found.times} == {"0"}
    assert found.times["64", "1", "0"] < found.times["64", "40", "0"]
    assert len(found.failed) == 4
    assert all("shared memory" in reason for reason in found.failed.values())
    assert [(row[2], row[3]) for row in told] == [(n, 8) for n in range(1, 9)]


def test_a_space_that_cannot_be_predicted_gives_one_line() -> None:
    wrong = tuning_space(
        "weigh", "__global__ void weigh(float* out) { out[0] = nothing; }", 64, ["f32[64]"], {"size": [1, 2]}
    )
    with pytest.raises(UsageError, match=r"weigh: none of 2 configurations can be predicted: .*nothing") as caught:
        predict(wrong, jobs=1)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="no configuration satisfies the restrictions"):
        predict(tuning_space("weigh", SUM, 64, [], {"a": [1]}, restrictions=["a > 1"]))


@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_predictions_are_kept_and_gone_on_with(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / f"rows{suffix}"
    numbers = np.random.default_rng(2).random(4096, dtype=np.float32)
    space = tuning_space(
        "weigh",
        SUM,
        1 << 12,
        ["f32[4096]", numbers, np.int32(1 << 12)],
        {"block_size_x": [64, 128], "repeats": [1, 20]},
        smem_args={"size": "4 * block_size_x if repeats < 20 or block_size_x < 128 else 1 << 20"},
    )
    every = list(space.configurations())
    first = predict(space, jobs=1, out=out, configurations=every[:2])
    whole = predict(space, jobs=1, out=out)
    assert whole.times.items() >= first.times.items()
    assert (len(whole.times), len(whole.failed)) == (3, 1)
    assert len(out.read_text().splitlines()) == 4 + (suffix == ".csv")
    read = Predictions.read(out)
    assert (read.times, read.failed) == (whole.times, whole.failed)
    # Nothing is predicted now, and an array of the same content is the same.
    monkeypatch.setattr(
        "drywarp.experiments.tuners.kernel_tuner.predicting.run_rows", lambda *args: pytest.fail("predicted")
    )
    again = tuning_space("weigh", SUM, 1 << 12, ["f32[4096]", numbers.copy(), np.int32(1 << 12)], space.tune_params,
                         smem_args=space.smem_args)  # fmt: skip
    assert predict(again, jobs=1, out=out) == whole
    numbers[7] += 1
    with pytest.raises(InputFileError, match="row 1 was predicted from another kernel, launch, option or version"):
        predict(again if numbers is again.arguments[1] else space, jobs=1, out=out)
    with pytest.raises(InputFileError, match="row 1 was predicted from another"):
        predict(again, jobs=1, out=out, clock=1000.0)


COPY = "__global__ void copy(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x]; }"


def copying(argument: str) -> Any:
    return tuning_space("copy", COPY, 64, ["f32[64]", argument], {"block_size_x": [32, 64]})


@pytest.mark.parametrize("form", ["@{}", "f32[64]:@{}"])
def test_a_file_of_the_callers_own_goes_by_its_content(tmp_path: Path, form: str) -> None:
    out = tmp_path / "rows.csv"
    files = [tmp_path / folder / "x.npy" for folder in "ab"]
    for file in files:
        file.parent.mkdir()
        np.save(file, np.arange(64, dtype=np.float32))
    first = predict(copying(form.format(files[0])), jobs=1, out=out)
    assert predict(copying(form.format(files[1])), jobs=1, out=out) == first
    np.save(files[1], np.ones(64, np.float32))
    with pytest.raises(InputFileError, match="was predicted from another kernel, launch"):
        predict(copying(form.format(files[1])), jobs=1, out=out)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("reason", "times"),
    [("time limit of 1 s", 2), ("crashed with SIGKILL", 2), ("crashed with SIGSEGV", 1), ("does not compile", 1)],
)
def test_what_ran_out_of_time_or_was_killed_is_predicted_again(tmp_path: Path, reason: str, times: int) -> None:
    out = tmp_path / "rows.csv"
    assert len(predict(copying("f32[64]"), jobs=1, out=out).times) == 2
    header, first, second = csv.reader(out.read_text().splitlines())
    said = dict(zip(header, first, strict=True))
    said = {name: said[name] if place <= header.index("block_size_x") else "" for place, name in enumerate(header)}
    said |= {"status": "failed", "reason": reason}
    out.write_text("\n".join(",".join(row) for row in (header, said.values(), second)) + "\n")
    again = predict(copying("f32[64]"), jobs=1, out=out)
    assert len(again.times) == times
    assert again.failed == ({} if times == 2 else {(said["block_size_x"],): reason})
    assert Predictions.read(out) == again


def test_a_file_that_is_refused_is_not_locked(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    out.write_text(SWEEP)
    caught: list[BaseException] = []
    for _ in range(2):
        with pytest.raises(InputFileError, match="no column 'block_size_x'") as refused:
            predict(copying("f32[64]"), jobs=1, out=out)
        caught.append(refused.value)  # As a notebook does: with its frames.
    assert out.read_text() == SWEEP


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "ended without calling tune_kernel"),
        ("import kernel_tuner\nx = 1 / 0\n", r"tune.py:2: ZeroDivisionError"),
        ("def f(:\n", r"tune.py:1: SyntaxError"),
        ("import a_package_that_is_not_there\n", r"tune.py:1: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", r"tune.py:2: SystemExit"),
    ],
)
def test_a_script_that_does_not_get_there_says_where(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tune.py"
    file.write_text(text)
    with pytest.raises(InputFileError, match=said):
        read_script(file)


def test_scripts_without_the_package_get_a_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    import sys

    real = importlib.util.find_spec
    for name in [n for n in sys.modules if n.partition(".")[0] == "kernel_tuner"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "kernel_tuner" else real(name, *a)
    )
    (tmp_path / "k.cu").write_text(SUM)
    (tmp_path / "tune.py").write_text(
        "from kernel_tuner import tune_kernel, run_kernel\n"
        "from kernel_tuner.file_utils import store_output_file\n"
        "from kernel_tuner.observers.nvml import NVMLObserver\n"
        "answer = run_kernel('weigh', 'k.cu', 64, [1, 2], {'a': 1})\n"
        "try:\n"
        "    tune_kernel('weigh', 'k.cu', 64, [answer[1]], {'a': [1, 2]}, None, None, None, ['a > 1'], None, 1e-3,\n"
        "                observers=[NVMLObserver(['nvml_energy'])])\n"
        "except Exception:\n"
        "    raise SystemExit('caught')\n"
    )
    found = read_script(tmp_path / "tune.py")
    assert (found.arguments, list(found.configurations())) == ([2], [{"a": 2}])
    assert "kernel_tuner" not in sys.modules


def cache(**more: Any) -> dict[str, Any]:
    rows = [{"block_size_x": 32, "block_size_y": 8, "padding": p, "time": 1.0 + p, "times": [1.0 + p]} for p in (0, 1)]
    failed = {"block_size_x": 64, "block_size_y": 1, "padding": 0, "__error__": "RuntimeFailedConfig"}
    held = {",".join(str(row[n]) for n in ("block_size_x", "block_size_y", "padding")): row for row in [*rows, failed]}
    keys = ["block_size_x", "block_size_y", "padding"]
    return {"kernel_name": "transpose", "problem_size": [2048, 2048], "tune_params_keys": keys, "cache": held, **more}


def test_a_cache_is_a_space(tmp_path: Path) -> None:
    file = tmp_path / "cache.json"
    file.write_text(json.dumps(cache()))
    found = measured_space(file, KERNEL, [], grid_div_y=["block_size_x"], restrictions="padding == 1")
    assert (found.kernel_name, list(found.problem_size)) == ("transpose", [2048, 2048])
    assert list(found.configurations()) == [{"block_size_x": 32, "block_size_y": 8, "padding": 1}]


def test_a_t4_file_is_a_space_and_needs_the_rest(tmp_path: Path) -> None:
    results = [
        {"configuration": {"tile": tile}, "times": {"runtimes": [2.0]}, "invalidity": "correct",
         "measurements": [{"name": "time", "value": 2.0, "unit": "ms"}]}
        for tile in (4, 2)
    ]  # fmt: skip
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"schema_version": "1.0.0", "results": results, "metadata": {"timeunit": "ms"}}))
    found = measured_space(file, SUM, [], kernel_name="weigh", problem_size=64)
    assert [c["tile"] for c in found.configurations()] == [4, 2]
    with pytest.raises(UsageError, match="does not contain the kernel's name"):
        measured_space(file, SUM, [])
    with pytest.raises(UsageError, match="does not contain the problem size"):
        measured_space(file, SUM, [], kernel_name="weigh")


def test_predictions_are_found_by_value_whatever_its_type() -> None:
    found = Predictions(("a", "b"), {("32", "1"): 1.0, ("64", "x"): 2.0})
    assert found.key({"b": True, "a": 32.0}) == ("32", "1")
    assert found.key(["1", "32"], ["b", "a"]) == ("32", "1")
    assert found.ordered([(64, "x"), (1, 1), (32, 1)], ["a", "b"]) == [(32, 1), (64, "x")]
    assert found.over(["a"]).times == {("32",): 1.0, ("64",): 2.0}
    with pytest.raises(UsageError, match=r"parameters that the space does not have \(b\)"):
        Predictions(("a", "b"), {("1", "1"): 1.0, ("1", "2"): 2.0}).over(["a"])


SWEEP = """row,gpu,settings,status,reason,tile,space.clock_mhz,time_s,limiter,clock_mhz
1,a100,x,ok,,4,1,2e-3,dram,1410
2,a100,x,failed,too large,8,1,,,
3,h100,x,ok,,4,1,1e-3,dram,1980
"""
HEAD = "row,gpu,settings,status,reason,measured_s,wall_s,tile,clock_mhz,"
VALIDATE = f"""{HEAD}pipeline_s,pipeline_limiter,volkov_s,volkov_limiter
1,a100,x,ok,,1e-3,0.1,4.0,1410,2e-3,dram,3e-3,dram
2,a100,x,failed,too large,1e-3,0.1,8.0,,,,,
"""


def test_files_of_sweeps_and_validations_are_predictions(tmp_path: Path) -> None:
    (tmp_path / "sweep.csv").write_text(SWEEP)
    (tmp_path / "rows.csv").write_text(VALIDATE)
    swept = Predictions.read(tmp_path / "sweep.csv", gpu="a100")
    assert swept == Predictions(("tile", "clock_mhz"), {("4", "1"): 2e-3}, {("8", "1"): "too large"})
    assert Predictions.read(tmp_path / "sweep.csv", gpu="h100").times == {("4", "1"): 1e-3}
    assert Predictions.read(tmp_path / "rows.csv") == Predictions(("tile",), {("4",): 2e-3}, {("8",): "too large"})
    assert Predictions.read(tmp_path / "rows.csv", model="volkov").times == {("4",): 3e-3}


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        (SWEEP, {}, "holds predictions for a100, h100"),
        (SWEEP, {"gpu": "v100"}, "holds no predictions for 'v100'; it holds: a100, h100"),
        (VALIDATE, {"model": "roofline"}, "holds no predictions of roofline; it holds: pipeline, volkov"),
        ("a,b\n1,2\n", {}, "expected rows that drywarp sweep or drywarp validate wrote"),
        ("", {}, "holds no rows"),
        (SWEEP + "4,a100\n", {}, "line 5: 2 cells, expected 10"),
    ],
)
def test_files_that_hold_none_say_so(tmp_path: Path, text: str, given: dict[str, str], said: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text)
    with pytest.raises((InputFileError, UsageError), match=said) as caught:
        Predictions.read(file, **given)
    assert str(file) in str(caught.value)
