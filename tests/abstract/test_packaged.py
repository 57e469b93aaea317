"""The packaged abstract kernels against what the papers print of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drywarp.errors import InputFileError, UsageError
from drywarp.hardware import load_gpu
from drywarp.models import get_model
from drywarp.models.inputs import ModelInputs, inputs_of
from drywarp.models.pipeline import Pipeline
from drywarp.models.throughput import demand
from drywarp.pipeline import POLICIES, share_of
from drywarp.pipeline.simulate import run_share
from drywarp.workload.abstract import (
    load_workload,
    most_warps,
    occupancy_matters,
    read_workload,
    settings_of,
    workload_names,
)
from drywarp.workload.cost import TICKS_PER_CYCLE
from tests.effort import first, some

EXPECTED = {
    *("example", "instruction-mix", "barrier", "alpha-mix", "hong-kim-matmul", "mmul8", "mmul16", "vector-add"),
    *("itilp", "sfu-mix", "mb1", "mb2", "mb3", "mb4", "mb5", "mb6", "mb7"),
    *("merge-sepia", "merge-linear", "merge-svm", "merge-mat-naive", "merge-mat-tiled"),
    "merge-blackscholes",
    *("dep", "indep", "sync"),
}
RODINIA = {name for name in workload_names() if name.startswith("papers/rodinia-")}  # tests/abstract/test_rodinia.py


def inputs(name: str, gpu: str | None = None, **settings: float) -> ModelInputs:
    file = read_workload(f"papers/{name}")
    return inputs_of(load_workload(file.name, load_gpu(gpu or file.kernel.gpu or "a100"), settings))


def test_all_are_there() -> None:
    assert {name.removeprefix("papers/") for name in workload_names() if name not in RODINIA} == EXPECTED


@pytest.mark.parametrize("name", [name for name in workload_names() if name not in RODINIA])
@pytest.mark.parametrize("gpu", ["", "a100", "h100"])
def test_each_runs_on_its_own_gpu_and_on_products(name: str, gpu: str) -> None:
    machine = load_gpu(gpu or read_workload(name).kernel.gpu or "a100")
    work = load_workload(name, machine)
    assert inputs_of(work).latency_app > 0
    assert work.blocks_per_sm <= work.max_blocks_per_sm
    assert not occupancy_matters(read_workload(name))


def test_the_example_takes_25_cycles() -> None:
    work = load_workload("papers/example", load_gpu("papers/example"))
    curve = get_model("pipeline").predict(work, range(1, 4)).curve
    assert [point.cycles_per_run for point in curve] == [25, 28, 31]
    given = inputs_of(work)
    assert (given.computation.count, given.memory.count, given.intensity) == (4, 2, 2)
    assert (given.computation.lambda_, given.computation.latency) == (1, 4)
    assert (given.memory.lambda_, given.memory.latency, given.latency_app) == (2, 6, 25)


@pytest.mark.parametrize("name", some(sorted(EXPECTED), 2))
@pytest.mark.parametrize("gpu", first(["", "a100", "papers/volkov-kepler"]))
def test_no_packaged_workload_exceeds_its_roof(name: str, gpu: str) -> None:
    file = read_workload(f"papers/{name}")
    machine = load_gpu(gpu or file.kernel.gpu or "a100")
    try:
        most = most_warps(file, machine, settings_of(file, {}))[1]
        work = load_workload(file.name, machine, {}, runs=1 if file.kernel.launch.blocks else 3)
    except (UsageError, InputFileError):
        pytest.skip(f"{machine.name} cannot run it")
    each = work.warps_per_block
    occupancies = sorted({each, each * max(1, most // each // 4), each * (most // each)})
    for policy in POLICIES:
        prediction = Pipeline(brief=True).predict(replace(work, policy=policy), occupancies)
        roof = demand(work).warps_per_cycle
        assert all(point.warps_per_cycle <= roof * (1 + 1e-9) for point in prediction.curve)
        assert all(0 <= busy <= 1 for busy in prediction.utilization.values())


@pytest.mark.parametrize(
    ("policy", "cycles", "idle"),
    [
        ("loose_round_robin", 68, 0),
        ("greedy_then_round_robin", 68, 0),
        ("greedy_then_oldest", 62, 8),
        ("oldest_first", 59, 6),
        ("greedy_then_youngest", 62, 8),
    ],
)
def test_ten_warps_of_the_example_leave_no_idle_periods(policy: str, cycles: int, idle: int) -> None:
    """Analysis Fig. 9's caption: "no idle periods except for the pipeline fill and drain", which tells the policy."""
    work = load_workload("papers/example", load_gpu("papers/example"), occupancy=10, policy=policy)
    result = run_share(work, share_of(work, 10), profile=True)
    assert result.profile is not None
    accesses = [n for n, its in enumerate(work.paths[0].nodes) if work.subsystems[its.subsystem].name == "mem"]
    issue = result.profile.column("issue")[np.isin(result.profile.column("node"), accesses)] / TICKS_PER_CYCLE
    assert (result.cycles, (np.diff(issue) - 2).sum()) == (cycles, idle)
    assert POLICIES.keys() == {"loose_round_robin", "greedy_then_round_robin", "greedy_then_oldest", "oldest_first",
                               "greedy_then_youngest"}  # fmt: skip
    assert load_gpu("papers/example").scheduler.policy == "loose_round_robin"


