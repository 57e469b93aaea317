"""Volkov's thesis: SIMT execution and occupancies of chapter 2; Little's law, the worksheet, the listings and the
vector addition of chapter 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...hardware import Gpu
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
from . import Row, differs, inconsistent, of_kind, row
from . import volkov_kernels as kernels
from .volkov_kernels import PAPER, WARP, WARP_BYTES, Line, volkov_gpu


def rows() -> list[Row]:
    """All rows of chapters 2 and 3."""
    return [
        *_simt(),
        *_occupancies(),
        *_littles_law(),
        *_worksheet(),
        *_worksheet_issue(),
        *_listings(),
        *_vector_add(),
        *_back_of_the_envelope(),
    ]


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


def _simt() -> list[Row]:
    """Tables 2.3 and 2.4: the warp's order and masks, of threads that diverge and of threads that do not."""
    found, replayed = [], "§2.4's divergence stack, replayed: the emulator runs later machine code"
    for place, predicate, orders, masks in (
        ("Table 2.3", 0b0110, "015672348", "1111 1111 0110 0110 0110 1001 1001 1001 1111"),
        ("Table 2.4", 0b1111, "01234---5", "1111 1111 1111 1111 1111 - - - 1111"),
    ):
        executed = {at: (order, mask) for order, (at, mask) in enumerate(simt_trace(SIMT_CODE, predicate))}
        for at, (order, mask) in enumerate(zip(orders, masks.split(), strict=True)):
            if order == "-":
                continue
            computed, lanes = executed[at]
            text = SIMT_CODE[at].text
            found.append(row(PAPER, place, f"order of {text} in the warp", order, computed, note=replayed))
            found.append(
                row(PAPER, place, f"active mask of {text}", str(int(mask, 2)), lanes, tolerance=0.0,
                    note=f"{mask} as a binary number, exact; {replayed}")
            )  # fmt: skip
    return of_kind("input", found)


def _occupancies() -> list[Row]:
    """Table 2.9 and the text above it: shares of the most warps of an SM."""
    found = []
    for share, cells in (
        (1, ("24", "32", "48", "64", "64")),
        (0.5, ("12", "16", "24", "32", "32")),
        (0.25, ("6", "8", "12", "16", "16")),
        (0.125, ("3", "4", "6", "8", "8")),
    ):
        for name, printed in zip(kernels.GENERATIONS, cells, strict=True):
            most = volkov_gpu(name).parameter("max_warps_per_sm")
            quantity = f"{name}: {100 * share:g} % occupancy (warps per SM)"
            found.append(row(PAPER, "Table 2.9", quantity, printed, share * most))
    for name, printed in (("maxwell", "4"), ("g80", "6")):
        p = volkov_gpu(name).parameter
        warps = 0.25 * p("max_warps_per_sm") / p("warp_schedulers")
        found.append(row(PAPER, "§2.11", f"{name}: 25 % occupancy (warps per scheduler)", printed, warps))
    return of_kind("input", found)


def _littles_law() -> list[Row]:
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
    place = "§3.2"
    return [
        row(PAPER, "§3.1, Figure 3.1", "mean concurrency of 10 items of mean latency 2 in 10 cycles", "2",
            concurrency(2, 10 / 10)),
        row(PAPER, "Table 3.1", "peak throughput, arithmetic (IPC)", "4", peak_ipc, note="128 CUDA cores / 32",
            kind="input"),
        row(PAPER, "Table 3.1", "needed concurrency, arithmetic", "24", concurrency(add_lat, peak_ipc)),
        row(PAPER, "Table 3.1", "peak throughput, memory (IPC)", "0.081", reached, note="from 211 GB/s", kind="input"),
        row(PAPER, "Table 3.1", "needed concurrency, memory", "30", needed),
        row(PAPER, place, "throughput of 3 adds at a time (IPC)", "0.5", throughput(3, add_lat), note="printed as 1/2"),
        row(PAPER, place, "pin bandwidth (IPC per SM)", "0.086", pins, kind="input"),
        inconsistent(PAPER, place, "memory instructions needed for pin bandwidth", "33", concurrency(load_lat, pins),
            note=f"368 · {pins:.5f} = {concurrency(load_lat, pins):.1f}; 31.6 with the printed 0.086"),
        row(PAPER, "§3.3", "warps with 2 memory instructions each at a time", "15",
            warps_for_concurrency(round(needed), 2)),
        row(PAPER, "§3.3", "warps with a memory instruction half of the time", "60",
            warps_for_concurrency(round(needed), 0.5)),
    ]  # fmt: skip


