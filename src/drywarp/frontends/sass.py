"""Machine code as nvdisasm prints it (`-hex -c -gi`), parsed into instructions.

A listing looks like this, the last line holding the upper half of the 128-bit encoding:

    .section .text.saxpy,"ax",@progbits
    .L_x_1:
        //## File "/tmp/saxpy.cu", line 4 inlined at "/tmp/saxpy.cu", line 8
        //## File "/tmp/saxpy.cu", line 8
        /*0190*/  @!P0 BRA `(.L_x_0) ;        /* 0x000003c000008947 */
                                              /* 0x000fea0003800000 */

An instruction of an inlined function belongs to the line where its work is written (line 4 above), as
in Nsight Compute's source view; only where that is a header of the toolkit, or Triton's or Numba's own
library, to the line that called it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import InputFileError
from ..kernel.classes import class_of, memory_access
from ..kernel.instruction import ControlBits, Instruction, SourceLine
from ..kernel.operand import Label, Predicate
from .sass_operands import parse_operand

_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_OTHER_SECTION = re.compile(r"\s*\.section\s+(?!\.text\.)")
_LABEL = re.compile(r"^([.$\w]+):\s*$")
_FILE = re.compile(r'\s*//## File "([^"]*)", line (\d+)( inlined at)?')
_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_UPPER = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_GUARD = re.compile(r"@(!?)(U?)P(\d|T)\s+")
_TOOLKIT = re.compile(
    r"/drywarp-headers/|/host_headers/|/cuda[^/]*/(?:targets/[^/]+/)?include/|/nvidia/cu\d+/include/"
    r"|(?:^|/)__nv_nvrtc_builtin_header\.h$"
    r"|/triton/(?:language|experimental)/|/numba(?:_cuda)?/"
)
_SELF = re.compile(r"BRA `\(([^()]+)\)$")
_NOTE = re.compile(r'\(\*"(\w+)([^"]*)"\*\)')


@dataclass
class _Raw:
    pc: int
    text: str
    low: int
    high: int = 0
    source: SourceLine | None = None


@dataclass
class Listing:
    """One code section: its instructions in address order and where its labels stand (bytes)."""

    name: str
    instructions: tuple[Instruction, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)


def parse_listing(text: str, origin: str = "<machine code>") -> dict[str, Listing]:
    """Parse the output of nvdisasm; returns the code sections by kernel symbol.

    Raises InputFileError naming `origin` and the line of a listing that cannot be read.
    """
    listings: dict[str, Listing] = {}
    raws: dict[str, list[_Raw]] = {}
    current = ""
    source: SourceLine | None = None
    places: list[SourceLine] = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _CODE.match(line):
            if not current:
                raise InputFileError(f"{origin}:{number}: machine code outside a .text section")
            raws[current].append(_Raw(int(match[1], 16), match[2], int(match[3], 16), 0, source))
        elif match := _UPPER.match(line):
            if not current or not raws[current]:
                raise InputFileError(f"{origin}:{number}: upper half of an encoding without its instruction")
            raws[current][-1].high = int(match[1], 16)
        elif match := _FILE.match(line):
            # The places of one instruction are printed innermost first, all but the last "inlined at".
            places.append(SourceLine(match[1], int(match[2])))
            if not match[3]:
                source = next((p for p in places if not _TOOLKIT.search(p.file)), places[-1])
                places = []
        elif match := _SECTION.match(line):
            current = match[1]
            listings[current] = Listing(current)
            raws[current] = []
            source, places = None, []
        elif _OTHER_SECTION.match(line):
            current = ""
        elif current and (match := _LABEL.match(line)):
            # A label precedes its instruction; source comments may stand between.
            listings[current].labels[match[1]] = (raws[current][-1].pc + 16) if raws[current] else 0
    for name, listing in listings.items():
        body = _without_padding(raws[name], listing.labels)
        listing.instructions = tuple(_instruction(raw, listing.labels, origin) for raw in body)
    return listings


def _without_padding(raws: list[_Raw], labels: dict[str, int]) -> list[_Raw]:
    """Drop the `BRA self` and the NOPs that fill a section up to its alignment."""
    end = len(raws)
    while end and raws[end - 1].text == "NOP":
        end -= 1
    if end > 1 and (match := _SELF.match(raws[end - 1].text)) and labels.get(match[1]) == raws[end - 1].pc:
        end -= 1
    return raws[:end]


def split_operands(text: str) -> Iterator[str]:
    """Split at the commas that stand outside brackets, parentheses and braces."""
    depth, start = 0, 0
    for position, char in enumerate(text):
        if char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if text[start:].strip():
        yield text[start:].strip()


def _instruction(raw: _Raw, labels: dict[str, int], origin: str) -> Instruction:
    text = raw.text
    guard = None
    if match := _GUARD.match(text):
        guard = Predicate(7 if match[3] == "T" else int(match[3]), bool(match[2]), bool(match[1]))
        text = text[match.end() :]
    targets: list[str] = []
    if match := _NOTE.search(text):
        if match[1] == "BRANCH_TARGETS":
            targets = [t for t in match[2].strip().split(",") if t]
        text = text[: match.start()]
    text = re.sub(r"\?\w+.*$|&\w+=\S+", "", text).strip()
    mnemonic, _, rest = text.partition(" ")
    opcode, *modifiers = mnemonic.split(".")
    # `CALL.REL.NOINC R8 `(kernel)`, RET and `BRX R4 -0x9c0` print no comma behind the register.
    rest = re.sub(r"^(U?R\w+) +(?=\S)", r"\1, ", rest)
    try:
        operands = [parse_operand(part, labels) for part in split_operands(rest)]
    except ValueError as error:
        raise InputFileError(f"{origin}: instruction at {raw.pc:#06x} not understood: {raw.text} ({error})") from None
    operands += [Label(t, labels.get(t, -1)) for t in targets]
    names = tuple(modifiers)
    encoding = raw.low | raw.high << 64
    return Instruction(
        pc=raw.pc,
        opcode=opcode,
        modifiers=names,
        operands=tuple(operands),
        guard=guard,
        class_=class_of(opcode, names),
        memory=memory_access(opcode, names),
        control=ControlBits.decode(encoding),
        source=raw.source,
        text=raw.text,
        encoding=encoding,
    )
