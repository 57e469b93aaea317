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


TABLE_5 = """
              fermi    kepler    maxwell    pascal   turing   tonga
cos.apx.f32   8/40     1/18      1/15       1/15     2/21     5/24
mul.f32       1/18     0.25/9    0.375/6    0.25/6   0.5/4    1/5.25
mul.f64       2/22     4/22      7.5/42     8/43     19/45    8/76
mul.s32       2/18     0.5/5     0.875/12.5 0.75/12  0.25/2   1/5.25
div.f32       3/45     0.75/28.5 1.125/20   0.75/18  1.5/12.5 2.25/14
div.f64       19/253   26/260    47/376     47/376   -        155/740
div.s32       20/200   3/96      7/105      5/100    5/65     24/192
bar.sync      2/40     0.75/24   4.5/125    2.25/70  1.5/17   7.5/150
ld.global.s32 23/475   7.5/300   18/440     12/345   18/450   42/136
ld.local.s32  2/28     1/28      1/28       1/25     2/32     2/60
"""


def test_table_5_of_the_analysis_paper() -> None:
    heads, *rows = (line.split() for line in TABLE_5.strip().splitlines())
    for column, name in enumerate(heads, 1):
        table = costs(f"analysis-{name}")
        printed = {row[0].replace(".", "_"): row[column] for row in rows if row[column] != "-"}
        assert set(table) - {"ld_global_l2"} == set(printed)  # the L2's are from elsewhere
        for class_, text in printed.items():
            lambda_, latency = map(float, text.split("/"))
            # Turing's 0.25 for mul.s32 is more than two instructions a cycle.
            least = 1 / (load_gpu(f"papers/analysis-{name}").scheduler.issue_per_cycle or 1)
            assert table[class_] == (max(lambda_, least), latency), (name, class_)
    for name in ("fermi", "kepler", "maxwell", "pascal", "turing"):  # "for all NVIDIA GPUs" the ratio is 3
        table = costs(f"analysis-{name}")
        assert table["div_f32"][0] / table["mul_f32"][0] == 3


# The memory's clock in MHz as TechPowerUp prints it, transfers a clock, bits: DDR2 and GDDR3 2, GDDR5 4, GDDR6 8.
PINS = {
    "analysis-fermi": (750, 4, 384), "analysis-kepler": (1350, 4, 128), "analysis-maxwell": (900, 2, 128),
    "analysis-pascal": (2002, 4, 192), "analysis-turing": (1750, 8, 256), "analysis-tonga": (1375, 4, 256),
    "volkov-g80": (900, 2, 384), "volkov-gt200": (1107, 2, 512), "volkov-fermi": (924, 4, 384),
    "volkov-kepler": (1502, 4, 256), "volkov-maxwell": (1753, 4, 256), "c2050": (750, 4, 384),
    "8800gtx": (900, 2, 384), "fx5600": (800, 2, 384), "8800gt": (900, 2, 256), "gtx280": (1107, 2, 512),
}  # fmt: skip


@pytest.mark.parametrize("name", PINS)
def test_bandwidth_of_the_pins(name: str) -> None:
    mhz, transfers, bits = PINS[name]
    # The papers round to whole GB/s at the most: 29 of 28.8.
    assert load_gpu(f"papers/{name}").parameter("memory_gbs") == pytest.approx(mhz * transfers * bits / 8000, rel=0.01)


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


# Ops a cycle and scheduler (Table 6.1), 32 an instruction; and latencies in cycles (Table 6.2), of each class.
VOLKOV = ["add", "sfu", "smem", "smem2", "stream", "random"]
TABLES_6 = {
    "g80": (1, [8, 2, 6, 3, 0.86, 0.027], [20, 32, 38, 54, 444, 644]),
    "gt200": (1, [8, 2, 8, 4, 0.89, 0.016], [24, 34, 40, 56, 434, 662]),
    "fermi": (2, [16, 2, 8, 4, 0.97, 0.029], [18, 22, 26, 58, 513, 1571]),
    "kepler": (4, [32, 8, 8, 4, 1.07, 0.034], [9, 9, 24, 56, 301, 1213]),
    "maxwell": (4, [32, 8, 8, 4, 0.65, 0.023], [6, 13, 24, 26, 368, 534]),
}


