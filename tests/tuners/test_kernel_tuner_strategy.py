"""The strategy in the real package, in its simulation mode."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.errors import UsageError
from drywarp.experiments.tuners.kernel_tuner import PredictedOrder, Predictions, measured_space
from drywarp.experiments.tuners.kernel_tuner.predictions import FEWEST, Correction

kernel_tuner = pytest.importorskip("kernel_tuner", reason="Kernel Tuner: pip install 'drywarp[kernel-tuner]'")

EXAMPLES = Path(__file__).parents[2] / "examples/tuners"
NAMES = ("block_size_x", "tile", "pad")
Times = Mapping[tuple[Any, ...], float]


def true_time(x: int, tile: int, pad: int) -> float:
    return (1 + abs(x - 96) / 32) * (1 + abs(tile - 5)) * (1.5 if pad == 0 else 1.0)


TIMES = {(x, t, p): true_time(x, t, p) for x in range(32, 257, 32) for t in range(1, 9) for p in (0, 1)}


def written(folder: Path, names: tuple[str, ...], times: Times) -> str:
    keys = {",".join(map(str, c)): (c, time) for c, time in times.items()}
    overhead = {"compile_time": 1, "verification_time": 0, "benchmark_time": 1}
    cache = {
        "device_name": "GPU",
        "kernel_name": "kernel",
        "problem_size": [1],
        "tune_params_keys": names,
        "tune_params": {name: sorted({c[place] for c in times}) for place, name in enumerate(names)},
        "objective": "time",
        "cache": {k: {**dict(zip(names, c, strict=True)), "time": t, **overhead} for k, (c, t) in keys.items()},
    }
    file = folder / "cache.json"
    file.write_text(json.dumps(cache))
    return str(file)


def tuned(cache: str, strategy: Any, options: dict[str, Any] | None = None, seed: int = 0, **more: Any) -> list[Any]:
    random.seed(seed)
    np.random.seed(seed)
    found, _ = kernel_tuner.tune_cache(
        cache, strategy=strategy, strategy_options=options, quiet=True, seed=seed, **more
    )
    return list(found)


def needed(found: list[Any], within: float, best: float) -> int:
    tried: set[tuple[Any, ...]] = set()
    for result in found:
        tried.add(tuple(value for name, value in result.items() if name in result and name not in ("time", "times")))
        if isinstance(result["time"], float) and result["time"] <= within * best:
            return len(tried)
    raise AssertionError("not found")


def predictions(factor: Any = lambda x, tile, pad: 1e-3) -> Predictions:
    return Predictions(NAMES, {tuple(map(str, c)): time * factor(*c) for c, time in TIMES.items()})


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return written(tmp_path, NAMES, TIMES)


def test_right_predictions_find_the_best_at_once(cache: str) -> None:
    found = tuned(cache, PredictedOrder(predictions=predictions(), correct=False))
    times = [result["time"] for result in found]
    assert times == sorted(TIMES.values())
    assert times[0] == min(TIMES.values())


def test_the_budget_is_kept(cache: str) -> None:
    assert len(tuned(cache, PredictedOrder(predictions=predictions()), {"max_fevals": 7})) == 7


@pytest.mark.parametrize(("keep", "count"), [(0.05, 7), (10, 10), (1.0, 128)])
def test_pruned_to_a_share_or_a_number(cache: str, keep: float, count: int) -> None:
    found = tuned(cache, PredictedOrder(predictions=predictions(), keep=keep))
    assert sorted(r["time"] for r in found) == sorted(TIMES.values())[:count]


@pytest.mark.parametrize("then", ["brute_force", "random_sample"])
def test_another_strategy_searches_what_is_left(cache: str, then: str) -> None:
    options = {"fraction": 1.0} if then == "random_sample" else None
    found = tuned(cache, PredictedOrder(predictions=predictions(), keep=12, then=then), options)
    assert {r["time"] for r in found} <= set(sorted(TIMES.values())[:12])
    assert min(r["time"] for r in found) == min(TIMES.values())


def test_it_is_an_algorithm_for_the_wrapper_too(cache: str) -> None:
    wrapper = pytest.importorskip("kernel_tuner.strategies.wrapper", reason="an older Kernel Tuner").OptAlgWrapper
    found = tuned(cache, wrapper(PredictedOrder(predictions=predictions())), {"max_fevals": 5})
    assert len(found) == 5
    assert found[0]["time"] == min(TIMES.values())


def test_what_lacks_a_prediction_comes_last_or_is_left_out(cache: str) -> None:
    some = {key: time for key, time in predictions().times.items() if key[2] == "1"}
    every = tuned(cache, PredictedOrder(predictions=Predictions(NAMES, some)))
    assert [r["pad"] for r in every] == [1] * 64 + [0] * 64
    kept = tuned(cache, PredictedOrder(predictions=Predictions(NAMES, some), keep=1.0))
    assert {r["pad"] for r in kept} == {1}


def test_seeds_settle_what_is_predicted_alike(cache: str) -> None:
    flat = Predictions(NAMES, dict.fromkeys(predictions().times, 1.0))
    orders = [tuple(r["time"] for r in tuned(cache, PredictedOrder(predictions=flat), seed=s)) for s in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_measurements_correct_what_a_parameter_is_wrong_about(cache: str) -> None:
    """Predictions that are three times too good wherever there is no padding, and for small tiles."""

    def wrong(x: int, tile: int, pad: int) -> float:
        return (1e-3 if pad else 0.3e-3) * (0.4 if tile < 4 else 1.0)

    best, random_needs, corrected_needs, plain_needs = min(TIMES.values()), [], [], []
    for seed in range(10):
        random_needs.append(needed(tuned(cache, "random_sample", {"max_fevals": len(TIMES)}, seed), 1.05, best))
        plain = PredictedOrder(predictions=predictions(wrong), correct=False)
        plain_needs.append(needed(tuned(cache, plain, seed=seed), 1.05, best))
        corrected = PredictedOrder(predictions=predictions(wrong))
        corrected_needs.append(needed(tuned(cache, corrected, seed=seed), 1.05, best))
    assert max(corrected_needs) < min(plain_needs)
    assert max(corrected_needs) < sum(random_needs) / len(random_needs) / 2


@given(st.lists(st.floats(0.2, 5.0), min_size=8, max_size=8), st.lists(st.floats(0.2, 5.0), min_size=8, max_size=8))
@settings(max_examples=30, deadline=None)
def test_factors_of_single_values_are_learnt(of_tile: list[float], of_x: list[float]) -> None:
    configurations = list(TIMES)
    predicted = [TIMES[c] / of_tile[c[1] - 1] / of_x[c[0] // 32 - 1] for c in configurations]
    correction = Correction(configurations, predicted)
    for _ in range(20):
        for place, configuration in enumerate(configurations):
            correction.learn(place, TIMES[configuration] * 1e3)
    shift = correction.scores() - np.log([TIMES[c] * 1e3 for c in configurations])
    assert np.abs(shift).max() < 0.05


def test_failed_and_few_measurements_correct_nothing() -> None:
    correction = Correction(list(TIMES), list(TIMES.values()))
    before = correction.scores().copy()
    for place in range(20):
        correction.learn(place, 1e308 if place % 2 else float("nan"))
    for place in range(FEWEST - 1):
        correction.learn(place, 5.0)
    assert (correction.scores() == before).all()
    assert sorted(correction.places()) == list(range(len(TIMES)))


def test_without_predictions_the_kernel_at_hand_is_predicted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ("block_size_x", "block_size_y", "padding")
    times = {(x, y, p): 1.0 + (x, y, p).__hash__() % 7 for x in (16, 32) for y in (4, 8) for p in (0, 1)}
    file = written(tmp_path, names, times)
    strategy = PredictedOrder(gpu="a100", jobs=1, correct=False)
    arguments = [np.zeros((512, 512), np.float32), np.ones((512, 512), np.float32), np.int32(512)]
    found, _ = kernel_tuner.tune_kernel(
        "kernel",
        (EXAMPLES / "transpose.cu").read_text().replace("void transpose", "void kernel"),
        (1,),
        arguments,
        {name: sorted({c[place] for c in times}) for place, name in enumerate(names)},
        grid_div_x=[],
        grid_div_y=[],
        strategy=strategy,
        cache=file,
        simulation_mode=True,
        quiet=True,
    )
    assert strategy.predictions is not None
    assert len(strategy.predictions.times) == 8
    order = [strategy.predictions.times[strategy.predictions.key(result)] for result in found]
    assert order == sorted(order)
    assert "drywarp: 8 of 8 configurations predicted" in capfd.readouterr().err


def test_files_that_the_package_writes_are_spaces(cache: str, tmp_path: Path) -> None:
    file_utils = pytest.importorskip("kernel_tuner.file_utils", reason="an older Kernel Tuner")
    params = json.loads(Path(cache).read_text())["tune_params"]
    found = tuned(cache, "random_sample", {"max_fevals": 20})
    file_utils.store_output_file(str(tmp_path / "results.json"), found, params)
    of_results = measured_space(tmp_path / "results.json", "void kernel();", [], kernel_name="kernel", problem_size=1)
    tried = {tuple(result[name] for name in NAMES) for result in found}
    assert {tuple(c[name] for name in NAMES) for c in of_results.configurations()} == tried
    of_cache = measured_space(cache, "void kernel();", [])
    assert {tuple(c.values()) for c in of_cache.configurations()} == set(TIMES)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keep": 0}, "keep=0: expected a share"),
        ({"then": "pso"}, "expected keep as well"),
        ({"gpu": "nosuch"}, "nosuch"),
    ],
)
def test_wrong_options_give_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        PredictedOrder(**given)


def test_predictions_of_another_space_give_one_line(cache: str) -> None:
    others = Predictions(("other",), {("1",): 1.0, ("2",): 2.0})
    with pytest.raises(UsageError, match="parameters that the space does not have"):
        tuned(cache, PredictedOrder(predictions=others))
    elsewhere = Predictions(NAMES, {("1", "1", "1"): 1.0})
    with pytest.raises(UsageError, match="none of 128 configurations is among the predictions"):
        tuned(cache, PredictedOrder(predictions=elsewhere))
    with pytest.raises(UsageError, match="not a strategy of Kernel Tuner"):
        tuned(cache, PredictedOrder(predictions=predictions(), keep=5, then="nosuch"))


def test_measured_times_of_another_gpu_as_predictions(tmp_path: Path) -> None:
    """525 measured configurations: what one GPU says orders the search on another.

    Every eighth configuration of a 2-D convolution (4096 x 4096, 15 x 15 filter) that was measured on both an
    RTX A4000 and an A100, in the order of its parameters, with the median times of the public data set
    "benchmark_hub" (AutoTuningAssociation on GitHub, MIT licence). 5 of the 525 are within 5 % of the best.
    """
    names = (
        *("block_size_x", "block_size_y", "tile_size_x", "tile_size_y"),
        *("read_only", "use_padding", "use_shmem"),
    )
    with Path(__file__).with_name("convolution_times.csv").open(newline="") as file:
        rows = [(tuple(int(row[n]) for n in names), row) for row in csv.DictReader(file)]
    here = {configuration: float(row["a4000_ms"]) for configuration, row in rows}
    there = {configuration: float(row["a100_ms"]) for configuration, row in rows}
    best, cache = min(here.values()), written(tmp_path, names, here)
    other = Predictions(names, {tuple(map(str, c)): time * 1e-3 for c, time in there.items()})
    ours = needed(tuned(cache, PredictedOrder(predictions=other), {"max_fevals": len(here)}), 1.05, best)
    blind = [needed(tuned(cache, "random_sample", {"max_fevals": len(here)}, s), 1.05, best) for s in range(5)]
    assert ours < sum(blind) / len(blind) / 2
