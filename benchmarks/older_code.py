"""Machine code of Maxwell and Pascal (sm_50 to sm_62): compiled, disassembled, and one thread block of it run.

    pip install --no-deps --target TOOLS triton==3.0.0 nvidia-cuda-nvrtc-cu12==12.6.85

brings what drywarp's own packages have given up: Triton's wheel holds nvdisasm 12.4. Only the opcodes are known that
the kernels of `rodinia_older.py` use; another one is an error. Lanes go by the smallest address among them, which is
where diverged lanes meet; SSY and PBK note where SYNC and BRK lead. A run says which instructions each warp executed,
with how many lanes, and which words of shared memory they touched.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]
LANES = 32
PARAMETERS = 0x140
"""Where the parameters start in bank 0; the block's and the grid's extents stand at 0x8 and 0x14."""


def cubin(tools: Path, source: str, name: str, options: Sequence[str]) -> bytes:
    """CUDA C++ compiled by the NVRTC in `tools`. Raises ValueError with its log."""
    folder = tools / "nvidia" / "cuda_nvrtc" / "lib"
    ctypes.CDLL(str(next(folder.glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(folder / "libnvrtc.so.12"))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
    kind = "ProgramLog" if failed else "CUBIN"
    getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{kind}")(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise ValueError(text.value.decode())
    return text.raw


def listing(tools: Path, code: bytes) -> str:
    """The text of a cubin by the nvdisasm in `tools`."""
    program = next(tools.rglob("bin/nvdisasm"))
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        return subprocess.run([program, "-c", file.name], capture_output=True, text=True, check=True).stdout


def constants_of(code: bytes, kernel: str) -> Words:
    """Bank 2 of a kernel, the numbers that the compiler puts aside: a section of the cubin."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", code, table + number * size) for number in range(count)]
    for name, _, _, _, start, length in rows:
        at = rows[names][4] + name
        section = code[at : code.index(0, at)].decode()
        if section.startswith(".nv.constant2.") and kernel in section:
            return np.frombuffer(code[start : start + length], np.uint32)
    return np.zeros(0, np.uint32)


@dataclass(frozen=True)
class Line:
    """One instruction: its opcode with modifiers, its operands as text, the guard, and the line that a label names."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str = ""
    target: int = -1
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


def lines_of(text: str, kernel: str) -> list[Line]:
    """The instructions of one kernel."""
    rows, labels, inside = [], {}, False
    for row in text.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.([\w$]+)", row):
            inside = kernel in section[1]
        elif inside and (label := re.match(r"\s*(\.L\w+):", row)):
            labels[label[1]] = len(rows)
        elif inside and (code := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+\{?\s*(.*?)\s*(?:\(\*.*?\*\)\s*)?[;}]", row)):
            rows.append(code[1].replace("] [", "]["))
    return [_line(row, labels) for row in rows]


def _line(row: str, labels: dict[str, int]) -> Line:
    guard, rest = ("", row) if row[0] != "@" else row[1:].split(None, 1)
    name, _, text = rest.partition(" ")
    opcode, *modifiers = name.split(".")
    target = -1
    if label := re.search(r"`\((\.L\w+)\)", text):
        target, text = labels[label[1]], ""
    operands = tuple(part.strip().replace(".reuse", "") for part in text.split(",") if part.strip())
    reads, writes = _places(opcode, modifiers, operands)
    return Line(
        opcode, tuple(modifiers), operands, guard, target, frozenset({*reads, *_names(guard)}), frozenset(writes)
    )


STORES = ("STG", "STS")
NO_RESULT = (*STORES, "BAR", "DEPBAR", "MEMBAR", "NOP", "EXIT", "BRA", "SSY", "SYNC", "PBK", "BRK")


def _places(opcode: str, modifiers: Sequence[str], operands: Sequence[str]) -> tuple[set[str], set[str]]:
    """Registers, predicates and the carry flag that an instruction reads and writes."""
    results = 0 if opcode in NO_RESULT else 2 if opcode in ("ISETP", "FSETP") or operands[0].startswith("P") else 1
    writes = {name for text in operands[:results] for name in _names(text)}
    reads = {name for text in operands[results:] for name in _names(text)}
    if opcode in ("LDG", "STG"):
        (base,) = _names(re.findall(r"\[.*?\]", " ".join(operands))[0]) or {"RZ"}
        reads |= {f"R{int(base[1:]) + 1}"} if base != "RZ" else set()
    writes |= {"CC"} if operands and operands[0].endswith(".CC") else set()
    reads |= {"CC"} if "X" in modifiers else set()
    return reads, writes


def _names(text: str) -> set[str]:
    return set(re.findall(r"\b(?:R\d+|P[0-6])\b", text))


# Running.


@dataclass
class Memory:
    """Global memory as arrays of words, by base address, and a block's shared memory."""

    arrays: dict[int, Words]
    shared: Words

    def place(self, address: int) -> tuple[Words, int]:
        """The array that holds a byte address, and the index of the word there."""
        base = max((base for base in self.arrays if base <= address), default=0)
        if not base or address - base >= 4 * len(self.arrays[base]):
            raise ValueError(f"address {address:#x}: expected one in an array")
        return self.arrays[base], (address - base) // 4


