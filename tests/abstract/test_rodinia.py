"""The packaged graphs of the kernels of the analysis paper's Table 9, against the kernels that they were made from."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from benchmarks.dependence_graph import executed, producers_of
from benchmarks.rodinia import (
    against_simulation,
    average,
    errors_of,
    gpumech_curve,
    printed,
    readings,
    report,
    simulated,
)
from benchmarks.rodinia_graphs import (
    FOLDER,
    TABLE_9,
    Entry,
    chosen_block,
    class_of,
    compiler,
    graphs_of,
    prepared,
    text_of,
)
from hypothesis import given
from hypothesis import strategies as st

from drywarp.analysis.prepared import Prepared
from drywarp.errors import InputFileError
from drywarp.hardware import load_gpu
from drywarp.models import get_model, gpumech
from drywarp.models.inputs import inputs_of
from drywarp.models.pipeline import Pipeline
from drywarp.models.throughput import demand
from drywarp.workload.abstract import load_workload, most_warps, read_workload, workload_names
from drywarp.workload.abstract.costs import global_lambdas, local_lambdas
from drywarp.workload.cost import TICKS_PER_CYCLE, CostedWorkload
from tests.effort import first, some

NAMES = ("pascal", "maxwell", "turing")
GPUS = tuple(f"papers/analysis-{name}" for name in NAMES)
KERNELS = pytest.mark.parametrize("entry", TABLE_9, ids=lambda entry: entry.kernel)
SOME_KERNELS = pytest.mark.parametrize("entry", some(TABLE_9, 4), ids=lambda entry: entry.kernel)


@cache
def launch(kernel: str) -> Prepared:
    return prepared(next(entry for entry in TABLE_9 if entry.kernel == kernel))


def counts(work: CostedWorkload) -> list[Counter[str]]:
    """Executed instructions by class, of each warp of a block."""
    (kind,) = work.block_types
    found = []
    for path in kind.paths:
        found.append(Counter[str]())
        for node, count in zip(work.paths[path].nodes, work.paths[path].counts(), strict=True):
            found[-1][node.class_] += count
    return found


def test_one_for_each_row_of_table_9() -> None:
    assert len(TABLE_9) == 14
    packaged = {name for name in workload_names() if name.startswith("papers/rodinia-")}
    assert packaged == {entry.on(gpu) for entry in TABLE_9 for gpu in NAMES}
    for gpu in NAMES:
        assert {read_workload(entry.on(gpu)).kernel.gpu for entry in TABLE_9} == {f"papers/analysis-{gpu}"}


@KERNELS
def test_launch_is_that_of_table_9(entry: Entry) -> None:
    """The least occupancy is that of a single work group."""
    for name, gpu in ((entry.workload, "a100"), *((entry.on(its), f"papers/analysis-{its}") for its in NAMES)):
        if gpu != "a100":
            assert most_warps(read_workload(name), load_gpu(gpu), {}) == (entry.least, entry.most)
        given = inputs_of(load_workload(name, load_gpu(gpu)))
        assert given.latency_app > 0
        assert given.memory.count > 0


@KERNELS
@pytest.mark.parametrize("gpu", first(NAMES))
def test_no_occupancy_exceeds_the_roof(entry: Entry, gpu: str) -> None:
    """Nor Volkov's model, which §6.3 calls an upper bound."""
    work = load_workload(entry.on(gpu), load_gpu(f"papers/analysis-{gpu}"))
    at = sorted({entry.least, entry.most // 2 // entry.least * entry.least, entry.most})
    volkov = [point.warps_per_cycle for point in get_model("volkov").predict(work, at).curve]
    roof = demand(work).warps_per_cycle
    for point, bound in zip(Pipeline(brief=True).predict(work, at).curve, volkov, strict=True):
        assert 0 < point.warps_per_cycle <= min(roof, bound) * (1 + 1e-9)


@SOME_KERNELS
def test_written_again_it_is_the_same(entry: Entry) -> None:
    packaged = (FOLDER.parent / f"{entry.workload}.toml").read_text(encoding="utf-8")
    if compiler() not in packaged.splitlines()[0]:
        pytest.skip(f"made by another compiler than {compiler()}")
    its = launch(entry.kernel)
    chosen = chosen_block(its.profile)
    assert text_of(entry, its, chosen, graphs_of(its, chosen)) == packaged


@KERNELS
def test_older_code_does_the_same_with_more_simple_instructions(entry: Entry) -> None:
    """Warp by warp as many floating-point instructions, accesses and barriers; a multiplication is three of XMAD."""
    newest = counts(load_workload(entry.workload, load_gpu(GPUS[0])))
    for gpu in ("maxwell", "pascal"):
        older = counts(load_workload(entry.on(gpu), load_gpu(f"papers/analysis-{gpu}")))
        for ours, theirs in zip(newest, older, strict=True):
            for class_ in ("fp", "local", "load", "store", "barrier"):
                assert ours[class_] == theirs[class_], class_
            assert theirs["mul"] == 0
            assert ours["alu"] + ours["mul"] < theirs["alu"] < 2.3 * (ours["alu"] + ours["mul"])
            assert ours["sfu"] <= theirs["sfu"] <= 2.1 * ours["sfu"]


@SOME_KERNELS
def test_counts_are_those_of_the_emulated_warps(entry: Entry) -> None:
    """Every warp of the chosen block, class by class; and near to the mean warp of the whole grid."""
    if compiler() not in (FOLDER.parent / f"{entry.workload}.toml").read_text(encoding="utf-8").splitlines()[0]:
        pytest.skip(f"made by another compiler than {compiler()}")
    profile = launch(entry.kernel).profile
    instructions = profile.kernel.instructions
    mine = counts(load_workload(entry.workload, load_gpu(GPUS[0])))
    for warp, path in enumerate(chosen_block(profile).paths):
        emulated = Counter[str]()
        for block in profile.paths[path].blocks.tolist():
            basic = profile.cfg.blocks[block]
            emulated.update(class_of(instruction) for instruction in instructions[basic.start : basic.end])
        assert mine[warp] == emulated
    grid = Counter[str]()
    for instruction, times in zip(instructions, profile.executions().tolist(), strict=True):
        grid[class_of(instruction)] += times
    warps = sum(block.weight * len(block.paths) for block in profile.blocks)
    for class_, times in grid.items():
        assert sum(each[class_] for each in mine) / len(mine) == pytest.approx(times / warps, rel=0.05), class_


@SOME_KERNELS
def test_the_compiler_waits_for_every_result_that_is_read(entry: Entry) -> None:
    """The scoreboards, which the graphs do not use, allow no result to be read before the wait for it."""
    profile = launch(entry.kernel).profile
    instructions, chosen = profile.kernel.instructions, chosen_block(profile)
    warp = profile.blocks[chosen.sample].paths.index(chosen.paths[0])
    outstanding: dict[int, set[int]] = {}
    awaited: set[int] = set()
    edges = 0
    run = executed(profile.paths[chosen.paths[0]], profile.cfg)
    for at, producers in enumerate(producers_of(profile, chosen.sample, warp)):
        control = instructions[run[at][1]].control
        for board in [board for board in outstanding if control.wait_mask >> board & 1]:
            awaited |= outstanding.pop(board)
        read = {p for p in producers if instructions[run[p][1]].control.write_barrier is not None}
        assert read <= awaited, instructions[run[at][1]]
        edges += len(read)
        if control.write_barrier is not None:
            outstanding.setdefault(control.write_barrier, set()).add(at)
    assert edges


def test_the_papers_cells_are_read_by_kernel() -> None:
    assert str(printed("maxwell")["wfg"]["Fan2"]) == "91/32.3"
    assert str(printed("pascal")["gpumech_gto"]["compute_flux"]) == "29/2.1"
    assert str(printed("turing")["wfg"]["compute_flux"]) == "83/10.0"  # printed under MWP-CWP_corr


def test_a_model_that_does_not_apply_has_no_error() -> None:
    assert set(errors_of(TABLE_9[0], "pascal", ("roofline", "volkov_contention", "volkov"))) == {"roofline", "volkov"}


@pytest.mark.parametrize("gpu", first(("turing", "pascal", "maxwell")))
def test_the_page_shows_what_the_benchmark_prints(gpu: str) -> None:
    page = (FOLDER.parents[4] / "docs" / "abstract-kernels.md").read_text(encoding="utf-8")
    shown = "\n".join(f"    {line}".rstrip() for line in report(gpu, against_simulation(gpu), False))
    assert shown in page


@pytest.mark.exhaustive
def test_what_gpumech_exceeds_is_the_roof(capsys: pytest.CaptureFixture[str]) -> None:
    """Capped there, its error is near Volkov's; without, several times that. The page shows what is printed."""
    page = (FOLDER.parents[4] / "docs" / "abstract-kernels.md").read_text(encoding="utf-8")
    lines = readings("maxwell")
    assert "\n".join(f"    {line}".rstrip() for line in lines) in page
    as_drywarp, _, _, capped = (line.split()[-2:] for line in lines[3:7])
    volkov = average(against_simulation("maxwell", ("volkov",))["volkov"]).mape
    for free, held in zip(as_drywarp, capped, strict=True):
        assert float(held.split("/")[0]) < volkov + 3 < float(free.split("/")[0]) / 5
    # The benchmark's readings are those of the models, where these add no contention.
    entry = next(entry for entry in TABLE_9 if entry.kernel == "hotspot")
    work, at, _ = simulated(entry, "maxwell")
    points = get_model("gpumech_gto").predict(work, at).curve
    found = gpumech_curve(work, at, gpumech.gto, (False, False, False))
    assert found == pytest.approx([point.warps_per_cycle for point in points])


def lambdas(tmp_path: Path, keys: str, gpu: str = GPUS[0]) -> tuple[float, float]:
    path = tmp_path / "mine.toml"
    path.write_text(
        'format = 1\ntitle = "t"\nprogram = [{ id = "i", class = "c" }]\n[classes.c]\n' + keys, encoding="utf-8"
    )
    (node,) = load_workload(str(path), load_gpu(gpu)).paths[0].nodes
    return node.lambda_ticks / TICKS_PER_CYCLE, node.latency_ticks / TICKS_PER_CYCLE


def test_where_accesses_are_served(tmp_path: Path) -> None:
    """λ and Λ of Table 5 (Pascal: 12/345 and 1/25), scaled as in §6.3."""
    memory = 'kind = "memory"\nfrom = "ld_global_s32"\ncached = ["l3", "ld_global_l2"]\ndram_ratio = '
    assert lambdas(tmp_path, memory + "1") == (12, 345)
    assert lambdas(tmp_path, memory + "3") == (36, 345 + 2 * 12)
    assert lambdas(tmp_path, memory + "0.5") == pytest.approx((0.5 * 12 + 0.5 * 3.22, (345 + 181) / 2), abs=1 / 240)
    assert lambdas(tmp_path, memory + "0.5", "papers/analysis-kepler") == (7.5, 300)  # has no L2 of its own
    assert lambdas(tmp_path, 'kind = "shared"\nfrom = "ld_local_s32"\nconflicts = 7') == (8, 25 + 7)


@pytest.mark.parametrize(("key", "value"), [("dram_ratio", -1), ("dram_ratio", 300), ("conflicts", 32)])
def test_impossible_shares(tmp_path: Path, key: str, value: int) -> None:
    with pytest.raises(InputFileError, match=rf"classes\.c\.{key}: expected a number from 0 to"):
        lambdas(tmp_path, f'kind = "memory"\nfrom = "ld_global_s32"\n{key} = {value}')


CYCLES = st.tuples(st.floats(0.1, 100), st.floats(1, 1000))


@given(st.floats(0, 10), CYCLES, CYCLES)
def test_both_cases_of_dram_meet_at_one(ratio: float, dram: tuple[float, float], cache: tuple[float, float]) -> None:
    lambda_, latency = global_lambdas(ratio, dram, cache)
    if ratio < 1:
        for value, far, near in ((lambda_, dram[0], cache[0]), (latency, dram[1], cache[1])):
            assert min(far, near) * (1 - 1e-9) <= value <= max(far, near) * (1 + 1e-9)
    else:
        assert lambda_ >= dram[0]
        assert latency >= dram[1]
        assert latency - dram[1] == pytest.approx(lambda_ - dram[0], abs=1e-6)
    assert global_lambdas(1 - 1e-12, dram, cache) == pytest.approx(global_lambdas(1, dram, cache))


@given(st.floats(0, 31), CYCLES)
def test_a_conflict_delays_by_what_it_occupies(degree: float, local: tuple[float, float]) -> None:
    lambda_, latency = local_lambdas(degree, local)
    assert latency - local[1] == pytest.approx(lambda_ - local[0], abs=1e-6)
