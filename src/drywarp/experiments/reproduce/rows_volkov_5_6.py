"""Volkov's thesis, §5.7 on shared memory, and chapter 6: concurrency, contention, diverging access."""

from __future__ import annotations

from math import ceil

from ...hardware import Gpu, limits_of
from ...hardware.occupancy import blocks_by_shared, occupancy
from ...models import volkov_contention as contention
from ...models.cusp import contention_of, mix_of
from ...models.needed_occupancy import concurrency, instruction_throughput, transaction_latency
from . import Value, Values, together
from .rows_volkov_4 import NAMES
from .volkov_kernels import PAPER, WARP, volkov_gpu


def computed() -> dict[str, Values]:
    """All numbers of chapters 5 and 6."""
    tables = together(_table_6_1, _needed, _table_6_4, _gradual_saturation, _diverging)
    return {PAPER: tables | together(_shared_memory, _contention, _bank_conflicts, _range_of_peaks)}


def _concurrency(gpu: Gpu, class_: str) -> float:
    """Latency times throughput, in instructions of an SM."""
    cost = gpu.classes[class_]
    return concurrency(cost.latency or 0, 1 / cost.lambda_)


def _table_6_1() -> Values:
    """Streaming throughput in ops per cycle and scheduler, from Table 6.4's GB/s."""
    return {
        f"{name}: streaming throughput per scheduler (ops/cycle)": _streaming(volkov_gpu(generation))
        for generation, name in NAMES.items()
    }


NEEDED = {
    "g80": ("add", "sfu", "smem", "smem2"),
    "gt200": ("add", "sfu", "smem", "smem2"),
    "fermi": ("add", "sfu", "smem", "smem2", "random"),
    "kepler": ("add", "sfu", "smem", "smem2", "random"),
    "maxwell": ("add", "sfu", "smem", "smem2", "random"),
}
"""The cells of Table 6.3."""


def _needed() -> Values:
    """§6.1 and Table 6.3: latency times throughput, exactly or in whole warps as its text allows."""
    kepler = volkov_gpu("kepler")
    sfu = _concurrency(kepler, "sfu")
    found: Values = {
        "Kepler: concurrent SFU instructions per scheduler": sfu / kepler.parameter("warp_schedulers"),
        "Kepler: concurrent SFU instructions per SM": sfu,
        "Maxwell: expected warps for shared memory peak": _concurrency(volkov_gpu("maxwell"), "smem"),
    }
    for generation, classes in NEEDED.items():
        gpu = volkov_gpu(generation)
        schedulers = gpu.parameter("warp_schedulers")
        for class_ in classes:
            share = 0.9 if class_ == "random" else 1.0
            exact = share * _concurrency(gpu, class_) / schedulers
            # Each scheduler of Kepler and Maxwell has SFUs of its own; elsewhere warps are whole per SM.
            own = class_ == "sfu" and generation in ("kepler", "maxwell")
            whole = _ceil(exact) if own else _ceil(exact * schedulers) / schedulers
            found[f"{NAMES[generation]}: warps per scheduler, {class_}"] = Value(whole, shown={"exact": exact})
    return found


def _ceil(value: float) -> int:
    """Rounded up, ignoring the excess due to six-digit λ."""
    return ceil(value - 1e-4)


def _table_6_4() -> Values:
    """Column "linear": latency times peak throughput, in warps of a whole SM."""
    found: Values = {}
    for generation, name in NAMES.items():
        gpu = volkov_gpu(generation)
        exact = mix_of(gpu).warps_for_memory
        value = Value(round(exact) / gpu.parameter("warp_schedulers"), shown={"exact": exact})
        found[f"{name}: warps per scheduler for memory peak, linear"] = value
    return found


def _shared_memory() -> Values:
    """§5.7: blocks that shared memory allows, by the occupancy calculator for each compute capability."""
    kepler, maxwell = limits_of("3.0"), limits_of("5.2")

    def missing(capability: str) -> int:
        """The number of blocks, if it is only one, that no allocation gives."""
        limits = limits_of(capability)
        sizes = range(limits.shared_allocation_unit, limits.shared_bytes_per_sm + 1, limits.shared_allocation_unit)
        return sum(set(range(1, limits.max_blocks_per_sm + 1)) - {blocks_by_shared(limits, size) for size in sizes})

    return {
        "Kepler: blocks per SM that allocate 3072 B each": blocks_by_shared(kepler, 3072) or 0,
        "Kepler: blocks per SM that allocate 3073 B each": blocks_by_shared(kepler, 3073) or 0,
        "Kepler: allocation for 3073 B (bytes)": occupancy(kepler, 16, 3073, WARP).shared_bytes_per_block,
        "G80: blocks per SM that shared memory cannot enforce": missing("1.0"),
        "GT200: blocks per SM that shared memory cannot enforce": missing("1.3"),
        "Maxwell: fewest blocks per SM that shared memory enforces": Value(
            blocks_by_shared(maxwell, 48 * 1024) or 0, expected=2
        ),
    }


