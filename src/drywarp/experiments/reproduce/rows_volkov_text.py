"""Volkov's thesis, what its text says besides the tables: issue and concurrency (§2.9 to §3.10), load imbalance (§5.8),
and the ratios of chapters 4 and 6."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ...models import volkov_contention as contention
from ...models.cusp import mix_of
from ...models.needed_occupancy import Mix, concurrency, throughput
from ...pipeline.blocks import Share
from ...pipeline.simulate import run_share
from ...workload.cost import Repeat, Subsystem
from . import Value, Values, together
from . import volkov_kernels as kernels
from .rows_volkov_4 import NAMES
from .volkov_kernels import PAPER, WARP, Line, volkov_gpu


def computed() -> dict[str, Values]:
    """All numbers of this module."""
    first = together(_issue, _concurrency, _uncoalesced, _imbalance, _specifications)
    return {PAPER: first | together(_shared_memory, _saturation, _single_accesses)}


def _issue() -> Values:
    """§2.9, Table 2.8 and Table 4.1: what the numbers of schedulers and cores give."""
    found: Values = {}
    for generation, name in NAMES.items():
        p, cycles = volkov_gpu(generation).parameter, 2 if generation in ("g80", "gt200", "fermi") else 1
        found[f"{name}: warps per scheduler"] = p("max_warps_per_sm") / p("warp_schedulers")
        found[f"{name}: issue_thru (IPC/SM)"] = p("warp_schedulers") / cycles
    cores = WARP / volkov_gpu("g80").parameter("simd_width")
    found["G80: cycles between instructions of its 8 CUDA cores"] = cores
    for width in (1, 2):
        issued = width * volkov_gpu("kepler").parameter("warp_schedulers")
        found[f"peak issue of {width} from each scheduler (IPC per SM)"] = issued
    return found


def _concurrency() -> Values:
    """§§3.2, 3.3 and 3.10: Little's law in the text's examples."""
    add = volkov_gpu("maxwell").classes["add"].latency or 0
    # One instruction of either kind at a time for half of the time each: equal Λ, α = 1.
    halves = Mix(mem_lat=2, mem_thru=1, alu_lat=2, alu_thru=1)
    memory = concurrency(halves.mem_lat, halves.memory_throughput(3, 1))
    transactions = (WARP - 1) * volkov_gpu("kepler").parameter("transaction_latency")
    return {
        **{f"throughput of {count:g} adds at a time (IPC)": throughput(count, add) for count in (1, 2, 0.5)},
        "memory instructions in execution with 3 warps": memory,
        "latency that 31 further transactions add (cycles)": transactions,
    }


def _uncoalesced() -> Values:
    """§4.3 and Figure 4.3: needed occupancy of uncoalesced accesses on Maxwell, by its quoted Λ and IPC."""
    linear = round(mix_of(volkov_gpu("maxwell")).warps_for_memory)
    found: Values = {"Maxwell: warps for 95 % of the memory peak over the model's": 46 / linear}
    for name, latency, ipc in (("stride 2", 376, 0.041), ("random", 534, 0.0029)):
        exact = 0.9 * concurrency(latency, ipc)
        found[f"Maxwell: warps for 90 % of the peak, {name}"] = Value(ceil(exact), shown={"exact": exact})
    return found


def _imbalance() -> Values:
    """§5.8 and Figure 5.2: a block of 17 warps on Kepler's four schedulers, each warp a chain of SFU instructions."""
    gpu, length = volkov_gpu("kepler"), 2000
    schedulers = int(gpu.parameter("warp_schedulers"))
    path = kernels.path_of(gpu, [Line("sfu", "R1", "R1")], (Repeat(length, (0,)),))
    own = tuple(replace(node, lambda_ticks=schedulers * node.lambda_ticks) for node in path.nodes)

    def run(warps: int) -> tuple[float, int]:
        """Instructions per cycle, and warps in the last tenth of the run."""
        work = kernels.workload_of(gpu, [replace(path, nodes=own)] * warps)
        parts = tuple(Subsystem(part.name, "partition") for part in work.subsystems)
        work = replace(work, subsystems=parts, partitions=schedulers, issue_ticks=schedulers * work.issue_ticks)
        result = run_share(work, Share(1, 1, 1), stalls=False)
        return warps * length / result.cycles, int((result.warp_ends > 0.9 * result.total_ticks).sum())

    (balanced, _), (uneven, left) = run(16), run(17)
    return {
        "Kepler, SFU: throughput lost with 17 warps instead of 16, %": 100 * (1 - uneven / balanced),
        "Kepler, SFU: warps that remain of 17": left,
    }


