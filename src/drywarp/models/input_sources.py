"""Where each input of the models came from: GPUPerf's collector (Sim et al. 2012, §5) says it in its Table 3.

``static``: the machine code and its control-flow graph; ``emulated``: an emulated run; ``profile``: a profiler's
counters; ``user``: the launch, an option or an abstract kernel file; ``gpu``: the GPU file.
"""

from __future__ import annotations

from collections.abc import Mapping

STATIC, EMULATED, PROFILE, USER, GPU = "static", "emulated", "profile", "user", "gpu"

_LAUNCH = ("warps_per_block", "total_warps", "repetitions")
_MACHINE = ("sm_count", "active_sms", "clock_hz", "memory_gbs", "parameters", "issue_rate", "departure_delay")
_COUNTS = ("computation", "memory", "barrier", "sfu", "shared", "fp", "by_class", "busy", "mixed_cycles", "roof")
_ACCESSES = (
    *("transactions", "coalesced", "uncoalesced", "uncoalesced_transactions", "conflict_cycles"),
    *("amat", "dram_latency", "data_bytes"),
)
_STRUCTURE = ("ilp", "mlp", "latency_app", "intervals", "memory_intervals", "graph")
_FITS = ("warps", "blocks_per_sm")


def sources_of_kernel(measured_memory: bool, measured_counts: bool) -> dict[str, str]:
    """Input to where it came from, for a real kernel; several sources stand with a plus between them."""
    counts = f"{PROFILE}+{STATIC}" if measured_counts else f"{EMULATED}+{STATIC}"
    accesses = PROFILE if measured_memory else EMULATED
    return {
        **dict.fromkeys(_COUNTS, counts),
        **dict.fromkeys(_ACCESSES, f"{accesses}+{GPU}"),
        **dict.fromkeys(_STRUCTURE, f"{STATIC}+{EMULATED}"),
        **dict.fromkeys(_FITS, f"{STATIC}+{USER}+{GPU}"),
        **dict.fromkeys(_LAUNCH, USER),
        **dict.fromkeys(_MACHINE, GPU),
        "roof_bound": counts,
        "ilp": STATIC + f"+{EMULATED}",
    }


def sources_of_file() -> dict[str, str]:
    """The same for an abstract kernel, which states everything itself but the machine."""
    said = (*_COUNTS, *_ACCESSES, *_STRUCTURE, *_LAUNCH, *_FITS, "roof_bound")
    return {**dict.fromkeys(said, USER), **dict.fromkeys(_MACHINE, GPU)}


def in_words(sources: Mapping[str, str]) -> list[tuple[str, str]]:
    """Source and the inputs that came from it, for a reader."""
    groups: dict[str, list[str]] = {}
    for name, source in sources.items():
        groups.setdefault(source, []).append(name)
    return [(source, ", ".join(names)) for source, names in sorted(groups.items())]
