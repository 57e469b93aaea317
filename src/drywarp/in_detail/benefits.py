"""GPUPerf's benefit chart of a launch: costs, benefits and ideals in cycles of one SM."""

from __future__ import annotations

from ..bound import BoundWorkload
from ..models.cycles_per_run import repetitions
from ..models.gpuperf import benefits_of, costs_of, kernel_of
from ..models.inputs import inputs_of


def benefits_of_launch(bound: BoundWorkload) -> dict[str, float]:
    """Sim et al. (2012), §3, under the names of its symbols. Raises NotApplicable where an input is missing."""
    inputs = inputs_of(bound)
    kernel = kernel_of(inputs)
    costs = costs_of(kernel, inputs.warps, inputs.warps * repetitions(bound, bound.blocks_per_sm))
    gains = benefits_of(bound)
    return {
        "t_exec_cycles": costs.t_exec,
        "t_comp_cycles": costs.t_comp,
        "t_mem_cycles": costs.t_mem,
        "t_overlap_cycles": costs.t_overlap,
        "t_fp_cycles": gains.t_fp,
        "t_mem_min_cycles": gains.t_mem_min,
        "b_itilp_cycles": gains.b_itilp,
        "b_memlp_cycles": gains.b_memlp,
        "b_fp_cycles": gains.b_fp,
        "b_serial_cycles": gains.b_serial,
    }
