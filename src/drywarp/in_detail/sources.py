"""The source text round the lines that have instructions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..detail import CodeLine, SourceText
from ..ready import BoundKernel

WHOLE_LINES, MOST_LINES = 4_000, 30_000
"""A file of so many lines is taken as a whole; so many lines are taken in all."""

AROUND, LONGEST = 4, 400
"""Of a larger file so many lines round each that counts are taken; a line is cut after so many characters."""


def source_texts(ready: BoundKernel, code: Sequence[CodeLine]) -> tuple[tuple[SourceText, ...], tuple[str, ...]]:
    """The files that instructions come from, the kernel's own first, then by cost; and what was left out.

    A file that cannot be read is there with its lines' numbers and no text.
    """
    kernel = ready.kernel
    costs: dict[str, dict[int, float]] = {}
    for line in code:
        if line.file:
            by_line = costs.setdefault(line.file, {})
            by_line[line.line] = by_line.get(line.line, 0.0) + sum(line.stalls.values())
    files = sorted(costs, key=lambda file: (file != kernel.source_file, -sum(costs[file].values()), file))
    found, cut, left = [], [], MOST_LINES
    for file in files:
        text = ready.source if file == kernel.source_file and ready.source else _read(file)
        lines = text.splitlines()
        wanted = range(1, len(lines) + 1)
        numbers = list(wanted) if len(lines) <= WHOLE_LINES else _around(costs[file], len(lines))
        numbers = numbers or sorted(costs[file])
        if len(numbers) > left:
            numbers = sorted(sorted(numbers, key=lambda number: -costs[file].get(number, 0.0))[:left])
            cut.append(f"{Path(file).name}: {len(numbers):,} of its {len(lines):,} lines")
        elif 0 < len(numbers) < len(lines):
            cut.append(f"{Path(file).name}: only lines near those that have instructions")
        left -= len(numbers)
        texts = ((n, lines[n - 1][:LONGEST] if n <= len(lines) else "") for n in numbers)
        found.append(SourceText(file, tuple(texts), len(lines)))
    return tuple(found), tuple(cut)


def _around(lines: dict[int, float], last: int) -> list[int]:
    near = {n for line in lines for n in range(line - AROUND, line + AROUND + 1)}
    return sorted(n for n in near if 1 <= n <= last)


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
