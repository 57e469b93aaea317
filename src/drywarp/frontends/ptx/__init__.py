"""PTX: what its text states without assembling it: its target, its entries and their parameters.

`assembler` assembles it with ptxas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..cuda.source import blank_comments

_VERSION = re.compile(r"\s*\.version\s+\d+\.\d+\b")
_TARGET = re.compile(r"^[ \t]*+\.target\s+(sm_\d+[a-z]?|compute_\d+[a-z]?)", re.M)
_ENTRY = re.compile(r"\.entry\s++([\w$%]++)\s*+(\([^();{}]*+\))?")
_PARAMETER = re.compile(
    r"\.param\s++(?:\.align\s++\d++\s++)?\.(?P<type>[a-z]+\d*)\b"
    r"(?P<pointer>\s*\.ptr\b(?:\s*\.(?:global|shared|const|local|generic)\b)?(?:\s*\.align\s+\d+)?)?"
    r"\s+(?P<name>[\w$%]+)\s*(?P<array>\[\d*\])?"
)
_LINES = re.compile(r"^[ \t]*+\.loc\s", re.M)
_FILE_NUMBER = re.compile(r"^[ \t]*+\.file\s+(\d{1,9})\b", re.M)
_LABELS = re.compile(r"(?:\s*+[\w$%]++\s*+:)*+\s*+")
_FUNCTION = re.compile(r"\.(?:entry|func)\b")


def is_ptx(text: str) -> bool:
    """Whether this is PTX: the first directive must be `.version`, which no other language starts with."""
    return _VERSION.match(blank_comments(text[:20_000])) is not None


@dataclass(frozen=True, slots=True)
class PtxParameter:
    """A kernel parameter: `type` as PTX spells it (``u64``, ``f32``, ``b8``), empty for an array of bytes.

    `pointer` is true if the text marks it as an address.
    """

    name: str
    type: str
    pointer: bool


@dataclass(frozen=True, slots=True)
class PtxModule:
    """Outline of a PTX text: its `target` (``sm_90a``), its entries by symbol, and whether it has line numbers."""

    target: str
    entries: dict[str, tuple[PtxParameter, ...]]
    has_lines: bool


def read_ptx(text: str) -> PtxModule:
    """The outline of a PTX text; the target is empty if the text has none."""
    clean = blank_comments(text)
    target = _TARGET.search(clean)
    entries = {match[1]: tuple(_parameters(match[2] or "")) for match in _ENTRY.finditer(clean)}
    return PtxModule(target[1] if target else "", entries, _LINES.search(clean) is not None)


def _parameters(text: str) -> list[PtxParameter]:
    return [
        PtxParameter(match["name"], "" if match["array"] else match["type"], match["pointer"] is not None)
        for match in _PARAMETER.finditer(text)
    ]


def with_own_lines(text: str, path: str) -> str:
    """Add a `.loc` with its own line number to every instruction; no line moves.

    For PTX without source line numbers: instruction costs are then attributed to the PTX lines.
    """
    number = max((int(n) for n in _FILE_NUMBER.findall(text)), default=0) + 1
    depth, ended, header, lines = 0, False, "", []
    for count, (line, clean) in enumerate(zip(text.split("\n"), blank_comments(text).split("\n"), strict=True), 1):
        labels = _LABELS.match(clean)
        begin = labels.end() if labels else 0
        # An instruction begins with a letter or its guard, a directive with a dot.
        instruction = clean[begin : begin + 1].isalpha() or clean[begin : begin + 1] == "@"
        if depth and ended and instruction and _FUNCTION.search(header):
            line = f"{line[:begin]} .loc {number} {count} 0 {line[begin:]}"
        lines.append(line)
        if not depth:
            header = clean if ended else header + clean
        depth += clean.count("{") - clean.count("}")
        if rest := clean.strip():
            ended = rest[-1] in ";{}:"
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(lines) + f'\n.file {number} "{escaped}"\n'
