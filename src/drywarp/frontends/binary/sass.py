"""Parse machine code as nvdisasm prints it (`-c -gi`) into instructions.

A listing looks like this:

    .section .text.saxpy,"ax",@progbits
    .L_x_1:
        //## File "/tmp/saxpy.cu", line 4 inlined at "/tmp/saxpy.cu", line 8
        //## File "/tmp/saxpy.cu", line 8
        /*0190*/  @!P0 BRA `(.L_x_0) ;

With `-hex`, the 128-bit encoding follows, its upper half on a separate line. Without `-hex`, the encodings are read
from the sections themselves, and nvdisasm's output is four times smaller:

        /*0190*/  @!P0 BRA `(.L_x_0) ;        /* 0x000003c000008947 */
                                              /* 0x000fea0003800000 */

An instruction of an inlined function is attributed to the line inside that function (line 4 above), as in Nsight
Compute's source view. If that line is in a toolkit header, or in Triton's or Numba's own library, the instruction is
attributed to the calling line instead.

Modules have hundreds of thousands of instructions, but few distinct operands, mnemonics and control bits. Each of
these is parsed once and shared between instructions.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from ...errors import InputFileError, ToolError
from ...kernel.instruction import (
    CONTROL_SHIFT,
    ControlBits,
    Instruction,
    Label,
    MemoryAccess,
    Operand,
    Predicate,
    SourceLine,
)
from ...kernel.isa.nvidia.opcodes import class_of, memory_access
from ..cache import key_of, read, tool_versions, toolkit_folder, write
from .sass_operands import parse_operand

_SECTION = re.compile(r"\.section\s+([^,\s]+)")
_CODE_PREFIX = ".text."
_LABEL = re.compile(r"[.$\w]+:$")
_FILE = re.compile(r'//## File "([^"]*)", line (\d{1,9})\b( inlined at)?')
_PLACE = re.compile(r"/\*([0-9a-f]{4,})\*/\s")
_ENCODING = re.compile(r"/\* 0x([0-9a-f]{16}) \*/$")
_ENCODING_WIDTH = len("/* 0x0123456789abcdef */")
_GUARD = re.compile(r"@(!?)(U?)P(\d|T)$")
_TOOLKIT = re.compile(
    r"/drywarp-headers/|/host_headers/|/cuda[^/]*/(?:targets/[^/]+/)?include/|/nvidia/cu\d+/include/"
    r"|(?:^|/)__nv_nvrtc_builtin_header\.h$"
    r"|/triton/(?:language|experimental)/|/numba(?:_cuda)?/"
)
_LONGEST_SHOWN = 200
_BYTES = 16
"""Bytes of an instruction, from Volta on."""
_SELF = re.compile(r"BRA `\(([^()]+)\)$")
_SCHEDULE = re.compile(r"\?\w+.*$|&\w+=\S+")
_NO_COMMA = re.compile(r"^(U?R\w+) +(?=\S)")
_NOTE = re.compile(r'\(\*"(\w++)([^"]*)"\*\)')


class _Raw(NamedTuple):
    """A raw instruction; `encoding` is None if the listing does not include it."""

    pc: int
    text: str
    encoding: int | None
    source: SourceLine | None


@dataclass
class Listing:
    """One code section: its instructions in address order, and the byte offsets of its labels."""

    name: str
    instructions: tuple[Instruction, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)


def parse_listing(
    text: str, origin: str = "<machine code>", code: Mapping[str, bytes] | None = None
) -> dict[str, Listing]:
    """Parse the output of nvdisasm; returns the code sections by kernel symbol.

    `code` maps the same symbols to the bytes of the sections, for a listing without encodings. Raises
    InputFileError naming `origin` and the line if the listing cannot be parsed.
    """
    with _uncollected():
        return _parsed(text, origin, code or {})


def _parsed(text: str, origin: str, code: Mapping[str, bytes]) -> dict[str, Listing]:
    listings: dict[str, Listing] = {}
    raws: dict[str, list[_Raw]] = {}
    current: list[_Raw] | None = None
    labels: dict[str, int] = {}
    source: SourceLine | None = None
    places: list[SourceLine] = []
    for number, untrimmed in enumerate(text.splitlines(), 1):
        line = untrimmed.strip()
        if line.startswith("/*"):
            if place := _PLACE.match(line):
                if current is None:
                    raise InputFileError(f"{origin}:{number}: machine code outside a .text section")
                rest, encoding = line[place.end() :], None
                if rest.endswith("*/") and (match := _ENCODING.match(rest, len(rest) - _ENCODING_WIDTH)):
                    rest, encoding = rest[: match.start()], int(match[1], 16)
                current.append(_Raw(int(place[1], 16), rest.strip(" \t;"), encoding, source))
            elif match := _ENCODING.match(line):
                if not current or (low := current[-1].encoding) is None:
                    raise InputFileError(f"{origin}:{number}: upper half of an encoding without its instruction")
                current[-1] = current[-1]._replace(encoding=low | int(match[1], 16) << 64)
        elif match := _FILE.match(line):
            # nvdisasm prints the locations of one instruction innermost first, all but the last with "inlined at".
            places.append(_source_line(match[1], int(match[2])))
            if not match[3]:
                source = next((p for p in places if not _is_toolkit(p.file)), places[-1])
                places = []
        elif match := _SECTION.match(line):
            current, source, places = None, None, []
            if match[1].startswith(_CODE_PREFIX):
                name = match[1].removeprefix(_CODE_PREFIX)
                current, listing = [], Listing(name)
                listings[name], raws[name], labels = listing, current, listing.labels
        elif current is not None and _LABEL.match(line):
            # A label precedes its instruction, possibly with source comments in between.
            labels[line[:-1]] = (current[-1].pc + _BYTES) if current else 0
    for name, listing in listings.items():
        if any(raw.pc != _BYTES * number for number, raw in enumerate(raws[name])):
            raise InputFileError(f"{origin}: {name}: instructions that are not {_BYTES} bytes apart")
        body = _without_padding(raws.pop(name), listing.labels)
        given = code.get(name, b"")
        listing.instructions = tuple([_instruction(raw, listing.labels, given, origin) for raw in body])
    return listings


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the cyclic garbage collector, which would scan all instructions again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@lru_cache(1 << 12)
def _source_line(file: str, line: int) -> SourceLine:
    return SourceLine(file, line)


@lru_cache(1 << 10)
def _is_toolkit(file: str) -> bool:
    return _TOOLKIT.search(file) is not None


def _without_padding(raws: list[_Raw], labels: dict[str, int]) -> list[_Raw]:
    """Drop the `BRA self` and the NOPs that pad a section to its alignment."""
    end = len(raws)
    while end and raws[end - 1].text == "NOP":
        end -= 1
    if end > 1 and (match := _SELF.match(raws[end - 1].text)) and labels.get(match[1]) == raws[end - 1].pc:
        end -= 1
    return raws[:end]


def split_operands(text: str) -> Iterator[str]:
    """Split at commas outside brackets, parentheses and braces."""
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


class _Mnemonic(NamedTuple):
    """What a mnemonic determines by itself."""

    opcode: str
    modifiers: tuple[str, ...]
    class_: str
    memory: MemoryAccess | None


@lru_cache(1 << 14)
def _mnemonic(text: str) -> _Mnemonic:
    opcode, *names = text.split(".")
    modifiers = tuple(names)
    return _Mnemonic(opcode, modifiers, class_of(opcode, modifiers), memory_access(opcode, modifiers))


@lru_cache(1 << 16)
def _control(bits: int) -> ControlBits:
    return ControlBits.decode(bits << CONTROL_SHIFT)


@lru_cache(1 << 16)
def _operand(text: str) -> Operand:
    """Parse an operand without a label; surrounding blanks are ignored."""
    return parse_operand(text.strip(), {})


def _operands(text: str, labels: Mapping[str, int]) -> tuple[Operand, ...]:
    """Parse all operands. Raises ValueError for invalid text."""
    if not text:
        return ()
    if "(" in text or "{" in text or "@" in text:
        return tuple(parse_operand(part, labels) for part in split_operands(text))
    # No other brackets can contain commas.
    return tuple([_operand(part) for part in text.split(",")])


@lru_cache(1 << 10)
def _guard(text: str) -> Predicate | None:
    """Parse an instruction's first word as a guard; None if it is not one."""
    match = _GUARD.match(text)
    return Predicate(7 if match[3] == "T" else int(match[3]), bool(match[2]), bool(match[1])) if match else None


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def _instruction(raw: _Raw, labels: Mapping[str, int], code: bytes, origin: str) -> Instruction:
    text, encoding = raw.text, raw.encoding
    if encoding is None:
        if raw.pc + _BYTES > len(code):
            raise InputFileError(f"{origin}: no encoding for the instruction at {raw.pc:#06x}: {_shown(raw.text)}")
        encoding = int.from_bytes(code[raw.pc : raw.pc + _BYTES], "little")
    guard = None
    if text.startswith("@"):
        first, _, after = text.partition(" ")
        if guard := _guard(first):
            text = after.lstrip()
    targets: list[str] = []
    if "(*" in text and (match := _NOTE.search(text)):
        if match[1] == "BRANCH_TARGETS":
            targets = [t for t in match[2].strip().split(",") if t]
        text = text[: match.start()]
    if "?" in text or "&" in text:
        text = _SCHEDULE.sub("", text)
    mnemonic, _, rest = text.strip().partition(" ")
    if not 0 < len(mnemonic) <= _LONGEST_SHOWN:
        raise InputFileError(f"{origin}: instruction at {raw.pc:#06x} cannot be parsed: {_shown(raw.text)}")
    said = _mnemonic(mnemonic)
    if rest and "," not in rest:
        # `CALL.REL.NOINC R8 `(kernel)`, RET and `BRX R4 -0x9c0` have no comma after the register.
        rest = _NO_COMMA.sub(r"\1, ", rest)
    try:
        operands = _operands(rest, labels)
    except ValueError as error:
        what = f"cannot be parsed: {_shown(raw.text)} ({error})"
        raise InputFileError(f"{origin}: instruction at {raw.pc:#06x} {what}") from None
    if targets:
        operands = (*operands, *(Label(t, labels.get(t, -1)) for t in targets))
    return Instruction(
        pc=raw.pc,
        opcode=said.opcode,
        modifiers=said.modifiers,
        operands=operands,
        guard=guard,
        class_=said.class_,
        memory=said.memory,
        control=_control(encoding >> CONTROL_SHIFT),
        source=raw.source,
        text=raw.text,
        encoding=encoding,
    )


