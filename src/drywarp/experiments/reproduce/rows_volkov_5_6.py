"""Volkov's thesis, §5.7 on shared memory, and chapter 6: concurrency, contention, diverging access."""

from __future__ import annotations

from math import ceil

from ...hardware import Gpu, limits_of
from ...hardware.occupancy import blocks_by_shared, occupancy
from ...models import volkov_contention as contention
from ...models.cusp import contention_of, mix_of
from ...models.needed_occupancy import concurrency, instruction_throughput, transaction_latency
from . import Row, derived, differs, inconsistent, of_kind, row
from .rows_volkov_4 import NAMES
from .volkov_kernels import GENERATIONS, PAPER, WARP, volkov_gpu


def rows() -> list[Row]:
    """All rows of chapters 5 and 6."""
    return [
        *_shared_memory(),
        *_table_6_1(),
        *_needed(),
        *_needed_misfits(),
        *_table_6_4(),
        *_contention(),
        *_gradual_saturation(),
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
    return of_kind("input", found)


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


def _shared_memory() -> list[Row]:
    """§5.7: blocks that shared memory allows, by the occupancy calculator for each compute capability."""
    kepler, maxwell, place = limits_of("3.0"), limits_of("5.2"), "§5.7"

    def missing(capability: str) -> int:
        """The number of blocks, if it is only one, that no allocation gives."""
        limits = limits_of(capability)
        sizes = range(limits.shared_allocation_unit, limits.shared_bytes_per_sm + 1, limits.shared_allocation_unit)
        return sum(set(range(1, limits.max_blocks_per_sm + 1)) - {blocks_by_shared(limits, size) for size in sizes})

    return [
        row(PAPER, place, "Kepler: blocks per SM that allocate 3072 B each", "16", blocks_by_shared(kepler, 3072) or 0),
        row(PAPER, place, "Kepler: blocks per SM that allocate 3073 B each", "14", blocks_by_shared(kepler, 3073) or 0),
        row(PAPER, place, "Kepler: allocation for 3073 B (bytes)", "3328",
            occupancy(kepler, 16, 3073, WARP).shared_bytes_per_block),
        *(row(PAPER, place, f"{name}: blocks per SM that shared memory cannot enforce", "7", missing(capability),
              note="the only number up to 8 that no allocation of 16 KB in units of 512 bytes gives")
          for name, capability in (("G80", "1.0"), ("GT200", "1.3"))),
        derived(PAPER, place, "Maxwell: fewest blocks per SM that shared memory enforces", 2,
                blocks_by_shared(maxwell, 48 * 1024) or 0, "the text: 1 cannot be reached, with 48 of 96 KB at most"),
    ]  # fmt: skip


def _needed_misfits() -> list[Row]:
    """The cells of Table 6.3 that latency times throughput does not give."""
    half = "the thesis's own law, 'in most cases': its measured latencies are of two half-warps (§6.1)"
    threshold = "measured where throughput comes within a small threshold of the peak; "
    found = []
    for generation, class_, published, reason in (
        ("g80", "smem", "9", half),
        ("gt200", "smem", "11", half),
        ("gt200", "smem2", "8", half),
        ("maxwell", "smem", "8", "§6.1: only 92 % of the peak at the expected 24 warps per SM, perhaps of the setup"),
        ("maxwell", "smem2", "3.75", threshold + "13 warps per SM are expected, 15 measured, as with smem"),
        ("fermi", "random", "2", threshold + "memory saturates gradually (§6.4), which Little's law leaves out"),
        ("kepler", "random", "1.75", threshold + "memory saturates gradually (§6.4), which Little's law leaves out"),
        ("maxwell", "random", "0.75", threshold + "memory saturates gradually (§6.4), which Little's law leaves out"),
    ):
        gpu = volkov_gpu(generation)
        schedulers = gpu.parameter("warp_schedulers")
        share = 0.9 if class_ == "random" else 1.0
        exact = share * _per_scheduler(gpu, class_)
        note = f"{exact:.4g}, in whole warps per SM; {reason}"
        whole = _ceil(exact * schedulers) / schedulers
        quantity = f"{NAMES[generation]}: warps per scheduler, {class_}"
        found.append(differs(PAPER, "Table 6.3", quantity, published, whole, note))
    return found


def _gradual_saturation() -> list[Row]:
    """Table 6.4's other columns, by the model of contention with the fits of Table 6.5 (§6.4).

    `misfits` names the columns by their share of the peak in percent, 100 for the last.
    """
    found, reason = [], "measured, at occupancies that block sizes allow; the fit smooths the points of Figure 6.3"
    for generation, at_90, at_95, linear, misfits in (
        ("g80", "20", "24", "75", (90, 95)),
        ("gt200", "16", "18", "84", (90, 95)),
        ("fermi", "21", "25", "80", (90, 100)),
        ("kepler", "14", "16", "78", (100,)),
        ("maxwell", "10", "11.5", "80", (100,)),
    ):
        gpu = volkov_gpu(generation)
        mix, fit, schedulers = mix_of(gpu), contention_of(gpu, refined=False), gpu.parameter("warp_schedulers")
        if fit is None:
            raise ValueError(f"{generation}: its file lacks the fit of Table 6.5")
        name = NAMES[generation]
        attained = 100 * contention.memory_throughput(mix, fit, mix.warps_for_memory, 0) / mix.mem_thru
        cells = [(100, f"{name}: % of the memory peak at the linear estimate", linear, attained, attained)]
        for percent, published in ((90, at_90), (95, at_95)):
            exact = contention.needed_occupancy(mix, fit, 0, percent / 100)
            quantity = f"{name}: warps per scheduler for {percent} % of the memory peak"
            cells.append((percent, quantity, published, ceil(exact) / schedulers, exact / schedulers))
        for cell, quantity, published, computed, exact in cells:
            note = f"{exact:.4g} by the fit of Table 6.5"
            if cell in misfits:
                note += f"; {reason}"
                found.append(differs(PAPER, "Table 6.4", quantity, published, computed, note))
            else:
                found.append(row(PAPER, "Table 6.4", quantity, published, computed, note=note))
    return found


def _contention() -> list[Row]:
    """§6.5: the fit's c in IPC, on the Kepler GPU."""
    p = volkov_gpu("kepler").parameter
    c = instruction_throughput(p("contention_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    peak = instruction_throughput(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    return [
        row(PAPER, "§6.5", "Kepler: c of Table 6.5 (IPC/SM)", "0.1477", c, kind="input"),
        row(PAPER, "§6.5", "Kepler: memory bound of the refined model (IPC/SM)", "0.1338", peak, kind="input"),
    ]


def _diverging() -> list[Row]:
    """Table 6.7, and §6.7's ratios of peak throughput."""
    found = []
    for generation, transactions, published in zip(
        GENERATIONS, (2, 2, 1, 4, 4), ("6.7", "7.6", "34", "33", "5.9"), strict=True
    ):
        classes = volkov_gpu(generation).classes
        computed = transaction_latency(
            classes["random"].latency or 0, classes["stream"].latency or 0, WARP, transactions
        )
        quantity = f"{NAMES[generation]}: latency of a further transaction (cycles)"
        found.append(row(PAPER, "Table 6.7", quantity, published, computed))
    ratios = {generation: _ratio(volkov_gpu(generation)) for generation in GENERATIONS}
    others = [ratio for generation, ratio in ratios.items() if generation != "gt200"]
    note = "of Table 6.1's rounded throughputs"
    return of_kind("input", [
        *found,
        row(PAPER, "§6.7", "smallest drop of throughput, diverging access", "28", min(others), note=note),
        row(PAPER, "§6.7", "largest drop of throughput but for GT200", "33", max(others), note=note),
        row(PAPER, "§6.7", "GT200: drop of throughput, diverging access", "56", ratios["gt200"], note=note),
    ])  # fmt: skip


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
    return of_kind("input", [
        *found,
        row(PAPER, "§6.2", "smallest increase of latency by a 2-way conflict (%)", "8", min(relative),
            rounded=True, note="printed in whole percents"),
        row(PAPER, "§6.2", "largest increase of latency by a 2-way conflict (%)", "133", max(relative)),
    ])  # fmt: skip


def _range_of_peaks() -> list[Row]:
    """§6.3: best throughput over pin bandwidth."""
    shares = []
    for generation in GENERATIONS:
        p = volkov_gpu(generation).parameter
        shares.append(100 * p("memory_reached_gbs") / p("memory_gbs"))
    return of_kind("input", [
        row(PAPER, "§6.3", "least share of pin bandwidth that is reached (%)", "80", min(shares)),
        row(PAPER, "§6.3", "largest share of pin bandwidth that is reached (%)", "97", max(shares)),
    ])  # fmt: skip
