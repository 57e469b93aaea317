"""Hong and Kim (ISCA 2009): all of Table 2, the cases of §3.2, Tables 3, 5 and 7, and the text's statements on MWP.

The inputs are those that the paper prints, or the GPU files with its tables. Where the paper continues with a rounded
intermediate value, so does the row, and its note gives the unrounded result.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hardware import load_gpu
from ...models import mwp_cwp_2009 as hk
from ...models.coalescing import is_coalesced, transactions_before_1_3
from . import Kind, Row, differs, inconsistent, of_kind, row

PAPER = "Hong and Kim"
GIGA = 1e9

LOOP_BODY = (
    *("ld.global.f32", "st.shared.f32", "ld.global.f32", "st.shared.f32", "bar.sync", "ld.shared.f32"),
    *("ld.shared.f32", "mad.f32", "bar.sync", "setp.le.s32", "bra"),
)
"""Figure 13, lines 4 to 15: the loop of the tiled matrix multiplication in PTX."""

TRIPS = 3
"""The outer loop's iterations (§3.5)."""

TILE_START = 33
"""The a of line 13 in Figure 12, not a multiple of 16: "a and b are more likely not a multiple of 32"."""

GTX280_OPERATIONS = 3
"""Per core and cycle, as its vendor counts: a multiply-add, and a multiplication beside it."""

ARITHMETIC_INTENSITY = (
    ("Sepia", 71, 6, "11.8"),
    ("Linear", 111, 30, "3.7"),
    ("SVM", 10871, 819, "13.3"),
    ("Mat. (naive)", 12043, 4001, "3"),
    ("Mat. (tiled), smaller case", 9780, 201, "48.7"),
)
"""Table 5: computation and memory instructions, arithmetic intensity."""

THROUGHPUT = (("FP add, mul, mad", 8, "1"), ("int add", 8, "1"), ("FP div", 2, "4"), ("int mul", 2, "4"))
"""Table 7: operations per cycle of an SM according to the manual, and M_Factor."""


def rows() -> list[Row]:
    """All rows of this paper."""
    return [*_inputs(), *_table_2(), *_cases(), *_repetition(), *_table_3(), *_table_5(), *_table_7(), *_insights()]


def _inputs() -> list[Row]:
    def count(name: str) -> int:
        return TRIPS * sum(opcode.startswith(name) for opcode in LOOP_BODY)

    def table(quantity: str, published: str, computed: float, note: str = "", kind: Kind = "model") -> Row:
        return row(PAPER, "Table 2", quantity, published, computed, note=note, kind=kind)

    memory, synch = count("ld.global"), count("bar.sync")
    p = _parameters("mwp-cwp-example")
    warp = [TILE_START + tx for tx in range(32)]  # a + wM · ty + tx with ty = 0
    coalesced = TRIPS * 2 if is_coalesced(warp, 4) else 0
    return [
        table(
            *("#Comp_insts", "27", TRIPS * len(LOOP_BODY) - memory),
            *("Figure 13: all of the loop but ld.global, 3 times", "input"),
        ),
        table("#Uncoal_Mem_insts", "6", memory - coalesced, "Algorithm 1 on a + wM·ty + tx with a = 33"),
        table("#Coal_Mem_insts", "0", coalesced, "Algorithm 1 on a + wM·ty + tx with a = 33"),
        table("#Synch_insts", "6", synch, kind="input"),
        table("#Coal_per_mw", "1", transactions_before_1_3(range(32), 4)),
        table("#Uncoal_per_mw", "32", transactions_before_1_3(warp, 4)),
        table("Load_bytes_per_warp (bytes)", "128", 4 * p("warp_size"), kind="input"),
        table("#Active_warps_per_SM", "20", hk.active_warps_per_sm(128, p("warp_size"), 5)),
    ]


