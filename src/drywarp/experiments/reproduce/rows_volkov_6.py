"""Volkov's thesis, chapter 6: concurrency of each instruction type, contention, diverging access.

Left out of Table 6.3, which is measured: G80 smem (9; latency times throughput is 8 in whole warps), GT200 smem
(11; 10) and smem2 (8; 7), Maxwell smem (8; 6, the text names it) and smem2 (3.75; 3.25), and the columns of
memory access at 90 % of the peak.
"""

from __future__ import annotations

from math import ceil

from ...hardware import Gpu
from ...models import volkov as sheet
from ...models.cusp import mix_of
from ...models.needed_occupancy import concurrency, instruction_throughput
from .row import Row, inconsistent, row
from .rows_volkov_4 import NAMES
from .volkov_kernels import GENERATIONS, PAPER, WARP, volkov_gpu


def rows() -> list[Row]:
    """All rows of chapter 6."""
    return [
        *_table_6_1(),
        *_needed(),
        *_table_6_4(),
        *_contention(),
        *_diverging(),
        *_bank_conflicts(),
        *_range_of_peaks(),
    ]


def _per_sm(gpu: Gpu, class_: str) -> float:
    cost = gpu.classes[class_]
    return concurrency(cost.latency or 0, 1 / cost.lambda_)


def _per_scheduler(gpu: Gpu, class_: str) -> float:
    return _per_sm(gpu, class_) / gpu.parameter("warp_schedulers")


def _table_6_1() -> list[Row]:
    """Streaming throughput in ops per cycle and scheduler, from Table 6.4's GB/s."""
    found = []
    for generation, published in zip(GENERATIONS, ("0.86", "0.89", "0.97", "1.07", "0.65"), strict=True):
        p = volkov_gpu(generation).parameter
        computed = _streaming(volkov_gpu(generation))
        quantity = f"{NAMES[generation]}: streaming throughput per scheduler (ops/cycle)"
        if generation == "fermi":
            note = (
                f"{p('memory_reached_gbs'):g} / (15 · 1.4 · 128) · 32 / 2 = {computed:.3f}; Table 4.1's 0.0599 IPC is"
                " the same 0.958"
            )
            found.append(inconsistent(PAPER, "Table 6.1", quantity, published, computed, note))
        else:
            found.append(row(PAPER, "Table 6.1", quantity, published, computed))
    return found


def _needed() -> list[Row]:
    """§6.1 and Table 6.3: latency times throughput, exactly or in whole warps as its text allows."""
    kepler, maxwell = volkov_gpu("kepler"), volkov_gpu("maxwell")
    found = [
        row(PAPER, "§6.1", "Kepler: concurrent SFU instructions per scheduler", "2.25", _per_scheduler(kepler, "sfu")),
        row(PAPER, "§6.1", "Kepler: concurrent SFU instructions per SM", "9", _per_sm(kepler, "sfu")),
        row(PAPER, "§6.1", "Maxwell: expected warps for shared memory peak", "24", _per_sm(maxwell, "smem")),
    ]
    table = {
        "add": {"g80": "5", "gt200": "6", "fermi": "9", "kepler": "9", "maxwell": "6"},
        "sfu": {"g80": "2", "gt200": "3", "fermi": "1.5", "kepler": "3", "maxwell": "4"},
        "smem": {"fermi": "6.5", "kepler": "6"},
        "smem2": {"g80": "6", "fermi": "7.5", "kepler": "7"},
    }
    per_scheduler = {("sfu", "kepler"), ("sfu", "maxwell")}
    for class_, entries in table.items():
        for generation, published in entries.items():
            gpu = volkov_gpu(generation)
            schedulers = gpu.parameter("warp_schedulers")
            exact = _per_scheduler(gpu, class_)
            whole = _ceil(exact) if (class_, generation) in per_scheduler else _ceil(exact * schedulers) / schedulers
            unit = "scheduler" if (class_, generation) in per_scheduler else "SM"
            note = "" if abs(whole - exact) < 1e-3 else f"{exact:.4g}, rounded up to whole warps per {unit}"
            quantity = f"{NAMES[generation]}: warps per scheduler, {class_}"
            found.append(row(PAPER, "Table 6.3", quantity, published, whole, note=note))
    return found


def _ceil(value: float) -> int:
    """Rounded up, ignoring the excess due to six-digit λ."""
    return ceil(value - 1e-4)


