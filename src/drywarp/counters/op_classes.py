"""Which of Nsight Compute's groups an instruction counts in: `smsp__sass_thread_inst_executed_op_*_pred_on`.

NVIDIA documents the groups in a line each. Which opcode belongs where was settled by arithmetic: for public kernels
whose machine code equals that of published measurements (RTX 2080 Ti), one assignment alone gives every group's
counter to all its digits. `SETTLED` holds the opcodes that occur there, `TAKEN` the rest, placed beside their like.

Facts that surprise: IMAD in all its spellings, moves by IMAD included, and LEA, SHF and LOP3 are integer; FSETP,
FCHK and MUFU are fp32; MOV, S2R, CS2R, BMOV and BAR are misc, BSSY and BSYNC control; LDC is memory; PLOP3, P2R and the
uniform datapath count in no group.
"""

from __future__ import annotations

from ..kernel.instruction import Instruction

GROUPS = ("fp16", "fp32", "fp64", "integer", "control", "memory", "misc", "conversion", "inter_thread_communication")

_SETTLED: dict[str, str] = {
    "fp32": "FADD FMUL FFMA FSETP FCHK MUFU",
    "integer": "IADD3 IMAD LEA LOP3 SHF ISETP IMNMX SEL",
    "control": "BRA CALL RET EXIT BSSY BSYNC",
    "memory": "LDG STG LDS STS LDL STL LDC",
    "misc": "MOV S2R CS2R BMOV BAR",
    "": "PLOP3 P2R",
}
_TAKEN: dict[str, str] = {
    "fp16": "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2 HADD2_32I HFMA2_32I HMUL2_32I",
    "fp32": "FADD32I FMUL32I FFMA32I FADD2 FMUL2 FFMA2 FMNMX FMNMX3 FSEL FSET FSWZADD",
    "fp64": "DADD DMUL DFMA DSETP DMNMX",
    "integer": "IADD IMUL IMADSP ISCADD IADD32I IMAD32I LOP32I LOP SHL SHR ICMP ISET IABS PRMT SGXT BMSK VABSDIFF"
    " VABSDIFF4 IDP IDP4A VIADD VIMNMX VIMNMX3 VIADDMNMX VHMNMX POPC FLO BREV",
    "control": "BRX BRXU JMP JMX JMXU KILL BREAK BPT RTT WARPSYNC YIELD ENDCOLLECTIVE ELECT",
    "memory": "LD ST ATOM ATOMG ATOMS RED REDG REDS LDSM STSM LDGSTS TEX TLD TLD4 TMML TXD TXQ SULD SUST SUATOM SURED"
    " SUQUERY MEMBAR CCTL CCTLL CCTLT",
    "misc": "MOV32I NOP DEPBAR LDGDEPBAR ERRBAR CGAERRBAR NANOSLEEP B2R LEPC PMTRIG SYNCS ARRIVES FENCE WARPGROUP"
    " ACQBULK PREEXIT DEPBARU",
    "conversion": "FRND F2F F2I I2F I2I F2FP I2FP F2IP I2IP",
    "inter_thread_communication": "SHFL VOTE MATCH REDUX CREDUX MOVM",
}
_TENSOR = {
    "HMMA": "fp16",
    "IMMA": "integer",
    "DMMA": "fp64",
    "BMMA": "integer",
    "HGMMA": "fp16",
    "IGMMA": "integer",
    "QGMMA": "fp16",
    "BGMMA": "integer",
}


def _by_opcode(table: dict[str, str]) -> dict[str, str]:
    return {opcode: group for group, opcodes in table.items() for opcode in opcodes.split()}


SETTLED = _by_opcode(_SETTLED)
"""Opcode to group, by counters; ``""`` for those that count in no group."""
TAKEN = {**_by_opcode(_TAKEN), **_TENSOR}
"""Opcode to group, by likeness."""


def group_of(instruction: Instruction) -> str:
    """The group that an instruction's threads count in; ``""`` where they count in none."""
    opcode = instruction.opcode
    known = SETTLED.get(opcode)
    return TAKEN.get(opcode, "") if known is None else known