@pytest.mark.parametrize("name", TABLES_6)
def test_tables_6_1_and_6_2_of_volkovs_thesis(name: str) -> None:
    schedulers, ops, latencies = TABLES_6[name]
    table, parameters = costs(f"volkov-{name}"), load_gpu(f"papers/volkov-{name}").parameters
    assert list(table) == VOLKOV
    assert [latency for _, latency in table.values()] == latencies
    assert parameters.warp_schedulers == schedulers
    for class_, printed in zip(VOLKOV, ops, strict=True):
        # Table 4.1 gives the streams' with more digits.
        rounded = {"rel": 0.015} if class_ == "stream" else {"rel": 1e-5}
        assert table[class_][0] == pytest.approx(32 / printed / schedulers, **rounded), class_
    assert (parameters.fp_latency, parameters.dram_latency) == (latencies[0], latencies[4])


@pytest.mark.parametrize(
    ("name", "a", "b", "c", "reached"),
    [("g80", 453, 61, 81, 74), ("gt200", 438, 17, 140, 138), ("fermi", 501, 41, 170, 161),
     ("kepler", 300, 32, 170, 154), ("maxwell", 372, 22, 221, 211)],
)  # fmt: skip
def test_table_6_5_of_volkovs_thesis(name: str, a: float, b: float, c: float, reached: float) -> None:
    has = load_gpu(f"papers/volkov-{name}").parameters
    assert (has.contention_latency, has.contention_slope, has.contention_gbs) == (a, b, c)
    assert has.memory_reached_gbs == reached


# Warps of an SM at most and CUDA cores of a scheduler (Chapter 2), and the cycles of each further transaction of a
# diverging access (section 6.7).
@pytest.mark.parametrize(
    ("name", "warps", "cores", "transaction"),
    [("g80", 24, 8, 6.7), ("gt200", 32, 8, 7.6), ("fermi", 48, 16, 34), ("kepler", 64, 48, 33),
     ("maxwell", 64, 32, 5.9)],
)  # fmt: skip
def test_an_sm_of_volkovs_thesis(name: str, warps: int, cores: int, transaction: float) -> None:
    has = load_gpu(f"papers/volkov-{name}").parameters
    schedulers, ops, latencies = TABLES_6[name]
    assert (has.warp_size, has.max_warps_per_sm, has.simd_width) == (32, warps, cores * schedulers)
    assert has.sfu_width == ops[1] * schedulers
    assert has.transaction_latency == pytest.approx(transaction)
    # All 32 lanes of a diverging access have their own: 31 more than a coalesced one.
    spread = (latencies[5] - latencies[4]) / 31
    assert spread == pytest.approx(transaction, rel=0.15)


def test_latencies_of_instructions_in_flight() -> None:
    kepler, fermi = (load_gpu(f"papers/volkov-{name}").parameters for name in ("kepler", "fermi"))
    assert (kepler.ilp_latency, kepler.block_launch_latency) == (3, 201)
    assert (fermi.ilp_latency, fermi.store_ilp_latency) == (6, 34)
    assert (fermi.branch_taken_latency, fermi.branch_untaken_latency) == (32, 28)


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