def _table_2() -> list[Row]:
    p = _parameters("mwp-cwp-example")
    uncoal, mem_insts, comp_insts, synch_insts, n = p("transactions_uncoalesced"), 6, 27, 6, 20
    weight = hk.weight_uncoal(mem_insts, 0)
    # The example has no coalesced access, and Table 2 has no delay for one: its weight is 0.
    delay = hk.departure_delay(p("departure_delay_uncoalesced"), uncoal, 0, weight)
    long = hk.mem_l_uncoal(p("dram_latency"), uncoal, p("departure_delay_uncoalesced"))
    mem_l = hk.mem_l(long, p("dram_latency"), weight)
    full = hk.mwp_without_bw_full(mem_l, delay)
    each = hk.bw_per_warp(p("clock_mhz") * 1e6, p("transaction_bytes"), mem_l)
    unrounded_peak = hk.mwp_peak_bw(p("memory_gbs") * GIGA, each, p("sm_count"))
    peak = hk.mwp_peak_bw(p("memory_gbs"), 0.175, p("sm_count"))
    mwp = hk.mwp(hk.mwp_without_bw(full, n), peak, n)
    comp = hk.comp_cycles(p("issue_cycles"), comp_insts + mem_insts)
    mem = hk.mem_cycles(long, mem_insts, p("dram_latency"), 0)
    cwp_full = hk.cwp_full(mem, comp)
    cwp = hk.cwp(cwp_full, n)
    rep = hk.rep(80, 5, p("sm_count"))

    def app(mwp: float) -> float:
        return hk.exec_cycles_app(
            mem_cycles=mem, comp_cycles=comp, mem_insts=mem_insts, mem_l=mem_l, n=n, mwp=mwp, cwp=cwp, rep=rep
        )

    def synch(mwp: float) -> float:
        return hk.synch_cost(delay, hk.n_pwb(mwp, 4), synch_insts, 5, rep)

    final = hk.exec_cycles_with_synch(app(mwp), synch(mwp))

    def table(quantity: str, published: str, computed: float, note: str = "") -> Row:
        return row(PAPER, "Table 2", quantity, published, computed, note=note)

    return [
        table("Departure_delay (cycles)", "320", delay),
        table("Mem_L (cycles)", "730", mem_l),
        table("MWP_without_BW_full", "2.28", full),
        table("BW_per_warp (GB/s)", "0.175", each / GIGA),
        table("MWP_peak_BW", "28.57", peak, f"from the printed 0.175 GB/s; {unrounded_peak:.4g} unrounded"),
        table("MWP", "2.28", mwp),
        table("Comp_cycles", "132", comp),
        table("Mem_cycles", "4380", mem),
        table("CWP_full", "34.18", cwp_full),
        table("CWP", "20", cwp),
        table("#Rep", "1", rep),
        differs(
            *(PAPER, "Table 2", "Exec_cycles_app", "38450", app(2.28)),
            note="rounding to four digits: 4380 · 20/2.28 + 132/6 · (2.28 − 1) = 38421.1 + 28.2 = 38449.2;"
            f" with the unrounded MWP 730/320 it is {app(mwp):.1f}",
        ),
        table("Synch_cost (cycles)", "12288", synch(2.28), f"with the printed MWP; {synch(mwp):.0f} unrounded"),
        table(
            "Final time (cycles)",
            "50738",
            hk.exec_cycles_with_synch(38450, 12288),
            f"the sum of the two printed terms; {final:.0f} from unrounded ones",
        ),
    ]


