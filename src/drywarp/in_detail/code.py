"""Machine code with what each instruction costs."""

from __future__ import annotations

from collections.abc import Mapping

from ..bound import TICKS_PER_CYCLE, BoundNode
from ..detail import CodeLine
from ..lines import shown_stalls
from ..ready import BoundKernel

MOST_CODE = 30_000
"""Instructions that a detail holds: of more, those that cost most."""


def code_lines(
    ready: BoundKernel, node_stalls: Mapping[int, Mapping[str, float]]
) -> tuple[tuple[CodeLine, ...], tuple[str, ...]]:
    """The kernel's instructions in their order, and what was left out."""
    kernel = ready.kernel
    nodes: dict[int, BoundNode] = {}
    for path in ready.bound.paths:
        for node in path.nodes:
            nodes.setdefault(node.instruction, node)
    stalls = shown_stalls(kernel, node_stalls)
    chosen = list(range(len(kernel.instructions)))
    cut: tuple[str, ...] = ()
    if len(chosen) > MOST_CODE:
        costs = {index: sum(reasons.values()) for index, reasons in stalls.items()}
        chosen = sorted(sorted(chosen, key=lambda index: -costs.get(index, 0.0))[:MOST_CODE])
        cut = (f"machine code: the {MOST_CODE:,} instructions that cost most, of {len(kernel.instructions):,}",)
    executions = ready.profile.executions().tolist()
    lines = []
    for index in chosen:
        instruction, bound = kernel.instructions[index], nodes.get(index)
        place = instruction.source
        lines.append(
            CodeLine(
                index=index,
                pc=instruction.pc,
                text=instruction.text,
                class_=instruction.class_,
                file=place.file if place else "",
                line=place.line if place else 0,
                executions=executions[index],
                stalls=stalls.get(index, {}),
                subsystem=ready.bound.subsystems[bound.subsystem].name if bound else "",
                lambda_cycles=bound.lambda_ticks / TICKS_PER_CYCLE if bound else 0.0,
                latency_cycles=bound.latency_ticks / TICKS_PER_CYCLE if bound else 0.0,
            )
        )
    return tuple(lines), cut