def _worksheet() -> list[Row]:
    """Tables 3.2 to 3.4: the instruction mix on the Maxwell GPU."""
    gpu, place = volkov_gpu("maxwell"), "Table 3.4"
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
    rounded = "with the worksheet's own 12.3"
    return [
        row(PAPER, "Table 3.3", "memory system (B/cycle)", "10.4", per_cycle, note="from 211 GB/s", kind="input"),
        row(PAPER, place, "CPI, CUDA core instructions", "0.25", alone["add"]["alu"] / 100, kind="input"),
        row(PAPER, place, "cycles, CUDA cores", "25", busy["alu"]),
        row(PAPER, place, "CPI, SFU instructions", "1", alone["sfu"]["sfu"] / 5, kind="input"),
        row(PAPER, place, "cycles, SFU units", "5", busy["sfu"]),
        row(PAPER, place, "cycles, shared memory, no conflicts", "10", alone["smem"]["smem"]),
        row(PAPER, place, "cycles, shared memory, 2-way conflicts", "20", alone["smem2"]["smem"]),
        row(PAPER, place, "cycles, shared memory banks", "30", busy["smem"]),
        row(PAPER, place, "CPI, fully coalesced access", "12.3", coalesced, kind="input"),
        row(PAPER, place, "CPI, stride-2 access", "24.6", transfer_cycles(2 * WARP_BYTES, table_3_3), kind="input"),
        row(PAPER, place, "cycles, fully coalesced access", "61.5", cycles_total([(printed, 5)]), note=rounded),
        row(PAPER, place, "cycles, stride-2 access", "123.0", cycles_total([(2 * printed, 5)]), note=rounded),
        row(PAPER, place, "cycles, memory system (the tightest bound)", "184.5", max(bounds.values()), note=rounded),
        row(PAPER, "§3.6", "warp throughput bound (warps/cycle)", "0.00542", 1 / max(bounds.values()), note=rounded),
    ]


def _worksheet_issue() -> list[Row]:
    """Table 3.4's warp scheduler: SFU instructions dual-issued, diverging and conflicting ones reissued once."""
    place, gpu = "Table 3.4", volkov_gpu("maxwell")
    single = ["add"] * 95 + ["smem"] * 10 + ["stream"] * 5
    again = ["smem2"] * 10 + ["stream"] * 5  # the latter with stride 2

    def cycles(lines: list[Line]) -> float:
        return demand(kernels.workload_of(gpu, [kernels.path_of(gpu, lines)])).cycles[ISSUE]

    once, reissued = [Line(name) for name in (*single, *again)], [Line(name, issues=2) for name in again]
    pairs = [line for _ in range(5) for line in (Line("add"), Line("sfu", issues=0))]
    whole = cycles([*(Line(name) for name in single), *reissued, *pairs])
    return [
        row(PAPER, "§3.6", "issue events per warp", "145", whole * (gpu.scheduler.issue_per_cycle or 1)),
        row(PAPER, place, "cycles, single issue", "31.25", cycles(once)),
        row(PAPER, place, "cycles, dual issue", "1.25", cycles(pairs)),
        row(PAPER, place, "cycles, reissue", "3.75", cycles(reissued) - cycles([Line(name) for name in again])),
        row(PAPER, place, "cycles, warp scheduler", "36.25", whole),
    ]


def _without_waits(gpu: Gpu, line: Line, count: int) -> CostedWorkload:
    """Listing 3.2: `count` independent lines."""
    return kernels.workload_of(gpu, [kernels.path_of(gpu, [line] * count)])


