"""The GPUs of the five papers: their tables, and what their models' worked examples need."""

from __future__ import annotations

import pytest

from drywarp.hardware import gpu_names, load_gpu

PAPERS = [name for name in gpu_names() if name.startswith("papers/")]


def costs(name: str) -> dict[str, tuple[float, float | None]]:
    return {class_: (cost.lambda_, cost.latency) for class_, cost in load_gpu(f"papers/{name}").classes.items()}


def test_all_are_there() -> None:
    volkov = [f"volkov-{g}" for g in ("fermi", "g80", "gt200", "kepler", "maxwell")]
    analysis = [f"analysis-{g}" for g in ("fermi", "kepler", "maxwell", "pascal", "tonga", "turing")]
    others = ["c2050", "cornelis-fermi", "cornelis-pascal", "example", "gpumech", "mwp-cwp-example"]
    hong_kim = ["8800gt", "8800gtx", "fx5600", "gtx280"]
    assert [name.removeprefix("papers/") for name in PAPERS] == sorted([*volkov, *analysis, *others, *hong_kim])


@pytest.mark.parametrize("name", PAPERS)
def test_they_are_the_pipeline_models(name: str) -> None:
    gpu = load_gpu(name)
    assert gpu.abstract_only
    assert (gpu.scheduler.partitions, gpu.scheduler.policy, gpu.scheduler.in_order) == (1, "loose_round_robin", False)
    assert all(subsystem.scope == "sm" for subsystem in gpu.subsystems.values())
    limit = gpu.scheduler.issue_per_cycle
    assert limit is None or all(cost.lambda_ * limit >= 1 for cost in gpu.classes.values())
    assert {cost.subsystem for cost in gpu.classes.values()} == set(gpu.subsystems)


@pytest.mark.parametrize(
    ("name", "issue", "mul", "cos"),
    [("fermi", 1, 1, 8), ("kepler", 4, 0.25, 1), ("maxwell", 4, 0.375, 1), ("pascal", 4, 0.25, 1),
     ("turing", 2, 0.5, 2), ("tonga", 1, 1, 5)],
)  # fmt: skip
def test_table_4_of_the_analysis_paper(name: str, issue: float, mul: float, cos: float) -> None:
    gpu = load_gpu(f"papers/analysis-{name}")
    assert gpu.scheduler.issue_per_cycle == issue
    assert (gpu.classes["mul_f32"].lambda_, gpu.classes["cos_apx_f32"].lambda_) == (mul, cos)


def test_table_5_of_the_analysis_paper() -> None:
    assert costs("analysis-pascal") == {
        "cos_apx_f32": (1, 15), "mul_f32": (0.25, 6), "mul_f64": (8, 43), "mul_s32": (0.75, 12),
        "div_f32": (0.75, 18), "div_f64": (47, 376), "div_s32": (5, 100), "bar_sync": (2.25, 70),
        "ld_global_s32": (12, 345), "ld_local_s32": (1, 25),
    }  # fmt: skip
    assert "div_f64" not in costs("analysis-turing")
    for name in ("fermi", "kepler", "maxwell", "pascal", "turing"):  # "for all NVIDIA GPUs" the ratio is 3
        table = costs(f"analysis-{name}")
        assert table["div_f32"][0] / table["mul_f32"][0] == 3
    for name, ratio in (("fermi", 2), ("kepler", 16), ("maxwell", 20), ("pascal", 32), ("turing", 38), ("tonga", 8)):
        table = costs(f"analysis-{name}")
        assert table["mul_f64"][0] / table["mul_f32"][0] == ratio


@pytest.mark.parametrize("name", ["fermi", "kepler", "maxwell", "pascal", "turing"])
def test_table_6_follows_from_table_5(name: str) -> None:
    """Throughput is SMs · warp size · 4 bytes / λ of ld.global · clock."""
    gpu = load_gpu(f"papers/analysis-{name}")
    bytes_per_cycle = gpu.parameter("sm_count") * gpu.parameter("warp_size") * 4 / gpu.classes["ld_global_s32"].lambda_
    assert bytes_per_cycle * gpu.parameter("clock_mhz") / 1000 == pytest.approx(
        gpu.parameter("memory_reached_gbs"), rel=2e-3
    )


def test_tonga_is_one_pipeline_of_64_lanes() -> None:
    gpu = load_gpu("papers/analysis-tonga")
    assert gpu.classes["cos_apx_f32"].subsystem == gpu.classes["mul_f32"].subsystem
    assert gpu.parameters.warp_size == 64


def test_tables_2_and_3_of_the_pipeline_models_paper() -> None:
    fermi, pascal = costs("cornelis-fermi"), costs("cornelis-pascal")
    assert (fermi["fadd"], fermi["cos"], fermi["loop"], fermi["memory"]) == ((1, 18), (8, 40), (4, 58), (23, 521))
    assert (pascal["fadd"], pascal["cos"], pascal["loop"]) == ((0.25, 6), (1, 14), (1.75, 29))
    assert pascal["memory"] == (12, 378)
    assert [fermi[f"matrix_{m}"] for m in ("a_8x8", "b_8x8", "a_16x16", "b_16x16")] == [
        (20, 162), (45, 479), (13, 244), (17, 561),
    ]  # fmt: skip
    assert (fermi["local_memory_conflict"], pascal["local_memory_conflict"]) == ((16, 250), (7, 100))
    assert load_gpu("papers/cornelis-fermi").scheduler.issue_per_cycle is None


