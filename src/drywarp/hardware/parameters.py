"""Section `[parameters]`: what single models ask of a GPU beyond λ, Λ, memory levels and occupancy.

The classic models are written in numbers that no other model knows (departure delays, issue cycles,
MSHRs). A GPU of the papers gives those that its paper prints; every one may be absent.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Whole = Annotated[int, msgspec.Meta(ge=1)]
Cycles = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "cycles"})]
Megahertz = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "MHz"})]
GigabytesPerSecond = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "GB/s"})]
Size = Annotated[int, msgspec.Meta(ge=1, extra={"unit": "bytes"})]
Factor = Annotated[float, msgspec.Meta(gt=0)]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The vocabulary of `[parameters]`, in the order of ``data/README.md``; None where a file is silent.

    The machine: `sm_count`, `clock_mhz` (of the processors), `warp_size`, `warp_schedulers`,
    `max_warps_per_sm`, and the lanes of an SM: `simd_width` (GPUPerf's name for its scalar processors),
    `sfu_width`. `issue_cycles` is one warp instruction's time on an SM in MWP-CWP, and
    `factor_…` how many times as long an instruction takes (M_Factor).

    Memory: `memory_gbs` is the bandwidth of the pins, `memory_reached_gbs` the most that was measured;
    `dram_latency`, `l1_latency`, `l2_latency` and their sizes; `transaction_bytes`; a `departure_delay`
    lies between two transactions of one SM, with `_coalesced` and `_uncoalesced` where a model tells
    them apart; a warp's access takes `transactions_coalesced` or `transactions_uncoalesced` of them, and
    each further one adds `transaction_latency` to Λ. `mshrs` bounds the transactions of one SM.

    Latencies: `fp_latency`; `ilp_latency` until the same warp's next independent instruction, and
    `store_ilp_latency` until its next store; `branch_taken_latency`, `branch_untaken_latency`;
    `block_launch_latency` (Λ_launch).

    Contention (Volkov §6.4): Λ of streaming access is `contention_latency` + `contention_slope` ·
    T / (`contention_gbs` − T) at the throughput T.
    """

    sm_count: Whole | None = None
    clock_mhz: Megahertz | None = None
    warp_size: Whole | None = None
    warp_schedulers: Whole | None = None
    max_warps_per_sm: Whole | None = None
    simd_width: Whole | None = None
    sfu_width: Whole | None = None
    issue_cycles: Cycles | None = None
    factor_fp_divide: Factor | None = None
    factor_int_multiply: Factor | None = None
    factor_int_divide: Factor | None = None
    factor_modulo: Factor | None = None
    memory_gbs: GigabytesPerSecond | None = None
    memory_reached_gbs: GigabytesPerSecond | None = None
    dram_latency: Cycles | None = None
    l1_latency: Cycles | None = None
    l2_latency: Cycles | None = None
    l1_bytes: Size | None = None
    l2_bytes: Size | None = None
    shared_bytes: Size | None = None
    transaction_bytes: Size | None = None
    departure_delay: Cycles | None = None
    departure_delay_coalesced: Cycles | None = None
    departure_delay_uncoalesced: Cycles | None = None
    transactions_coalesced: Whole | None = None
    transactions_uncoalesced: Whole | None = None
    transaction_latency: Cycles | None = None
    mshrs: Whole | None = None
    fp_latency: Cycles | None = None
    ilp_latency: Cycles | None = None
    store_ilp_latency: Cycles | None = None
    branch_taken_latency: Cycles | None = None
    branch_untaken_latency: Cycles | None = None
    block_launch_latency: Cycles | None = None
    contention_latency: Cycles | None = None
    contention_slope: Cycles | None = None
    contention_gbs: GigabytesPerSecond | None = None