def _listings() -> list[Row]:
    kepler, fermi = volkov_gpu("kepler"), volkov_gpu("fermi")
    lines = [Line(name, "R1", "R1") for name in ("stream", "smem", "add", "sfu")]
    first = kernels.workload_of(kepler, [kernels.path_of(kepler, [*lines, Line("stream", "", "R1", store=True)])])
    cycles = kernels.issue_cycles(first)[0]
    found = [
        row(PAPER, "Listing 3.1", f"issue cycle of {name}", published, computed)
        for name, published, computed in zip(
            ("LDS", "FADD", "MUFU.RSQ", "ST"), ("301", "325", "334", "343"), cycles[1:], strict=True
        )
    ]
    for name, class_, parameter, numbers in (
        ("FADD", "add", "ilp_latency", (6, 12, 18, 24, 30, 36)),
        ("ST", "stream", "store_ilp_latency", (34, 68, 102, 136, 170, 204)),
    ):
        work = _without_waits(fermi, Line(class_, stall=fermi.parameter(parameter)), 7)
        for number, (published, computed) in enumerate(zip(numbers, kernels.issue_cycles(work)[0][1:], strict=True), 2):
            quantity = f"issue cycle of {name} number {number}"
            found.append(row(PAPER, "Listing 3.2", quantity, str(published), computed))
    return [*found, *_barrier()]


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


def _barrier() -> list[Row]:
    """Listing 3.3, in which the load takes 512 cycles, not the 513 of Table 6.2."""
    place = "Listing 3.3"
    measured, printed = (kernels.issue_cycles(_barrier_listing(load)) for load in (None, 512))
    late = "one cycle late, as is the FADD: Table 6.2's load takes 513 cycles; with the listing's own 512 it is {:g}"
    return [
        row(PAPER, place, "issue cycle of LD, branch not taken", "28", measured[0][1]),
        inconsistent(
            *(PAPER, place, "issue cycle of FADD, after the load", "540", measured[0][2]),
            note="28 + 513 = 541: Table 6.2 gives Λ 513, the listing implies 512",
        ),
        row(PAPER, place, "issue cycle of the barrier, branch taken", "32", measured[1][1]),
        *(
            differs(PAPER, place, f"issue cycle {quantity}", published, computed, late.format(alike))
            for quantity, published, computed, alike in (
                ("of the barrier, longer warp", "546", measured[0][3], printed[0][3]),
                ("after the barrier, longer warp", "580", measured[0][4], printed[0][4]),
                ("after the barrier, other warp", "580", measured[1][2], printed[1][2]),
            )
        ),
    ]


def _vector_add() -> list[Row]:
    """§3.8 and §3.9 on the Kepler GPU."""
    gpu, place = volkov_gpu("kepler"), "§3.8"
    p = gpu.parameter
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
    return [
        row(PAPER, place, "mean warp latency (cycles)", "544", latency),
        row(PAPER, place, "issues per warp", "8", schedulers / bound),
        row(PAPER, place, "issue bound (warps per cycle and SM)", "0.5", bound),
        row(PAPER, place, "cycles per warp and scheduler, CUDA cores", "7", schedulers * arithmetic,
            note="one for each issue of one or two of the 9 CUDA core instructions"),
        row(PAPER, place, "memory system (B per cycle and SM)", "17.1", per_cycle, kind="input"),
        row(PAPER, place, "throughput bound (warps per cycle and SM)", "0.0445", roof,
            note=f"17.1 / 384; without rounding 17.1 it is {unrounded:.4f}"),
        row(PAPER, place, "memory throughput per warp of occupancy (GB/s)", "6.35",
            wpc_volkov(1, latency, unrounded) * to_gbs),
        row(PAPER, place, "memory throughput bound (GB/s)", "154", wpc_volkov(64, latency, roof) * to_gbs),
        row(PAPER, "§3.9", "instruction throughput at 156 GB/s (IPC per SM)", "0.54",
            best * work.paths[0].length, kind="input"),
        row(PAPER, "§3.9", "peak arithmetic throughput (IPC per SM)", "6", p("simd_width") / WARP, kind="input"),
    ]  # fmt: skip


def _back_of_the_envelope() -> list[Row]:
    """§3.10: the permutation kernel, three accesses of which one may diverge into 32 transactions."""
    place = "§3.10"
    base = 3 * WARP_BYTES
    found = []
    for size, each, all_data in ((32, "8", "3.3"), (128, "32", "11")):
        diverging = WARP * size
        quantity = f"with {size}-byte transactions"
        found += [
            row(PAPER, place, f"data of a diverging access over a coalesced one, {quantity}", each,
                diverging / WARP_BYTES),
            row(PAPER, place, f"data of the permutation, diverging over coalesced, {quantity}", all_data,
                (2 * WARP_BYTES + diverging) / base),
        ]  # fmt: skip
    return of_kind("input", found)
