"""The Pipeline model: the simulation behind the interface of the models.

Lemeire, Cornelis and Konstantinidis, "Analysis of the analytical performance models for GPUs and extracting the
underlying Pipeline model", §3, and Cornelis and Lemeire, "The pipeline performance model", §III. One SM runs its share
of the grid, ceil(blocks / SMs), with the resident number of blocks at once; its time is that of the kernel. Units:
cycles of one SM.

The limiter is the subsystem (``issue``: the issue limit) with the highest utilisation where that is
at least 80 %, else ``latency``. `headroom` holds the roofline's time of each subsystem and, as
``latency``, Volkov's latency bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ..pipeline.blocks import Share, share_of
from ..pipeline.extrapolate import CURVE_BUDGET, LAUNCH_BUDGET, simulate
from ..pipeline.occupancy import trace_of
from ..pipeline.result import SimulationResult
from ..pipeline.simulate import Program
from ..support.folders import thread_count
from ..workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .base import CurvePoint, Prediction, register
from .throughput import ISSUE, LAUNCH, demand, resident_blocks, share_cycles
from .volkov import latency_bound, latency_cycles

SATURATED = 0.8
"""Utilisation from which a subsystem counts as the kernel's limiter."""

_WORTH_TELLING = 0.5
"""The share of the time from which launching blocks, though not a subsystem, is listed among them."""


def utilization(workload: CostedWorkload, result: SimulationResult) -> dict[str, float]:
    """The fraction of the simulated time that each subsystem is busy; and that of launching blocks, if it matters."""
    total = max(1, result.total_ticks)
    busy = {s.name: ticks / total for s, ticks in zip(workload.subsystems, result.busy_ticks, strict=True)}
    if workload.issue_ticks:
        busy[ISSUE] = result.issue_busy_ticks / total
    launching = (result.blocks - 1) * workload.launch_interval_ticks / total
    return busy | {LAUNCH: launching} if launching >= _WORTH_TELLING else busy


def limiter(busy: dict[str, float]) -> str:
    """The busiest subsystem if it is saturated, else ``latency``."""
    busiest = max(busy, key=lambda name: busy[name], default="latency")
    return busiest if busy.get(busiest, 0.0) >= SATURATED else "latency"


@register("pipeline")
class Pipeline:
    """Simulates the launch, and each occupancy of the curve with a smaller budget.

    With `full_simulation` every instruction of each point is simulated, whatever the cost: no jump over a steady state
    (which changes no number), no extrapolation.
    """

    name = "pipeline"
    summary = "simulates every warp instruction of one SM's share (Lemeire, Cornelis, Konstantinidis)"

    def __init__(
        self,
        launch_budget: int = LAUNCH_BUDGET,
        curve_budget: int = CURVE_BUDGET,
        trace_points: int = 0,
        full_simulation: bool = False,
        brief: bool = False,
    ) -> None:
        """`trace_points` is the maximum number of intervals of the occupancy trace; 0 omits it.

        A `brief` answer omits stalls and headroom, which take a third of the time.
        """
        self.launch_budget = launch_budget
        self.curve_budget = curve_budget
        self.trace_points = trace_points
        self.full_simulation = full_simulation
        self.brief = brief

    def predict(self, workload: CostedWorkload, occupancies: Sequence[int]) -> Prediction:
        """Predict `workload`, and the curve at `occupancies`."""
        share = share_of(workload, workload.blocks_per_sm)
        shares = [share_of(workload, resident_blocks(workload, occupancy)) for occupancy in occupancies]
        program, full, stalls = Program(workload), self.full_simulation, not self.brief
        # The compiled loop releases the interpreter lock, so threads use all cores.
        with ThreadPoolExecutor(thread_count()) as threads:
            launch = threads.submit(
                simulate, workload, share, self.launch_budget, stalls=stalls, full=full, program=program
            )
            others = {
                at: threads.submit(simulate, workload, at, self.curve_budget, stalls=False, full=full, program=program)
                for at in dict.fromkeys(shares)
                if at != share
            }
            result = launch.result()
            points = [
                self._point(workload, at, result if at == share else others[at].result(), occupancy)
                for at, occupancy in zip(shares, occupancies, strict=True)
            ]
        headroom: dict[str, float] = {}
        if not self.brief:
            headroom = share_cycles(workload, demand(workload), share)
            headroom["latency"] = latency_cycles(workload, share, latency_bound(workload, self.curve_budget))
        busy = utilization(workload, result)
        if headroom and LAUNCH in busy:
            headroom[LAUNCH] = (share.blocks - 1) * workload.launch_interval_ticks / TICKS_PER_CYCLE
        return Prediction(
            model=self.name,
            cycles=result.cycles,
            time_s=workload.duration_s(result.cycles),
            limiter=limiter(busy),
            curve=tuple(points),
            utilization=busy,
            headroom=headroom,
            notes=("extrapolated from part of the share",) if result.extrapolated else (),
            stalls=result.stalls(),
            node_stalls=result.node_stalls(workload),
            achieved_occupancy_warps=result.mean_occupancy,
            tail_s=result.tail_ticks / TICKS_PER_CYCLE / workload.clock_hz,
            occupancy_trace=trace_of(result, self.trace_points) if self.trace_points else None,
        )

    def _point(self, workload: CostedWorkload, share: Share, result: SimulationResult, occupancy: int) -> CurvePoint:
        cycles = result.total_ticks / TICKS_PER_CYCLE
        wpc = share.blocks * workload.warps_per_block / cycles if cycles else float("inf")
        # CPR: a run is ω warps without replacement; other runs do not determine it.
        run = cycles / workload.runs if workload.runs else cycles if share.blocks == share.resident else None
        bound = limiter(utilization(workload, result))
        return CurvePoint(occupancy, wpc, workload.duration_s(cycles), bound, run)
