"""Volkov's thesis: SIMT execution, occupancies and memory accesses of chapter 2; Little's law, the worksheet, the
listings and the vector addition of chapter 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...hardware import Gpu
from ...memory.requests import sectors_of, shared_wavefronts
from ...models.coalescing import transactions_before_1_3
from ...models.needed_occupancy import (
    bytes_per_cycle,
    concurrency,
    cycles_total,
    instruction_throughput,
    throughput,
    transfer_cycles,
    warps_for_concurrency,
)
from ...models.throughput import ISSUE, demand
from ...models.volkov import latency_bound, wpc_volkov
from ...workload.cost import CostedWorkload
from . import Value, Values, together
from . import volkov_kernels as kernels
from .volkov_kernels import PAPER, WARP, WARP_BYTES, Line, volkov_gpu


def computed() -> dict[str, Values]:
    """All numbers of chapters 2 and 3."""
    chapter_2 = together(_simt, _occupancies, _coalescing, _bank_conflicts)
    chapter_3 = together(_littles_law, _worksheet, _worksheet_issue, _listings, _barrier, _vector_add, _permutation)
    return {PAPER: chapter_2 | chapter_3}


@dataclass(frozen=True, slots=True)
class Step:
    """A line of Table 2.2: where SSY or the branch leads, and whether it ends a path (suffix .S)."""

    text: str
    target: int = -1
    sync: bool = False


SIMT_CODE = (
    *(Step("SSY ENDIF", 8), Step("@!P0 BRA ELSE", 5)),
    *(Step("IADD R1"), Step("IADD R2"), Step("IADD.S R3", sync=True)),
    *(Step("IMUL R4"), Step("IMUL R5"), Step("IMUL.S R6", sync=True)),
    Step("ENDIF"),
)
"""Table 2.2, right."""


def simt_trace(code: Sequence[Step], predicate: int, lanes: int = 4) -> list[tuple[int, int]]:
    """The warp's steps in execution order and their active masks, by the divergence stack of §2.4.

    `predicate` is P0 as a mask with thread 0 as the leftmost bit; threads without it branch, and go first.
    """
    at, mask = 0, (1 << lanes) - 1
    stack: list[tuple[int, int]] = []
    trace = []
    while at < len(code):
        step = code[at]
        trace.append((at, mask))
        if step.sync:
            at, mask = stack.pop()
        elif step.text.startswith("SSY"):
            stack.append((step.target, mask))
            at += 1
        elif step.target >= 0:
            branch, stay = mask & ~predicate, mask & predicate
            if branch and stay:
                stack.append((at + 1, stay))
            at, mask = (step.target, branch) if branch else (at + 1, mask)
        else:
            at += 1
    return trace


def _simt() -> Values:
    """Tables 2.3 and 2.4: the warp's order and masks, of threads that diverge and of threads that do not."""
    found: Values = {}
    for place, predicate in (("Table 2.3", 0b0110), ("Table 2.4", 0b1111)):
        for order, (at, mask) in enumerate(simt_trace(SIMT_CODE, predicate)):
            found[f"{place}: order of {SIMT_CODE[at].text} in the warp"] = order
            found[f"{place}: active mask of {SIMT_CODE[at].text}"] = mask
    return found


def _occupancies() -> Values:
    """Table 2.9 and the text above it: shares of the most warps of an SM."""
    found: Values = {}
    for name in kernels.GENERATIONS:
        most = volkov_gpu(name).parameter("max_warps_per_sm")
        for share in (1, 0.5, 0.25, 0.125):
            found[f"{name}: {100 * share:g} % occupancy (warps per SM)"] = share * most
    for name in ("maxwell", "g80"):
        p = volkov_gpu(name).parameter
        warps = 0.25 * p("max_warps_per_sm") / p("warp_schedulers")
        found[f"{name}: 25 % occupancy (warps per scheduler)"] = warps
    return found


def _transactions(*words: int) -> int:
    """Blocks of four words that four threads touch."""
    return int(sectors_of(np.array([words], np.int64), np.ones((1, len(words)), bool), len(words))[0])


def _coalescing() -> Values:
    """§2.5 and Figure 2.1: four threads, four words in a transaction; on the G80 by Hong and Kim's Algorithm 1."""
    every = ((0, 1, 2, 3), (1, 2, 3, 4), (0, 2, 4, 6), (0, 3, 6, 9), (2, 4, 13, 11))
    found: Values = {f"transactions of {words}": _transactions(*words) for words in every}
    for words in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 1, 1, 1)):
        found[f"transactions of {words} on the G80"] = transactions_before_1_3(words, 4)
    return found


