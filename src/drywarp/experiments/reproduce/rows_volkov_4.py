"""Volkov's thesis, chapter 4: the α-mix, needed occupancies, the cusp, the CUDA guide, Chen and Aamodt."""

from __future__ import annotations

from dataclasses import replace

from ...hardware import Gpu, load_gpu
from ...models import cuda_guide, prior_on_mix
from ...models.cusp import cusp, mix_of
from ...models.needed_occupancy import Mix, concurrency, instruction_throughput, memory_gbs
from ...models.volkov import Volkov, latency_bound
from ...pipeline.blocks import Share
from ...pipeline.simulate import run_share
from ...workload.cost import CostedWorkload, Repeat
from . import Row, derived, of_kind, row
from . import volkov_kernels as kernels
from .volkov_kernels import GENERATIONS, PAPER, WARP, Line, volkov_gpu

NAMES = {"g80": "G80", "gt200": "GT200", "fermi": "Fermi", "kepler": "Kepler", "maxwell": "Maxwell"}


def rows() -> list[Row]:
    """All rows of chapter 4."""
    return [
        *_table_4_1(), *_table_4_2(), *_latencies_hidden(), *_dynamics(), *_cusp(), *_concurrent_instructions(),
        *_other_instructions(),
        *_cuda_guide(), *_balanced_design(),
    ]  # fmt: skip


