"""Instruction classes: what a GPU file gives λ and Λ for, and how an opcode finds its class.

The classes are coarse enough that documents give throughputs for them and fine enough that all
members of one behave alike. A class is only a name; which subsystem it runs on, and how fast, is
the GPU file's matter.
"""

from __future__ import annotations

from .instruction import Instruction, MemoryAccess

CLASSES: dict[str, str] = {
    "fp32": "single-precision add, multiply, fused multiply-add",
    "fp32_compare": "single-precision compare, minimum, select",
    "fp16": "half-precision (packed or not) arithmetic",
    "fp64": "double-precision arithmetic and compare",
    "int": "32-bit integer add, logic, compare, minimum, select, shift-and-add, permute",
    "imad": "32-bit integer multiply-add, and the moves and shifts spelt as such",
    "imad_wide": "integer multiply-add with a 64-bit result or the high half",
    "shift": "shifts and funnel shifts",
    "move": "register moves and constants",
    "bit": "population count, find leading one, bit reverse",
    "sfu": "special functions: reciprocal, square root, exponential, logarithm, sine, cosine; range check",
    "convert": "conversions between types that run on the conversion unit",
    "convert_fast": "conversions and packings at the rate of integer arithmetic",
    "predicate": "predicate logic and moves between predicates and registers",
    "vote": "votes over the lanes of a warp",
    "shuffle": "register exchange between lanes, and match",
    "reduce": "reductions over the lanes of a warp",
    "uniform": "uniform datapath: one result for the whole warp",
    "special_register": "reads of special registers",
    "branch": "branches, calls, returns, exits",
    "convergence": "convergence barriers and warp synchronisation",
    "barrier": "thread-block barriers",
    "mbarrier": "barriers in shared memory: arrivals and waits",
    "fence": "memory fences and cache control",
    "nop": "instructions without effect, and scoreboard waits",
    "tensor": "matrix multiply-accumulate of a warp",
    "wgmma": "matrix multiply-accumulate of a warp group, asynchronous",
    "constant_load": "loads from constant banks through registers",
    "global_load": "loads from global memory",
    "global_store": "stores to global memory",
    "global_atomic": "atomics and reductions on global memory",
    "local_load": "loads from local memory",
    "local_store": "stores to local memory",
    "shared_load": "loads from shared memory",
    "shared_store": "stores to shared memory",
    "shared_atomic": "atomics on shared memory",
    "async_copy": "asynchronous copies from global to shared memory, lane by lane",
    "bulk_copy": "bulk and tensor copies between global and shared memory by the copy engine",
    "texture": "texture and surface accesses",
    "unknown": "an opcode that drywarp has no class for: counted with integer arithmetic",
}
"""Every class with what belongs to it."""

UNKNOWN = "unknown"

MEMORY_CLASSES = frozenset(
    name for name in CLASSES if name.split("_")[0] in ("global", "local", "shared", "async", "bulk", "texture")
)

_OPCODES: dict[str, str] = {
    "fp32": "FADD FMUL FFMA FSWZADD FADD32I FMUL32I FFMA32I FADD2 FMUL2 FFMA2 FHADD FHFMA",
    "fp32_compare": "FSETP FSET FMNMX FMNMX3 FSEL",
    "fp16": "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2 HADD2_32I HFMA2_32I HMUL2_32I",
    "fp64": "DADD DMUL DFMA DSETP DMNMX",
    "int": "IADD3 IADD LOP3 LOP LEA ISETP IMNMX SEL PRMT VIADD VIMNMX VIMNMX3 VIADDMNMX IABS ISCADD"
    " IADD32I LOP32I SGXT BMSK ICMP VABSDIFF VABSDIFF4 IDP IDP4A ISET LOPX VHMNMX",
    "imad": "IMAD IMUL IMADSP IMAD32I",
    "shift": "SHF SHL SHR",
    "move": "MOV MOV32I CS2R MOV64IUR RPCMOV",
    "bit": "POPC FLO BREV",
    "sfu": "MUFU FCHK",
    "convert": "F2F F2I I2F FRND I2I",
    "convert_fast": "F2FP I2FP F2IP I2IP",
    "predicate": "PLOP3 PSETP P2R R2P PSET QSPC",
    "vote": "VOTE",
    "shuffle": "SHFL MATCH MOVM",
    "reduce": "REDUX CREDUX",
    "uniform": "R2UR ULDC LDCU UMOV UIADD3 UIMAD ULEA ULOP3 USHF UISETP USEL UPRMT UFLO UPOPC UBMSK"
    " UBREV USGXT UPLOP3 UP2UR UR2UP UPSETP VOTEU UIABS UIADD UCLEA UIMNMX UVIMNMX UF2FP UFADD UFMUL"
    " UFFMA UFSEL UFSETP UFMNMX UI2F UF2I UI2FP UF2F UFRND UVIADD UVIADDMNMX USETMAXREG UVIRTCOUNT",
    "special_register": "S2R S2UR CS2UR LEPC",
    "branch": "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT KILL BPT RTT BREAK JCAL",
    "convergence": "BSSY BSYNC BMOV WARPSYNC YIELD ENDCOLLECTIVE WARPGROUP ELECT",
    "barrier": "BAR B2R UCGABAR_ARV UCGABAR_WAIT",
    "mbarrier": "SYNCS ARRIVES",
    "fence": "MEMBAR ERRBAR CGAERRBAR CCTL CCTLL CCTLT FENCE UCCTL UTMACCTL",
    "nop": "NOP DEPBAR LDGDEPBAR UTMACMDFLUSH NANOSLEEP ACQBULK PREEXIT DEPBARU WARPGROUPSET LDTRAM PMTRIG SETCTAID"
    " SETLMEMBASE GETLMEMBASE",
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA UTCHMMA UTCQMMA UTCIMMA UTCOMMA LDTM STTM",
    "wgmma": "HGMMA IGMMA QGMMA BGMMA",
    "bulk_copy": "UBLKCP UBLKRED UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF",
    "constant_load": "LDC",
    "texture": "TEX TLD TLD4 TMML TXD TXQ SULD SUST SUATOM SURED SUQUERY",
}

