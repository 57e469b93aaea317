"""The metrics that `drywarp counts` gives, with what each means here and how sure its count is."""

from __future__ import annotations

_EMULATED = "counted by emulation"
_GROUPS = f"{_EMULATED}; which opcodes belong to a group: drywarp.counters.op_classes"

METRICS: dict[str, str] = {
    "smsp__inst_executed.sum": f"warp instructions executed; {_EMULATED}",
    "smsp__thread_inst_executed.sum": (
        f"thread instructions of active lanes, whether their predicate holds or not; {_EMULATED}"
    ),
    "smsp__thread_inst_executed_pred_on.sum": f"thread instructions whose predicate holds; {_EMULATED}",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "active lanes of the mean warp instruction, 0..32",
    "smsp__thread_inst_executed_per_inst_executed.pct": "the same, of 32, in percent",
    "smsp__sass_thread_inst_executed_op_*_pred_on.sum": f"thread instructions by group; {_GROUPS}",
    "smsp__inst_executed_pipe_*.sum": (
        "warp instructions by pipe, as the GPU file assigns classes to pipes; see drywarp.counters.pipes"
    ),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": (
        "global load instructions with an active lane, generic ones that reach global memory included"
    ),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "the same for stores",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "32-byte sectors that global loads ask the L1 for",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "the same for stores",
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum": "global atomics that return a value",
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum": "global reductions, which return none",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum": "sectors of global atomics",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum": "sectors of global reductions",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum": "asynchronous copies from global to shared memory",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum": "sectors that asynchronous copies read",
    "l1tex__t_sector_hit_rate.pct": (
        "sectors of global and local loads that the L1 holds, in percent; modelled, not counted"
    ),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "passes of shared loads over the banks, conflicts included",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "the same for stores",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "all passes over the banks, atomics included",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": "32-byte sectors of local loads",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": "32-byte sectors of local stores",
    "l1tex__t_requests_pipe_tex_mem_texture.sum": "texture fetches with an active lane",
    "l1tex__t_sectors_pipe_tex_mem_texture.sum": (
        "32-byte sectors of the texels that fetches read, as if textures lay row by row"
    ),
    "l1tex__t_requests_pipe_tex_mem_surface_op_ld.sum": "surface loads with an active lane",
    "l1tex__t_requests_pipe_tex_mem_surface_op_st.sum": "surface stores with an active lane",
    "l1tex__t_sectors_pipe_tex_mem_surface_op_ld.sum": "sectors of surface loads, as if surfaces lay row by row",
    "l1tex__t_sectors_pipe_tex_mem_surface_op_st.sum": "sectors of surface stores, as if surfaces lay row by row",
    "lts__t_sectors_op_read.sum": (
        "sectors that the L2 is asked for: loads and fetches that miss the L1, and instructions beyond their cache, as "
        "modelled; constants are left out"
    ),
    "lts__t_sectors_op_write.sum": (
        "sectors written to the L2: stores to global and local memory and surfaces, which the L1 writes through"
    ),
    "lts__t_sectors_op_atom.sum": "sectors of global atomics at the L2",
    "lts__t_sectors_op_red.sum": "sectors of global reductions at the L2",
    "lts__t_sector_hit_rate.pct": "sectors that the L2 holds, in percent; modelled, not counted",
    "dram__sectors_read.sum": "32-byte sectors read from DRAM, by the footprints of whole waves",
    "dram__sectors_write.sum": (
        "32-byte sectors written to DRAM: what the waves write, less what still lies in the L2 when the kernel ends"
    ),
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved occupancy in percent of the warp slots; simulated",
}
"""Metric, or a family of them with *, to its meaning."""


def describe(metric: str) -> str:
    """What a metric means; empty for one that drywarp does not give."""
    if metric in METRICS:
        return METRICS[metric]
    for family, meaning in METRICS.items():
        head, star, tail = family.partition("*")
        if star and metric.startswith(head) and metric.endswith(tail):
            return meaning
    return ""
