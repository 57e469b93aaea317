"""The models' side of Volkov's Figures 3.6, 7.1 to 7.10 and 7.14, and of Hong and Kim's 14, 17 to 19 and 25, as lines.

The thesis prints its measured points in plots only, so they are not here; Figure 7.4 has nothing else. Each figure
shows the model that it examines and Volkov's own. Occupancies are warps per SM, throughputs those of one SM unless the
axis says otherwise. GPUMech is evaluated as the thesis does: per scheduler where the GPU issues more than one
instruction per cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

from ...errors import UsageError
from ...hardware import load_gpu
from ...models import gpumech, prior_on_mix
from ...models.cusp import cusp, mix_of
from ...models.inputs import inputs_of
from ...models.mwp_cwp_2009_model import run_of_warps, terms_of
from ...models.needed_occupancy import Mix, bytes_per_cycle, instruction_throughput, memory_gbs
from ...models.terms import Parallelism, terms_over
from ...models.volkov import latency_bound, wpc_volkov
from ...workload.abstract import load_workload
from . import volkov_kernels as kernels
from .rows_volkov_7 import memory_queue
from .volkov_kernels import WARP, WARP_BYTES, volkov_gpu

ADDS = "adds per cycle"
Curve = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """Named lines of x and y values (None: the model makes no statement), and what the axes show."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[tuple[float, ...], tuple[float | None, ...]]]
    logarithmic: bool = False


def paper_figure(name: str) -> PaperFigure:
    """The figure of this number, such as ``7.2a``. Raises UsageError for any other name."""
    if name not in FIGURES:
        raise UsageError(f"figure {name!r}: expected one of {', '.join(FIGURES)}")
    return FIGURES[name](name)


def _over_occupancy(name: str, about: str, y: str, most: float, curves: Mapping[str, Curve]) -> PaperFigure:
    warps = tuple(float(n) for n in range(1, int(most) + 1))
    lines = {model: (warps, tuple(curve(n) for n in warps)) for model, curve in curves.items()}
    return PaperFigure(f"Volkov, Fig. {name}: {about}", "occupancy: warps per SM", y, lines)


def _vector_add(name: str) -> PaperFigure:
    """Memory throughput of the vector addition, §3.8."""
    p = volkov_gpu("kepler").parameter
    clock, sms = p("clock_mhz") / 1000, p("sm_count")
    latency = latency_bound(kernels.without_limits(kernels.vector_add()))
    moved = kernels.VECTOR_ADD_ACCESSES * WARP_BYTES
    roof = bytes_per_cycle(p("memory_reached_gbs"), clock, sms) / moved
    curves = {"volkov": lambda n: wpc_volkov(n, latency, roof) * moved * sms * clock}
    return _over_occupancy(name, "vector addition, Kepler", "memory throughput (GB/s)", 64, curves)


def _on_mix(
    generation: str, alpha: float, models: Mapping[str, Callable[[Mix, float, float], float]]
) -> Callable[[str], PaperFigure]:
    """Models that give memory instructions per cycle of the α-mix; at α = 0 that is what the figure shows."""

    def draw(name: str) -> PaperFigure:
        gpu = volkov_gpu(generation)
        mix = mix_of(gpu)
        scale = WARP * alpha or 1.0

        def curve(model: Callable[[Mix, float, float], float]) -> Curve:
            return lambda n: scale * model(mix, alpha, n)

        curves = {title: curve(model) for title, model in models.items()}
        curves["volkov"] = curve(lambda mix, alpha, n: mix.memory_throughput(n, alpha))
        y = ADDS if alpha else "memory instructions per cycle"
        most = gpu.parameter("max_warps_per_sm")
        return _over_occupancy(name, f"{gpu.name.rpartition('-')[2]}, α = {alpha:g}", y, most, curves)

    return draw


def _hong_kim(mix: Mix, alpha: float, occupancy: float) -> float:
    """§7.1, Eqs. 22 and 24: latency-bound up to CWP, bound by the CUDA cores above it."""
    waiting = prior_on_mix.hong_kim_latency_time(mix, alpha)
    return min(occupancy / waiting, mix.alu_thru / (alpha + 1))


