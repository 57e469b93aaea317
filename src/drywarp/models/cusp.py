"""Needed occupancy over arithmetic intensity, by every model that defines it.

Volkov, "Understanding latency hiding on GPUs" (2016), §§4.5-4.9 and 7.10, on any GPU file: adds mixed with one
other kind of instruction. See `models.needed_occupancy` for the mix and the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from msgspec.structs import asdict

from ..errors import UsageError
from ..hardware import Gpu, load_gpu
from . import cuda_guide, prior_on_mix, volkov_contention
from .needed_occupancy import Mix, instruction_throughput

PARTNERS = ("memory", "sfu", "shared")
"""The partner of the adds in the mix: streaming global loads, SFU instructions, shared memory loads."""

ALPHAS = tuple(2 ** (i / 2) for i in range(19))
"""Arithmetic intensities of a curve: 1 to 512 in steps of √2, as in §7.9."""

MOST_WARPS = 2048
"""Where the search for a model's saturation ends."""

LANE_BYTES = 4
"""Bytes per lane of the memory instructions, as in the thesis."""

_CLASSES = {"memory": ("stream", "mem", "mem_coalesced"), "sfu": ("sfu",), "shared": ("smem", "shared_load")}
_ADDS = ("add", "fp32", "fp", "comp")


@dataclass(frozen=True)
class NeededOccupancy:
    """Needed occupancies on one GPU.

    `needed` maps a model to its warps per SM at each of `alphas`, None where the model makes no statement. `bounds` is
    the throughput limit there. `share` is the target fraction of the peak. `cusp_alpha` is where the memory bound meets
    the arithmetic or issue bound, `cusp_warps` Volkov's needed occupancy there. `max_warps` is the SM's capacity, if
    the GPU file gives it.
    """

    gpu: Gpu
    partner: str
    share: float
    mix: Mix
    alphas: tuple[float, ...]
    bounds: tuple[str, ...]
    needed: Mapping[str, tuple[float | None, ...]]
    cusp_alpha: float
    cusp_warps: float
    max_warps: int | None
    notes: tuple[str, ...]


def cusp(
    gpu: str | Gpu = "papers/volkov-maxwell",
    *,
    partner: str = "memory",
    alphas: Sequence[float] | None = None,
    share: float = 1.0,
) -> NeededOccupancy:
    """How many warps per SM hide latency, by model and arithmetic intensity. Raises DrywarpError.

    Without `alphas` the curve is over `ALPHAS` and the cusp's own intensity.
    """
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(gpu)
    if not 0 < share <= 1:
        raise UsageError(f"share {share:g}: expected a fraction of the peak above 0 and at most 1")
    mix = mix_of(machine, partner)
    models = _models(machine, mix, partner, share)
    at = mix.cusp_intensity()
    if alphas is None:
        alphas = sorted({*ALPHAS, at} - {0.0})
    if not alphas or not all(0 < alpha < inf for alpha in alphas):
        raise UsageError("arithmetic intensity: expected positive numbers")
    bounds = (mix.bound(alpha) for alpha in alphas)
    return NeededOccupancy(
        gpu=machine,
        partner=partner,
        share=share,
        mix=mix,
        alphas=tuple(alphas),
        bounds=tuple(partner if bound == "memory" else bound for bound in bounds),
        needed={name: tuple(model(alpha) for alpha in alphas) for name, model in models.items()},
        cusp_alpha=at,
        cusp_warps=mix.needed_occupancy(at, share),
        max_warps=machine.parameters.max_warps_per_sm if machine.abstract_only else machine.occupancy.max_warps_per_sm,
        notes=(
            "Agarwal's and Saavedra-Barrera's models without switching cost, and Hong and Kim's CWP_full, are the same"
            " as cuda_guide_refined (Volkov 4.9)",
        ),
    )


def mix_of(gpu: Gpu, partner: str = "memory") -> Mix:
    """The mix's parameters from a GPU file: Table 4.1 for the GPUs of the thesis."""
    if partner not in PARTNERS:
        raise UsageError(f"unknown instruction type {partner!r}; expected one of {', '.join(PARTNERS)}")
    alu_lat, alu_thru = _cost(gpu, _ADDS)
    issue = gpu.scheduler.issue_per_cycle
    latency, throughput = _cost(gpu, _CLASSES[partner]) if gpu.abstract_only else _real(gpu, partner)
    issue_thru = issue * gpu.scheduler.partitions if issue else inf
    return Mix(latency, throughput, alu_lat, alu_thru, issue_thru, _to_adds(gpu, _CLASSES[partner]))


