"""Volkov's thesis, chapter 3: Little's law, the worksheet, the listings, the vector addition."""

from __future__ import annotations

from ...models import volkov as sheet
from ...models.needed_occupancy import concurrency, instruction_throughput, throughput, warps_for_concurrency
from ...models.throughput import demand
from ...models.volkov import latency_bound, wpc_volkov
from . import volkov_kernels as kernels
from .row import Row, inconsistent, row
from .volkov_kernels import PAPER, WARP, WARP_BYTES, Line, volkov_gpu


def rows() -> list[Row]:
    """All rows of chapter 3."""
    return [*_littles_law(), *_worksheet(), *_worksheet_issue(), *_listings(), *_vector_add(), *_back_of_the_envelope()]


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
        row(PAPER, "Table 3.1", "peak throughput, arithmetic (IPC)", "4", peak_ipc, note="128 CUDA cores / 32"),
        row(PAPER, "Table 3.1", "needed concurrency, arithmetic", "24", concurrency(add_lat, peak_ipc)),
        row(PAPER, "Table 3.1", "peak throughput, memory (IPC)", "0.081", reached, note="from 211 GB/s"),
        row(PAPER, "Table 3.1", "needed concurrency, memory", "30", needed),
        row(PAPER, place, "throughput of 3 adds at a time (IPC)", "0.5", throughput(3, add_lat), note="printed as 1/2"),
        row(PAPER, place, "pin bandwidth (IPC per SM)", "0.086", pins),
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
    per_cycle = sheet.bytes_per_cycle(p("memory_reached_gbs"), p("clock_mhz") / 1000, p("sm_count"))
    coalesced = sheet.transfer_cycles(WARP_BYTES, table_3_3)
    printed = 12.3  # the worksheet goes on with its rounded CPI
    total = sheet.cycles_total([(printed, 5), (2 * printed, 5)])
    bounds = {**busy, "mem": total}
    rounded = "with the worksheet's own 12.3"
    return [
        row(PAPER, "Table 3.3", "memory system (B/cycle)", "10.4", per_cycle, note="from 211 GB/s"),
        row(PAPER, place, "CPI, CUDA core instructions", "0.25", alone["add"]["alu"] / 100),
        row(PAPER, place, "cycles, CUDA cores", "25", busy["alu"]),
        row(PAPER, place, "CPI, SFU instructions", "1", alone["sfu"]["sfu"] / 5),
        row(PAPER, place, "cycles, SFU units", "5", busy["sfu"]),
        row(PAPER, place, "cycles, shared memory, no conflicts", "10", alone["smem"]["smem"]),
        row(PAPER, place, "cycles, shared memory, 2-way conflicts", "20", alone["smem2"]["smem"]),
        row(PAPER, place, "cycles, shared memory banks", "30", busy["smem"]),
        row(PAPER, place, "CPI, fully coalesced access", "12.3", coalesced),
        row(PAPER, place, "CPI, stride-2 access", "24.6", sheet.transfer_cycles(2 * WARP_BYTES, table_3_3)),
        row(PAPER, place, "cycles, fully coalesced access", "61.5", sheet.cycles_total([(printed, 5)]), note=rounded),
        row(PAPER, place, "cycles, stride-2 access", "123.0", sheet.cycles_total([(2 * printed, 5)]), note=rounded),
        row(PAPER, place, "cycles, memory system (the tightest bound)", "184.5", max(bounds.values()), note=rounded),
        row(PAPER, "§3.6", "warp throughput bound (warps/cycle)", "0.00542", 1 / max(bounds.values()), note=rounded),
    ]


