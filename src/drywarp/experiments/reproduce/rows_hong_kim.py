"""Hong and Kim (ISCA 2009): all of Table 2, the cases of §3.2, Tables 3, 5 and 7, and the text's statements on MWP.

The inputs are those that the paper prints, or the GPU files with its tables. Where the paper continues with a rounded
intermediate value, so does the row, and its note gives the unrounded result.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hardware import load_gpu
from ...models import mwp_cwp_2009 as hk
from ...models.coalescing import is_coalesced, transactions_before_1_3
from . import Value, Values

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

ARITHMETIC_INTENSITY = {
    "Sepia": (71, 6),
    "Linear": (111, 30),
    "SVM": (10871, 819),
    "Mat. (naive)": (12043, 4001),
    "Mat. (tiled), smaller case": (9780, 201),
    "Blackscholes": (137, 7),
}
"""Table 5: computation and memory instructions."""

THROUGHPUT = {"FP add, mul, mad": 8, "int add": 8, "FP div": 2, "int mul": 2}
"""Table 7: operations per cycle of an SM according to the manual."""

TITLES = {"8800gtx": "8800GTX", "fx5600": "Quadro FX5600", "8800gt": "8800GT", "gtx280": "GTX280"}


def computed() -> dict[str, Values]:
    """All numbers of this paper."""
    tables: Values = {
        **{f"{name}: arithmetic intensity": hk.arithmetic_intensity(*of) for name, of in ARITHMETIC_INTENSITY.items()},
        **{f"{name}: M_Factor by the manual": hk.m_factor(8, ops) for name, ops in THROUGHPUT.items()},
        "#Rep of 40 blocks, 4 SMs, 2 blocks per SM": hk.rep(40, 2, 4),
        "Issue_cycles: 32 threads on 8 functional units": hk.issue_cycles(32, 8),
    }
    return {PAPER: {**_inputs(), **_table_2(), **_cases(), **_table_3(), **tables, **_insights()}}


def _inputs() -> Values:
    """Of Table 2."""

    def count(name: str) -> int:
        return TRIPS * sum(opcode.startswith(name) for opcode in LOOP_BODY)

    memory = count("ld.global")
    p = _parameters("mwp-cwp-example")
    warp = [TILE_START + tx for tx in range(32)]  # a + wM · ty + tx with ty = 0
    coalesced = TRIPS * 2 if is_coalesced(warp, 4) else 0
    return {
        "#Comp_insts": TRIPS * len(LOOP_BODY) - memory,
        "#Uncoal_Mem_insts": memory - coalesced,
        "#Coal_Mem_insts": coalesced,
        "#Synch_insts": count("bar.sync"),
        "#Coal_per_mw": transactions_before_1_3(range(32), 4),
        "#Uncoal_per_mw": transactions_before_1_3(warp, 4),
        "Load_bytes_per_warp (bytes)": 4 * p("warp_size"),
        "#Active_warps_per_SM": hk.active_warps_per_sm(128, p("warp_size"), 5),
    }


def _table_2() -> Values:
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
    return {
        "Departure_delay (cycles)": delay,
        "Mem_L (cycles)": mem_l,
        "MWP_without_BW_full": full,
        "BW_per_warp (GB/s)": each / GIGA,
        "MWP_peak_BW": Value(peak, shown={"unrounded": unrounded_peak}),
        "MWP": mwp,
        "Comp_cycles": comp,
        "Mem_cycles": mem,
        "CWP_full": cwp_full,
        "CWP": cwp,
        "#Rep": rep,
        "Exec_cycles_app": Value(app(2.28), shown={"unrounded": app(mwp)}),
        "Synch_cost (cycles)": Value(synch(2.28), shown={"unrounded": synch(mwp)}),
        "Final time (cycles)": Value(hk.exec_cycles_with_synch(38450, 12288), shown={"unrounded": final}),
    }


def _cases() -> Values:
    """§3.2: the number of computation and memory periods in each case's total; a period is a unit of time.

    A memory period equals three computation periods, the ratio of Figure 5.
    """

    def memory_bound(periods: int, n: int) -> tuple[float, float]:
        return hk.exec_cycles_memory(periods, 0, n, 2), hk.exec_cycles_memory(0, 1, n, 2)

    def compute_bound(periods: int, n: int) -> tuple[float, float]:
        return hk.exec_cycles_compute(1, 0, n), hk.exec_cycles_compute(0, periods, n)

    cases = {
        "§3.2.1, Eq. 1: Case 1": memory_bound(1, 8),
        "§3.2.1, Eq. 1: Case 2": memory_bound(2, 4),
        "§3.2.2, Eq. 3: Case 3": compute_bound(1, 8),
        "§3.2.2, Eq. 3: Case 4": compute_bound(2, 4),
        "§3.2.2, Eq. 3: Case 5": compute_bound(1, 8),
    }
    found: Values = {"CWP of Cases 1 and 2": hk.cwp_full(3, 1)}
    for case, (periods, computations) in cases.items():
        found[f"{case}: memory waiting periods"] = periods
        found[f"{case}: computation periods"] = computations
    for number, case in ((1, "Case 6"), (2, "Case 7")):
        # As in Cases 1 and 2 a period of memory is three of computation; the DRAM serves more than these warps.
        found[f"{case}: MWP"] = hk.mwp(8, 8, number)
        found[f"{case}: CWP"] = hk.cwp(hk.cwp_full(3, 1), number)
    # With the model's own equations; periods of 3000 and 1 separate the two terms.
    first = hk.exec_cycles_app(mem_cycles=3000, comp_cycles=1, mem_insts=1, mem_l=3000, n=8, mwp=2, cwp=4) - 4 * 3000
    last = hk.exec_cycles_app(mem_cycles=1, comp_cycles=3000, mem_insts=1, mem_l=1, n=8, mwp=8, cwp=1 + 1 / 3000)
    found["§3.2.1 against Eq. 23: Case 1: computation periods"] = first
    found["§3.2.2 against Eq. 23: Case 5: computation periods"] = (last - 1) / 3000
    return found


def _table_3() -> Values:
    """Cores and peak throughput; a multiply-add on every core counts as two operations."""
    found: Values = {}
    for gpu, title in TITLES.items():
        p = _parameters(gpu)
        cores = p("warp_size") / p("issue_cycles") * p("sm_count")
        operations = GTX280_OPERATIONS if gpu == "gtx280" else 2
        found[f"{title}: processor cores"] = cores
        found[f"{title}: peak Gflop/s"] = operations * cores * p("clock_mhz") / 1000
    return found


def _insights() -> Values:
    """§5.3: the SVM benchmark is measured on the FX5600 (§2.4)."""
    optimized, uncoalesced = _peak("fx5600"), _parameters("fx5600")
    per_mw, delay = uncoalesced("transactions_uncoalesced"), uncoalesced("departure_delay_uncoalesced")
    naive = hk.mwp_without_bw_full(
        hk.mem_l_uncoal(uncoalesced("dram_latency"), per_mw, delay), hk.departure_delay(delay, per_mw, 0, 1)
    )
    gtx280 = _peak("gtx280")
    return {
        "MWP_peak_BW of Constant+Optimized SVM": optimized,
        "MWP_without_BW of Naive SVM": naive,
        "MWP_peak_BW of Constant+Optimized SVM, second mention": optimized,
        "largest MWP of coalesced accesses on GTX280": gtx280,
    }


def _peak(gpu: str) -> float:
    """MWP_peak_BW for coalesced accesses with all SMs active."""
    p = _parameters(gpu)
    each = hk.bw_per_warp(p("clock_mhz") * 1e6, p("transaction_bytes"), p("dram_latency"))
    return hk.mwp_peak_bw(p("memory_gbs") * GIGA, each, p("sm_count"))


def _parameters(gpu: str) -> Callable[[str], float]:
    """What looks up a GPU's parameters by name; raises `UsageError` if the file lacks one."""
    return load_gpu(f"papers/{gpu}").parameter
