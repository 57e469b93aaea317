"""What is said of a predicted row besides times: the names of its columns in files."""

from __future__ import annotations

BAND_LEVEL, BAND_LOW, BAND_HIGH = "band_level", "band_low_s", "band_high_s"
CLOCK_LOW, CLOCK_HIGH = "band_at_clock_low_s", "band_at_clock_high_s"
BAND = (BAND_LEVEL, BAND_LOW, BAND_HIGH, CLOCK_LOW, CLOCK_HIGH)
"""The band of the believed model's time: its probability, and its ends in seconds over all clocks and at the assumed
one; empty where there is none. Files of earlier versions lack these columns."""
SPENT = ("compile_s", "emulate_s", "memory_s", "models_s")
"""What took the wall time of a row; nothing but compiling where its answer was kept."""
FACTS = (
    *("clock_mhz", "registers", "register_cap", "local_bytes", "shared_bytes", "code_instructions", "warps_per_sm"),
    *("occupancy", "occupancy_limited_by", "waves", "warp_instructions", "l1_hit_rate", "l2_hit_rate", "dram_bytes"),
    *("achieved_warps", "busiest", "utilization", *BAND, *SPENT),
)
"""What is said of a kernel and its launch besides times: `register_cap` is 0 where none was needed; `waves` are blocks
over the blocks that the GPU holds at once; `utilization` lists the share of the time that each subsystem is busy; the
last four say what took the wall time."""
NOT_APPLICABLE = "not applicable: "
"""How the limiter of a model that says nothing about a row begins; the reason follows."""
