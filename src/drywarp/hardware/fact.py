"""The names that a GPU file may use (instruction classes, scheduler policies, tensor input types), and its facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec

from ..kernel.isa.nvidia.opcodes import CLASSES

Policy = Literal[
    "loose_round_robin", "greedy_then_round_robin", "greedy_then_oldest", "greedy_then_youngest", "oldest_first"
]
Scope = Literal["partition", "sm"]

CLASS_NAMES = frozenset(CLASSES)
"""Every instruction class of a machine-code kernel; a GPU that runs such kernels gives costs for all of them."""

TENSOR_MEMORY_CLASSES = frozenset({"tcgen05", "tensor_load", "tensor_store"})
"""The classes that only GPUs with tensor memory have: compute capability 10.x."""

AMD_CLASS_NAMES = (
    CLASS_NAMES
    - {"predicate", "vote", "reduce", "convergence", "mbarrier", "wgmma", "bulk_copy"}
    - TENSOR_MEMORY_CLASSES
)
"""The classes that AMD machine code uses."""


def classes_of(arch: str) -> frozenset[str]:
    """The classes that machine code for an architecture uses."""
    if arch.startswith("gfx"):
        return AMD_CLASS_NAMES
    return CLASS_NAMES if arch.startswith("sm_10") else CLASS_NAMES - TENSOR_MEMORY_CLASSES


TENSOR_TYPES = (
    *("fp16", "bf16", "tf32", "fp64", "int8", "fp8", "fp8_scaled", "fp4"),
    *("fp32", "bf16_narrow", "fp32_blocks", "fp16_blocks", "bf16_blocks", "int8_blocks", "fp64_blocks"),
    *("fp16_sparse", "bf16_sparse", "int8_sparse", "fp8_sparse"),
)
"""Input types that section `[tensor]` may give a rate for; the second and third lines are AMD's.

`fp8_scaled` is of 8-bit floats with scale factors; where it is not given, they run at the rate of `fp8`.
"""


# A value in a GPU file together with its source.

Kind = Literal["measured", "documented", "datasheet", "derived", "proxy", "inherited", "assumed"]

KINDS: dict[str, str] = {
    "measured": "measured on this GPU or chip; SM values also on another chip with the same SM",
    "documented": "from the vendor's documentation",
    "datasheet": "from a datasheet or whitepaper, or a collection of them",
    "derived": "computed from measured or documented values, or read from the compiler's schedule",
    "proxy": "the value of the nearest GPU or architecture",
    "inherited": "inherited from the parent GPU file",
    "assumed": "no source found; the note gives the reason for this value",
}
"""The meaning of each kind, from the most to the least reliable."""

Value = int | float | bool | str | tuple[int, ...]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact as written in a file: an inline table with these keys."""

    value: int | float | bool | str | list[int]
    source: str
    kind: Kind
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its unit (`""` for a count or a name), the key of its source, its kind and a note.

    `file` is the GPU file that gives it, e.g. ``arch/ga100``.
    """

    value: Value
    unit: str
    source: str
    kind: Kind
    note: str
    file: str

    def inherited(self) -> Fact:
        """The same fact as seen from a GPU file that inherits it."""
        if self.kind == "inherited":
            return self
        note = f"{self.file}: {self.kind}{f', {self.note}' if self.note else ''}"
        return replace(self, kind="inherited", note=note)

    def __str__(self) -> str:
        text = ", ".join(map(str, self.value)) if isinstance(self.value, tuple) else str(self.value)
        return f"{text} {self.unit}".rstrip()


# Section `[parameters]`: inputs of individual models beyond λ, Λ, memory levels and occupancy.
#
# The classic models use numbers that no other model has (departure delays, issue cycles, MSHRs). A GPU from a paper
# gives those printed there; every one is optional.

Whole = Annotated[int, msgspec.Meta(ge=1)]
Cycles = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "cycles"})]
Megahertz = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "MHz"})]
GigabytesPerSecond = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "GB/s"})]
Size = Annotated[int, msgspec.Meta(ge=1, extra={"unit": "bytes"})]
Factor = Annotated[float, msgspec.Meta(gt=0)]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[parameters]`, in the order of ``data/README.md``; None if a file does not give a key.

    Machine: `sm_count`, `clock_mhz` (of the processors), `warp_size`, `warp_schedulers`, `max_warps_per_sm`, and the
    lanes of an SM: `simd_width` (GPUPerf's name for its scalar processors), `sfu_width`. In MWP-CWP, `issue_cycles` is
    the time of one warp instruction on an SM, and `factor_…` multiplies it for slower instructions (M_Factor).

    Memory: `memory_gbs` is the theoretical bandwidth, `memory_reached_gbs` the highest measured one; `dram_latency`,
    `l1_latency`, `l2_latency` and the cache sizes; `transaction_bytes`. `departure_delay` is the time between two
    transactions of one SM, with `_coalesced` and `_uncoalesced` variants where a model distinguishes them. A warp's
    access takes `transactions_coalesced` or `transactions_uncoalesced` transactions; each one after the first adds
    `transaction_latency` to Λ. `mshrs` limits the outstanding transactions of one SM.

    Latencies: `fp_latency`; `ilp_latency` until the same warp's next independent instruction, and `store_ilp_latency`
    until its next store; `branch_taken_latency`, `branch_untaken_latency`; `block_launch_latency` (Λ_launch).

    Contention (Volkov §6.4): at throughput T, Λ of streaming access is `contention_latency` + `contention_slope` ·
    T / (`contention_gbs` − T); a fit with a second such term has the keys `contention_refined_…`. Synchronisation
    (GPUPerf Eq. 8): `sync_gamma` is Γ.
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
    contention_refined_latency: Cycles | None = None
    contention_refined_slope: Cycles | None = None
    contention_refined_gbs: GigabytesPerSecond | None = None
    contention_refined_slope_2: Cycles | None = None
    contention_refined_gbs_2: GigabytesPerSecond | None = None
    sync_gamma: Factor | None = None