def _cases() -> list[Row]:
    """§3.2: the number of computation and memory periods in each case's total; a period is a unit of time.

    A memory period equals three computation periods, the ratio of Figure 5.
    """

    def memory_bound(periods: int, n: int) -> tuple[float, float]:
        return hk.exec_cycles_memory(periods, 0, n, 2), hk.exec_cycles_memory(0, 1, n, 2)

    def compute_bound(periods: int, n: int) -> tuple[float, float]:
        return hk.exec_cycles_compute(1, 0, n), hk.exec_cycles_compute(0, periods, n)

    cases = (
        ("Case 1", "§3.2.1, Eq. 1", "4", "2", memory_bound(1, 8)),
        ("Case 2", "§3.2.1, Eq. 1", "4", "2", memory_bound(2, 4)),
        ("Case 3", "§3.2.2, Eq. 3", "1", "8", compute_bound(1, 8)),
        ("Case 4", "§3.2.2, Eq. 3", "1", "8", compute_bound(2, 4)),
        ("Case 5", "§3.2.2, Eq. 3", "1", "8", compute_bound(1, 8)),
    )
    found = [row(PAPER, "§3.2.1, Eq. 8", "CWP of Cases 1 and 2", "4", hk.cwp_full(3, 1))]
    for case, place, memory, computation, (periods, computations) in cases:
        found.append(row(PAPER, place, f"{case}: memory waiting periods", memory, periods))
        found.append(row(PAPER, place, f"{case}: computation periods", computation, computations))
    for number, case in ((1, "Case 6"), (2, "Case 7")):
        # As in Cases 1 and 2 a period of memory is three of computation; the DRAM serves more than these warps.
        said = str(number)
        found += [
            row(PAPER, "§3.2.3", f"{case}: MWP", said, hk.mwp(8, 8, number)),
            row(PAPER, "§3.2.3", f"{case}: CWP", said, hk.cwp(hk.cwp_full(3, 1), number)),
        ]
    # With the model's own equations; periods of 3000 and 1 separate the two terms.
    first = hk.exec_cycles_app(mem_cycles=3000, comp_cycles=1, mem_insts=1, mem_l=3000, n=8, mwp=2, cwp=4) - 4 * 3000
    last = hk.exec_cycles_app(mem_cycles=1, comp_cycles=3000, mem_insts=1, mem_l=1, n=8, mwp=8, cwp=1 + 1 / 3000)
    return [
        *found,
        inconsistent(
            *(PAPER, "§3.2.1 against Eq. 23", "Case 1: computation periods", "2", first),
            note="Eq. 1 adds Comp_p · MWP = 2 periods, Eq. 23, for the same case, Comp_p · (MWP − 1) = 1",
        ),
        inconsistent(
            *(PAPER, "§3.2.2 against Eq. 23", "Case 5: computation periods", "8", (last - 1) / 3000),
            note="Comp_cycles > Mem_cycles puts Case 5 under Eq. 23: Mem_cycles · 8/8 + Comp_p · (8 − 1);"
            " Eqs. 3 and 24 give the 8 periods of the text",
        ),
    ]


def _repetition() -> list[Row]:
    return [
        row(PAPER, "§3.4.1", "#Rep of 40 blocks, 4 SMs, 2 blocks per SM", "5", hk.rep(40, 2, 4)),
        row(PAPER, "§2.3", "Issue_cycles: 32 threads on 8 functional units", "4", hk.issue_cycles(32, 8), kind="input"),
    ]


def _table_3() -> list[Row]:
    """Cores and peak throughput; a multiply-add on every core counts as two operations."""
    found = []
    for gpu, title, cores, peak in (
        ("8800gtx", "8800GTX", "128", "345.6"),
        ("fx5600", "Quadro FX5600", "128", "384"),
        ("8800gt", "8800GT", "112", "336"),
        ("gtx280", "GTX280", "240", "933"),
    ):
        p = _parameters(gpu)
        lanes = p("warp_size") / p("issue_cycles")
        computed = 2 * lanes * p("sm_count") * p("clock_mhz") / 1000
        quantity = f"{title}: processor cores"
        found.append(row(PAPER, "Table 3", quantity, cores, lanes * p("sm_count"), note="32 / Issue_cycles of each SM"))
        if gpu == "gtx280":
            computed *= GTX280_OPERATIONS / 2
            note = "240 · 1.3 GHz · 3 (a multiply-add and a multiplication) = 936; 933 needs 1.296 GHz, the clock of"
            note += " Volkov's Table 2.7, which Table 3 rounds"
            found.append(differs(PAPER, "Table 3", f"{title}: peak Gflop/s", peak, computed, note))
            continue
        quantity, arithmetic = f"{title}: peak Gflop/s", f"{cores} · {p('clock_mhz') / 1000:g} GHz · 2 = {computed:.1f}"
        if gpu == "fx5600":
            note = f"{arithmetic}; the same cores and clock as the 8800GTX, for which 345.6 is printed"
            found.append(inconsistent(PAPER, "Table 3", quantity, peak, computed, note))
        else:
            found.append(row(PAPER, "Table 3", quantity, peak, computed, note=arithmetic))
    return of_kind("input", found)


