"""Parse AMD assembly, as LLVM prints it, into kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import InputFileError
from ...kernel.instruction import (
    ControlBits,
    Immediate,
    Instruction,
    Label,
    MemoryAccess,
    Operand,
    RegisterRange,
    SourceLine,
    Special,
)
from ...kernel.isa.amd.opcodes import class_of, memory_access
from ...kernel.isa.amd.registers import counting_of
from ...kernel.kernel import Kernel
from .metadata import KernelMetadata, abi_of, parameters_of, read_metadata, resources_of, wavefront_size

# Parse the operands of AMD assembly into plain data.

_ONE = re.compile(r"^(v|s|a|ttmp)(\d+)$")
_SEVERAL = re.compile(r"^(v|s|a|ttmp)\[(\d+)(?::(\d+))?\]$")
_SPECIAL = re.compile(r"^(vcc|exec|flat_scratch|xnack_mask|tba|tma)(?:_(lo|hi))?$")
_SINGLE = {"m0", "scc", "vccz", "execz"}
_HEX = re.compile(r"^[-+]?0x[0-9a-f]+$")
_DECIMAL = re.compile(r"^[-+]?\d+$")
_REAL = re.compile(r"^[-+]?(\d+\.\d*|\d*\.\d+|\d+)(e[-+]?\d+)?$")
_WRAPPED = re.compile(r"^(abs|neg|sext)\((.*)\)$")


def split_operands(text: str) -> tuple[list[str], list[str]]:
    """Split into the operands of an instruction and the modifiers after the last one.

    `v[0:1], off offset:16 glc` is two operands and two modifiers. Text in brackets is not split.
    """
    parts = [part.strip() for part in _cut(text, ",")]
    if not parts or not parts[-1]:
        return [part for part in parts if part], []
    first, *modifiers = [word for word in _cut(parts[-1], " ") if word]
    if _is_modifier(first) and len(parts) == 1:
        return [], [first, *modifiers]
    return [*parts[:-1], first], modifiers


def _is_modifier(word: str) -> bool:
    return re.match(r"[a-z_0-9]+:", word) is not None


def _cut(text: str, separator: str) -> Iterator[str]:
    depth, start = 0, 0
    bars = False
    for position, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        bars ^= char == "|"
        if char == separator and depth == 0 and not bars:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def parse_operand(text: str, labels: Mapping[str, int]) -> Operand:
    """Parse one operand; `labels` maps label names to byte offsets in the code."""
    if register := register_range(text):
        return register
    if _HEX.match(text) or _DECIMAL.match(text):
        return Immediate(int(text, 0), text)
    if _REAL.match(text):
        return Immediate(float(text), text)
    if text in labels:
        return Label(text, labels[text])
    return Special(text)


def register_range(text: str, negate: bool = False, absolute: bool = False) -> RegisterRange | None:
    """Parse `v7`, `s[4:5]`, `vcc_lo`, `-|v3|`; None for anything that is not a register."""
    if wrapped := _WRAPPED.match(text):
        return register_range(wrapped[2], negate or wrapped[1] == "neg", absolute or wrapped[1] == "abs")
    if text.startswith("-") and not text[1:2].isdigit():
        return register_range(text[1:], True, absolute)
    if len(text) > 2 and text[0] == text[-1] == "|":
        return register_range(text[1:-1], negate, True)
    if one := _ONE.match(text):
        return RegisterRange(one[1], int(one[2]), 1, negate, absolute)
    if several := _SEVERAL.match(text):
        first, last = int(several[2]), int(several[3] or several[2])
        return RegisterRange(several[1], first, last - first + 1, negate, absolute) if last >= first else None
    if special := _SPECIAL.match(text):
        half = special[2]
        return RegisterRange(special[1], int(half == "hi"), 1 if half else 2, negate, absolute)
    return RegisterRange(text, 0, 1, negate, absolute) if text in _SINGLE else None


SPACING = 16
"""Bytes that `pc` advances per instruction, because a listing has no addresses."""

_LABEL = re.compile(r"^([.\w$]+):")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_TARGET = re.compile(r'^\s*\.amdgcn_target\s+"[\w-]*?--?(gfx\w+)')
_MNEMONIC = re.compile(r"^\s+([a-z][\w]*)\b\s*(.*)$")
_ENCODING = re.compile(r"_(e32|e64|dpp8?|sdwa|e64_dpp)$")
_SLEEP_SLOTS = 16
"""Issue slots of 4 cycles in the 64 cycles that `s_sleep` counts in."""


@dataclass
class _Line:
    """A raw instruction: line number, mnemonic, the rest, and its source location."""

    number: int
    mnemonic: str
    rest: str
    source: SourceLine | None


def kernels_of(text: str, origin: str, arch: str | None = None) -> dict[str, Kernel]:
    """All kernels in an assembly file by symbol.

    `arch` is the target to assume if the file names none. Raises InputFileError if the text is not assembly of an
    AMD kernel.
    """
    lines = text.splitlines()
    metadata = read_metadata(lines)
    if not metadata:
        raise InputFileError(f"{origin}: no AMD kernel found (expected assembly with an .amdhsa_kernel directive)")
    stated = next((match[1] for line in lines if (match := _TARGET.match(line))), None)
    target = stated or arch
    if target is None:
        raise InputFileError(f"{origin}: no .amdgcn_target directive (expected the name of a GPU, as in gfx90a)")
    bodies = _bodies(lines, metadata, origin)
    return {symbol: _kernel(symbol, bodies[symbol], metadata[symbol], origin, target) for symbol in metadata}


def _bodies(
    lines: Sequence[str], metadata: Mapping[str, KernelMetadata], origin: str
) -> dict[str, tuple[list[_Line], dict[str, int]]]:
    """The instructions of each kernel, and the byte offsets of its labels."""
    files: dict[int, str] = {}
    bodies: dict[str, tuple[list[_Line], dict[str, int]]] = {}
    current: tuple[list[_Line], dict[str, int]] | None = None
    place: SourceLine | None = None
    for number, line in enumerate(lines, 1):
        if match := _LABEL.match(line):
            label = match[1]
            if label in metadata:
                current, place = bodies.setdefault(label, ([], {})), None
            elif label.startswith(".Lfunc_end") or not label.startswith((".L", "$")):
                current = None
            elif current is not None:
                current[1][label] = len(current[0]) * SPACING
        elif match := _FILE.match(line):
            files[int(match[1])] = _spelt(match[2] if match[3] else "", match[3] or match[2], origin)
        elif match := _LOC.match(line):
            # Line 0 is code without a source line: attribute it to the previous line.
            if int(match[2]):
                place = SourceLine(files.get(int(match[1]), ""), int(match[2]))
        elif current is not None and (match := _MNEMONIC.match(line)):
            rest = re.split(r"\s*(?:;|//)", match[2], maxsplit=1)[0].strip()
            current[0].append(_Line(number, match[1], rest, place))
    for symbol in metadata:
        if symbol not in bodies or not bodies[symbol][0]:
            raise InputFileError(f"{origin}: kernel {symbol} has no code (expected instructions after its label)")
    return bodies


def _spelt(folder: str, name: str, origin: str) -> str:
    """The user's own spelling for the user's file; just the file name for other headers."""
    file = f"{folder}/{name}" if folder else name
    if origin == file or origin.endswith("/" + file) or file.endswith("/" + origin):
        return origin
    return name if file.startswith("/") else file


def _kernel(
    symbol: str, body: tuple[list[_Line], dict[str, int]], metadata: KernelMetadata, origin: str, arch: str
) -> Kernel:
    lines, labels = body
    instructions = [_instruction(index, line, labels) for index, line in enumerate(lines)]
    while len(instructions) > 1 and instructions[-1].opcode in ("s_nop", "s_code_end"):
        instructions.pop()
    if any(isinstance(o, Label) and o.target >= len(instructions) * SPACING for i in instructions for o in i.operands):
        # A jump past the last instruction: the warp ends there.
        instructions.append(_instruction(len(instructions), _Line(0, "s_endpgm", "", None), labels))
    place = f"{origin}: kernel {symbol}"
    abi = abi_of(metadata, arch, place)
    return Kernel(
        name=symbol,
        symbol=symbol,
        arch=arch,
        instructions=tuple(_scratch_as_local(instruction, abi) for instruction in instructions),
        parameters=parameters_of(metadata, place),
        parameter_base=0,
        resources=resources_of(metadata, place),
        source_file=origin,
        warp_size=wavefront_size(metadata, place),
        abi=abi,
    )


def _instruction(index: int, line: _Line, labels: Mapping[str, int]) -> Instruction:
    encoding = _ENCODING.search(line.mnemonic)
    opcode = line.mnemonic[: encoding.start()] if encoding else line.mnemonic
    if opcode.startswith("s_waitcnt"):
        operands: tuple[Operand, ...] = ()
        words: list[str] = [line.rest]
    else:
        texts, words = split_operands(line.rest)
        operands = tuple(parse_operand(text, labels) for text in texts)
    modifiers = tuple([encoding[1]] if encoding else []) + tuple(words)
    return Instruction(
        pc=index * SPACING,
        opcode=opcode,
        modifiers=modifiers,
        operands=operands,
        guard=None,
        class_=class_of(opcode),
        memory=memory_access(opcode, modifiers),
        control=ControlBits(_slots(opcode, line.rest), False, None, None, 0, 0),
        source=line.source,
        text=f"{line.mnemonic} {line.rest}".strip(),
        counting=counting_of(opcode, line.rest),
    )


def _slots(opcode: str, rest: str) -> int:
    """Issue slots until the warp's next instruction may issue."""
    if opcode not in ("s_nop", "s_sleep"):
        return 1
    try:
        count = int(rest, 0)
    except ValueError:
        return 1
    return count + 1 if opcode == "s_nop" else max(1, count * _SLEEP_SLOTS)


def _scratch_as_local(instruction: Instruction, abi: Mapping[str, int]) -> Instruction:
    """Turn buffer accesses through the private-memory descriptor into local memory accesses.

    The kernel receives the descriptor in its first registers; compilers keep it in s[0:3].
    """
    access = instruction.memory
    if "private_segment_buffer" not in abi or access is None or not instruction.opcode.startswith("buffer_"):
        return instruction
    descriptors = [o for o in instruction.operands if isinstance(o, RegisterRange) and (o.file, o.count) == ("s", 4)]
    if not descriptors or descriptors[0].index != abi["private_segment_buffer"] or access.kind not in ("load", "store"):
        return instruction
    local = MemoryAccess("local", access.kind, access.width)
    return replace(instruction, class_=f"local_{access.kind}", memory=local)