def _worksheet_issue() -> list[Row]:
    """Table 3.4's warp scheduler: 135 instructions, 5 dual issues, 15 reissues."""
    place = "Table 3.4"
    gpu = volkov_gpu("maxwell")
    cycle = 1 / (gpu.scheduler.issue_per_cycle or 1)
    events = sheet.issue_events(135, dual_issues=5, reissues=15)
    return [
        row(PAPER, "§3.6", "issue events per warp", "145", events),
        row(PAPER, place, "cycles, single issue", "31.25", cycle * sheet.issue_events(135 - 2 * 5)),
        row(PAPER, place, "cycles, dual issue", "1.25", cycle * sheet.issue_events(2 * 5, dual_issues=5)),
        row(PAPER, place, "cycles, reissue", "3.75", cycle * sheet.issue_events(0, reissues=15)),
        row(PAPER, place, "cycles, warp scheduler", "36.25", cycle * events),
    ]


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
        work = kernels.without_waits(fermi, Line(class_, stall=fermi.parameter(parameter)), 7)
        for number, (published, computed) in enumerate(zip(numbers, kernels.issue_cycles(work)[0][1:], strict=True), 2):
            quantity = f"issue cycle of {name} number {number}"
            found.append(row(PAPER, "Listing 3.2", quantity, str(published), computed))
    return [*found, *_barrier()]


def _barrier() -> list[Row]:
    """Listing 3.3, in which the load takes 512 cycles, not the 513 of Table 6.2."""
    place = "Listing 3.3"
    measured, printed = (kernels.issue_cycles(kernels.barrier_listing(load)) for load in (None, 512))
    implied = "with the 512 cycles of its load that the listing implies"
    return [
        row(PAPER, place, "issue cycle of LD, branch not taken", "28", measured[0][1]),
        inconsistent(
            *(PAPER, place, "issue cycle of FADD, after the load", "540", measured[0][2]),
            note="28 + 513 = 541: Table 6.2 gives Λ 513, the listing implies 512",
        ),
        row(PAPER, place, "issue cycle of the barrier, longer warp", "546", printed[0][3], note=implied),
        row(PAPER, place, "issue cycle of the barrier, branch taken", "32", measured[1][1]),
        row(PAPER, place, "issue cycle after the barrier, longer warp", "580", printed[0][4], note=implied),
        row(PAPER, place, "issue cycle after the barrier, other warp", "580", printed[1][2], note=implied),
    ]


def _vector_add() -> list[Row]:
    """§3.8 and §3.9 on the Kepler GPU."""
    gpu, place = volkov_gpu("kepler"), "§3.8"
    p = gpu.parameter
    clock, sms, schedulers = p("clock_mhz") / 1000, p("sm_count"), p("warp_schedulers")
    latency = latency_bound(kernels.without_limits(kernels.vector_add()))
    issues = sheet.issue_events(kernels.VECTOR_ADD_INSTRUCTIONS, dual_issues=kernels.VECTOR_ADD_PAIRS)
    moved = kernels.VECTOR_ADD_ACCESSES * WARP_BYTES
    per_cycle = sheet.bytes_per_cycle(p("memory_reached_gbs"), clock, sms)
    roof = round(per_cycle, 1) / moved
    unrounded = per_cycle / moved
    to_gbs = moved * sms * clock
    arithmetic = kernels.VECTOR_ADD_INSTRUCTIONS - kernels.VECTOR_ADD_ACCESSES
    best = 156 / to_gbs
    return [
        row(PAPER, place, "mean warp latency (cycles)", "544", latency),
        row(PAPER, place, "issues per warp", "8", issues),
        row(PAPER, place, "issue bound (warps per cycle and SM)", "0.5", schedulers / issues),
        row(PAPER, place, "cycles per warp and scheduler, CUDA cores", "7",
            sheet.issue_events(arithmetic, dual_issues=kernels.VECTOR_ADD_ARITHMETIC_PAIRS),
            note="one for each issue of one or two of the 9 CUDA core instructions"),
        row(PAPER, place, "memory system (B per cycle and SM)", "17.1", per_cycle),
        row(PAPER, place, "throughput bound (warps per cycle and SM)", "0.0445", roof,
            note=f"17.1 / 384; without rounding 17.1 it is {unrounded:.4f}"),
        row(PAPER, place, "memory throughput per warp of occupancy (GB/s)", "6.35",
            wpc_volkov(1, latency, unrounded) * to_gbs),
        row(PAPER, place, "memory throughput bound (GB/s)", "154", wpc_volkov(64, latency, roof) * to_gbs),
        row(PAPER, "§3.9", "instruction throughput at 156 GB/s (IPC per SM)", "0.54",
            best * kernels.VECTOR_ADD_INSTRUCTIONS),
        row(PAPER, "§3.9", "peak arithmetic throughput (IPC per SM)", "6", p("simd_width") / WARP),
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
    return found