def _table_6_4() -> list[Row]:
    """Column "linear": latency times peak throughput, in warps of a whole SM."""
    found = []
    for generation, published in zip(GENERATIONS, ("12", "12", "15.5", "10", "7.5"), strict=True):
        gpu = volkov_gpu(generation)
        exact = mix_of(gpu).warps_for_memory
        schedulers = gpu.parameter("warp_schedulers")
        note = f"{exact:.4g} warps per SM, to the nearest whole warp" if schedulers > 1 else ""
        quantity = f"{NAMES[generation]}: warps per scheduler for memory peak, linear"
        found.append(row(PAPER, "Table 6.4", quantity, published, round(exact) / schedulers, note=note))
    return found


def _contention() -> list[Row]:
    """§6.5: the fit's c in IPC, on the Kepler GPU."""
    p = volkov_gpu("kepler").parameter
    c = instruction_throughput(p("contention_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    peak = instruction_throughput(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    return [
        row(PAPER, "§6.5", "Kepler: c of Table 6.5 (IPC/SM)", "0.1477", c),
        row(PAPER, "§6.5", "Kepler: memory bound of the refined model (IPC/SM)", "0.1338", peak),
    ]


def _diverging() -> list[Row]:
    """Table 6.7, and §6.7's ratios of peak throughput."""
    found = []
    for generation, transactions, published in zip(
        GENERATIONS, (2, 2, 1, 4, 4), ("6.7", "7.6", "34", "33", "5.9"), strict=True
    ):
        classes = volkov_gpu(generation).classes
        computed = sheet.transaction_latency(
            classes["random"].latency or 0, classes["stream"].latency or 0, WARP, transactions
        )
        quantity = f"{NAMES[generation]}: latency of a further transaction (cycles)"
        found.append(row(PAPER, "Table 6.7", quantity, published, computed))
    ratios = {generation: _ratio(volkov_gpu(generation)) for generation in GENERATIONS}
    others = [ratio for generation, ratio in ratios.items() if generation != "gt200"]
    note = "of Table 6.1's rounded throughputs"
    return [
        *found,
        row(PAPER, "§6.7", "smallest drop of throughput, diverging access", "28", min(others), note=note),
        row(PAPER, "§6.7", "largest drop of throughput but for GT200", "33", max(others), note=note),
        row(PAPER, "§6.7", "GT200: drop of throughput, diverging access", "56", ratios["gt200"], note=note),
    ]


def _streaming(gpu: Gpu) -> float:
    """Peak streaming throughput in ops per cycle and scheduler."""
    p = gpu.parameter
    ipc = instruction_throughput(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    return WARP * ipc / p("warp_schedulers")


def _ratio(gpu: Gpu) -> float:
    """Streaming over diverging throughput, both in ops per cycle and scheduler, rounded as in Table 6.1."""
    random = WARP / gpu.classes["random"].lambda_ / gpu.parameter("warp_schedulers")
    return round(_streaming(gpu), 2) / round(random, 3)


def _bank_conflicts() -> list[Row]:
    """§6.2: the latency that 2-way conflicts add, and their effect on the needed occupancy."""
    relative = []
    found = []
    for generation, published in zip(GENERATIONS, ("16", "16", "32", "32", "2"), strict=True):
        classes = volkov_gpu(generation).classes
        free, conflict = (classes[name].latency or 0 for name in ("smem", "smem2"))
        relative.append(100 * (conflict - free) / free)
        quantity = f"{NAMES[generation]}: latency that a 2-way conflict adds (cycles)"
        found.append(row(PAPER, "§6.2", quantity, published, conflict - free))
    return [
        *found,
        row(PAPER, "§6.2", "smallest increase of latency by a 2-way conflict (%)", "8", min(relative)),
        row(PAPER, "§6.2", "largest increase of latency by a 2-way conflict (%)", "133", max(relative)),
    ]


def _range_of_peaks() -> list[Row]:
    """§6.3: best throughput over pin bandwidth."""
    shares = []
    for generation in GENERATIONS:
        p = volkov_gpu(generation).parameter
        shares.append(100 * p("memory_reached_gbs") / p("memory_gbs"))
    return [
        row(PAPER, "§6.3", "least share of pin bandwidth that is reached (%)", "80", min(shares)),
        row(PAPER, "§6.3", "largest share of pin bandwidth that is reached (%)", "97", max(shares)),
    ]
