"""The packaged GPUs from Volta to Blackwell: spot values against the datasheets, and relations between them."""

from __future__ import annotations

import pytest

from drywarp.hardware import Gpu, gpu_names, limits_of, load_gpu

GPUS = {name: load_gpu(name) for name in gpu_names() if not name.startswith("papers/")}

# Compute capability, compiled for, SMs, base and boost clock, DRAM peak, L2 MiB.
PRODUCTS: dict[str, tuple[str, str, int, float, float, float, float]] = {
    "v100": ("7.0", "sm_75", 80, 1245, 1530, 900, 6),
    "t4": ("7.5", "sm_75", 40, 585, 1590, 320, 4),
    "rtx2070": ("7.5", "sm_75", 36, 1410, 1620, 448, 4),
    "rtx2080ti": ("7.5", "sm_75", 68, 1350, 1545, 616, 5.5),
    "a100": ("8.0", "sm_80", 108, 765, 1410, 1555, 40),
    "a100-sxm4-40gb": ("8.0", "sm_80", 108, 1095, 1410, 1555, 40),
    "a100-sxm4-80gb": ("8.0", "sm_80", 108, 1275, 1410, 2039, 40),
    "a100-pcie-80gb": ("8.0", "sm_80", 108, 1065, 1410, 1935, 40),
    "rtx3090": ("8.6", "sm_86", 82, 1395, 1695, 936.2, 6),
    "a4000": ("8.6", "sm_86", 48, 735, 1560, 448, 4),
    "a6000": ("8.6", "sm_86", 84, 1410, 1800, 768, 6),
    "l4": ("8.9", "sm_89", 58, 795, 2040, 300.1, 48),
    "l40s": ("8.9", "sm_89", 142, 1110, 2520, 864, 96),
    "rtx4090": ("8.9", "sm_89", 128, 2235, 2520, 1008, 72),
    "h100": ("9.0", "sm_90a", 132, 1590, 1980, 3350, 50),
    "h100-pcie": ("9.0", "sm_90a", 114, 1095, 1755, 2039, 50),
    "h200": ("9.0", "sm_90a", 132, 1500, 1980, 4800, 50),
    "b200": ("10.0", "sm_100a", 148, 700, 1965, 8000, 126),
    "rtx5090": ("12.0", "sm_120a", 170, 2017, 2407, 1792, 96),
}


def test_every_product_is_listed_here() -> None:
    assert set(PRODUCTS) == {name for name, gpu in GPUS.items() if not gpu.is_amd}


@pytest.mark.parametrize("name", PRODUCTS)
def test_datasheet(name: str) -> None:
    gpu, device = GPUS[name], GPUS[name].device
    assert PRODUCTS[name] == (
        gpu.compute_capability,
        gpu.arch,
        device.sm_count,
        device.base_clock_mhz,
        device.boost_clock_mhz,
        gpu.memory.dram.peak_gbs,
        gpu.memory.l2.bytes / 2**20,
    )
    assert gpu.scheduler.partitions == 4
    assert gpu.occupancy == limits_of(gpu.compute_capability)


def test_only_volta_is_predicted_from_another_architectures_code() -> None:
    assert [name for name, gpu in GPUS.items() if gpu.compiled_for_another] == ["v100"]
    assert not load_gpu("papers/example").compiled_for_another


def results(gpu: Gpu, class_: str) -> float:
    """Results per clock and SM."""
    cost = gpu.classes[class_]
    return 32 / cost.lambda_ * (4 if gpu.subsystems[cost.subsystem].scope == "partition" else 1)


# NVIDIA's throughput tables, packed fp16 halved by hand; fp64 is 1/2, 1/32 or 1/64 of fp32.
RATES: dict[str, dict[str, float]] = {
    "v100": {"fp32": 64, "fp16": 64, "fp64": 32, "int": 64, "imad": 64, "sfu": 16, "convert_fast": 16, "bit": 16},
    "t4": {"fp32": 64, "fp16": 64, "fp64": 2, "int": 64, "imad": 64, "sfu": 16, "convert_fast": 16, "shuffle": 32},
    "a100-sxm4-80gb": {"fp32": 64, "fp16": 128, "fp64": 32, "int": 64, "sfu": 16, "convert_fast": 64, "shuffle": 32},
    "rtx3090": {"fp32": 128, "fp16": 64, "fp64": 2, "int": 64, "sfu": 16, "shuffle": 16, "global_load": 16},
    "l40s": {"fp32": 128, "fp16": 64, "fp64": 2, "int": 64, "imad": 64, "sfu": 16, "shuffle": 32},
    "h200": {"fp32": 128, "fp16": 128, "fp64": 64, "int": 64, "imad": 64, "sfu": 16, "global_load": 32},
    "b200": {"fp32": 128, "fp16": 64, "fp64": 64, "int": 64, "imad": 64, "sfu": 16, "shuffle": 32},
    "rtx5090": {"fp32": 128, "fp16": 64, "fp64": 2, "int": 128, "imad": 64, "shift": 64, "vote": 128, "sfu": 16},
}


