"""AMD assembly, as LLVM prints it, parsed into kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import InputFileError
from ..kernel.amd.classes import class_of, memory_access
from ..kernel.amd.counters import counting_of
from ..kernel.instruction import ControlBits, Instruction, MemoryAccess, SourceLine
from ..kernel.kernel import Kernel
from ..kernel.operand import Label, Operand, RegisterRange
from .amdgcn_metadata import KernelMetadata, abi_of, parameters_of, read_metadata, resources_of, wavefront_size
from .amdgcn_operands import parse_operand, split_operands

SPACING = 16
"""Bytes that `pc` counts per instruction: a listing has no addresses."""

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
    """An instruction as it stands: number of its line, mnemonic, the rest, and its place in the source."""

    number: int
    mnemonic: str
    rest: str
    source: SourceLine | None


def is_assembly(text: str) -> bool:
    """Whether a text is AMD assembly of at least one kernel."""
    return ".amdhsa_kernel" in text


def kernels_of(text: str, origin: str, arch: str | None = None) -> dict[str, Kernel]:
    """Every kernel of an assembly file by symbol.

    `arch` is the target to assume where the file names none. Raises InputFileError for what is no assembly of
    an AMD kernel, or of another target.
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
    """The instructions of each kernel, and the byte offsets of the labels among them."""
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
            # Line 0 is code of no line in particular: it stays with the line before.
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
    """The user's own file keeps the user's spelling; of headers elsewhere the name will do."""
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
        # A jump behind the last instruction: the warp ends there.
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
    """Buffer accesses through the descriptor of private memory are accesses to local memory.

    The descriptor is what the kernel finds in its first registers; a compiler keeps it in s[0:3].
    """
    access = instruction.memory
    if "private_segment_buffer" not in abi or access is None or not instruction.opcode.startswith("buffer_"):
        return instruction
    descriptors = [o for o in instruction.operands if isinstance(o, RegisterRange) and (o.file, o.count) == ("s", 4)]
    if not descriptors or descriptors[0].index != abi["private_segment_buffer"] or access.kind not in ("load", "store"):
        return instruction
    local = MemoryAccess("local", access.kind, access.width)
    return replace(instruction, class_=f"local_{access.kind}", memory=local)
