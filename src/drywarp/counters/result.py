"""The answer of `drywarp counts`: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..kernel.launch import Dim3


@dataclass(frozen=True)
class Counts:
    """Nsight Compute's metrics of one launch on one GPU, for the whole grid.

    `counts` maps metric to value (see `METRICS`). `method` says where the L2 and DRAM figures come from
    (``affine``, ``followed``, ``emulated`` or ``bounded``, between extremes).
    """

    kernel: str
    source_file: str
    arch: str
    gpu: str
    gpu_title: str
    gpu_hash: str
    grid: Dim3
    block: Dim3
    registers: int
    shared_bytes: int
    local_bytes: int
    sampled_blocks: int
    method: str
    l2_state: str
    counts: Mapping[str, float]
    versions: Mapping[str, str]
    schema_version: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        return {
            "schema_version": self.schema_version,
            "versions": dict(self.versions),
            "kernel": self.kernel,
            "source_file": self.source_file,
            "arch": self.arch,
            "gpu": self.gpu,
            "gpu_title": self.gpu_title,
            "gpu_hash": self.gpu_hash,
            "assumptions": {"l2": self.l2_state},
            "launch": {"grid": list(self.grid), "block": list(self.block), "sampled_blocks": self.sampled_blocks},
            "resources": {
                "registers": self.registers,
                "shared_bytes": self.shared_bytes,
                "local_bytes": self.local_bytes,
            },
            "l2_method": self.method,
            "counts": dict(self.counts),
            "notes": list(self.notes),
        }