def _to_adds(gpu: Gpu, names: Sequence[str]) -> float | None:
    """Λ of the first of these classes towards an add, where the file says that it differs (§4.7)."""
    return next((gpu.classes[name].arithmetic_latency for name in names if name in gpu.classes), None)


def contention_of(gpu: Gpu, refined: bool = True) -> volkov_contention.Contention | None:
    """Memory latency over memory instructions per cycle and SM, if the GPU file has a fit (Table 6.5; G80's in §6.4).

    `refined` False is Table 6.5's fit even where there is a tighter one.
    """
    p = gpu.parameters
    given = {name: value for name, value in asdict(p).items() if value is not None}
    fit = volkov_contention.fit_of(given, refined)
    if not (fit and p.clock_mhz and p.sm_count):
        return None
    return fit.scaled(instruction_throughput(1, p.clock_mhz / 1000, p.sm_count))


def smallest_occupancy(throughput: Callable[[float], float], share: float) -> float | None:
    """The smallest whole number of warps that attains a share of the throughput at `MOST_WARPS`."""
    target = share * throughput(MOST_WARPS) * (1 - 1e-9)
    return next((float(n) for n in range(1, MOST_WARPS) if throughput(n) >= target), None)


def _cost(gpu: Gpu, names: Sequence[str]) -> tuple[float, float]:
    """Λ, and instructions per cycle of the SM, of the first of these classes that the GPU has."""
    for name in names:
        cost = gpu.classes.get(name)
        if cost is not None and cost.latency is not None:
            instances = gpu.scheduler.partitions if gpu.subsystems[cost.subsystem].scope == "partition" else 1
            return cost.latency, instances / cost.lambda_
    raise UsageError(f"GPU {gpu.name} has no class {' or '.join(names)} with a latency")


def _real(gpu: Gpu, partner: str) -> tuple[float, float]:
    if partner == "sfu":
        return _cost(gpu, _CLASSES[partner])
    access = gpu.occupancy.warp_size * LANE_BYTES
    if partner == "shared":
        return gpu.memory.shared.latency, gpu.memory.shared.bytes_per_cycle / access
    dram = gpu.memory.dram
    clock_ghz = gpu.device.boost_clock_mhz / 1000
    throughput = instruction_throughput(dram.read_gbs, clock_ghz, gpu.device.sm_count, access)
    return gpu.cycles(dram.latency_ns), throughput


def _models(gpu: Gpu, mix: Mix, partner: str, share: float) -> dict[str, Callable[[float], float | None]]:
    """Model name to needed occupancy over α."""
    instruction_time = 1 / min(mix.alu_thru, mix.issue_thru)

    def guide(formula: Callable[[float, float, float], float]) -> Callable[[float], float | None]:
        def needed(alpha: float) -> float | None:
            memory_bound = mix.bound(alpha) == "memory"
            return None if memory_bound else max(1.0, formula(mix.mem_lat, instruction_time, alpha))

        return needed

    def saturation(throughput: Callable[[Mix, float, float], float]) -> Callable[[float], float | None]:
        return lambda alpha: smallest_occupancy(lambda n: throughput(mix, alpha, n), share)

    models: dict[str, Callable[[float], float | None]] = {"volkov": lambda alpha: mix.needed_occupancy(alpha, share)}
    fit = contention_of(gpu) if partner == "memory" else None
    if fit is not None:

        def under_load(alpha: float) -> float | None:
            warps = volkov_contention.needed_occupancy(mix, fit, alpha, share)
            return None if warps == inf else warps

        models["volkov_contention"] = under_load
    models["cuda_guide"] = guide(cuda_guide.warps_needed)
    models["cuda_guide_refined"] = guide(cuda_guide.warps_needed_refined)
    models["zhang_owens"] = saturation(prior_on_mix.zhang_owens_throughput)
    models["wfg"] = saturation(prior_on_mix.baghsorkhi_throughput)
    models["gpuperf"] = saturation(prior_on_mix.sim_throughput)
    return models