@dataclass
class Warp:
    """One warp's state, and its history: the line executed, the lanes active, the words of shared memory touched."""

    code: Sequence[Line]
    banks: dict[int, Words]
    special: dict[str, Words]
    memory: Memory
    alive: Bools
    registers: dict[str, Any] = field(default_factory=dict)
    history: list[tuple[int, int, frozenset[int]]] = field(default_factory=list)

    def run(self) -> Iterator[None]:
        """Until the end; yields at each barrier."""
        at = np.zeros(LANES, np.int64)
        stacks: list[list[int]] = [[] for _ in range(LANES)]
        while self.alive.any():
            here = int(at[self.alive].min())
            line, lanes = self.code[here], self.alive & (at == here)
            active = lanes & self.guard(line.guard)
            words = self.step(line, active) if active.any() else frozenset()
            self.history.append((here, int(active.sum()), words))
            at[lanes] += 1
            if line.opcode == "EXIT":
                self.alive = self.alive & ~active
            elif line.opcode == "BRA":
                at[active] = line.target
            elif line.opcode in ("SSY", "PBK"):
                for lane in np.flatnonzero(active).tolist():
                    stacks[lane].append(line.target)
            elif line.opcode in ("SYNC", "BRK"):
                for lane in np.flatnonzero(active).tolist():
                    at[lane] = stacks[lane].pop()
            elif line.opcode == "BAR":
                yield

    def guard(self, text: str) -> Bools:
        """The lanes for which a predicate holds."""
        if not text or text == "PT":
            return np.ones(LANES, np.bool_)
        if text.startswith("!"):
            return ~self.guard(text[1:])
        value: Bools = self.registers.setdefault(text, np.zeros(LANES, np.bool_))
        return value

    def word(self, text: str, real: bool = False) -> Words:
        """An operand as words; `real` if its sign and its numbers are those of a float."""
        if text[0] in "-~" and not re.match(r"-[\d+]", text):
            inner = self.word(text[1:], real)
            if text[0] == "~":
                return ~inner
            return inner ^ np.uint32(1 << 31) if real else (~inner + np.uint32(1))
        if text.startswith("|"):
            inner = self.word(text.strip("|"), real)
            return inner & np.uint32(0x7FFFFFFF) if real else np.abs(inner.view(np.int32)).view(np.uint32)
        if constant := re.match(r"c\[(0x[02])\]\[(0x[0-9a-f]+)\]", text):
            return np.full(LANES, self.banks[int(constant[1], 16)][int(constant[2], 16) // 4], np.uint32)
        if text.startswith("R"):
            name = text.split(".")[0]
            zero = np.zeros(LANES, np.uint32)
            found: Words = zero if name == "RZ" else self.registers.setdefault(name, zero)
            return found
        if real and not text.startswith(("0x", "-0x")):
            number = float(text.replace("QNAN", "nan").replace("INF", "inf"))
            return np.full(LANES, np.float32(number)).view(np.uint32)
        return np.full(LANES, int(text, 0) & 0xFFFFFFFF, np.uint32)

    def real(self, text: str) -> npt.NDArray[np.float32]:
        """An operand as floats."""
        return self.word(text, real=True).view(np.float32)

    def put(self, text: str, value: npt.NDArray[Any], active: Bools) -> None:
        """Write a result into the active lanes."""
        name = text.split(".")[0]
        if name in ("RZ", "PT"):
            return
        kind = np.bool_ if name[0] == "P" or name == "CC" else np.uint32
        old = self.registers.get(name, np.zeros(LANES, kind))
        self.registers[name] = np.where(active, value.astype(kind, copy=False), old)

    def step(self, line: Line, active: Bools) -> frozenset[int]:
        """Execute one instruction for some lanes; returns the words of shared memory that they touch."""
        if line.opcode in ("LDG", "STG", "LDS", "STS"):
            return self._access(line, active)
        if line.opcode in ("ISETP", "FSETP"):
            first, second, a, b, other = line.operands
            found, more = _compare(self, line, a, b, real=line.opcode == "FSETP"), self.guard(other)
            joined = _JOIN[line.modifiers[-1]]
            self.put(first, joined(found, more), active)
            self.put(second, joined(~found, more), active)
        elif line.opcode not in NO_RESULT:
            if line.opcode not in OPERATIONS:
                raise ValueError(f"{'.'.join((line.opcode, *line.modifiers))}: an opcode that is not known")
            with np.errstate(all="ignore"):
                value = OPERATIONS[line.opcode](self, line)
            carries = isinstance(value, tuple)
            first, carry = value if carries else (value, None)
            if line.operands[0].startswith("P"):  # LOP with a predicate: whether any bit is set
                self.put(line.operands[0], first != 0, active)
                return frozenset()
            self.put(line.operands[0], first.view(np.uint32), active)
            if carry is not None and line.operands[0].endswith(".CC"):
                self.put("CC", carry, active)
        return frozenset()

    def _access(self, line: Line, active: Bools) -> frozenset[int]:
        loads = line.opcode.startswith("LD")
        where, value = line.operands[::-1] if loads else line.operands
        base, _, offset = where.strip("[]").partition("+")
        far = line.opcode in ("LDG", "STG")
        low = self.word(base) if base.startswith("R") else np.zeros(LANES, np.uint32)
        offset = offset if base.startswith("R") else base
        high = self.word(f"R{int(base[1:]) + 1}") if far and base != "RZ" else np.zeros(LANES, np.uint32)
        shift = int(offset, 0) if offset else 0
        if {"64", "128"} & set(line.modifiers):
            raise ValueError(f"{line}: only words are known")
        result, touched = self.word(value).copy(), set()
        for lane in np.flatnonzero(active).tolist():
            address = (int(high[lane]) << 32 | int(low[lane])) + shift
            array, index = self.memory.place(address) if far else (self.memory.shared, (address & 0xFFFFFFFF) // 4)
            if loads:
                result[lane] = array[index]
            else:
                array[index] = result[lane]
            if not far:
                touched.add(index)
        if loads:
            self.put(value, result, active)
        return frozenset(touched)


_JOIN: dict[str, Callable[[Bools, Bools], Bools]] = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}
_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip


def _compare(warp: Warp, line: Line, a: str, b: str, real: bool) -> Bools:
    """By the modifier that names the comparison; with U at its end, also where a float is no number."""
    name = next(m for m in line.modifiers if m[:2] in _ORDER)
    if real:
        left, right = warp.real(a), warp.real(b)
        found: Bools = _ORDER[name[:2]](left, right)
        if name[:2] == "NE":
            found = found & ~(np.isnan(left) | np.isnan(right))
        return found | np.isnan(left) | np.isnan(right) if name.endswith("U") else found
    kind = np.uint32 if "U32" in line.modifiers else np.int32
    whole: Bools = _ORDER[name](warp.word(a).view(kind), warp.word(b).view(kind))
    return whole


def _add(warp: Warp, line: Line) -> tuple[Words, Bools]:
    a, b = line.operands[1:3]
    carry = warp.guard("CC") if "X" in line.modifiers else np.zeros(LANES, np.bool_)
    whole = warp.word(a).astype(np.uint64) + warp.word(b) + carry
    return (whole & 0xFFFFFFFF).astype(np.uint32), whole >> 32 != 0


def _shifted_add(warp: Warp, line: Line) -> tuple[Words, Bools]:
    """LEA and ISCADD: (a << s) + b; LEA.HI.X the upper half of a 64-bit a."""
    a, b, *rest = line.operands[1:]
    shift = int(rest[-1], 0)
    low = warp.word(a).astype(np.uint64)
    if "HI" in line.modifiers:
        wide = (warp.word(rest[0]).astype(np.uint64) << 32 | low) << np.uint64(shift)
        part = wide >> np.uint64(32)
    else:
        part = low << np.uint64(shift) & np.uint64(0xFFFFFFFF)
    carry = warp.guard("CC") if "X" in line.modifiers else np.zeros(LANES, np.bool_)
    whole = part + warp.word(b) + carry
    return (whole & 0xFFFFFFFF).astype(np.uint32), whole >> 32 != 0


def _xmad(warp: Warp, line: Line) -> Words:
    """16 bits of a times 16 bits of b, plus c."""

    def half(text: str) -> Words:
        words = warp.word(text.removesuffix(".H1"))
        return words >> 16 if text.endswith(".H1") else words & 0xFFFF

    _, a, b, c = line.operands
    product, more = half(a) * half(b), warp.word(c)
    whole = warp.word(b.removesuffix(".H1"))
    more = more >> 16 if "CHI" in line.modifiers else more
    more = more + (whole << 16) if "CBCC" in line.modifiers else more
    found = (product << 16 if "PSL" in line.modifiers else product) + more
    return (found & 0xFFFF) | (whole << 16) if "MRG" in line.modifiers else found


def _float(count: int, what: Callable[..., Any]) -> Callable[[Warp, Line], Any]:
    def made(warp: Warp, line: Line) -> Any:
        found = what(*(warp.real(text).astype(np.float64) for text in line.operands[1 : 1 + count])).astype(np.float32)
        return np.clip(found, 0, 1) if "SAT" in line.modifiers else found

    return made


def _whole(what: Callable[..., Any]) -> Callable[[Warp, Line], Any]:
    return lambda warp, line: what(*(warp.word(text) for text in line.operands[1:]))


def _shift_right(warp: Warp, line: Line) -> Any:
    kind = np.uint32 if "U32" in line.modifiers else np.int32
    return warp.word(line.operands[1]).view(kind) >> int(line.operands[2], 0)


def _funnel(warp: Warp, line: Line) -> Words:
    _, low, shift, high = line.operands
    wide = warp.word(high).astype(np.uint64) << 32 | warp.word(low)
    by = np.uint64(int(shift, 0))
    return ((wide << by >> np.uint64(32)) if "L" in line.modifiers else wide >> by).astype(np.uint32)


def _logic(warp: Warp, line: Line) -> Words:
    *_, a, b = line.operands
    left, right = warp.word(a), warp.word(b)
    return {"AND": left & right, "OR": left | right, "XOR": left ^ right, "PASS_B": right}[line.modifiers[0]]


def _select(warp: Warp, line: Line) -> Words:
    """SEL, ICMP and FCMP: a where a predicate holds, or where c compares with 0 (FCMP without a name: NEU), else b."""
    _, a, b, c = line.operands
    if line.opcode == "SEL":
        holds = warp.guard(c)
    else:
        named = line if line.modifiers else Line("FCMP", ("NEU",), ())
        holds = _compare(warp, named, c, "RZ", real=line.opcode == "FCMP")
    return np.where(holds, warp.word(a), warp.word(b))


def _set(warp: Warp, line: Line) -> Words:
    holds = _compare(warp, line, line.operands[1], line.operands[2], real=False) & warp.guard(line.operands[3])
    return np.where(holds, np.uint32(0x3F800000 if "BF" in line.modifiers else 0xFFFFFFFF), np.uint32(0))


def _three(warp: Warp, line: Line) -> Words:
    a, b, c = (warp.word(text) for text in line.operands[1:])
    return ((a + b) >> 16 if "RS" in line.modifiers else a + b) + c


def _convert(warp: Warp, line: Line) -> Any:
    text, wanted = line.operands[1], line.modifiers
    if line.opcode == "I2F":
        value = warp.word(text).view(np.int32).astype(np.float64)
        found = value.astype(np.float32)
        up = np.nextafter(found, np.float32(np.inf))
        return np.where(("RP" in wanted) & (found < value), up, found)
    if line.opcode == "F2I":
        return np.trunc(warp.real(text)).astype(np.int64).astype(np.uint32)
    return warp.word(text)


def _special(warp: Warp, line: Line) -> Any:
    value = warp.real(line.operands[1]).astype(np.float64)
    of = {"RCP": lambda v: 1 / v, "SQRT": np.sqrt, "RSQ": lambda v: 1 / np.sqrt(v), "EX2": np.exp2, "LG2": np.log2}
    return of[line.modifiers[0]](value).astype(np.float32)


def _extreme(warp: Warp, line: Line) -> Any:
    a, b = (warp.word(text).view(np.int32) for text in line.operands[1:3])
    return np.where(warp.guard(line.operands[3]), np.minimum(a, b), np.maximum(a, b))


OPERATIONS: dict[str, Callable[[Warp, Line], Any]] = {
    "MOV": lambda warp, line: warp.word(line.operands[1]),
    "MOV32I": lambda warp, line: warp.word(line.operands[1]),
    "S2R": lambda warp, line: warp.special[line.operands[1]],
    **dict.fromkeys(("IADD", "IADD32I"), _add),
    **dict.fromkeys(("LEA", "ISCADD"), _shifted_add),
    **dict.fromkeys(("LOP", "LOP32I"), _logic),
    **dict.fromkeys(("SEL", "ICMP", "FCMP"), _select),
    **dict.fromkeys(("I2F", "F2I", "I2I"), _convert),
    **dict.fromkeys(("FADD", "FADD32I"), _float(2, np.add)),
    **dict.fromkeys(("FMUL", "FMUL32I"), _float(2, np.multiply)),
    "FFMA": _float(3, lambda a, b, c: a * b + c),
    "SHL": lambda warp, line: warp.word(line.operands[1]) << int(line.operands[2], 0),
    "SHR": _shift_right, "SHF": _funnel, "XMAD": _xmad, "IADD3": _three, "ISET": _set, "MUFU": _special,
    "IMNMX": _extreme,
}  # fmt: skip