def _bank_conflicts() -> Values:
    """§2.6 and Figure 2.2: four threads, four banks; and the most conflicts of 32 threads."""

    def passes(words: Sequence[int]) -> int:
        addresses = 4 * np.array([words], np.int64)
        return int(shared_wavefronts(addresses, np.ones((1, len(words)), bool), 4, len(words), 4)[0][0])

    every = (
        *((0, 1, 2, 3), (1, 2, 3, 4), (0, 3, 6, 9), (0, 2, 4, 6), (0, 4, 8, 12)),
        *((1, 3, 5, 8), (1, 1, 1, 1), (1, 1, 1, 2)),
    )
    found: Values = {f"accesses of the busiest bank for {words}": passes(words) for words in every}
    found["most conflicts of a warp"] = passes(range(0, WARP * WARP, WARP))
    return found


def _littles_law() -> Values:
    """§§3.1 to 3.3 and Table 3.1, on the Maxwell GPU."""
    gpu = volkov_gpu("maxwell")
    p = gpu.parameter
    clock, sms = p("clock_mhz") / 1000, p("sm_count")
    add, load = gpu.classes["add"], gpu.classes["stream"]
    add_lat, load_lat = add.latency or 0, load.latency or 0
    peak_ipc = p("simd_width") / WARP
    pins = instruction_throughput(p("memory_gbs"), clock, sms)
    reached = instruction_throughput(p("memory_reached_gbs"), clock, sms)
    needed = concurrency(load_lat, reached)
    return {
        "mean concurrency of 10 items of mean latency 2 in 10 cycles": concurrency(2, 10 / 10),
        "peak throughput, arithmetic (IPC)": peak_ipc,
        "needed concurrency, arithmetic": concurrency(add_lat, peak_ipc),
        "peak throughput, memory (IPC)": reached,
        "needed concurrency, memory": needed,
        "throughput of 3 adds at a time (IPC)": throughput(3, add_lat),
        "pin bandwidth (IPC per SM)": pins,
        "memory instructions needed for pin bandwidth": Value(concurrency(load_lat, pins), shown={"pins": pins}),
        "warps with 2 memory instructions each at a time": warps_for_concurrency(round(needed), 2),
        "warps with a memory instruction half of the time": warps_for_concurrency(round(needed), 0.5),
    }


