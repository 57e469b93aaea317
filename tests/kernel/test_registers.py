"""Which registers an instruction reads and writes, by hand."""

from __future__ import annotations

import pytest

from drywarp.kernel.isa.nvidia.registers import accessed, written
from drywarp.kernel.kernel import Resources
from drywarp.workload.cost_model import matrix_work
from tests.listing import code


def places(names: str) -> set[tuple[str, int]]:
    """`R4 UP1` as kinds and numbers."""
    return {(name.rstrip("0123456789"), int(name.lstrip("URP"))) for name in names.split()}


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("IADD3 R4, R5, 0x1, -R6", "R5 R6", "R4"),
        ("IADD3.64 R4, PT, PT, R6, R8, 0x1", "R6 R7 R8 R9", "R4 R5"),
        ("UIADD3.64 UR4, UPT, UPT, UR4, UR8, UR10", "UR4 UR5 UR8 UR9 UR10 UR11", "UR4 UR5"),
        ("USEL.64 UR4, UR6, UR8, UP1", "UR6 UR7 UR8 UR9 UP1", "UR4 UR5"),
        ("FFMA R4, R4, c[0x0][0x160], RZ", "R4", "R4"),
        ("@P2 MOV R4, R5", "P2 R5", "R4"),
        ("@!UP1 UMOV UR4, UR6", "UP1 UR6", "UR4"),
        ("DFMA R4, R6, R8, R10", "R6 R7 R8 R9 R10 R11", "R4 R5"),
        ("ISETP.GE.AND P0, PT, R4, UR5, P3", "R4 UR5 P3", "P0"),
        ("UISETP.GE.AND UP0, UPT, UR4, UR5, UP3", "UR4 UR5 UP3", "UP0"),
        ("LDG.E.128 R4, [R2.64+0x10]", "R2 R3", "R4 R5 R6 R7"),
        ("STG.E.64 [R2.64], R6", "R2 R3 R6 R7", ""),
        ("LDS.64 R4, [R2]", "R2", "R4 R5"),
        ("IMAD.WIDE R4, R6, 0x4, R8", "R6 R8 R9", "R4 R5"),
        ("HMMA.1688.F32 R4, R8, R10, RZ", "R8 R9 R10", "R4 R5 R6 R7"),
        ("IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, RZ", "R8 R9 R10 R11 R12 R13", "R4 R5 R6 R7"),
        ("QMMA.16832.F16.E4M3.E4M3 R4, R8.ROW, R12.COL, RZ", "R8 R9 R10 R11 R12 R13", "R4 R5"),
        ("HMMA.SP.16816.F16 R4, R8, R10, R12, R2, 0x0", "R2 R8 R9 R10 R11 R12 R13", "R4 R5"),
        ("BMMA.88128.AND.POPC R4, R8.ROW, R9.COL, RZ", "R8 R9", "R4 R5"),
        ("HGMMA.SP.64x8x32.F16 R4, gdesc[UR4], R4, UP0, R9, 0x0, gsb0", "UR4 UR5 UR6 UR7 R4 R5 R9 UP0", "R4 R5"),
        ("P2R R4, PR, RZ, 0x7f", "P0 P1 P2 P3 P4 P5 P6", "R4"),
    ],
)
def test_registers(text: str, reads: str, writes: str) -> None:
    instruction = code(text)[0]
    assert set(accessed(instruction).reads) == places(reads)
    assert set(written(instruction)) == places(writes)


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        ("QMMA.16832.F32.E4M3.E5M2 R4, R8, R12, R4", "fp8"),
        ("QMMA.16832.F32.E2M1.E2M1 R4, R8, R12, R4", "fp8"),
        ("QMMA.SF.16832.F32.E4M3.E5M2.E8 R4, R8, R12, R4, R16, R17, URZ", "fp8_scaled"),
        ("QMMA.SF.16832.F32.E4M3.E2M3.E8 R4, R8, R12, R4, R16, R17, URZ", "fp8"),
        ("OMMA.SF.16864.F32.E2M1.E2M1.E8 R4, R8, R12, R4, R16, R17, URZ", "fp4"),
    ],
)
def test_the_rate_that_a_product_of_small_floats_runs_at(spelled: str, kind: str) -> None:
    assert matrix_work(code(spelled)[0]) == (kind, 16 * 8 * (64 if kind == "fp4" else 32))


def test_a_kernel_that_says_nothing_needs_nothing() -> None:
    nothing = Resources(32, 0)
    assert (nothing.shared_reserved, nothing.local_bytes, nothing.barriers, nothing.max_threads) == (0, 0, 0, 0)
    assert (nothing.spill_bytes, nothing.cluster) == (None, (1, 1, 1))
