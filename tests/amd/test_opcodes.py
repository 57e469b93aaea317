"""Classes, memory accesses, registers and matrix shapes, over every instruction that LLVM knows for three targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drywarp.hardware import load_gpu
from drywarp.kernel.isa.amd import is_amd
from drywarp.kernel.isa.amd.opcodes import class_of, matrix_shape, memory_access, operations
from drywarp.kernel.isa.nvidia.opcodes import CLASSES

_ENCODING = re.compile(r"_(e32|e64|dpp8?|sdwa|e64_dpp)$")


def known(target: str) -> list[str]:
    lines = (Path(__file__).parent / "mnemonics.txt").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return [_ENCODING.sub("", name) for name, *targets in rows if target in targets]


@pytest.mark.parametrize("target", ["802", "90a", "942"])
def test_every_instruction_has_a_class(target: str) -> None:
    names = known(target)
    assert len(names) > 1100
    assert {class_of(name) for name in names} <= set(CLASSES)
    # Exports go to a rasteriser; no compute kernel has them.
    assert {name for name in names if class_of(name) == "unknown"} <= {"exp"}


@pytest.mark.parametrize("gpu", ["mi210", "mi300x"])
def test_every_class_has_a_cost(gpu: str) -> None:
    needed = {class_of(name) for name in known("90a" if gpu == "mi210" else "942")} - {"unknown"}
    assert needed <= set(load_gpu(gpu).classes) | {"tensor"}


def test_amd_opcodes_are_told_from_nvidias() -> None:
    assert all(is_amd(name) for target in ("802", "90a", "942") for name in known(target))
    assert not any(is_amd(name) for name in ("FFMA", "LDG", "S2R", "BRA", "VOTE"))


@pytest.mark.parametrize(
    ("opcode", "class_"),
    [
        ("v_fmac_f32", "fp32"), ("v_pk_fma_f32", "fp32"), ("v_fma_f64", "fp64"), ("v_pk_fma_f16", "fp16"),
        ("v_rcp_f32", "sfu"), ("v_sqrt_f64", "sfu"), ("v_add_co_u32", "int"), ("v_mul_lo_u32", "imad_wide"),
        ("v_mad_u32_u24", "imad"), ("v_lshlrev_b32", "shift"), ("v_mov_b32", "move"), ("v_cmp_lt_f32", "fp32_compare"),
        ("v_mfma_f32_32x32x8f16", "tensor"), ("v_cvt_f32_i32", "convert_fast"), ("v_cvt_f64_i32", "convert"),
        ("s_add_u32", "uniform"), ("s_load_dwordx2", "constant_load"), ("s_cbranch_scc1", "branch"),
        ("s_barrier", "barrier"), ("s_waitcnt", "nop"), ("ds_read_b64", "shared_load"),
        ("ds_write2_b32", "shared_store"),
        ("ds_add_u32", "shared_atomic"), ("ds_bpermute_b32", "shuffle"), ("global_load_dwordx4", "global_load"),
        ("buffer_store_short", "global_store"), ("scratch_load_dword", "local_load"),
        ("global_load_lds_dword", "async_copy"), ("global_atomic_add_f32", "global_atomic"), ("image_load", "texture"),
        ("buffer_wbinvl1", "fence"), ("v_nobody_knows", "unknown"),
    ],
)  # fmt: skip
def test_classes(opcode: str, class_: str) -> None:
    assert class_of(opcode) == class_


@pytest.mark.parametrize(
    ("opcode", "modifiers", "access"),
    [
        ("global_load_dwordx4", (), ("global", "load", 16)),
        ("global_load_ubyte", (), ("global", "load", 1)),
        ("global_load_short_d16_hi", (), ("global", "load", 2)),
        ("flat_store_dwordx2", (), ("generic", "store", 8)),
        ("buffer_load_format_d16_xyzw", (), ("global", "load", 8)),
        ("ds_read_b128", (), ("shared", "load", 16)),
        ("ds_read2_b64", (), ("shared", "load", 8)),
        ("ds_write_b8", (), ("shared", "store", 1)),
        ("ds_add_rtn_u32", (), ("shared", "atomic", 4)),
        ("ds_add_u64", (), ("shared", "reduction", 8)),
        ("global_atomic_add", (), ("global", "reduction", 4)),
        ("global_atomic_add", ("glc",), ("global", "atomic", 4)),
        ("global_atomic_add_x2", ("sc0",), ("global", "atomic", 8)),
        ("scratch_store_dwordx3", (), ("local", "store", 12)),
    ],
)
def test_memory_accesses(opcode: str, modifiers: tuple[str, ...], access: tuple[str, str, int]) -> None:
    found = memory_access(opcode, modifiers)
    assert found is not None
    assert (found.space, found.kind, found.width) == access


@pytest.mark.parametrize("target", ["90a", "942"])
def test_every_matrix_instruction_is_understood(target: str) -> None:
    names = [name for name in known(target) if name.startswith(("v_mfma", "v_smfmac"))]
    assert len(names) > 20
    assert all(matrix_shape(name) is not None for name in names)


# Peak TFLOPS (TOPS) of the data sheets: rocm_specs and AMD's product pages, as the GPU files cite them.
PEAKS = [
    ("mi210", "fp16", 181.0), ("mi210", "bf16", 181.0), ("mi210", "int8", 181.0), ("mi210", "fp32", 45.3),
    ("mi210", "fp64", 45.3), ("mi300x", "fp16", 1307.4), ("mi300x", "bf16", 1307.4), ("mi300x", "int8", 2614.9),
    ("mi300x", "fp8", 2614.9), ("mi300x", "tf32", 653.7), ("mi300x", "fp32", 163.4), ("mi300x", "fp64", 163.4),
    ("mi250x", "fp16", 191.5), ("mi250x", "fp64", 47.87), ("mi300a", "fp16", 980.6), ("mi300a", "fp64", 122.6),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "peak"), PEAKS)
def test_matrix_rates_make_the_data_sheets_peaks(name: str, kind: str, peak: float) -> None:
    gpu = load_gpu(name)
    per_cycle = 2 * gpu.tensor[kind] * gpu.scheduler.partitions
    assert per_cycle * gpu.device.sm_count * gpu.device.boost_clock_mhz * 1e6 / 1e12 == pytest.approx(peak, rel=2e-3)


@pytest.mark.parametrize(("name", "peak"), [("mi210", 22.6), ("mi300x", 81.7), ("mi250x", 23.94), ("mi300a", 61.3)])
def test_vector_rates_make_the_data_sheets_peaks(name: str, peak: float) -> None:
    """Without packing, which the data sheets of CDNA3 count twice: 163.4 is 2 · 81.7."""
    gpu = load_gpu(name)
    per_cycle = gpu.scheduler.partitions / gpu.classes["fp32"].lambda_ * gpu.occupancy.warp_size * 2
    assert per_cycle * gpu.device.sm_count * gpu.device.boost_clock_mhz * 1e6 / 1e12 == pytest.approx(peak, rel=2e-3)


def test_floating_point_operations_per_lane() -> None:
    counted = {name: operations(name) for target in ("802", "90a", "942") for name in known(target)}
    assert {counted[name] for name in ("v_add_f64", "v_mul_legacy_f32", "v_subrev_f16")} == {1}
    assert {
        counted[name] for name in ("v_fma_f32", "v_fmac_f64", "v_madak_f32", "v_fma_mixlo_f16", "v_pk_add_f16")
    } == {2}
    assert counted["v_pk_fma_f32"] == 4
    assert all(class_of(name) in ("fp16", "fp32", "fp64") for name, number in counted.items() if number)
