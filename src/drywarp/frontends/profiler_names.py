"""Nsight Compute's metric names behind the labels of its details page, and behind names that have changed."""

from __future__ import annotations

_LABELS = {
    "Duration": "gpu__time_duration.sum",
    "Elapsed Cycles": "sm__cycles_elapsed.max",
    "SM Active Cycles": "sm__cycles_active.avg",
    "SM Frequency": "smsp__cycles_elapsed.avg.per_second",
    "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
    "Registers Per Thread": "launch__registers_per_thread",
    "Block Size": "launch__block_size",
    "Grid Size": "launch__grid_size",
    "Threads": "launch__thread_count",
    "Waves Per SM": "launch__waves_per_multiprocessor",
    "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
    "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
    "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "Executed Instructions": "smsp__inst_executed.sum",
    "Issued Instructions": "smsp__inst_issued.sum",
    "Avg. Executed Instructions Per Scheduler": "smsp__inst_executed.avg",
    "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
    "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
    "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
    "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
    "Memory Throughput": "dram__bytes.sum.per_second",
    "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "Avg. Not Predicated Off Threads Per Warp": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
}
"""Label of the details page to metric."""

_FORMER = {
    "gpc__cycles_elapsed.avg.per_second": "smsp__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second": "smsp__cycles_elapsed.avg.per_second",
    "gpu__time_duration.avg": "gpu__time_duration.sum",
    "gpu__time_duration_measured_wallclock": "gpu__time_duration.sum",
    "gpu__time_duration": "gpu__time_duration.sum",
    "sm__inst_executed.sum": "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "l1tex__t_sector_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate": "lts__t_sector_hit_rate.pct",
}
"""Another name of the same figure to the one that drywarp uses."""


def metric_name(printed: str, unit: str) -> str:
    """The metric that a printed name or label stands for; the name itself where it is none that we know."""
    # The label is that of a share of the peak too.
    if printed == "Memory Throughput" and "/" not in unit:
        return "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    known = _LABELS.get(printed, printed)
    return _FORMER.get(known, known)