def _table_5() -> list[Row]:
    place = "Table 5"
    found = [
        row(PAPER, place, f"{name}: arithmetic intensity", published, hk.arithmetic_intensity(comp, mem),
            rounded=len(published) == 1, note="printed without decimals" if len(published) == 1 else "")
        for name, comp, mem, published in ARITHMETIC_INTENSITY
    ]  # fmt: skip
    cut = differs(
        *(PAPER, place, "Blackscholes: arithmetic intensity", "19", hk.arithmetic_intensity(137, 7)),
        note="truncated, not rounded: 137 / 7 = 19.57",
    )
    return of_kind("input", [*found, cut])


def _table_7() -> list[Row]:
    return [
        row(PAPER, "Table 7", f"{name}: M_Factor by the manual", published, hk.m_factor(8, ops), kind="input")
        for name, ops, published in THROUGHPUT
    ]


def _insights() -> list[Row]:
    """§5.3: the SVM benchmark is measured on the FX5600 (§2.4)."""
    optimized, uncoalesced = _peak("fx5600"), _parameters("fx5600")
    per_mw, delay = uncoalesced("transactions_uncoalesced"), uncoalesced("departure_delay_uncoalesced")
    naive = hk.mwp_without_bw_full(
        hk.mem_l_uncoal(uncoalesced("dram_latency"), per_mw, delay), hk.departure_delay(delay, per_mw, 0, 1)
    )
    gtx280 = _peak("gtx280")
    return [
        row(PAPER, "§5.3, Figure 22", "MWP_peak_BW of Constant+Optimized SVM", "12", optimized),
        row(PAPER, "§5.3, Figure 23", "MWP_without_BW of Naive SVM", "2", naive, rounded=True,
            note="730 / 320, read off the figure in whole warps"),
        inconsistent(
            *(PAPER, "§5.3", "MWP_peak_BW of Constant+Optimized SVM, second mention", "40", optimized),
            note='"MWP_peak_BW, which is 40" contradicts "12 (MWP_peak_BW)" two sentences before;'
            " 76.8 GB/s / (1.35 GHz · 128 B / 420 · 16) = 11.67",
        ),
        inconsistent(
            *(PAPER, "§5.3, Figure 21", "largest MWP of coalesced accesses on GTX280", "9", gtx280),
            note="Tables 1, 3 and 6: MWP_peak_BW = 141.7 GB/s / (1.3 GHz · 128 B / 450 · 30) = 12.77,"
            " MWP_without_BW = 450/4 = 112.5",
        ),
    ]  # fmt: skip


def _peak(gpu: str) -> float:
    """MWP_peak_BW for coalesced accesses with all SMs active."""
    p = _parameters(gpu)
    each = hk.bw_per_warp(p("clock_mhz") * 1e6, p("transaction_bytes"), p("dram_latency"))
    return hk.mwp_peak_bw(p("memory_gbs") * GIGA, each, p("sm_count"))


def _parameters(gpu: str) -> Callable[[str], float]:
    """What looks up a GPU's parameters by name; raises `UsageError` if the file lacks one."""
    return load_gpu(f"papers/{gpu}").parameter
