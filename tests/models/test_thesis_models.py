"""Models that the thesis reviews in §§4.8-4.13 and its own under load, on the α-mix."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.experiments.reproduce.volkov_kernels import GENERATIONS, alpha_mix, chain, volkov_gpu
from drywarp.models import NotApplicable, get_model
from drywarp.models.cusp import contention_of, mix_of
from drywarp.models.first_order import chi_1, chi_2, chi_3
from drywarp.models.types_alone import adds_per_cycle, time_added
from drywarp.models.volkov_contention import FIT, REFINED, memory_throughput
from drywarp.workload.cost import CostedWorkload

GROUPS = 8
positive = st.floats(0.1, 1000)


def with_parameters(generation: str, alpha: int) -> CostedWorkload:
    gpu = volkov_gpu(generation)
    given = {name: getattr(gpu.parameters, name) for name in (*FIT, *REFINED)}
    work = alpha_mix(gpu, alpha, GROUPS)
    return replace(
        work,
        parameters={name: value for name, value in given.items() if value is not None},
        sm_count=int(gpu.parameter("sm_count")),
        max_blocks_per_sm=int(gpu.parameter("max_warps_per_sm")),
    )


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("alpha", [1, 32, 256])
def test_contention_on_a_workload_is_the_thesis_equation(generation: str, alpha: int) -> None:
    gpu = volkov_gpu(generation)
    fit = contention_of(gpu)
    assert fit is not None
    occupancies = (1, 8, 24)
    curve = get_model("volkov_contention").predict(with_parameters(generation, alpha), occupancies).curve
    for point, n in zip(curve, occupancies, strict=True):
        expected = memory_throughput(mix_of(gpu), fit, n, alpha)
        assert point.warps_per_cycle * GROUPS == pytest.approx(expected, rel=2e-4)


def test_contention_never_beats_the_bounds_without_it() -> None:
    work = with_parameters("kepler", 16)
    loaded = get_model("volkov_contention").predict(work, range(1, 65)).curve
    plain = get_model("volkov").predict(work, range(1, 65)).curve
    # Table 6.5's a is 300 cycles, Λ without load 301.
    assert all(a.warps_per_cycle <= b.warps_per_cycle * 1.004 for a, b in zip(loaded, plain, strict=True))
    assert {point.bound for point in loaded} <= {"latency", "mem"}


def test_contention_says_why_it_does_not_apply() -> None:
    model = get_model("volkov_contention")
    with pytest.raises(NotApplicable, match="contention_latency"):
        model.predict(alpha_mix(volkov_gpu("kepler"), 1), (1,))
    with pytest.raises(NotApplicable, match="no memory instructions"):
        model.predict(chain(volkov_gpu("kepler"), ["add"]), (1,))
    work = with_parameters("kepler", 1)
    path = work.paths[0]
    split = replace(path, nodes=tuple(replace(node, transactions=4) for node in path.nodes))
    with pytest.raises(NotApplicable, match="coalesced"):
        model.predict(replace(work, paths=(split,)), (1,))


def test_isolation_merged_by_maximum_and_by_sum() -> None:
    """§§4.11 and 4.12: too fast at few warps by up to 2; the sum is right there, and too slow at many."""
    gpu, alpha = volkov_gpu("maxwell"), 64
    work = alpha_mix(gpu, alpha, GROUPS)
    mix = mix_of(gpu)
    curves = {
        name: [point.warps_per_cycle * GROUPS for point in get_model(name).predict(work, (1, 64)).curve]
        for name in ("zhang_owens", "kothapalli_max", "kothapalli_sum")
    }
    few, many = mix.memory_throughput(1, alpha), mix.alu_thru / alpha
    assert curves["zhang_owens"] == curves["kothapalli_max"] == pytest.approx([1 / (alpha * 6), many])
    assert curves["kothapalli_sum"][0] == pytest.approx(few)
    assert curves["kothapalli_sum"][1] < many
    assert time_added(2, 3, 5) == 11
    assert adds_per_cycle(4, 8, 3) == 8


def test_shared_memory_is_a_component_of_its_own_for_zhang_and_owens_only() -> None:
    work = chain(volkov_gpu("maxwell"), ["stream", "smem", "smem", *["add"] * 20])
    owens = get_model("zhang_owens").predict(work, (1, 2)).curve
    both = get_model("kothapalli_max").predict(work, (1, 2)).curve
    assert owens[0].cycles_per_run == pytest.approx(368)
    assert both[0].cycles_per_run == pytest.approx(368)
    work = chain(volkov_gpu("maxwell"), [*["smem"] * 5, *["add"] * 20])
    assert get_model("zhang_owens").predict(work, (1,)).curve[0].cycles_per_run == pytest.approx(120)
    assert get_model("kothapalli_max").predict(work, (1,)).curve[0].cycles_per_run == pytest.approx(240)


@given(st.floats(0.001, 1), st.integers(1, 64))
def test_chen_and_aamodts_models_in_order(chi: float, n: int) -> None:
    assert chi_1(chi, n) <= chi_3(chi, n) * (1 + 1e-9)
    assert chi_3(chi, n) <= min(1, chi_2(chi, n)) * (1 + 1e-9)
    assert chi_1(chi, 1) == chi_2(chi, 1) == pytest.approx(chi_3(chi, 1))


@pytest.mark.parametrize(("generation", "schedulers"), [("fermi", 1), ("maxwell", 4), ("g80", 1)])
def test_chen_and_aamodt_on_the_mix(generation: str, schedulers: int) -> None:
    gpu = volkov_gpu(generation)
    work = alpha_mix(gpu, 32, GROUPS)
    alone = get_model("volkov").predict(work, (1,)).curve[0].warps_per_cycle
    one, two, three = (get_model(f"chen_aamodt_{k}").predict(work, (1, 2, 24)).curve for k in (1, 2, 3))
    assert [point.warps_per_cycle / alone for point in one] == pytest.approx([1, 1, 1])
    assert [point.warps_per_cycle / alone for point in two] == pytest.approx([1, 2, 24])
    assert three[0].warps_per_cycle == pytest.approx(alone)
    assert three[2].warps_per_cycle < two[2].warps_per_cycle
    issue = gpu.scheduler.issue_per_cycle or 0
    assert three[2].warps_per_cycle * GROUPS * 33 <= issue
    assert (three[1].warps_per_cycle < 2 * alone * (1 - 1e-9)) == (schedulers == 1)


def test_the_cuda_guide_speaks_from_the_needed_occupancy_on() -> None:
    gpu = volkov_gpu("maxwell")
    work = alpha_mix(gpu, 64, GROUPS)
    prediction = get_model("cuda_guide").predict(work, range(1, 65))
    assert [point.occupancy_warps for point in prediction.curve] == list(range(23, 65))
    assert all(point.warps_per_cycle * GROUPS * 64 == pytest.approx(4) for point in prediction.curve)
    assert prediction.cycles != prediction.cycles  # one warp: nothing is said
    assert prediction.limiter == "latency"
    enough = get_model("cuda_guide").predict(replace(work, blocks_per_sm=32), range(1, 65))
    assert enough.limiter == "computation"
    assert enough.time_s == pytest.approx(enough.cycles / work.clock_hz)
    assert "23 warps" in prediction.notes[0]
    refined = get_model("cuda_guide_refined").predict(work, range(1, 65))
    assert refined.curve[0].occupancy_warps == 24
    with pytest.raises(NotApplicable, match="23 or more warps"):
        get_model("cuda_guide").predict(work, (1, 22))
    with pytest.raises(NotApplicable, match="bandwidth"):
        get_model("cuda_guide").predict(alpha_mix(gpu, 16, GROUPS), (64,))
    with pytest.raises(NotApplicable, match="both"):
        get_model("cuda_guide").predict(chain(gpu, ["add"]), (64,))