def _worksheet() -> Values:
    """Tables 3.2 to 3.4: the instruction mix on the Maxwell GPU."""
    gpu = volkov_gpu("maxwell")
    counts = {"add": 100, "sfu": 5, "smem": 10, "smem2": 10}
    work = kernels.chain(gpu, [name for name, count in counts.items() for _ in range(count)])
    busy = demand(work).cycles
    alone = {name: demand(kernels.chain(gpu, [name] * count)).cycles for name, count in counts.items()}
    p = gpu.parameter
    table_3_3 = 10.4  # B/cycle, the worksheet's input
    per_cycle = bytes_per_cycle(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    coalesced = transfer_cycles(WARP_BYTES, table_3_3)
    printed = 12.3  # the worksheet goes on with its rounded CPI
    total = cycles_total([(printed, 5), (2 * printed, 5)])
    bounds = {**busy, "mem": total}
    return {
        "memory system (B/cycle)": per_cycle,
        "CPI, CUDA core instructions": alone["add"]["alu"] / 100,
        "cycles, CUDA cores": busy["alu"],
        "CPI, SFU instructions": alone["sfu"]["sfu"] / 5,
        "cycles, SFU units": busy["sfu"],
        "cycles, shared memory, no conflicts": alone["smem"]["smem"],
        "cycles, shared memory, 2-way conflicts": alone["smem2"]["smem"],
        "cycles, shared memory banks": busy["smem"],
        "CPI, fully coalesced access": coalesced,
        "CPI, stride-2 access": transfer_cycles(2 * WARP_BYTES, table_3_3),
        "cycles, fully coalesced access": cycles_total([(printed, 5)]),
        "cycles, stride-2 access": cycles_total([(2 * printed, 5)]),
        "cycles, memory system (the tightest bound)": max(bounds.values()),
        "warp throughput bound (warps/cycle)": 1 / max(bounds.values()),
    }


def _worksheet_issue() -> Values:
    """Table 3.4's warp scheduler: SFU instructions dual-issued, diverging and conflicting ones reissued once."""
    gpu = volkov_gpu("maxwell")
    single = ["add"] * 95 + ["smem"] * 10 + ["stream"] * 5
    again = ["smem2"] * 10 + ["stream"] * 5  # the latter with stride 2

    def cycles(lines: list[Line]) -> float:
        return demand(kernels.workload_of(gpu, [kernels.path_of(gpu, lines)])).cycles[ISSUE]

    once, reissued = [Line(name) for name in (*single, *again)], [Line(name, issues=2) for name in again]
    pairs = [line for _ in range(5) for line in (Line("add"), Line("sfu", issues=0))]
    whole = cycles([*(Line(name) for name in single), *reissued, *pairs])
    return {
        "issue events per warp": whole * (gpu.scheduler.issue_per_cycle or 1),
        "cycles, single issue": cycles(once),
        "cycles, dual issue": cycles(pairs),
        "cycles, reissue": cycles(reissued) - cycles([Line(name) for name in again]),
        "cycles, warp scheduler": whole,
    }


def _without_waits(gpu: Gpu, line: Line, count: int) -> CostedWorkload:
    """Listing 3.2: `count` independent lines."""
    return kernels.workload_of(gpu, [kernels.path_of(gpu, [line] * count)])


def _listings() -> Values:
    kepler, fermi = volkov_gpu("kepler"), volkov_gpu("fermi")
    lines = [Line(name, "R1", "R1") for name in ("stream", "smem", "add", "sfu")]
    first = kernels.workload_of(kepler, [kernels.path_of(kepler, [*lines, Line("stream", "", "R1", store=True)])])
    cycles = kernels.issue_cycles(first)[0]
    names = ("LDS", "FADD", "MUFU.RSQ", "ST")
    found: Values = {f"issue cycle of {name}": cycle for name, cycle in zip(names, cycles[1:], strict=True)}
    for name, class_, parameter in (("FADD", "add", "ilp_latency"), ("ST", "stream", "store_ilp_latency")):
        work = _without_waits(fermi, Line(class_, stall=fermi.parameter(parameter)), 7)
        for number, cycle in enumerate(kernels.issue_cycles(work)[0][1:], 2):
            found[f"issue cycle of {name} number {number}"] = cycle
    return found


def _barrier_listing(load_latency: float | None = None, barrier_latency: float = 34) -> CostedWorkload:
    """Listing 3.3: one warp branches over a load and an add; both warps synchronize at a barrier."""
    gpu = volkov_gpu("fermi")
    taken, untaken = gpu.parameter("branch_taken_latency"), gpu.parameter("branch_untaken_latency")
    ilp = gpu.parameter("ilp_latency")
    barrier = Line("add", latency=barrier_latency, barrier=True)
    long = (
        Line("add", stall=untaken),
        Line("stream", "R1", "R1", latency=load_latency, stall=ilp),
        Line("add", "R1", "R1", stall=ilp),
        barrier,
        Line("add", "R2"),
    )
    short = (Line("add", stall=taken), barrier, Line("add", "R2"))
    return kernels.workload_of(gpu, [kernels.path_of(gpu, long), kernels.path_of(gpu, short)])


def _barrier() -> Values:
    """Listing 3.3, in which the load takes 512 cycles, not the 513 of Table 6.2."""
    measured, printed = (kernels.issue_cycles(_barrier_listing(load)) for load in (None, 512))
    late = {
        "of the barrier, longer warp": (0, 3),
        "after the barrier, longer warp": (0, 4),
        "after the barrier, other warp": (1, 2),
    }
    return {
        "issue cycle of LD, branch not taken": measured[0][1],
        "issue cycle of FADD, after the load": measured[0][2],
        "issue cycle of the barrier, branch taken": measured[1][1],
        **{
            f"issue cycle {quantity}": Value(measured[warp][at], shown={"alike": printed[warp][at]})
            for quantity, (warp, at) in late.items()
        },
    }


def _vector_add() -> Values:
    """§3.8 and §3.9 on the Kepler GPU."""
    p = volkov_gpu("kepler").parameter
    clock, sms, schedulers = p("clock_mhz") / 1000, p("sm_count"), p("warp_schedulers")
    latency = latency_bound(kernels.without_limits(kernels.vector_add()))
    work = kernels.vector_add()
    bound = 1 / demand(work).cycles[ISSUE]
    moved = kernels.VECTOR_ADD_ACCESSES * WARP_BYTES
    per_cycle = bytes_per_cycle(p("memory_reached_gbs"), clock, sms)
    roof = round(per_cycle, 1) / moved
    unrounded = per_cycle / moved
    to_gbs = moved * sms * clock
    arithmetic = demand(kernels.vector_add(arithmetic=True)).cycles[ISSUE]
    best = 156 / to_gbs
    return {
        "mean warp latency (cycles)": latency,
        "issues per warp": schedulers / bound,
        "issue bound (warps per cycle and SM)": bound,
        "cycles per warp and scheduler, CUDA cores": schedulers * arithmetic,
        "memory system (B per cycle and SM)": per_cycle,
        "throughput bound (warps per cycle and SM)": Value(roof, shown={"unrounded": unrounded}),
        "memory throughput per warp of occupancy (GB/s)": wpc_volkov(1, latency, unrounded) * to_gbs,
        "memory throughput bound (GB/s)": wpc_volkov(64, latency, roof) * to_gbs,
        "instruction throughput at 156 GB/s (IPC per SM)": best * work.paths[0].length,
        "peak arithmetic throughput (IPC per SM)": p("simd_width") / WARP,
    }


def _permutation() -> Values:
    """§3.10: the permutation kernel, three accesses of which one may diverge into 32 transactions."""
    found: Values = {}
    for size in (32, 128):
        diverging, said = WARP * size, f"with {size}-byte transactions"
        found[f"data of a diverging access over a coalesced one, {said}"] = diverging / WARP_BYTES
        together = (2 * WARP_BYTES + diverging) / (3 * WARP_BYTES)
        found[f"data of the permutation, diverging over coalesced, {said}"] = together
    return found
