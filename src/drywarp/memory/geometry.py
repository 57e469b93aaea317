"""The sizes of a GPU's memory hierarchy that decide where an access is served."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryGeometry:
    """Bytes unless said otherwise; `l1_bytes` is what the shared-memory carve-out leaves of one SM."""

    sector_bytes: int
    line_bytes: int
    banks: int
    bank_bytes: int
    l1_bytes: int
    l2_bytes: int
    sm_count: int
    blocks_per_sm: int

    @property
    def wave_blocks(self) -> int:
        """Blocks that run at once on the whole GPU."""
        return self.sm_count * self.blocks_per_sm