def _table_4_1() -> list[Row]:
    """Throughputs in IPC per SM from Tables 2.6 to 2.8 and 6.4."""
    found = []
    for generation, memory, arithmetic in zip(
        GENERATIONS,
        ("0.0268", "0.0277", "0.0599", "0.1338", "0.0814"),
        ("0.25", "0.25", "1", "4", "4"),
        strict=True,
    ):
        gpu = volkov_gpu(generation)
        p = gpu.parameter
        reached = instruction_throughput(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
        cores = min(p("simd_width") / WARP, gpu.scheduler.issue_per_cycle or 0)
        name = NAMES[generation]
        found += [
            row(PAPER, "Table 4.1", f"{name}: mem_thru (IPC/SM)", memory, reached, note="from Table 6.4's GB/s"),
            row(PAPER, "Table 4.1", f"{name}: alu_thru (IPC/SM)", arithmetic, cores, note="CUDA cores, single issue"),
        ]
    return of_kind("input", found)


def _table_4_2() -> list[Row]:
    """The numbers of each solution, from `volkov`'s predictions of the α-mix, which return its inputs unchanged."""
    found = []
    for generation, mem_lat, alu_lat, mem_thru, last, plus in zip(
        GENERATIONS,
        ("444", "434", "513", "301", "368"),
        ("20", "24", "18", "09", "06"),
        ("0.0268", "0.0277", "0.0599", "0.1338", "0.0814"),
        ("0.25", "0.25", "1", "4", "4"),
        (0, 0, 1, 1, 1),
        strict=True,
    ):
        gpu, place = volkov_gpu(generation), "Table 4.2"
        groups, alpha, name = 8, 32, NAMES[generation]
        alone = latency_bound(kernels.alpha_mix(gpu, 0, groups)) / groups
        mixed = latency_bound(kernels.alpha_mix(gpu, alpha, groups)) / groups
        limit = f"{name}: numerator of the {'issue' if plus else 'arithmetic'} bound"
        high = 512
        found += [
            row(PAPER, place, f"{name}: latency at α = 0", mem_lat, alone),
            row(PAPER, place, f"{name}: latency per α", alu_lat, (mixed - alone) / alpha),
            row(PAPER, place, f"{name}: memory bound", mem_thru, _memory_throughput(gpu, 1)),
            row(PAPER, place, limit, last, _memory_throughput(gpu, high) * (high + plus)),
        ]
    return of_kind("input", found)


def _memory_throughput(gpu: Gpu, alpha: int) -> float:
    """`volkov`'s memory instructions per cycle at full occupancy."""
    groups = 8
    work = kernels.alpha_mix(gpu, alpha, groups)
    point = Volkov().predict(work, [int(gpu.parameter("max_warps_per_sm"))]).curve[0]
    return point.warps_per_cycle * groups


def _latencies_hidden() -> list[Row]:
    """§4.3: warps that hide one latency, and throughput of uncoalesced accesses."""
    gpu = volkov_gpu("maxwell")
    mix = mix_of(gpu)
    random = gpu.classes["random"]
    return [
        row(PAPER, "§4.3", "Maxwell: warps that hide arithmetic latency", "24", mix.warps_for_arithmetic),
        row(PAPER, "§4.3", "Maxwell: warps that hide memory latency", "30", mix.needed_occupancy(0)),
        row(PAPER, "§4.3", "Maxwell: stride-2 throughput (IPC/SM)", "0.041", mix.mem_thru / 2, kind="input"),
        row(PAPER, "§4.3", "Maxwell: unstructured throughput (IPC/SM)", "0.0029", 1 / random.lambda_, kind="input"),
    ]


def _dynamics() -> list[Row]:
    """§4.3's table: warps for 90 % of the memory peak (Table 6.4) over warps for the arithmetic peak (Table 6.3)."""
    place = "§4.3"
    found = [
        row(PAPER, place, f"{NAMES[generation]}: warps for memory over warps for adds", published, memory / adds,
            rounded=len(published) == 1, note=f"{memory:g} / {adds:g} of Tables 6.4 and 6.3")
        for generation, published, memory, adds in zip(
            GENERATIONS, ("4", "2.7", "2.3", "1.6", "1.7"), (20, 16, 21, 14, 10), (5, 6, 9, 9, 6), strict=True
        )
    ]  # fmt: skip
    g80 = mix_of(volkov_gpu("g80"))
    found.append(
        row(PAPER, place, "G80: the same with multiply-adds", "3.3", 20 / concurrency(24, g80.alu_thru),
            note="with the 24 cycles that §7.2 quotes for them")
    )  # fmt: skip
    for quantity, published, per_scheduler in (("90", "40", 10), ("95", "46", 11.5)):
        warps = per_scheduler * volkov_gpu("maxwell").parameter("warp_schedulers")
        found.append(row(PAPER, place, f"Maxwell: warps for {quantity} % of the memory peak", published, warps))
    return of_kind("input", found)


def _cusp() -> list[Row]:
    """§4.5: the cusp, where both bounds meet, and the occupancy needed there."""
    mix = mix_of(volkov_gpu("maxwell"))
    free = replace(mix, issue_thru=float("inf"))
    note = "issue not considered, as in the text; with it α is {:.1f} and n {:.1f}"
    at = mix.cusp_intensity()
    note = note.format(at, mix.needed_occupancy(at))
    return [
        row(PAPER, "§4.5", "Maxwell: α of the cusp", "49", free.cusp_intensity(), note=note),
        row(PAPER, "§4.5", "Maxwell: needed occupancy at the cusp", "54", free.needed_at_cusp(), note=note),
        row(PAPER, "§4.5", "Maxwell: needed occupancy, α = 0", "30", free.needed_occupancy(0)),
        row(PAPER, "§4.5", "Maxwell: needed occupancy, α = ∞", "24", free.needed_occupancy(1e9)),
        row(PAPER, "§4.5", "Maxwell: needed occupancy at the cusp by its curve", "54",
            free.needed_occupancy(free.cusp_intensity())),
    ]  # fmt: skip


def _concurrent_instructions() -> list[Row]:
    """§4.6, Figure 4.7: α = 4, alu_lat 3, mem_lat 12, 1 IPC; by formula and by simulation."""
    alpha, place = 4, "§4.6, Figure 4.7"
    mix = Mix(mem_lat=12, mem_thru=1, alu_lat=3, alu_thru=1)
    groups = 200
    attained = [_adds_per_cycle(warps, alpha, groups) for warps in range(1, 8)]
    enough = next(n for n, rate in enumerate(attained, 1) if rate > 0.98)
    alone = concurrency(mix.alu_lat, mix.alu_thru)
    return [
        row(PAPER, place, "arithmetic instructions in execution", "3", mix.arithmetic_in_execution(alpha)),
        row(PAPER, place, "memory instructions in execution", "3", mix.memory_in_execution(alpha)),
        row(PAPER, place, "sustained memory throughput (IPC)", "0.25", mix.memory_throughput(6, alpha)),
        row(PAPER, place, "warps needed", "6", mix.needed_occupancy(alpha)),
        row(
            PAPER,
            place,
            "warps that attain 1 IPC in the simulation",
            "6",
            enough,
            note="98 % of it, oldest warp first; under round robin warps bunch together: 0.73",
        ),
        row(PAPER, place, "warps needed when no memory instructions are present", "3", alone),
    ]


def _other_instructions() -> list[Row]:
    """§4.7, Maxwell: Λ of SFU and shared memory instructions towards adds, and towards each other.

    Latency = Λ towards an add + α · 6 at 4 / (α + 1) IPC of issue; below α = 1 only the share α is followed by an add.
    """
    found = []
    for partner, name, to_adds, to_own in (("sfu", "SFU", 9, 13), ("shared", "shared memory", 22, 24)):
        for alpha, cycles, rate in ((4, to_adds + 4 * 6, 4 / 5), (0.5, (to_adds + to_own) / 2 + 0.5 * 6, 1)):
            computed = cusp("papers/volkov-maxwell", partner=partner, alphas=(alpha,)).needed["volkov"][0]
            note = f"{cycles:g} cycles · {rate:g} IPC"
            quantity = f"warps that hide the latency of {name} instructions, α = {alpha:g}"
            found.append(derived(PAPER, "§4.7, Maxwell", quantity, cycles * rate, computed or 0.0, note))
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


def _cuda_guide() -> list[Row]:
    """§4.8: the guide's own example, and Table 4.3."""
    place = "§4.8"
    found = [
        row(PAPER, place, "instructions during a stall of 600 cycles at 4 CPI", "150",
            cuda_guide.instructions_during_stall(600, 4)),
        row(PAPER, place, 'warps needed, "about 5"', "5", cuda_guide.warps_needed(600, 4, 30), about=True),
        row(PAPER, place, "warps with the stalled one", "6", cuda_guide.warps_needed(600, 4, 30) + 1),
    ]  # fmt: skip
    for generation, alpha, cpi, estimate in zip(
        GENERATIONS,
        (16, 16, 32, 32, 64),
        ("4", "4", "1", "0.25", "0.25"),
        ("6.9", "6.8", "16", "38", "23"),
        strict=True,
    ):
        mix = mix_of(volkov_gpu(generation))
        time, name = 1 / mix.alu_thru, NAMES[generation]
        found += [
            row(PAPER, "Table 4.3", f"{name}: instruction time (CPI)", cpi, time, kind="input"),
            row(PAPER, "Table 4.3", f"{name}: warps needed at α = {alpha}", estimate,
                cuda_guide.warps_needed(mix.mem_lat, time, alpha)),
        ]  # fmt: skip
    kepler = replace(mix_of(volkov_gpu("kepler")), issue_thru=float("inf"))
    found.append(row(PAPER, "§4.8", "Kepler: the better estimate at α = 32", "74", kepler.needed_occupancy(32)))
    maxwell = mix_of(volkov_gpu("maxwell"))
    peak = prior_on_mix.mwp_peak_bw(maxwell)
    found.append(row(PAPER, "§4.2, §4.3", "Maxwell: MWP_peak_BW as the warps that hide memory latency", "30", peak))
    return found


def _balanced_design() -> list[Row]:
    """§4.13: the consequences of GPUMech's assumption of a balanced design on its synthetic GPU."""
    gpu = load_gpu("papers/gpumech")
    p = gpu.parameter
    issue = gpu.scheduler.issue_per_cycle or 0
    device = issue * p("sm_count")
    gbs = memory_gbs(issue, p("clock_mhz") / 1000, p("sm_count"), p("transaction_bytes"))
    return [
        row(PAPER, "§4.13", "peak issue throughput of GPUMech's GPU (IPC per device)", "16", device, kind="input"),
        row(PAPER, "§4.13", "memory throughput of loads at that rate (GB/s)", "2048", gbs, kind="input"),
    ]
