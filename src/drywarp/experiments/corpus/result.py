"""The result of a run over a folder: one row for each module, and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...analysis.result import headed
from ...frontends.cache import tool_versions
from ...support.text import json_of

ANALYSED, FAILED, COMPILE_FAILED = "analysed", "failed", "compile_failed"
NO_KERNELS, PART = "no_kernels", "part"


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel: size, registers, loops, and the times predicted statically (None: none) and with emulation."""

    name: str
    instructions: int
    registers: int
    loops: int
    predicted_s: float | None = None
    emulated_s: float | None = None


@dataclass(frozen=True)
class Row:
    """One module.

    `status` is ``analysed``; ``compile_failed`` if the compiler (or, for machine code, the reader) rejects it;
    ``failed`` if it compiles but a later step fails; ``no_kernels`` if it has no device code of its own; ``part`` if it
    does not compile alone and another module includes it. `stage` is where it stopped (read, compile with disassembly,
    parse, classify, analyse, emulate if a launch is known, predict, done), `reason` is why. `seconds` is wall time,
    `peak_rss_bytes` the peak resident memory of its process and the tools it ran.
    """

    file: str
    status: str
    stage: str
    reason: str = ""
    kernels: tuple[KernelRow, ...] = ()
    unclassified: Mapping[str, int] = field(default_factory=dict)
    compiler: str = ""
    seconds: float = 0.0
    peak_rss_bytes: int = 0
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The row of the documented JSON object."""
        return {
            **json_of(self, "file status stage notes"),
            "reason": self.reason or None,
            "compiler": self.compiler or None,
            "kernels": [
                json_of(k, "name instructions registers loops")
                | {"static_time_s": k.predicted_s, "time_s": k.emulated_s}
                for k in self.kernels
            ],
            "unclassified_opcodes": dict(self.unclassified),
            "wall_s": self.seconds,
            "peak_rss_bytes": self.peak_rss_bytes,
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """`modules` = `analysed` + `failed`; `compile_failed` is part of `failed`. The rest do not count as modules."""

    modules: int
    analysed: int
    failed: int
    unclassified_opcodes: int
    compile_failed: int
    kernels: int
    instructions: int
    no_kernels: int
    parts: int


@dataclass(frozen=True)
class CorpusReport:
    """All rows by file name, with the folder and GPU they apply to."""

    folder: str
    gpu: str
    gpu_hash: str
    rows: tuple[Row, ...]
    seconds: float

    @property
    def totals(self) -> Totals:
        """Counts over the rows; `unclassified_opcodes` counts distinct opcodes without a class."""
        status = Counter(row.status for row in self.rows)
        failed = status[FAILED] + status[COMPILE_FAILED]
        opcodes = {opcode for row in self.rows for opcode in row.unclassified}
        return Totals(
            modules=status[ANALYSED] + failed,
            analysed=status[ANALYSED],
            failed=failed,
            unclassified_opcodes=len(opcodes),
            compile_failed=status[COMPILE_FAILED],
            kernels=sum(len(row.kernels) for row in self.rows),
            instructions=sum(k.instructions for row in self.rows for k in row.kernels),
            no_kernels=status[NO_KERNELS],
            parts=status[PART],
        )

    @property
    def all_analysed(self) -> bool:
        """Whether everything that compiles was analysed."""
        return not any(row.status == FAILED for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object."""
        return {
            **headed(**tool_versions()),
            **json_of(self, "folder gpu gpu_hash"),
            "totals": json_of(self.totals),
            "wall_s": self.seconds,
            "rows": [row.to_dict() for row in self.rows],
        }


def row_of(found: Mapping[str, Any]) -> Row:
    """A row from what a worker sent."""
    kernels: Sequence[Mapping[str, Any]] = found.get("kernels", ())
    return Row(**{**found, "kernels": tuple(KernelRow(**kernel) for kernel in kernels)})