@pytest.mark.parametrize("name", ["fx5600", "8800gtx", "8800gt", "gtx280", "mwp-cwp-example"])
def test_classes_follow_from_hong_and_kims_parameters(name: str) -> None:
    """Issue_cycles are 4; a coalesced access is 128 bytes of the SM's share of the bandwidth, an uncoalesced one 32."""
    gpu = load_gpu(f"papers/{name}")
    has, table = gpu.parameters, costs(name)
    assert gpu.scheduler.issue_per_cycle == 1 / gpu.parameter("issue_cycles") == 1 / 4
    assert table["comp"] == (4, 4)
    assert (has.warp_size, has.transaction_bytes, has.transactions_coalesced) == (32, 4 * 32, 1)
    share = gpu.parameter("memory_gbs") * 1000 / gpu.parameter("clock_mhz") / gpu.parameter("sm_count")
    assert table["mem_coalesced"] == (pytest.approx(max(128 / share, 4), rel=1e-5), has.dram_latency)
    if "mem_uncoalesced" in table:
        delay = gpu.parameter("departure_delay_uncoalesced")
        assert table["mem_uncoalesced"] == (32 * delay, gpu.parameter("dram_latency") + 31 * delay)
    if name == "mwp-cwp-example":
        assert (has.sm_count, has.clock_mhz, has.memory_gbs) == (16, 1000, 80)
        return
    factors = (has.factor_fp_divide, has.factor_int_multiply, has.factor_int_divide, has.factor_modulo)
    assert factors == (4.2, 4.3, 30, 35)  # Table 1's M_Factor, measured


def test_classes_follow_from_the_parameters_of_gpuperf_and_gpumech() -> None:
    c2050, gpumech = load_gpu("papers/c2050"), load_gpu("papers/gpumech")
    has = c2050.parameters
    assert (has.warp_size, c2050.scheduler.issue_per_cycle, gpumech.scheduler.issue_per_cycle) == (32, 1, 1)
    assert costs("c2050")["fp"] == (32 / c2050.parameter("simd_width"), has.fp_latency)
    assert costs("c2050")["sfu"] == (32 / c2050.parameter("sfu_width"), 40)  # 40 as in Table 5 of the analysis paper
    assert costs("c2050")["mem"] == (has.departure_delay, has.dram_latency)
    # 64 KiB of an SM are 16 for L1 and 48 shared; the C2050 has 768 KiB of L2.
    assert (has.l1_bytes, has.shared_bytes, has.l2_bytes) == (16 * 1024, 48 * 1024, 768 * 1024)
    assert gpumech.parameters.warp_size == 32
    assert costs("gpumech")["fp"] == (1, gpumech.parameters.fp_latency) == (1, 25)
    assert costs("gpumech")["mem"][1] == gpumech.parameters.dram_latency == 300


def test_tonga_as_llvm_and_its_datasheet_have_it() -> None:
    """28 compute units at 1008 MHz; 10 waves on each of 4 SIMDs, 256 KiB of vector registers, 512 KiB of L2."""
    gpu = load_gpu("papers/analysis-tonga")
    has, code = gpu.occupancy, gpu.machine_code
    assert (gpu.device.sm_count, gpu.device.boost_clock_mhz) == (28, 1008)
    assert (gpu.parameters.sm_count, gpu.parameters.clock_mhz) == (28, 1008)
    # λ of ld.global is 42 cycles for 64 lanes of 4 bytes.
    assert gpu.parameters.memory_reached_gbs == pytest.approx(28 * 64 * 4 / 42 * 1.008, rel=2e-3)
    assert has.max_warps_per_sm == has.max_blocks_per_sm == 4 * 10
    assert (has.registers_per_sm, has.max_registers_per_thread) == (256 * 1024 / 4, 256)
    assert (has.register_allocation_unit, has.warp_allocation_granularity, has.warp_check_granularity) == (4 * 64, 4, 1)
    assert (has.scalar_registers_per_partition, has.scalar_register_unit) == (800, 16)
    assert (has.max_multiwarp_blocks_per_sm, has.max_threads_per_block) == (16, 1024)
    assert has.max_block_extent == (1024,) * 3
    assert has.max_grid_extent == (2**32 - 1,) * 3
    assert (has.shared_bytes_per_block_default, has.shared_allocation_unit) == (32 * 1024, 4 * 128)
    assert code is not None
    assert (code.l1_bytes, code.l2_bytes) == (16 * 1024, 512 * 1024)
    assert (code.line_bytes, code.transaction_bytes, code.shared_banks) == (64, 64, 32)
    assert gpu.device.block_launch_latency == load_gpu("papers/volkov-kepler").parameters.block_launch_latency