@pytest.mark.parametrize("name", RATES)
def test_results_per_clock_and_sm(name: str) -> None:
    assert {class_: results(GPUS[name], class_) for class_ in RATES[name]} == RATES[name]


# fp16 on tensor cores without sparsity, as datasheets print it: TFLOPS at a clock in MHz. GeForce cards
# with FP32 accumulation.
TENSOR_TFLOPS = [
    ("v100", 125, 1530), ("t4", 65.1, 1590), ("rtx2080ti", 53.8, 1545), ("a100-sxm4-40gb", 312, 1410),
    ("rtx3090", 71, 1695), ("a6000", 154.8, 1800), ("l4", 121, 2040), ("l40s", 362, 2490),
    ("rtx4090", 165.2, 2520), ("h200", 989.4, 1830), ("rtx5090", 209.5, 2407),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tflops", "mhz"), TENSOR_TFLOPS)
def test_tensor_peak(name: str, tflops: float, mhz: float) -> None:
    gpu = GPUS[name]
    assert 2 * gpu.tensor["fp16"] * 4 * gpu.device.sm_count * mhz * 1e-6 == pytest.approx(tflops, rel=5e-3)


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_tensor_class_is_the_largest_fp16_shape(name: str) -> None:
    gpu = GPUS[name]
    k = 8 if gpu.arch == "sm_75" else 16
    assert gpu.classes["tensor"].lambda_ == gpu.tensor_lambda("fp16", 16, 8, k)


# Cycles at the clock of the measurement.
LATENCIES = [
    ("v100", "l2", 1380, 212.1), ("rtx2070", "l2", 1620, 236), ("a6000", "l2", 1740, 250.4),
    ("l40s", "l2", 2490, 273.6), ("h100-pcie", "l2", 1755, 265.5), ("rtx5090", "l2", 2300, 366),
    ("v100", "dram", 1380, 430.2), ("rtx2070", "dram", 1620, 472), ("a100-sxm4-40gb", "dram", 1410, 574),
    ("a100-sxm4-80gb", "dram", 1410, 552.2), ("rtx4090", "dram", 2520, 571), ("h100-pcie", "dram", 1755, 653.8),
]  # fmt: skip


@pytest.mark.parametrize(("name", "level", "mhz", "cycles"), LATENCIES)
def test_latencies_in_cycles(name: str, level: str, mhz: float, cycles: float) -> None:
    gpu = GPUS[name]
    ns = gpu.memory.l2.near_latency_ns if level == "l2" else gpu.memory.dram.latency_ns
    assert gpu.cycles(ns, mhz) == pytest.approx(cycles, rel=1e-3)


@pytest.mark.parametrize("name", PRODUCTS)
def test_levels_lie_in_order(name: str) -> None:
    gpu = GPUS[name]
    memory = gpu.memory
    assert memory.shared.latency < memory.l1.latency + 10
    assert memory.l1.latency < gpu.cycles(memory.l2.near_latency_ns)
    assert memory.l2.far_latency_ns < memory.dram.latency_ns
    assert 0.6 <= memory.dram.copy_gbs / memory.dram.peak_gbs <= 1
    assert gpu.bytes_per_cycle(memory.dram.peak_gbs) < memory.l2.bytes_per_cycle
    assert memory.l2.bytes_per_cycle < gpu.device.sm_count * memory.l1.bytes_per_cycle


def test_a_sibling_is_named_where_its_value_is_taken_over() -> None:
    fact = GPUS["a100-pcie-80gb"].fact("memory.dram.latency_ns")
    assert (fact.kind, fact.file, fact.value) == ("inherited", "a100-sxm4-80gb", 391.6)
    assert fact.note.startswith("a100-sxm4-80gb: measured")
    assert GPUS["a100-pcie-80gb"].fact("device.sm_count").kind == "datasheet"


def test_the_figures_that_no_source_supports_are_not_used() -> None:
    """A100's 3 cycles and GB202's 2.44 (IADD3) and 1.76 (LOP3) lie below the ALU pipeline's 4."""
    for name, gpu in GPUS.items():
        for class_ in ("fp32", "int", "imad", "shift", "move", "fp16"):
            latency = gpu.classes[class_].latency
            assert latency is not None
            assert latency >= 4, (name, class_)