def _huang_ipc(mix: Mix, alpha: float, warps: float, greedy: bool) -> float:
    """§§7.5 and 7.6, Eqs. 7 to 16: IPC of one scheduler with so many warps; α may be infinite."""
    if alpha == inf:
        insts, latency = 1.0, mix.alu_lat
    else:
        insts, latency = 1 + alpha, mix.latency(alpha)
    p = gpumech.issue_probability(insts, latency)
    extra = 0.0
    if greedy:
        of_add = gpumech.nonoverlapped_gto(p, warps, 1, mix.alu_lat - 1)
        of_load = gpumech.nonoverlapped_gto(p, warps, 1, mix.mem_lat - 1)
        extra = of_add if alpha == inf else of_load + alpha * of_add
    return gpumech.ipc_multithreading(warps, insts, latency, extra)


def _huang(generation: str, alpha: float) -> Callable[[str], PaperFigure]:
    """Figures 7.8 and 7.9: both scheduling policies."""

    def draw(name: str) -> PaperFigure:
        gpu = volkov_gpu(generation)
        mix, p, schedulers = mix_of(gpu), gpu.parameter, gpu.scheduler.issue_per_cycle or 1.0
        share = 1.0 if alpha == inf else alpha / (1 + alpha)

        def scaled(ipc: float) -> float:
            return WARP * share * ipc if alpha else memory_gbs(ipc, p("clock_mhz") / 1000, p("sm_count"))

        def huang(greedy: bool) -> Curve:
            return lambda n: scaled(schedulers * _huang_ipc(mix, alpha, n / schedulers, greedy))

        def volkov(n: float) -> float:
            if alpha == inf:
                return scaled(min(n / mix.alu_lat, mix.alu_thru))
            return scaled(mix.memory_throughput(n, alpha) * (1 + alpha))

        curves = {"gpumech, round robin": huang(False), "gpumech, greedy then oldest": huang(True), "volkov": volkov}
        about = f"{generation}, α = {'∞' if alpha == inf else f'{alpha:g}'}"
        return _over_occupancy(name, about, ADDS if alpha else "GB/s", p("max_warps_per_sm"), curves)

    return draw


def _bandwidth(gpu: str, alpha: int, most: int) -> Callable[[str], PaperFigure]:
    """Figure 7.10: GPUMech with its bandwidth term, which is negative beyond the singularity."""

    def draw(name: str) -> PaperFigure:
        p, queue = load_gpu(f"papers/{gpu}").parameter, memory_queue(gpu)
        pins = instruction_throughput(p("memory_gbs"), p("clock_mhz") / 1000, p("sm_count"))
        mix = Mix(p("dram_latency"), pins, p("fp_latency"), 1.0, 1.0)

        def huang(greedy: bool) -> Curve:
            def adds(n: float) -> float:
                contention = gpumech.cpi_contention(queue.delay(n), 1 + alpha)
                cpi = gpumech.cpi_final(1 / _huang_ipc(mix, alpha, n, greedy), contention)
                return WARP * alpha / (alpha + 1) / cpi

            return adds

        curves = {"gpumech, round robin": huang(False), "gpumech, greedy then oldest": huang(True)}
        curves["volkov, pin bandwidth"] = lambda n: mix.adds_per_cycle(n, alpha)
        return _over_occupancy(name, f"{gpu.rpartition('-')[2]}, α = {alpha}, bandwidth", ADDS, most, curves)

    return draw


def _needed(generation: str, model: str) -> Callable[[str], PaperFigure]:
    """Figure 7.14: occupancy for 90 % of a peak over arithmetic intensity."""

    def draw(name: str) -> PaperFigure:
        found = cusp(f"papers/volkov-{generation}", share=0.9)
        lines = {each: (found.alphas, found.needed[each]) for each in (model, "volkov")}
        title = f"Volkov, Fig. {name}: {generation}, 90 % of the peak"
        return PaperFigure(title, "adds per memory instruction: α", "needed warps per SM", lines, logarithmic=True)

    return draw


# Hong and Kim (2009), with our graphs of their benchmarks where they print counts but no order of instructions.

MICRO = tuple(range(1, 8))
MERGE = ("sepia", "linear", "svm", "mat-naive", "mat-tiled", "blackscholes")
MERGE_GPUS = ("8800gtx", "fx5600", "8800gt")
"""But GTX280: how many transactions an uncoalesced access makes there is in a report that they cite (Table 3)."""
FULL = 24
"""Warps per SM of the micro-benchmarks, whose number is not printed: the most that fit."""


def _parallelism(workload: str, gpu: str, warps: int | None = None, **settings: float) -> Parallelism | None:
    """Their terms of a packaged workload, at its own occupancy unless given; None without memory instructions."""
    work = load_workload(f"papers/{workload}", load_gpu(f"papers/{gpu}"), settings, occupancy=warps)
    return next(iter(terms_over(work, [work.warps_per_sm]).parallelism), None)


