"""Every opcode that real kernels hold has a class, and memory opcodes their space, kind and width."""

from __future__ import annotations

import pytest

from drywarp.kernel.instruction import MemoryAccess
from drywarp.kernel.isa.nvidia.opcodes import CLASSES, class_of, memory_access

# Base opcodes of 2.3 million instructions of public kernels for sm_80 and sm_90.
SEEN = """
    ARRIVES ATOM ATOMG ATOMS B2R BAR BMOV BMSK BPT BRA BREAK BREV BRX BRXU BSSY BSYNC CALL CCTL CGAERRBAR
    CS2R DADD DEPBAR DFMA DMMA DMUL DSETP ENDCOLLECTIVE ERRBAR EXIT F2F F2FP F2I FADD FCHK FENCE FFMA FLO
    FMNMX FMUL FRND FSEL FSET FSETP HADD2 HFMA2 HMMA HMNMX2 HMUL2 HSET2 HSETP2 I2F I2FP IABS IADD3 IDP IMAD
    IMMA IMNMX ISETP LD LDC LDG LDGDEPBAR LDGSTS LDL LDS LDSM LEA LOP3 MATCH MEMBAR MOV MUFU NANOSLEEP NOP P2R
    PLOP3 POPC PRMT QSPC R2P R2UR RED REDG REDUX RET S2R S2UR SEL SHF SHFL ST STG STL STS SULD SUST SYNCS TEX
    TLD UBMSK UBREV UFLO UIADD3 UIMAD UISETP ULDC ULEA ULOP3 UMOV UP2UR UPLOP3 UPOPC UPRMT USEL USHF VABSDIFF4
    VIADD VIADDMNMX VIMNMX VIMNMX3 VOTE VOTEU WARPSYNC YIELD
"""


@pytest.mark.parametrize("opcode", SEEN.split())
def test_no_opcode_of_real_kernels_is_unknown(opcode: str) -> None:
    assert class_of(opcode, ()) in set(CLASSES) - {"unknown"}


def test_an_opcode_that_nobody_knows_is_unknown() -> None:
    assert class_of("FROBNICATE", ()) == "unknown"


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        ("FFMA.FTZ", "fp32"),
        ("FSETP.GEU.AND", "fp32_compare"),
        ("HFMA2.MMA", "fp16"),
        ("DFMA", "fp64"),
        ("LOP3.LUT", "int"),
        ("IMAD.MOV.U32", "imad"),
        ("IMAD.WIDE.U32", "imad_wide"),
        ("IMAD.HI", "imad_wide"),
        ("SHF.R.U32.HI", "shift"),
        ("MUFU.RCP", "sfu"),
        ("F2I.TRUNC.NTZ", "convert"),
        ("F2FP.BF16.PACK_AB", "convert_fast"),
        ("ULDC.64", "uniform"),
        ("USOMETHINGNEW", "uniform"),
        ("HMMA.16816.F32", "tensor"),
        ("LDGSTS.E.BYPASS.128", "async_copy"),
        ("LD.E", "global_load"),
        ("ATOM.E.ADD.STRONG.GPU", "global_atomic"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", "global_atomic"),
        ("ATOMS.POPC.INC.32", "shared_atomic"),
        ("LDC.64", "constant_load"),
        ("BAR.SYNC", "barrier"),
        ("TLD4.SCR.R", "texture"),
        ("SUST.D.BA.2D.128.STRONG.SM", "texture"),
    ],
)
def test_class_of_some_opcodes(full: str, expected: str) -> None:
    opcode, *modifiers = full.split(".")
    assert class_of(opcode, tuple(modifiers)) == expected


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        ("LDG.E", ("global", "load", 4)),
        ("LDG.E.128.CONSTANT", ("global", "load", 16)),
        ("LDG.E.EF.U16", ("global", "load", 2)),
        ("STG.E.U8.STRONG.SYS", ("global", "store", 1)),
        ("LDS.64", ("shared", "load", 8)),
        ("LDSM.16.M88.4", ("shared", "load", 16)),
        ("STL.128", ("local", "store", 16)),
        ("LD.E.64", ("generic", "load", 8)),
        ("ATOMG.E.CAS.64.STRONG.GPU", ("global", "atomic", 8)),
        ("ATOMG.E.MAX.S32.STRONG.GPU", ("global", "atomic", 4)),
        ("RED.E.ADD.F64.RN.STRONG.GPU", ("global", "reduction", 8)),
        ("ATOMS.CAST.SPIN.64", ("shared", "atomic", 8)),
        ("LDGSTS.E.BYPASS.128", ("global", "copy", 16)),
        ("LDGSTS.E.LTC128B", ("global", "copy", 4)),
        ("TEX.SCR.LL", ("texture", "load", 4)),
        ("SULD.D.BA.2D.U8.STRONG.SM.TRAP", ("texture", "load", 1)),
        ("SUST.D.BA.2D.128.STRONG.SM", ("texture", "store", 16)),
    ],
)
def test_memory_access_of_some_opcodes(full: str, expected: tuple[str, str, int]) -> None:
    opcode, *modifiers = full.split(".")
    assert memory_access(opcode, tuple(modifiers)) == MemoryAccess(*expected)


@pytest.mark.parametrize("opcode", ["FFMA", "LDC", "BAR", "TXQ"])
def test_other_opcodes_access_no_memory(opcode: str) -> None:
    assert memory_access(opcode, ()) is None