def test_volkovs_vector_addition() -> None:
    given = inputs("vector-add")
    assert given.latency_app == 544
    assert given.roof == pytest.approx(0.0445, abs=0.0002)


def test_volkovs_alpha_mix() -> None:
    for alpha in (0, 1, 32):
        assert inputs("alpha-mix", alpha=alpha, iterations=3).latency_app == 3 * (368 + 6 * alpha)


def test_hong_and_kims_example() -> None:
    given = inputs("hong-kim-matmul")
    assert given.computation.count + given.barrier.count == 27
    assert (given.memory.count, given.barrier.count, given.uncoalesced) == (6, 6, 6)
    assert (given.uncoalesced_transactions, given.warps, given.repetitions) == (32, 20, 1)
    assert given.dram_latency == pytest.approx(730)  # Mem_L of Table 2: 420 + 31 transactions of 10 more


@pytest.mark.parametrize(
    ("number", "memory", "computations", "floating"),
    [(1, 0, 23, 20), (2, 1, 17, 8), (3, 1, 29, 20), (4, 2, 27, 12), (5, 2, 35, 20), (6, 4, 47, 20), (7, 6, 59, 20)],
)
def test_the_micro_benchmarks(number: int, memory: int, computations: int, floating: int) -> None:
    given = inputs(f"mb{number}", iterations=10)
    assert (given.memory.count, given.computation.count, given.fp.count) == (
        10 * memory,
        10 * computations,
        10 * floating,
    )
    assert given.uncoalesced == 0
    assert inputs(f"mb{number}", iterations=10, uncoalesced=1).uncoalesced == 10 * memory


def test_bank_conflicts_cost_time() -> None:
    for name in ("mmul8", "mmul16"):
        assert inputs(name, conflicts=1).latency_app > inputs(name).latency_app
        assert inputs(name, conflicts=1).roof < inputs(name).roof
    # An iteration: two reads of the matrices, a barrier before and after, 8 or 16 multiply-adds.
    assert inputs("mmul8", iterations=1).fp.count == 8
    assert inputs("mmul16", iterations=1).shared.count == 2 + 2 * 16


def test_ilp_of_independent_chains() -> None:
    for ilp in (1, 2, 3):
        given = inputs("itilp", ilp=ilp)
        assert given.ilp == ilp
        assert given.latency_app == 256 * 18 + (ilp - 1)


def test_instruction_mix_reaches_the_equations() -> None:
    """Eq. 45 with Table 4's Fermi: min(1/λ1, β/λ2, β/(β+1)·IL) at the most warps, nearly."""
    for beta in (1, 4, 16):
        work = load_workload(
            "papers/instruction-mix", load_gpu("papers/analysis-fermi"), {"beta": beta, "iterations": 64}
        )
        (point,) = get_model("pipeline").predict(work, (48,)).curve
        ipc = point.warps_per_cycle * beta * 64
        assert ipc == pytest.approx(min(1, beta / 8, beta / (beta + 1)), rel=0.05)


def test_barriers_hold_the_block_together() -> None:
    alone = load_workload("papers/barrier", load_gpu("papers/analysis-fermi"), {"n": 10, "group": 1}, occupancy=1)
    assert get_model("pipeline").predict(alone, (1,)).cycles == 10 * (18 + 40)