def _micro(name: str) -> PaperFigure:
    """Figure 14: CPI of the micro-benchmarks on FX5600. Mb1 accesses no memory: its CPI is Issue_cycles (Eq. 24)."""
    issue = load_gpu("papers/fx5600").parameter("issue_cycles")
    lines = {}
    for pattern, uncoalesced in (("coalesced", 0), ("uncoalesced", 1)):
        found = [_parallelism(f"mb{number}", "fx5600", FULL, uncoalesced=uncoalesced) for number in MICRO]
        lines[pattern] = (tuple(map(float, MICRO)), tuple(issue if each is None else each.cpi for each in found))
    return PaperFigure("Hong and Kim, Fig. 14: micro-benchmarks, FX5600", "Mb1 to Mb7", "CPI", lines)


def _merge(term: str) -> Callable[[str], PaperFigure]:
    """Figures 17 to 19: CPI, CWP and MWP of the Merge benchmarks, with 128 threads in a block."""

    def draw(name: str) -> PaperFigure:
        xs = tuple(float(number) for number in range(1, len(MERGE) + 1))
        lines = {
            gpu: (xs, tuple(getattr(_parallelism(f"merge-{each}", gpu), term) for each in MERGE)) for gpu in MERGE_GPUS
        }
        number = name.rpartition("-")[2]
        title = f"Hong and Kim, Fig. {number}: Merge benchmarks"
        return PaperFigure(title, "1 " + ", ".join(f"{each}" for each in MERGE) + " 6", term.upper(), lines)

    return draw


def _dependent(name: str) -> PaperFigure:
    """Figure 25, and the models' side of Figure 26: accesses that need each other's results, and that do not."""

    def run(workload: str, parallel: bool) -> Curve:
        work = load_workload(f"papers/{workload}", load_gpu("papers/fx5600"))
        terms = terms_of(work, inputs_of(work))
        own = terms if parallel else replace(terms, ind_mem_req=0.0)
        return lambda n: run_of_warps(own, int(n)).cycles

    curves = {"MODEL_NOPW (IND)": run("indep", False), "MODEL_PW (IND)": run("indep", True)}
    curves["MODEL_PW (DEP)"] = run("dep", True)
    drawn = _over_occupancy("25", "", "cycles", FULL, curves)
    return replace(drawn, title="Hong and Kim, Fig. 25: DEP and INDEP, FX5600")


_SIM = {"gpuperf": prior_on_mix.sim_throughput}
_WFG = {"wfg": prior_on_mix.baghsorkhi_throughput}
_ZHANG = {"zhang_owens": prior_on_mix.zhang_owens_throughput}

FIGURES: Mapping[str, Callable[[str], PaperFigure]] = {
    "3.6": _vector_add,
    "7.1": _on_mix("gt200", 32, {"mwp_cwp_2009": _hong_kim}),
    "7.2a": _on_mix("g80", 0, _WFG),
    "7.2b": _on_mix("g80", 11, _WFG),
    "7.3": _on_mix("g80", 32, _WFG),
    "7.5": _on_mix("gt200", 16, _ZHANG),
    "7.6a": _on_mix("fermi", 32, _ZHANG),
    "7.6b": _on_mix("kepler", 32, _ZHANG),
    "7.6c": _on_mix("maxwell", 64, _ZHANG),
    "7.7a": _on_mix("fermi", 32, _SIM),
    "7.7b": _on_mix("kepler", 32, _SIM),
    "7.7c": _on_mix("maxwell", 64, _SIM),
    "7.8a": _huang("fermi", 0),
    "7.8b": _huang("kepler", 32),
    "7.9": _huang("maxwell", inf),
    "7.10a": _bandwidth("gpumech", 16, 32),
    "7.10b": _bandwidth("volkov-fermi", 32, 48),
    "7.14a": _needed("g80", "wfg"),
    "7.14b": _needed("gt200", "zhang_owens"),
    "7.14c": _needed("fermi", "gpuperf"),
    "hong-kim-14": _micro,
    "hong-kim-17": _merge("cpi"),
    "hong-kim-18": _merge("cwp"),
    "hong-kim-19": _merge("mwp"),
    "hong-kim-25": _dependent,
}
"""By the number in the thesis, and a letter where a figure has several panels; those of Hong and Kim by their names."""
