"""The sizes of a GPU's memory hierarchy that decide where an access is served."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryGeometry:
    """Bytes unless said otherwise; `l1_bytes` is what the shared-memory carve-out leaves of one SM.

    `l3_bytes` is a cache between L2 and DRAM (0: none). `shared_banks_serve_l1` says whether the banks of shared
    memory are the L1's data stage too. `dirty_share` is how much of the L2 may hold what DRAM does not have yet.
    """

    sector_bytes: int
    line_bytes: int
    banks: int
    bank_bytes: int
    l1_bytes: int
    l2_bytes: int
    sm_count: int
    blocks_per_sm: int
    l3_bytes: int = 0
    shared_banks_serve_l1: bool = True
    dirty_share: float = 1.0

    @property
    def wave_blocks(self) -> int:
        """Blocks that run at once on the whole GPU."""
        return self.sm_count * self.blocks_per_sm