def _gradual_saturation() -> Values:
    """Table 6.4's other columns, by the model of contention with the fits of Table 6.5 (§6.4)."""
    found: Values = {}
    for generation, name in NAMES.items():
        gpu = volkov_gpu(generation)
        mix, fit, schedulers = mix_of(gpu), contention_of(gpu, refined=False), gpu.parameter("warp_schedulers")
        if fit is None:
            raise ValueError(f"{generation}: its file lacks the fit of Table 6.5")
        attained = 100 * contention.memory_throughput(mix, fit, mix.warps_for_memory, 0) / mix.mem_thru
        found[f"{name}: % of the memory peak at the linear estimate"] = Value(attained, shown={"exact": attained})
        for percent in (90, 95):
            exact = contention.needed_occupancy(mix, fit, 0, percent / 100)
            value = Value(ceil(exact) / schedulers, shown={"exact": exact / schedulers})
            found[f"{name}: warps per scheduler for {percent} % of the memory peak"] = value
    return found


def _contention() -> Values:
    """§6.5: the fit's c in IPC, on the Kepler GPU."""
    p = volkov_gpu("kepler").parameter
    c = instruction_throughput(p("contention_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    peak = instruction_throughput(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    return {"Kepler: c of Table 6.5 (IPC/SM)": c, "Kepler: memory bound of the refined model (IPC/SM)": peak}


def _diverging() -> Values:
    """Table 6.7, and §6.7's ratios of peak throughput."""
    found: Values = {}
    for (generation, name), transactions in zip(NAMES.items(), (2, 2, 1, 4, 4), strict=True):
        random, stream = (volkov_gpu(generation).classes[class_].latency or 0 for class_ in ("random", "stream"))
        latency = transaction_latency(random, stream, WARP, transactions)
        found[f"{name}: latency of a further transaction (cycles)"] = latency
    ratios = {generation: _ratio(volkov_gpu(generation)) for generation in NAMES}
    others = [ratio for generation, ratio in ratios.items() if generation != "gt200"]
    return {
        **found,
        "smallest drop of throughput, diverging access": min(others),
        "largest drop of throughput but for GT200": max(others),
        "GT200: drop of throughput, diverging access": ratios["gt200"],
    }


def _streaming(gpu: Gpu) -> float:
    """Peak streaming throughput in ops per cycle and scheduler."""
    p = gpu.parameter
    ipc = instruction_throughput(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    return WARP * ipc / p("warp_schedulers")


def _ratio(gpu: Gpu) -> float:
    """Streaming over diverging throughput, both in ops per cycle and scheduler, rounded as in Table 6.1."""
    random = WARP / gpu.classes["random"].lambda_ / gpu.parameter("warp_schedulers")
    return round(_streaming(gpu), 2) / round(random, 3)


def _bank_conflicts() -> Values:
    """§6.2: the latency that 2-way conflicts add, and their effect on the needed occupancy."""
    relative = []
    found: Values = {}
    for generation, name in NAMES.items():
        classes = volkov_gpu(generation).classes
        free, conflict = (classes[class_].latency or 0 for class_ in ("smem", "smem2"))
        relative.append(100 * (conflict - free) / free)
        found[f"{name}: latency that a 2-way conflict adds (cycles)"] = conflict - free
    found["smallest increase of latency by a 2-way conflict (%)"] = min(relative)
    found["largest increase of latency by a 2-way conflict (%)"] = max(relative)
    return found


def _range_of_peaks() -> Values:
    """§6.3: best throughput over pin bandwidth."""
    parameters = [volkov_gpu(generation).parameter for generation in NAMES]
    shares = [100 * p("memory_reached_gbs") / p("memory_gbs") for p in parameters]
    return {
        "least share of pin bandwidth that is reached (%)": min(shares),
        "largest share of pin bandwidth that is reached (%)": max(shares),
    }
