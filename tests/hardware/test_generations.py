"""The packaged GPUs from Volta to Blackwell: what kernels are compiled for, and relations between them."""

from __future__ import annotations

import pytest

from drywarp.hardware import limits_of, load_gpu

from .gpus import GPUS

VOLTA = ("v100", "v100-32gb", "v100-pcie", "titanv")

# Compute capability, and what kernels are compiled for: the oldest that NVRTC 13 knows, or what only this chip has.
PRODUCTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(VOLTA, ("7.0", "sm_75")),
    **dict.fromkeys(("t4", "t4g", "gtx1650", "rtx2060", "rtx2070", "rtx2080ti"), ("7.5", "sm_75")),
    **dict.fromkeys(("a100", "a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-80gb", "a30"), ("8.0", "sm_80")),
    **dict.fromkeys(("rtx3060", "rtx3060ti", "rtx3070", "rtx3070ti", "rtx3080", "rtx3080ti"), ("8.6", "sm_86")),
    **dict.fromkeys(("rtx3090", "a10", "a10g", "a40", "a4000", "a5000", "a6000"), ("8.6", "sm_86")),
    "orin": ("8.7", "sm_87"),
    **dict.fromkeys(("rtx4060", "rtx4060ti", "rtx4070", "rtx4070ti", "rtx4080", "rtx4090"), ("8.9", "sm_89")),
    **dict.fromkeys(("l4", "l40", "l40s", "rtx6000-ada"), ("8.9", "sm_89")),
    **dict.fromkeys(("h100", "h100-pcie", "h100-nvl", "h200", "gh200"), ("9.0", "sm_90a")),
    **dict.fromkeys(("b200", "gb200"), ("10.0", "sm_100a")),
    "b300": ("10.3", "sm_103a"),
    **dict.fromkeys(("rtx5070", "rtx5070ti", "rtx5080", "rtx5090"), ("12.0", "sm_120a")),
}


def test_every_product_is_listed_here() -> None:
    assert set(PRODUCTS) == {name for name, gpu in GPUS.items() if not gpu.is_amd}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_has_the_limits_of_its_compute_capability(name: str) -> None:
    gpu = GPUS[name]
    assert PRODUCTS[name] == (gpu.compute_capability, gpu.arch)
    assert gpu.scheduler.partitions == 4
    assert gpu.occupancy == limits_of(gpu.compute_capability)


def test_only_volta_is_predicted_from_another_architectures_code() -> None:
    assert {name for name, gpu in GPUS.items() if gpu.compiled_for_another} == set(VOLTA)
    assert not load_gpu("papers/example").compiled_for_another


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
    assert (fact.kind, fact.file) == ("inherited", "a100-sxm4-80gb")
    assert fact.value == GPUS["a100-sxm4-80gb"].memory.dram.latency_ns
    assert fact.note.startswith("a100-sxm4-80gb: measured")
    assert GPUS["a100-pcie-80gb"].fact("device.sm_count").kind == "datasheet"


def test_the_figures_that_no_source_supports_are_not_used() -> None:
    """A100's 3 cycles and GB202's 2.44 (IADD3) and 1.76 (LOP3) lie below the ALU pipeline's 4."""
    for name, gpu in GPUS.items():
        for class_ in ("fp32", "int", "imad", "shift", "move", "fp16"):
            latency = gpu.classes[class_].latency
            assert latency is not None
            assert latency >= 4, (name, class_)
