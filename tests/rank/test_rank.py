"""GPUs in the order of time, energy and cost."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import drywarp
from drywarp.cli.main import run
from drywarp.errors import UsageError
from drywarp.hardware import gpu_names
from drywarp.report import ranking as report
from drywarp.report.ranking import render_ranking

EXAMPLES = Path(__file__).parents[2] / "examples"
SAXPY = EXAMPLES / "saxpy.cu"
SCHEMA = Path(report.__file__).parent / "schema" / "rank.schema.json"
FEW = "a100,a100-sxm4-80gb,t4"


@pytest.fixture(scope="module")
def ranking() -> drywarp.Ranking:
    return drywarp.rank(SAXPY, gpus=FEW, prices={"a100": 1.2, "t4": 0.3})


def test_times_are_those_of_analyze_and_sorted(ranking: drywarp.Ranking) -> None:
    assert [gpu.time_s for gpu in ranking.gpus] == sorted(gpu.time_s for gpu in ranking.gpus)
    for gpu in ranking.gpus:
        alone = drywarp.analyze(SAXPY, gpu=gpu.gpu)
        assert (gpu.time_s, gpu.limiter, gpu.occupancy) == (alone.time_s, alone.limiter, alone.occupancy.fraction)
        assert alone.band is not None
        assert (gpu.low_s, gpu.high_s) == (alone.band.low_s, alone.band.high_s)
    assert ranking.gpus[-1].gpu == "t4"


def test_energy_and_cost_are_products(ranking: drywarp.Ranking) -> None:
    by_name = {gpu.gpu: gpu for gpu in ranking.gpus}
    power = drywarp.load_gpu("a100").device.tdp_w
    assert power is not None
    assert by_name["a100"].tdp_w == power
    assert by_name["a100"].energy_j == power * by_name["a100"].time_s
    assert by_name["a100"].cost == pytest.approx(1.2 / 3600 * by_name["a100"].time_s)
    assert by_name["a100-sxm4-80gb"].cost is None


@pytest.mark.parametrize("by", ["energy", "cost"])
def test_other_orders_sort_by_their_figure(by: str, ranking: drywarp.Ranking) -> None:
    again = drywarp.rank(SAXPY, gpus=FEW, prices={"a100": 1.2, "t4": 0.3}, by=by)  # type: ignore[arg-type]
    figures = [gpu.by(by) for gpu in again.gpus]  # type: ignore[arg-type]
    known = [figure for figure in figures if figure is not None]
    assert known == sorted(known)
    assert figures[len(known) :] == [None] * (len(figures) - len(known))
    assert {gpu.gpu for gpu in again.gpus} == {gpu.gpu for gpu in ranking.gpus}


def test_machine_code_is_compiled_and_emulated_once_per_architecture(own_cache: Path) -> None:
    stages: list[str] = []
    gpus = "a100,a100-sxm4-40gb,a100-sxm4-80gb,a100-pcie-80gb,t4,rtx2070"
    found = drywarp.rank(EXAMPLES / "reduction.cu", gpus=gpus, options=drywarp.Options(on_stage=stages.append))
    assert [stage for stage in stages if stage.startswith("compiling")] == [
        "compiling for sm_80",
        "compiling for sm_75",
    ]
    assert len([stage for stage in stages if stage.startswith("emulating")]) == 2
    assert len(found.gpus) == 6


@pytest.mark.exhaustive
def test_all_means_every_product_and_failures_are_said() -> None:
    """wgmma exists on Hopper alone: every other GPU is listed with the reason."""
    found = drywarp.rank(EXAMPLES / "hopper" / "wgmma_tile.cu")
    hopper = {"h100", "h100-pcie", "h100-nvl", "h200", "gh200"}
    assert {gpu.gpu for gpu in found.gpus} == hopper
    products = {name for name in gpu_names() if not name.startswith("papers/")}
    assert set(found.failed) == products - hopper
    text = render_ranking(found).plain
    assert "not on a100: " in text


def test_the_json_follows_its_schema(ranking: drywarp.Ranking) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json.dumps(ranking.to_dict())), schema)


def test_wrong_usage_is_said() -> None:
    with pytest.raises(UsageError, match="needs hourly prices"):
        drywarp.rank(SAXPY, gpus="a100", by="cost")
    with pytest.raises(UsageError, match="price of h100: not among"):
        drywarp.rank(SAXPY, gpus="a100", prices={"h100": 1})
    with pytest.raises(UsageError, match="0 or more"):
        drywarp.rank(SAXPY, gpus="a100", prices={"a100": float("nan")})
    with pytest.raises(UsageError, match="expected one of time, energy, cost"):
        drywarp.rank(SAXPY, by="speed")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="named twice"):
        drywarp.rank(SAXPY, gpus="a100,a100")
    with pytest.raises(UsageError, match="no GPU"):
        drywarp.rank(SAXPY, gpus=[])
    with pytest.raises(drywarp.DrywarpError, match="undefined_name"):
        drywarp.rank("__global__ void k(float* a) {\n a[0] = undefined_name; }", gpus="a100,h100", grid=1, block=32)


def test_a_gpu_of_a_users_file_is_ranked_too(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('format = 1\ntitle = "Mine"\ninherits = "a100"\n')
    found = drywarp.rank(SAXPY, gpus=f"a100,{mine}")
    assert [gpu.gpu for gpu in found.gpus] == ["a100", "mine"]
    assert found.gpus[1].tdp_w == found.gpus[0].tdp_w


@pytest.mark.parametrize("name", [name for name in gpu_names() if not name.startswith("papers/")])
def test_every_product_states_its_power(name: str) -> None:
    fact = drywarp.load_gpu(name).fact("device.tdp_w")
    # A die of MI250X has half of the module's, and of GH200 and GB200 the driver's limit is known.
    assert fact.kind == {"mi250x": "derived", "gh200": "documented", "gb200": "documented"}.get(name, "datasheet")
    assert fact.unit == "W"
    assert 50 < float(fact.value) < 2000  # type: ignore[arg-type]


def test_an_analysis_compares_with_other_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["analyze", str(SAXPY), "--gpu", "a100", "--clock", "1200", "--compare-to", "t4,h100", "--compare-to", "l4"]
    assert run([*line, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads(SCHEMA.with_name("analyze.schema.json").read_text()))
    assert [there["gpu"] for there in found["compare_to"]] == ["t4", "h100", "l4"]
    for there in found["compare_to"]:
        # Each at its own clock, whatever clock was given for the first.
        alone = drywarp.analyze(SAXPY, gpu=there["gpu"])
        assert (there["time_s"], there["limiter"], there["clock_hz"]) == (alone.time_s, alone.limiter, alone.clock_hz)
        assert alone.band is not None
        assert (there["low_s"], there["high_s"]) == (alone.band.low_s, alone.band.high_s)
        assert there["ratio"] == pytest.approx(alone.time_s / found["prediction"]["time_s"])
    assert run(line) == 0
    text = capsys.readouterr().out
    table = text[text.index("The same launch on other GPUs") :].splitlines()
    assert [row.split()[0] for row in table[3:7]] == ["a100", "t4", "h100", "l4"]
    assert table[3].split()[3] == "1.00"
    assert "1200 MHz" in table[3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--compare-to", "A100"], "GPU a100 cannot be compared with itself"),
        (["--compare-to", "t4,t4"], "GPU t4 is named twice"),
        (["--compare-to", "h1000"], "unknown GPU 'h1000'"),
        (["--compare-to", "papers/example"], "GPU papers/example, to compare with: "),
        (["--compare-to", "t4", "--launches", "none.toml"], "--compare-to compares one launch"),
    ],
)
def test_what_an_analysis_cannot_be_compared_with(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", str(SAXPY), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1
