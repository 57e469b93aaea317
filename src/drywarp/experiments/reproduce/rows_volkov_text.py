"""Volkov's thesis, what its text says besides the tables: memory accesses (§2.5, §2.6), issue and concurrency (§2.9 to
§3.10), load imbalance (§5.8), and the ratios of chapters 4 and 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from ...memory.requests import sectors_of, shared_wavefronts
from ...models import volkov_contention as contention
from ...models.coalescing import transactions_before_1_3
from ...models.cusp import mix_of
from ...models.needed_occupancy import Mix, concurrency, throughput
from ...pipeline.blocks import Share
from ...pipeline.simulate import run_share
from ...workload.cost import Repeat, Subsystem
from . import Row, differs, of_kind, row
from . import volkov_kernels as kernels
from .rows_volkov_4 import NAMES
from .volkov_kernels import GENERATIONS, PAPER, WARP, Line, volkov_gpu


def rows() -> list[Row]:
    """All rows of this module."""
    return [
        *_coalescing(), *_bank_conflicts(), *_issue(), *_concurrency(), *_uncoalesced(), *_imbalance(),
        *_specifications(), *_shared_memory(), *_saturation(), *_single_accesses(),
    ]  # fmt: skip


def _transactions(*words: int) -> int:
    """Blocks of four words that four threads touch."""
    return int(sectors_of(np.array([words], np.int64), np.ones((1, len(words)), bool), len(words))[0])


def _coalescing() -> list[Row]:
    """§2.5 and Figure 2.1: four threads, four words in a transaction; on the G80 by Hong and Kim's Algorithm 1."""
    place = "§2.5, Figure 2.1"
    found = [
        row(PAPER, place, f"transactions of {words}", published, _transactions(*words))
        for words, published in (
            ((0, 1, 2, 3), "1"), ((1, 2, 3, 4), "2"), ((0, 2, 4, 6), "2"), ((0, 3, 6, 9), "3"), ((2, 4, 13, 11), "4"),
        )
    ]  # fmt: skip
    g80 = (((0, 1, 2, 3), "1"), ((3, 2, 1, 0), "4"), ((1, 1, 1, 1), "4"))
    return found + [
        row(PAPER, place, f"transactions of {words} on the G80", published, transactions_before_1_3(words, 4))
        for words, published in g80
    ]


def _bank_conflicts() -> list[Row]:
    """§2.6 and Figure 2.2: four threads, four banks; and the most conflicts of 32 threads."""

    def passes(words: Sequence[int]) -> int:
        addresses = 4 * np.array([words], np.int64)
        return int(shared_wavefronts(addresses, np.ones((1, len(words)), bool), 4, len(words), 4)[0][0])

    place = "§2.6, Figure 2.2"
    found = [
        row(PAPER, place, f"accesses of the busiest bank for {words}", published, passes(words))
        for words, published in (
            ((0, 1, 2, 3), "1"), ((1, 2, 3, 4), "1"), ((0, 3, 6, 9), "1"), ((0, 2, 4, 6), "2"), ((0, 4, 8, 12), "4"),
            ((1, 3, 5, 8), "2"), ((1, 1, 1, 1), "1"), ((1, 1, 1, 2), "1"),
        )
    ]  # fmt: skip
    return [*found, row(PAPER, place, "most conflicts of a warp", "32", passes(range(0, WARP * WARP, WARP)))]


def _issue() -> list[Row]:
    """§2.9, Table 2.8 and Table 4.1: what the numbers of schedulers and cores give."""
    found = []
    for name, warps, issue in zip(GENERATIONS, ("24", "32", "24", "16", "16"), ("0.5", "0.5", "1", "4", "4"),
                                  strict=True):  # fmt: skip
        gpu, cycles = volkov_gpu(name), 2 if name in ("g80", "gt200", "fermi") else 1
        p = gpu.parameter
        schedulers = p("warp_schedulers")
        found += [
            row(PAPER, "Table 2.8", f"{NAMES[name]}: warps per scheduler", warps, p("max_warps_per_sm") / schedulers),
            row(PAPER, "Table 4.1", f"{NAMES[name]}: issue_thru (IPC/SM)", issue, schedulers / cycles,
                note="Table 2.6's schedulers over Table 2.8's cycles"),
        ]  # fmt: skip
    cores = WARP / volkov_gpu("g80").parameter("simd_width")
    found.append(row(PAPER, "§2.9", "G80: cycles between instructions of its 8 CUDA cores", "4", cores))
    for width, published in ((1, "4"), (2, "8")):
        issued = width * volkov_gpu("kepler").parameter("warp_schedulers")
        found.append(row(PAPER, "§3.9", f"peak issue of {width} from each scheduler (IPC per SM)", published, issued))
    return of_kind("input", found)


