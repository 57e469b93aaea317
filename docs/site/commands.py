"""Commands and Python programs that the documents show, and which of them a test can run.

A block is fenced (`sh`, `python`) or indented by four spaces. What cannot run says so in a comment before its block,
which readers of the page do not see: ``<!-- not run: the reader's own table -->``. Without one, a command of drywarp
whose files are all in the repository is run; of one with files of the reader's own the options are checked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .links import ROOT

NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
_SUFFIXES = frozenset(".cu .cuh .ptx .cubin .toml .py .csv .json .cl .hip .s .html .svg .npy .jsonl .md".split())
_COMMAND = re.compile(r"(?:^|&& )(?:\.venv/bin/)?drywarp ")
_OPTIONAL = re.compile(r"^\[?(--\S+|[^\[\]]+?)\]?$")
_OPENING = re.compile(r"^```(\w*)\s*$")
_WRITTEN = frozenset({"--html", "--trace", "--plot", "--bars", "-o", "--out", "--rows", "--kept", "--journal", ">"})


@dataclass(frozen=True)
class Block:
    """Code of a document: `language` is empty for an indented block, `excuse` why it is not run, or empty."""

    file: str
    line: int
    language: str
    text: str
    excuse: str


@dataclass(frozen=True)
class Command:
    """What one types after `drywarp`. `missing` is files that the repository lacks."""

    file: str
    line: int
    arguments: tuple[str, ...]
    excuse: str
    missing: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} drywarp {' '.join(self.arguments)}"


def documents() -> list[Path]:
    """README, the pages, and the READMEs of examples."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


def blocks(path: Path) -> Iterator[Block]:
    """All blocks of code of a document."""
    name = path.relative_to(ROOT).as_posix()
    lines = [*path.read_text(encoding="utf-8").splitlines(), ""]
    excuse, at, blank = "", 0, True
    while at < len(lines):
        line, first = lines[at], at
        if opening := _OPENING.match(line):
            while lines[(at := at + 1)] != "```":
                pass
            yield Block(name, first + 2, opening[1], "\n".join(lines[first + 1 : at]), excuse)
            excuse = ""
        elif line.startswith("    ") and blank:
            while at + 1 < len(lines) and (lines[at + 1].startswith("    ") or not lines[at + 1].strip()):
                at += 1
            text = "\n".join(part[4:] for part in lines[first : at + 1])
            yield Block(name, first + 1, "", text, excuse)
            excuse = ""
        elif found := NOT_RUN.search(line):
            excuse = found[1]
        blank = not lines[at].strip()
        at += 1


def commands(block: Block) -> Iterator[Command]:
    """The drywarp commands of a block; a backslash at the end of a line goes on in the next."""
    if block.language not in ("", "sh"):
        return
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        first, whole = at, lines[at]
        while whole.endswith("\\") and at + 1 < len(lines):
            at += 1
            whole = whole[:-1] + lines[at].strip()
        at += 1
        if shown := _COMMAND.search(whole):
            words = tuple(_OPTIONAL.sub(r"\1", word) for word in shlex.split(whole[shown.end() :], comments=True))
            plain = words[: words.index(">")] if ">" in words else words
            yield Command(block.file, block.line + first, plain, block.excuse, tuple(_missing(plain)))


def all_commands() -> list[Command]:
    """Those of all documents."""
    return [command for path in documents() for block in blocks(path) for command in commands(block)]


def python_blocks() -> list[Block]:
    """The Python programs of all documents."""
    return [block for path in documents() for block in blocks(path) if block.language == "python"]


def _missing(words: tuple[str, ...]) -> Iterator[str]:
    """Files and folders that a command reads, and the repository has not."""
    for before, word in zip(("", *words), words, strict=False):
        if before in _WRITTEN:
            continue
        a_file = "=" not in word and Path(word).suffix in _SUFFIXES
        if word in ("DIR", "…") or (a_file and not (ROOT / word).exists()):
            yield word
    if words[:1] == ("corpus",) and len(words) > 1 and not (ROOT / words[1]).exists():
        yield words[1]