# Disassemble a CUBIN with nvdisasm.

_SECONDS, _SECONDS_PER_MIB = 60, 60
"""Time limit of nvdisasm: many times what a compiler's output needs. A damaged file may never finish."""

_JUMP_TABLE = re.compile(r"\b(?:BRX|JMX)")
"""Jumps whose targets nvdisasm finds by data-flow analysis, which takes a fifth of its time and runs only for these."""


LISTINGS = "listings"
"""The cache's folder of listings, each under a digest of its CUBIN: builds of one file for each of its kernels, or with
options that change nothing, are one CUBIN."""
_MOST_BYTES = 1 << 28
"""Size limit of that folder."""


def listing_of(cubin: bytes, origin: str) -> str:
    """What `disassemble` returns, from the cache if possible. Raises ToolError with nvdisasm's message."""
    key = key_of("listing", tool_versions()["nvdisasm"], cubin)
    if (held := read(LISTINGS, key)) is not None:
        return held.decode("utf-8", "replace")
    text = disassemble(cubin, origin)
    write(LISTINGS, key, text.encode("utf-8", "replace"), _MOST_BYTES)
    return text


def disassemble(cubin: bytes, origin: str) -> str:
    """Disassemble the code sections, with source lines and without encodings.

    Raises ToolError with nvdisasm's message.
    """
    tool = toolkit_folder() / "bin" / "nvdisasm"
    seconds = _SECONDS + _SECONDS_PER_MIB * len(cubin) / (1 << 20)
    try:
        with _as_file(cubin) as (name, descriptors):
            run = partial(_run, seconds, descriptors, tool, "-c")
            result = run("-gi", "-ndf", name)
            if result.returncode == 0 and _JUMP_TABLE.search(result.stdout):
                result = run("-gi", name)
            if result.returncode < 0:
                # nvdisasm crashes on line tables with gaps in their file numbers; it can still print the code itself.
                result = run(name)
    except OSError as error:
        raise ToolError(f"nvdisasm cannot be run from {tool}: {error}") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"{origin}: nvdisasm took longer than {seconds:.0f} s") from None
    if result.returncode or not result.stdout:
        message = (result.stderr or "no output").strip().splitlines()[0].replace(name, Path(origin).name)
        raise ToolError(f"{origin}: nvdisasm failed: {message}")
    return result.stdout


@contextmanager
def _as_file(content: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A name under which a tool can read some bytes, and the descriptors that it has to inherit.

    nvdisasm reads only files; drywarp's output never shows the temporary name. Where the system can, the file is in
    no folder, so that nothing remains of it if drywarp is killed.
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile(suffix=".cubin", delete=False) as file:
            file.write(content)
        try:
            yield file.name, ()
        finally:
            os.unlink(file.name)
        return
    with os.fdopen(os.memfd_create("cubin"), "wb") as memory:
        memory.write(content)
        memory.flush()
        yield f"/proc/self/fd/{memory.fileno()}", (memory.fileno(),)


def _run(seconds: float, descriptors: tuple[int, ...], *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, errors="replace", timeout=seconds, pass_fds=descriptors
    )
