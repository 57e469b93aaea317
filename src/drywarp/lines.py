"""Where the cycles go, by source line: the stalls of a line's instructions added up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .kernel.classes import is_barrier
from .kernel.kernel import Kernel
from .result import LineCost


def line_costs(kernel: Kernel, node_stalls: Mapping[int, Mapping[str, float]], source: str = "") -> list[LineCost]:
    """The cost of every line, most first. `source` is the text of the kernel's own file, if it came as text.

    Time at a barrier is shown there (see `shown_stalls`).
    """
    by_line: dict[tuple[str, int], dict[str, float]] = {}
    for index, stalls in shown_stalls(kernel, node_stalls).items():
        place = kernel.instructions[index].source
        reasons = by_line.setdefault((place.file, place.line) if place else ("", 0), {})
        for reason, cycles in stalls.items():
            reasons[reason] = reasons.get(reason, 0.0) + cycles
    total = sum(sum(reasons.values()) for reasons in by_line.values())
    texts = {kernel.source_file: source.splitlines()} if source else {}
    costs = []
    for (file, line), reasons in by_line.items():
        cycles = sum(reasons.values())
        stall = max(reasons, key=lambda reason: reasons[reason])
        share = cycles / total if total else 0.0
        costs.append(LineCost(file, line, cycles, share, stall, _text(texts, file, line)))
    return sorted(costs, key=lambda cost: (-cost.cycles, cost.file, cost.line))


def shown_stalls(kernel: Kernel, node_stalls: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    """Warp-cycles by instruction and stall reason, each where a reader looks for it.

    The simulation books time at a barrier under the instruction after it, which waits to issue; a reader
    looks for it at the barrier, so it is shown there.
    """
    shown: dict[int, dict[str, float]] = {}
    for index, stalls in node_stalls.items():
        # A barrier never branches: what follows it is the next instruction.
        after_barrier = index > 0 and is_barrier(kernel.instructions[index - 1])
        for reason, cycles in stalls.items():
            reasons = shown.setdefault(index - 1 if reason == "barrier" and after_barrier else index, {})
            reasons[reason] = reasons.get(reason, 0.0) + cycles
    return shown


def _text(texts: dict[str, list[str]], file: str, line: int) -> str:
    if file and file not in texts:
        try:
            texts[file] = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            texts[file] = []
    lines = texts.get(file, [])
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