def _concurrency() -> list[Row]:
    """§§3.2, 3.3 and 3.10: Little's law in the text's examples."""
    add = volkov_gpu("maxwell").classes["add"].latency or 0
    found = [
        row(PAPER, "§3.2", f"throughput of {count:g} adds at a time (IPC)", published, throughput(count, add),
            note=f"printed as {fraction}")
        for count, published, fraction in ((1, "0.1667", "1/6"), (2, "0.3333", "1/3"), (0.5, "0.08333", "1/12"))
    ]  # fmt: skip
    # One instruction of either kind at a time for half of the time each: equal Λ, α = 1.
    halves = Mix(mem_lat=2, mem_thru=1, alu_lat=2, alu_thru=1)
    memory = concurrency(halves.mem_lat, halves.memory_throughput(3, 1))
    found.append(row(PAPER, "§3.3, Figure 3.2", "memory instructions in execution with 3 warps", "1.5", memory))
    transactions = (WARP - 1) * volkov_gpu("kepler").parameter("transaction_latency")
    more = row(PAPER, "§3.10", "latency that 31 further transactions add (cycles)", "1E3", transactions, rounded=True,
               kind="input", note='"about a thousand", read to one digit: 31 · 33')  # fmt: skip
    return [*found, more]


def _uncoalesced() -> list[Row]:
    """§4.3 and Figure 4.3: needed occupancy of uncoalesced accesses on Maxwell, by its quoted Λ and IPC."""
    maxwell = mix_of(volkov_gpu("maxwell"))
    found = [
        row(PAPER, "§4.3", "Maxwell: warps for 95 % of the memory peak over the model's", "1.5",
            46 / round(maxwell.warps_for_memory), kind="input", note="46 / 30"),
    ]  # fmt: skip
    for name, latency, ipc, published in (("stride 2", 376, 0.041, "20"), ("random", 534, 0.0029, "3")):
        exact = 0.9 * concurrency(latency, ipc)
        note = (
            f"0.9 · {latency} cycles · {ipc} IPC = {exact:.1f}, in whole warps; measured: memory saturates gradually"
            " (§6.4), which Little's law leaves out"
        )
        quantity = f"Maxwell: warps for 90 % of the peak, {name}"
        found.append(differs(PAPER, "§4.3, Figure 4.3", quantity, published, ceil(exact), note))
    return found


def _imbalance() -> list[Row]:
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
    place = "§5.8, Figure 5.2"
    return [
        row(PAPER, place, "Kepler, SFU: throughput lost with 17 warps instead of 16, %", "15",
            100 * (1 - uneven / balanced)),
        row(PAPER, place, "Kepler, SFU: warps that remain of 17", "5", left),
    ]  # fmt: skip


def _specifications() -> list[Row]:
    """Table 6.1 from Tables 2.5, 2.6 and 2.8: operations per cycle and scheduler."""
    banks, cycles = (16, 16, 32, 32, 32), (2, 2, 2, 1, 1)  # Table 2.5
    table = {
        "add": ("8", "8", "16", "32", "32"),
        "SFU": ("2", "2", "2", "8", "8"),
        "smem": ("6", "8", "8", "8", "8"),
        "smem2": ("3", "4", "4", "4", "4"),
    }
    found = []
    for column, name in enumerate(GENERATIONS):
        gpu = volkov_gpu(name)
        schedulers = gpu.parameter("warp_schedulers")
        shared = banks[column] / cycles[column]
        rates = {
            "add": min(gpu.parameter("simd_width"), WARP * (gpu.scheduler.issue_per_cycle or 0)),
            "SFU": gpu.parameter("sfu_width"),
            "smem": shared,
            "smem2": shared / 2,
        }
        for class_, cells in table.items():
            quantity = f"{NAMES[name]}: throughput per scheduler, {class_} (ops/cycle)"
            computed = rates[class_] / schedulers
            if name == "g80" and class_.startswith("smem"):
                note = f"§6.1: below the specification, {computed:g}, and measured so by others too; no reason is known"
                found.append(differs(PAPER, "Table 6.1", quantity, cells[column], computed, note))
            else:
                found.append(row(PAPER, "Table 6.1", quantity, cells[column], computed))
    return of_kind("input", found)