def test_the_file_in_the_docs(tmp_path: Path) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "abstract-kernels.md").read_text(encoding="utf-8")
    text = docs.partition("## A whole file\n\n")[2].partition("\nWherever")[0]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(line[4:] for line in text.splitlines()), encoding="utf-8")
    work = load_workload(str(path), load_gpu("papers/volkov-maxwell"), {"alpha": 3})
    given = inputs_of(work)
    assert (given.memory.count, given.computation.count, given.warps_per_block) == (100, 300, 4)
    assert given.latency_app == 100 * (368 + 3 * 6)


def test_lambda_and_latency_over_occupancy(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'format = 1\ntitle = "t"\n[classes.m]\nsubsystem = "mem"\nkind = "memory"\n'
        "lambda = { occupancy = [4, 8], cycles = [1, 2], steps = true }\n"
        "latency = { occupancy = [1, 5], cycles = [100, 180] }\n"
        '[[program]]\nid = "a"\nclass = "m"\n',
        encoding="utf-8",
    )
    gpu = load_gpu("papers/example")
    assert occupancy_matters(read_workload(str(path)))
    at = {warps: inputs_of(load_workload(str(path), gpu, occupancy=warps)).memory for warps in (1, 2, 5, 7, 8, 9)}
    assert [part.latency for part in at.values()] == [100, 120, 180, 180, 180, 180]
    assert [part.lambda_ for part in at.values()] == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("name", "computations", "accesses"),
    [
        ("sepia", 71, 6),
        ("linear", 111, 30),
        ("svm", 10871, 819),
        ("mat-naive", 12043, 4001),
        ("mat-tiled", 9780, 201),
        ("blackscholes", 137, 7),
    ],
)
def test_merge_benchmarks_have_the_counts_of_table_5(name: str, computations: int, accesses: int) -> None:
    given = inputs(f"merge-{name}")
    assert (given.computation.count, given.memory.count) == (computations, accesses)
    assert bool(given.uncoalesced) == (name != "svm")
    # Hong and Kim, 5.2: all but Mat. (tiled) and Linear have an occupancy above 70 %.
    assert (given.warps / 24 > 0.7) == (name not in ("mat-tiled", "linear"))


def test_independent_accesses_only_help_few_warps() -> None:
    """Hong and Kim, Figure 26: far shorter below MWP warps, much the same above."""
    gpu = load_gpu("papers/fx5600")

    def curve(name: str) -> list[float]:
        answer = get_model("pipeline").predict(load_workload(f"papers/{name}", gpu), (1, 24))
        return [point.cycles_per_run or 0.0 for point in answer.curve]

    (few, many), (few_free, many_free) = curve("dep"), curve("indep")
    assert few > 1.8 * few_free
    assert many == pytest.approx(many_free, rel=0.01)


@pytest.mark.parametrize("warps", [4, 8, 16, 24])
def test_barriers_after_accesses_cost_less_than_a_waiting_period(warps: int) -> None:
    """Hong and Kim, 3.4.6 and Figure 11; Eq. 26 puts it at (NpWB - 1) departure delays for each block."""
    gpu = load_gpu("papers/fx5600")
    free = load_workload("papers/sync", gpu, {"synchronised": 0}, occupancy=warps)
    meeting = load_workload("papers/sync", gpu, occupancy=warps)
    given = inputs_of(meeting)
    assert (given.barrier.count, inputs_of(free).barrier.count, given.warps_per_block) == (100, 0, 4)

    def added(model: str) -> float:
        with_, without = (get_model(model).predict(work, (warps,)).cycles for work in (meeting, free))
        assert with_ is not None
        assert without is not None
        return (with_ - without) / 100

    assert 0 < added("pipeline") < given.memory.latency
    if warps == 4:  # the loads of a block leave one λ apart, the last one of four 3 λ after the first
        apart = 3 * given.memory.lambda_
        assert apart <= added("pipeline") <= apart + 4 * given.computation.lambda_
    # Eq. 26 takes the departure delay without the limit of bandwidth; the barrier is an instruction of each warp too.
    delay = 4 * (4 - 1) * warps / 4
    assert delay <= added("mwp_cwp_2009") <= delay + 4 * warps + 1