def _specifications() -> Values:
    """Table 6.1 from Tables 2.5, 2.6 and 2.8: operations per cycle and scheduler."""
    banks, cycles = (16, 16, 32, 32, 32), (2, 2, 2, 1, 1)  # Table 2.5
    found: Values = {}
    for column, (generation, name) in enumerate(NAMES.items()):
        gpu = volkov_gpu(generation)
        shared = banks[column] / cycles[column]
        rates = {
            "add": min(gpu.parameter("simd_width"), WARP * (gpu.scheduler.issue_per_cycle or 0)),
            "SFU": gpu.parameter("sfu_width"),
            "smem": shared,
            "smem2": shared / 2,
        }
        for class_, rate in rates.items():
            quantity = f"{name}: throughput per scheduler, {class_} (ops/cycle)"
            found[quantity] = rate / gpu.parameter("warp_schedulers")
    return found


def _shared_memory() -> Values:
    """§§6.1 and 6.2: sums and ratios of Tables 6.2 and 6.3."""
    maxwell = volkov_gpu("maxwell")
    found: Values = {
        "Maxwell: shared memory access and pointer arithmetic (cycles)": 22 + (maxwell.classes["add"].latency or 0),
        "Kepler: warps per SM for the SFU peak": 3 * volkov_gpu("kepler").parameter("warp_schedulers"),
        "Maxwell: warps per SM for the shared memory peak": 8 * maxwell.parameter("warp_schedulers"),
    }
    for name, free, conflict in (("G80", 9, 6), ("GT200", 11, 8), ("Maxwell", 8, 3.75)):
        found[f"{name}: factor by which the needed occupancy drops with 2-way conflicts"] = free / conflict
    return found


def _saturation() -> Values:
    """§6.3: needed occupancies of Table 6.4 over the linear estimate, and a clock's share."""
    linear = (12, 12, 15.5, 10, 7.5)
    found: Values = {"156 GB/s at the highest memory clock (GB/s)": 156 * 3.5 / 3.0}
    for percent, needed in ((90, (20, 16, 21, 14, 10)), (95, (24, 18, 25, 16, 11.5))):
        ratios = [warps / estimate for warps, estimate in zip(needed, linear, strict=True)]
        quantity = f"occupancy for {percent} % of the peak over the linear estimate"
        found[quantity] = Value(min(ratios), shown={"most": max(ratios)})
    return found


def _single_accesses() -> Values:
    """§6.6: mean latencies by the fit of Table 6.5; shares and ratios of Table 6.6."""
    p = volkov_gpu("kepler").parameter
    fit = contention.fit_of({name: p(name) for name in contention.FIT})
    if fit is None:
        raise ValueError("the GPU file lacks the fit of Table 6.5")
    peak = p("memory_reached_gbs")
    return {
        **{f"{gbs:g} GB/s as a share of the peak, %": 100 * gbs / peak for gbs in (3.8, 107, 144)},
        **{f"Kepler: mean latency at {gbs:g} GB/s (cycles)": fit.latency(gbs) for gbs in (3.8, 144)},
        "cycles that the middle 90 % of accesses span at 3.8 GB/s": 324 - 292,
        "longest over mean latency at 3.8 GB/s": 536 / 303,
    }