def _shared_memory() -> list[Row]:
    """§§6.1 and 6.2: sums and ratios of Tables 6.2 and 6.3."""
    maxwell = volkov_gpu("maxwell")
    found = [
        row(PAPER, "§6.1", "Maxwell: shared memory access and pointer arithmetic (cycles)", "28",
            22 + (maxwell.classes["add"].latency or 0), note="22 towards an add (§4.7), and the add"),
        row(PAPER, "§6.1", "Kepler: warps per SM for the SFU peak", "12",
            3 * volkov_gpu("kepler").parameter("warp_schedulers")),
        row(PAPER, "§6.1", "Maxwell: warps per SM for the shared memory peak", "32",
            8 * maxwell.parameter("warp_schedulers")),
    ]  # fmt: skip
    for name, free, conflict, published, note in (
        ("G80", 9, 6, "1.5", ""), ("GT200", 11, 8, "1.4", ""), ("Maxwell", 8, 3.75, "2", '"about 2", to one digit'),
    ):  # fmt: skip
        quantity = f"{name}: factor by which the needed occupancy drops with 2-way conflicts"
        found.append(row(PAPER, "§6.2", quantity, published, free / conflict, rounded=bool(note), note=note))
    return of_kind("input", found)


def _saturation() -> list[Row]:
    """§6.3: needed occupancies of Table 6.4 over the linear estimate, and a clock's share."""
    linear = (12, 12, 15.5, 10, 7.5)
    note = "the least of five, of which the G80's {:.2f} is the most"
    found = []
    for percent, published, needed in ((90, "1.3", (20, 16, 21, 14, 10)), (95, "1.5", (24, 18, 25, 16, 11.5))):
        ratios = [warps / estimate for warps, estimate in zip(needed, linear, strict=True)]
        quantity = f"occupancy for {percent} % of the peak over the linear estimate"
        found.append(row(PAPER, "§6.3", quantity, published, min(ratios), note=note.format(max(ratios))))
    found.append(row(PAPER, "§6.3", "156 GB/s at the highest memory clock (GB/s)", "182", 156 * 3.5 / 3.0))
    return of_kind("input", found)


def _single_accesses() -> list[Row]:
    """§6.6: mean latencies by the fit of Table 6.5; shares and ratios of Table 6.6."""
    gpu, place = volkov_gpu("kepler"), "§6.6"
    fit, peak = (
        contention.fit_of({name: gpu.parameter(name) for name in contention.FIT}),
        gpu.parameter("memory_reached_gbs"),
    )
    if fit is None:
        raise ValueError("the GPU file lacks the fit of Table 6.5")
    found = [
        row(PAPER, place, f"{gbs:g} GB/s as a share of the peak, %", share, 100 * gbs / peak, kind="input")
        for gbs, share in ((3.8, "2.5"), (107, "69"), (144, "94"))
    ]
    for gbs, published in ((3.8, "303"), (144, "501")):
        cycles = fit.latency(gbs)
        note = f"300 + 32 · {gbs:g} / (170 − {gbs:g}) = {cycles:.1f}; measured, and the fit smooths Figure 6.3's points"
        found.append(differs(PAPER, place, f"Kepler: mean latency at {gbs:g} GB/s (cycles)", published, cycles, note))
    return found + of_kind("input", [
        row(PAPER, place, "cycles that the middle 90 % of accesses span at 3.8 GB/s", "32", 324 - 292),
        row(PAPER, place, "longest over mean latency at 3.8 GB/s", "1.8", 536 / 303),
    ])  # fmt: skip
