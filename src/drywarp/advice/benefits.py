"""GPUPerf's four potential benefits and its benefit chart for a bound kernel (Sim et al. 2012, §3, §4.2)."""

from __future__ import annotations

from ..finding import BenefitChart
from ..models.base import NotApplicable
from ..models.gpuperf import benefits_of, costs_of, kernel_of
from ..models.inputs import inputs_of
from ..models_api import with_producers
from ..pipeline.blocks import share_of
from ..ready import BoundKernel


def benefit_chart(ready: BoundKernel) -> BenefitChart:
    """The point of the kernel in the chart, and what leads from it to the ideal."""
    bound = with_producers(ready)
    try:
        inputs = inputs_of(bound)
        gains = benefits_of(bound)
        blocks = share_of(bound, bound.blocks_per_sm).blocks
        costs = costs_of(kernel_of(inputs), inputs.warps, blocks * bound.warps_per_block)
    except NotApplicable as reason:
        return BenefitChart(not_applicable=str(reason))
    return BenefitChart(
        t_comp=costs.t_comp,
        t_mem=costs.t_mem,
        t_overlap=costs.t_overlap,
        t_fp=gains.t_fp,
        t_mem_min=gains.t_mem_min,
        b_itilp=gains.b_itilp,
        b_memlp=gains.b_memlp,
        b_fp=gains.b_fp,
        b_serial=gains.b_serial,
    )