_CLASS_OF = {op: name for name, ops in _OPCODES.items() for op in ops.split()}

_SPACES = {"LDG": "global", "STG": "global", "LDS": "shared", "STS": "shared", "LDL": "local", "STL": "local",
           "LD": "generic", "ST": "generic", "ATOMG": "global", "REDG": "global", "RED": "global",
           "ATOM": "generic", "ATOMS": "shared", "REDS": "shared", "LDSM": "shared", "STSM": "shared",
           "LDGSTS": "global",
           **dict.fromkeys(("TEX", "TLD", "TLD4", "TXD", "SULD", "SUST"), "texture")}  # fmt: skip
_BULK = {"UTMALDG": "bulk_load", "UTMASTG": "bulk_store", "UTMAREDG": "bulk_reduction", "UBLKRED": "bulk_reduction"}
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def memory_access(opcode: str, modifiers: tuple[str, ...]) -> MemoryAccess | None:
    """Space, kind and bytes per lane of a memory opcode; None for every other one.

    The width of an atomic follows its type suffix. LDSM reads 16 bytes per addressed row. Of a bulk copy
    the accesses to global memory are told, 16 bytes each. How wide a texel is only its texture knows: a
    fetch counts as 4 bytes.
    """
    if opcode == "UBLKCP":
        kind = {"S.G": "bulk_load", "G.S": "bulk_store"}.get(".".join(modifiers[:2]))
        return MemoryAccess("global", kind, 16) if kind else None
    if opcode in _BULK:
        return MemoryAccess("global", _BULK[opcode], 16)
    space = _SPACES.get(opcode)
    if space is None:
        return None
    if opcode == "LDGSTS":
        kind = "copy"
    elif opcode.startswith("ATOM"):
        kind = "atomic"
    elif opcode.startswith("RED"):
        kind = "reduction"
    else:
        kind = "load" if opcode.startswith(("LD", "T", "SULD")) else "store"
    width = 16 if opcode in ("LDSM", "STSM") else 4
    if opcode not in ("LDSM", "STSM"):
        for modifier in modifiers:
            if modifier in _WIDTHS:
                width = _WIDTHS[modifier]
            elif modifier in ("U64", "S64", "F64"):
                width = 8
    return MemoryAccess(space, kind, width)


def class_of(opcode: str, modifiers: tuple[str, ...]) -> str:
    """The instruction class of an opcode with its modifiers; ``unknown`` where there is none."""
    if opcode == "LDGSTS":
        return "async_copy"
    access = memory_access(opcode, modifiers)
    if access is not None and access.space != "texture" and not access.kind.startswith("bulk"):
        space = "global" if access.space == "generic" else access.space
        suffix = "atomic" if access.kind in ("atomic", "reduction") else access.kind
        return f"{space}_{suffix}"
    if opcode in ("IMAD", "IMUL") and modifiers and modifiers[0] in ("WIDE", "HI"):
        return "imad_wide"
    if opcode == "HFMA2" and "MMA" in modifiers:
        return "fp16"
    return _CLASS_OF.get(opcode, "uniform" if opcode.startswith("U") and len(opcode) > 3 else UNKNOWN)


def is_barrier(instruction: Instruction) -> bool:
    """Whether the warp waits here for the others of its thread block, where no number of threads is stated.

    Of NVIDIA's cluster barrier, of clusters of one block, it is the second half.
    """
    if instruction.opcode == "BAR":
        return "ARV" not in instruction.modifiers
    return instruction.opcode in ("s_barrier", "UCGABAR_WAIT")