@pytest.mark.parametrize(
    ("name", "mem_lat", "mem_thru", "alu_lat", "alu_thru", "issue_thru"),
    [("g80", 444, 0.0268, 20, 0.25, 0.5), ("gt200", 434, 0.0277, 24, 0.25, 0.5), ("fermi", 513, 0.0599, 18, 1, 1),
     ("kepler", 301, 0.1338, 9, 4, 4), ("maxwell", 368, 0.0814, 6, 4, 4)],
)  # fmt: skip
def test_table_4_1_of_volkovs_thesis(
    name: str, mem_lat: float, mem_thru: float, alu_lat: float, alu_thru: float, issue_thru: float
) -> None:
    gpu = load_gpu(f"papers/volkov-{name}")
    stream, add = gpu.classes["stream"], gpu.classes["add"]
    assert (stream.latency, add.latency, gpu.scheduler.issue_per_cycle) == (mem_lat, alu_lat, issue_thru)
    assert 1 / add.lambda_ == alu_thru
    assert 1 / stream.lambda_ == pytest.approx(mem_thru, rel=1e-5)
    # Table 6.4's peak is the same throughput in other units.
    per_cycle = gpu.parameter("memory_reached_gbs") * 1000 / gpu.parameter("clock_mhz") / gpu.parameter("sm_count")
    assert per_cycle / 128 == pytest.approx(mem_thru, rel=3e-3)


def test_tables_6_of_volkovs_thesis() -> None:
    assert {name: latency for name, (_, latency) in costs("volkov-maxwell").items()} == {
        "add": 6, "sfu": 13, "smem": 24, "smem2": 26, "stream": 368, "random": 534,
    }  # fmt: skip
    assert costs("volkov-fermi")["smem"] == (2, 26)
    assert costs("volkov-g80")["smem"][0] == pytest.approx(32 / 6, rel=1e-5)
    kepler = load_gpu("papers/volkov-kepler").parameters
    assert (kepler.contention_latency, kepler.contention_slope, kepler.contention_gbs) == (300, 32, 170)
    assert (kepler.ilp_latency, kepler.block_launch_latency, kepler.transaction_latency) == (3, 201, 33)


def test_mwp_cwps_worked_example() -> None:
    """Table 2 up to its memory and computation warp parallelism, from `[parameters]` alone."""
    gpu = load_gpu("papers/mwp-cwp-example").parameters
    values = (gpu.dram_latency, gpu.departure_delay_uncoalesced, gpu.transactions_uncoalesced)
    assert values == (420, 10, 32)
    assert gpu.dram_latency is not None
    assert gpu.departure_delay_uncoalesced is not None
    assert gpu.transactions_uncoalesced is not None
    mem_l = gpu.dram_latency + (gpu.transactions_uncoalesced - 1) * gpu.departure_delay_uncoalesced
    departure = gpu.departure_delay_uncoalesced * gpu.transactions_uncoalesced
    assert (mem_l, departure, round(mem_l / departure, 2)) == (730, 320, 2.28)
    classes = costs("mwp-cwp-example")
    assert (classes["comp"][0], classes["mem_uncoalesced"]) == (4, (departure, mem_l))


@pytest.mark.parametrize(
    ("name", "sms", "mhz", "gbs", "latency", "uncoalesced"),
    [("fx5600", 16, 1350, 76.8, 420, 10), ("8800gtx", 16, 1350, 86.4, 420, 10),
     ("8800gt", 14, 1500, 57.6, 420, 10), ("gtx280", 30, 1300, 141.7, 450, 40)],
)  # fmt: skip
def test_tables_3_and_6_of_hong_and_kim(
    name: str, sms: int, mhz: float, gbs: float, latency: float, uncoalesced: float
) -> None:
    gpu = load_gpu(f"papers/{name}").parameters
    assert (gpu.sm_count, gpu.clock_mhz, gpu.memory_gbs) == (sms, mhz, gbs)
    assert (gpu.dram_latency, gpu.departure_delay_uncoalesced, gpu.departure_delay_coalesced) == (
        latency,
        uncoalesced,
        4,
    )
    assert (gpu.issue_cycles, gpu.transactions_uncoalesced) == (4, None if name == "gtx280" else 32)


def test_table_3_of_gpuperf() -> None:
    gpu = load_gpu("papers/c2050").parameters
    assert (gpu.fp_latency, gpu.dram_latency, gpu.departure_delay) == (18, 440, 20)
    assert (gpu.l1_latency, gpu.l2_latency, gpu.simd_width, gpu.sfu_width) == (18, 130, 32, 4)
    assert (gpu.sm_count, gpu.clock_mhz, gpu.memory_gbs, gpu.transaction_bytes) == (14, 1150, 144, 128)


def test_gpumechs_synthetic_gpu() -> None:
    """The service time of a request is 0.667 cycles, and the utilization at 32 warps 1.14 (Volkov §7.7)."""
    gpu = load_gpu("papers/gpumech")
    service = gpu.parameter("clock_mhz") * gpu.parameter("transaction_bytes") / gpu.parameter("memory_gbs") / 1000
    assert service == pytest.approx(2 / 3)
    warps = gpu.parameter("max_warps_per_sm") * gpu.parameter("sm_count")
    assert service * warps / gpu.parameter("dram_latency") == pytest.approx(1.14, abs=5e-3)
    assert gpu.classes["mem"].lambda_ == pytest.approx(service * gpu.parameter("sm_count"), rel=1e-5)
    assert gpu.parameters.mshrs == 32
