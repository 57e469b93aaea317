"""What a run over a folder answers: one row for each module, and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import __version__
from ..frontends.toolchain import tool_versions
from ..result import SCHEMA_VERSION

STAGES = ("read", "compile", "parse", "classify", "analyse", "emulate", "predict", "done")
"""How far a module came. `compile` covers the disassembler; `emulate` is reached where a launch is known."""

ANALYSED, FAILED, COMPILE_FAILED = "analysed", "failed", "compile_failed"
NO_KERNELS, PART = "no_kernels", "part"


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel: size, registers, loops, what static analysis predicts (None: nothing), and what emulation does."""

    name: str
    instructions: int
    registers: int
    loops: int
    predicted_s: float | None = None
    emulated_s: float | None = None


@dataclass(frozen=True)
class Row:
    """One module.

    `status` is ``analysed``; ``compile_failed`` where the compiler (or, for machine code, the reader) refuses
    it; ``failed`` where it compiles and the rest fails; ``no_kernels`` where it has no device code of its own
    to compile; ``part`` where it does not compile alone and another module includes it. `stage` is the one at
    which it stopped, `reason` why. `seconds` is wall time, `peak_rss_bytes` the most memory that its process and
    the tools it ran had resident.
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
            "file": self.file,
            "status": self.status,
            "stage": self.stage,
            "reason": self.reason or None,
            "compiler": self.compiler or None,
            "kernels": [
                {
                    "name": k.name,
                    "instructions": k.instructions,
                    "registers": k.registers,
                    "loops": k.loops,
                    "static_time_s": k.predicted_s,
                    "time_s": k.emulated_s,
                }
                for k in self.kernels
            ],
            "unclassified_opcodes": dict(self.unclassified),
            "wall_s": self.seconds,
            "peak_rss_bytes": self.peak_rss_bytes,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """`modules` = `analysed` + `failed`; `compile_failed` is part of `failed`. The rest are no modules."""

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
    """All rows by file name, with what they hold for."""

    folder: str
    gpu: str
    gpu_hash: str
    rows: tuple[Row, ...]
    seconds: float

    @property
    def totals(self) -> Totals:
        """Counts over the rows; `unclassified_opcodes` counts different opcodes without a class."""
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
        totals = self.totals
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": {"drywarp": __version__, **tool_versions()},
            "folder": self.folder,
            "gpu": self.gpu,
            "gpu_hash": self.gpu_hash,
            "totals": {name: getattr(totals, name) for name in Totals.__slots__},
            "wall_s": self.seconds,
            "rows": [row.to_dict() for row in self.rows],
        }


def row_of(found: Mapping[str, Any]) -> Row:
    """A row from what a worker sent."""
    kernels: Sequence[Mapping[str, Any]] = found.get("kernels", ())
    return Row(**{**found, "kernels": tuple(KernelRow(**kernel) for kernel in kernels)})
