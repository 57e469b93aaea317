"""Volkov's thesis, chapter 4: the α-mix, needed occupancies, the cusp, the CUDA guide, Chen and Aamodt."""

from __future__ import annotations

from dataclasses import replace

from ...hardware import Gpu
from ...models import cuda_guide, prior_on_mix
from ...models.cusp import cusp, mix_of
from ...models.needed_occupancy import Mix, concurrency, instruction_throughput
from ...models.volkov import Volkov, latency_bound
from ...pipeline.blocks import Share
from ...pipeline.simulate import run_share
from ...workload.cost import CostedWorkload, Repeat
from . import Value, Values, together
from . import volkov_kernels as kernels
from .volkov_kernels import PAPER, WARP, Line, volkov_gpu

NAMES = {"g80": "G80", "gt200": "GT200", "fermi": "Fermi", "kepler": "Kepler", "maxwell": "Maxwell"}


def computed() -> dict[str, Values]:
    """All numbers of chapter 4 but those of GPUMech's GPU."""
    first = together(_table_4_1, _table_4_2, _latencies_hidden, _dynamics, _cusp)
    return {PAPER: first | together(_concurrent_instructions, _other_instructions, _cuda_guide)}


def _table_4_1() -> Values:
    """Throughputs in IPC per SM from Tables 2.6 to 2.8 and 6.4."""
    found: Values = {}
    for generation, name in NAMES.items():
        gpu = volkov_gpu(generation)
        p = gpu.parameter
        reached = instruction_throughput(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
        found[f"{name}: mem_thru (IPC/SM)"] = reached
        found[f"{name}: alu_thru (IPC/SM)"] = min(p("simd_width") / WARP, gpu.scheduler.issue_per_cycle or 0)
    return found


def _table_4_2() -> Values:
    """The numbers of each solution, from `volkov`'s predictions of the α-mix, which return its inputs unchanged."""
    found: Values = {}
    groups, alpha, high = 8, 32, 512
    for generation, name in NAMES.items():
        gpu = volkov_gpu(generation)
        alone = latency_bound(kernels.alpha_mix(gpu, 0, groups)) / groups
        mixed = latency_bound(kernels.alpha_mix(gpu, alpha, groups)) / groups
        # On later GPUs what bounds it is the issue, to which the load belongs.
        bound, instructions = ("arithmetic", high) if generation in ("g80", "gt200") else ("issue", high + 1)
        found[f"{name}: latency at α = 0"] = alone
        found[f"{name}: latency per α"] = (mixed - alone) / alpha
        found[f"{name}: memory bound"] = _memory_throughput(gpu, 1)
        found[f"{name}: numerator of the {bound} bound"] = _memory_throughput(gpu, high) * instructions
    return found


def _memory_throughput(gpu: Gpu, alpha: int) -> float:
    """`volkov`'s memory instructions per cycle at full occupancy."""
    groups = 8
    work = kernels.alpha_mix(gpu, alpha, groups)
    point = Volkov().predict(work, [int(gpu.parameter("max_warps_per_sm"))]).curve[0]
    return point.warps_per_cycle * groups


def _latencies_hidden() -> Values:
    """§4.3: warps that hide one latency, and throughput of uncoalesced accesses."""
    gpu = volkov_gpu("maxwell")
    mix = mix_of(gpu)
    return {
        "Maxwell: warps that hide arithmetic latency": mix.warps_for_arithmetic,
        "Maxwell: warps that hide memory latency": mix.needed_occupancy(0),
        "Maxwell: stride-2 throughput (IPC/SM)": mix.mem_thru / 2,
        "Maxwell: unstructured throughput (IPC/SM)": 1 / gpu.classes["random"].lambda_,
    }


def _dynamics() -> Values:
    """§4.3's table: warps for 90 % of the memory peak (Table 6.4) over warps for the arithmetic peak (Table 6.3)."""
    warps = zip(NAMES.values(), (20, 16, 21, 14, 10), (5, 6, 9, 9, 6), strict=True)
    g80, schedulers = mix_of(volkov_gpu("g80")), volkov_gpu("maxwell").parameter("warp_schedulers")
    return {
        **{f"{name}: warps for memory over warps for adds": memory / adds for name, memory, adds in warps},
        "G80: the same with multiply-adds": 20 / concurrency(24, g80.alu_thru),
        "Maxwell: warps for 90 % of the memory peak": 10 * schedulers,
        "Maxwell: warps for 95 % of the memory peak": 11.5 * schedulers,
    }


def _cusp() -> Values:
    """§4.5: the cusp, where both bounds meet, and the occupancy needed there."""
    mix = mix_of(volkov_gpu("maxwell"))
    free = replace(mix, issue_thru=float("inf"))
    with_issue = {"alpha": mix.cusp_intensity(), "warps": mix.needed_occupancy(mix.cusp_intensity())}
    return {
        "Maxwell: α of the cusp": Value(free.cusp_intensity(), shown=with_issue),
        "Maxwell: needed occupancy at the cusp": Value(free.needed_at_cusp(), shown=with_issue),
        "Maxwell: needed occupancy, α = 0": free.needed_occupancy(0),
        "Maxwell: needed occupancy, α = ∞": free.needed_occupancy(1e9),
        "Maxwell: needed occupancy at the cusp by its curve": free.needed_occupancy(free.cusp_intensity()),
    }


def _concurrent_instructions() -> Values:
    """§4.6, Figure 4.7: α = 4, alu_lat 3, mem_lat 12, 1 IPC; by formula and by simulation."""
    alpha = 4
    mix = Mix(mem_lat=12, mem_thru=1, alu_lat=3, alu_thru=1)
    attained = [_adds_per_cycle(warps, alpha, groups=200) for warps in range(1, 8)]
    enough = next(n for n, rate in enumerate(attained, 1) if rate > 0.98)
    return {
        "arithmetic instructions in execution": mix.arithmetic_in_execution(alpha),
        "memory instructions in execution": mix.memory_in_execution(alpha),
        "sustained memory throughput (IPC)": mix.memory_throughput(6, alpha),
        "warps needed": mix.needed_occupancy(alpha),
        "warps that attain 1 IPC in the simulation": enough,
        "warps needed when no memory instructions are present": concurrency(mix.alu_lat, mix.alu_thru),
    }


def _other_instructions() -> Values:
    """§4.7, Maxwell: Λ of SFU and shared memory instructions towards adds, and towards each other.

    Latency = Λ towards an add + α · 6 at 4 / (α + 1) IPC of issue; below α = 1 only the share α is followed by an add.
    """
    found: Values = {}
    for partner, name, to_adds, to_own in (("sfu", "SFU", 9, 13), ("shared", "shared memory", 22, 24)):
        for alpha, cycles, rate in ((4, to_adds + 4 * 6, 4 / 5), (0.5, (to_adds + to_own) / 2 + 0.5 * 6, 1)):
            warps = cusp("papers/volkov-maxwell", partner=partner, alphas=(alpha,)).needed["volkov"][0]
            quantity = f"warps that hide the latency of {name} instructions, α = {alpha:g}"
            found[quantity] = Value(warps or 0.0, cycles * rate)
    return found


def _adds_per_cycle(warps: int, alpha: int, groups: int) -> float:
    """Arithmetic throughput of the simulation with the latencies of Figure 4.7."""
    gpu = volkov_gpu("fermi")  # one add a cycle
    lines = [Line("stream", "R1", "R1", latency=12), Line("add", "R1", "R1", latency=3)]
    path = kernels.path_of(gpu, lines, (Repeat(groups, (0, Repeat(alpha, (1,)))),))
    nodes = (replace(path.nodes[0], lambda_ticks=240), path.nodes[1])
    work: CostedWorkload = kernels.workload_of(gpu, [replace(path, nodes=nodes)])
    work = replace(work, issue_ticks=0, policy="oldest_first")
    return warps * groups * alpha / run_share(work, Share(warps, warps, warps), stalls=False).cycles


def _cuda_guide() -> Values:
    """§4.8: the guide's own example, and Table 4.3."""
    found: Values = {
        "instructions during a stall of 600 cycles at 4 CPI": cuda_guide.instructions_during_stall(600, 4),
        'warps needed, "about 5"': cuda_guide.warps_needed(600, 4, 30),
        "warps with the stalled one": cuda_guide.warps_needed(600, 4, 30) + 1,
    }
    for (generation, name), alpha in zip(NAMES.items(), (16, 16, 32, 32, 64), strict=True):
        mix = mix_of(volkov_gpu(generation))
        time = 1 / mix.alu_thru
        found[f"{name}: instruction time (CPI)"] = time
        found[f"{name}: warps needed at α = {alpha}"] = cuda_guide.warps_needed(mix.mem_lat, time, alpha)
    kepler, maxwell = replace(mix_of(volkov_gpu("kepler")), issue_thru=float("inf")), mix_of(volkov_gpu("maxwell"))
    found["Kepler: the better estimate at α = 32"] = kepler.needed_occupancy(32)
    found["Maxwell: MWP_peak_BW as the warps that hide memory latency"] = prior_on_mix.mwp_peak_bw(maxwell)
    return found
