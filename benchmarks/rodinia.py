"""The models on the packaged kernels of the analysis paper's Table 9, beside the paper's Tables 10 to 12.

    python -m benchmarks.rodinia                    # averages of every model on the paper's three GPUs
    python -m benchmarks.rodinia --gpu turing       # every kernel, too
    python -m benchmarks.rodinia --all              # all models that drywarp has
    python -m benchmarks.rodinia --gpumech          # what GPUMech's errors come from

The paper gives each model's MAPE and MAPE^shape (§6.3) against run times that it does not print, so they are given here
against the Pipeline simulation, over the occupancies of Table 9. What may be compared is the order of the models and of
the kernels; the numbers of the two sides have different references.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.rodinia_graphs import TABLE_9, Entry

from drywarp.experiments.reproduce.rows_analysis_tables import DEVICES, columns
from drywarp.experiments.validate.statistics import mape_shape, spearman
from drywarp.hardware import load_gpu
from drywarp.models import NotApplicable, get_model, gpumech, model_names
from drywarp.models.inputs import inputs_of
from drywarp.models.pipeline import Pipeline
from drywarp.workload.abstract import load_workload
from drywarp.workload.cost import CostedWorkload

TABLES = {"maxwell": 10, "pascal": 11, "turing": 12}
"""The table of each GPU, `papers/analysis-NAME`."""
REFERENCE = "pipeline"
MODELS = ("volkov", "mwp_cwp", "wfg", "mwp_cwp_corrected", "wfg_corrected", "gpumech_rr", "gpumech_gto")
EXCHANGED = {"wfg": "mwp_cwp_corrected", "mwp_cwp_corrected": "wfg"}
"""Columns of Table 12 that carry each other's numbers (docs/papers.md)."""


@dataclass(frozen=True)
class Errors:
    """MAPE and MAPE^shape of a model, in percent."""

    mape: float
    shape: float

    def __str__(self) -> str:
        return f"{self.mape:.0f}/{self.shape:.1f}"


def errors_of(entry: Entry, gpu: str, models: Sequence[str]) -> dict[str, Errors]:
    """The errors of the models that apply to one kernel, against the simulation."""
    work, at, real = simulated(entry, gpu)
    found = {}
    for model in models:
        try:
            points = get_model(model).predict(work, at).curve
        except NotApplicable:
            continue
        if [point.occupancy_warps for point in points] == at and all(point.warps_per_cycle > 0 for point in points):
            found[model] = off([point.warps_per_cycle for point in points], real, at)
    return found


def simulated(entry: Entry, gpu: str) -> tuple[CostedWorkload, list[int], list[float]]:
    """A kernel on a GPU, the occupancies of Table 9, and what the simulation says there."""
    work = load_workload(entry.on(gpu), load_gpu(f"papers/analysis-{gpu}"))
    at = list(range(entry.least, entry.most + 1, work.warps_per_block))
    return work, at, [point.warps_per_cycle for point in Pipeline(brief=True).predict(work, at).curve]


def off(predicted: Sequence[float], real: Sequence[float], at: Sequence[int]) -> Errors:
    """The errors of a curve of warps per cycle."""
    mean = fmean(abs(p - r) / r for p, r in zip(predicted, real, strict=True))
    return Errors(100 * mean, 100 * mape_shape([1 / p for p in predicted], [1 / r for r in real], at))


def against_simulation(gpu: str, models: Sequence[str] = MODELS) -> dict[str, dict[str, Errors]]:
    """Our errors on one GPU, by model and kernel; a model has no kernels to which it does not apply."""
    of_kernels = {entry.kernel: errors_of(entry, gpu, models) for entry in TABLE_9}
    return {
        model: {kernel: errors[model] for kernel, errors in of_kernels.items() if model in errors} for model in models
    }


def printed(gpu: str) -> dict[str, dict[str, Errors]]:
    """The paper's cells by model and kernel, the exchanged columns of Table 12 put right."""
    found = {}
    for column in columns(TABLES[gpu]):
        name = EXCHANGED.get(column.model, column.model) if gpu == "turing" else column.model
        cells = zip(TABLE_9, column.cells, strict=True)
        found[name] = {entry.kernel: Errors(*cell) for entry, cell in cells}
    return found


def average(errors: Mapping[str, Errors]) -> Errors:
    """The mean over the kernels."""
    return Errors(fmean(e.mape for e in errors.values()), fmean(e.shape for e in errors.values()))


def report(gpu: str, ours: Mapping[str, dict[str, Errors]], kernels: bool) -> list[str]:
    """One GPU's lines: the averages by model, and if asked for the kernels; `ours` by model and kernel.

    ρ of kernels is Spearman's between the two sides' MAPE of the 14 kernels.
    """
    theirs = printed(gpu)
    lines = [f"{DEVICES[TABLES[gpu]]} (Table {TABLES[gpu]}), MAPE/MAPE^shape in percent", ""]
    lines.append("model              ours, against the simulation  the paper's, against run times  ρ of kernels")
    order = sorted(MODELS, key=lambda model: average(ours[model]).mape)
    for model in order:
        names = list(ours[model])
        alike = spearman([ours[model][n].mape for n in names], [theirs[model][n].mape for n in names])
        rank = "–" if alike is None else f"{alike:.2f}"
        lines.append(f"{model:17}  {average(ours[model])!s:>28}  {average(theirs[model])!s:>30}  {rank:>12}")
    lines.append(f"{REFERENCE:17}  {'the reference':>28}  {average(theirs[REFERENCE])!s:>30}")
    means = [[average(side[model]) for model in MODELS] for side in (ours, theirs)]
    for what, pairs in (("MAPE", [[e.mape for e in side] for side in means]),
                        ("MAPE^shape", [[e.shape for e in side] for side in means])):  # fmt: skip
        lines.append(f"order of the seven models by average {what}: Spearman's ρ {spearman(*pairs):.2f}")
    if kernels:
        lines += ["", f"{'kernel':24}" + "".join(f"{model:>19}" for model in MODELS)]
        for entry in TABLE_9:
            lines.append(f"{entry.kernel:24}" + "".join(f"{ours[m][entry.kernel]!s:>19}" for m in MODELS))
            lines.append(f"{'  the paper':24}" + "".join(f"{theirs[m][entry.kernel]!s:>19}" for m in MODELS))
    return lines


def others(gpu: str) -> list[str]:
    """The averages of the models that the paper's tables do not have, where they apply."""
    names = [name for name in model_names() if name not in (REFERENCE, "pipeline_papers", *MODELS)]
    ours = {name: errors for name, errors in against_simulation(gpu, names).items() if errors}
    lines = ["", "models without a column"]
    for name in sorted(ours, key=lambda name: average(ours[name]).mape):
        some = "" if len(ours[name]) == len(TABLE_9) else f"  on {len(ours[name])} kernels"
        lines.append(f"{name:20}  {average(ours[name])!s:>25}{some}")
    return lines


READINGS = {
    "as drywarp: each scheduler issues one instruction a cycle": (False, False, False),
    "the whole SM issues one instruction a cycle": (True, False, False),
    "the same, only memory has a latency (§2.5)": (True, True, False),
    "as drywarp, but never above the roof": (False, False, True),
}
"""Ways to read GPUMech: one scheduler, latencies of memory alone, capped at the roof."""


def gpumech_curve(
    work: CostedWorkload, at: Sequence[int], overlap: gpumech.NonOverlapped, reading: tuple[bool, bool, bool]
) -> list[float]:
    """Warps per cycle by GPUMech without its contention, which the paper leaves out."""
    alone, memory_only, capped = reading
    inputs = inputs_of(work)
    schedulers = 1.0 if alone else gpumech.schedulers_of(inputs)
    intervals = inputs.memory_intervals if memory_only else inputs.intervals
    curve = [warps / gpumech.cycles_of(intervals, max(1.0, warps / schedulers), overlap) for warps in at]
    return [min(each, inputs.roof) for each in curve] if capped else curve


def readings(gpu: str) -> list[str]:
    """GPUMech's averages under each reading, beside the paper's."""
    lines = [f"{DEVICES[TABLES[gpu]]}, MAPE/MAPE^shape in percent", "", f"{'reading':59}{'rr':>9}{'gto':>10}"]
    cases = [simulated(entry, gpu) for entry in TABLE_9]
    for name, reading in READINGS.items():
        means = [
            average(
                {
                    str(n): off(gpumech_curve(*case[:2], overlap, reading), case[2], case[1])
                    for n, case in enumerate(cases)
                }
            )
            for overlap in (gpumech.rr, gpumech.gto)
        ]
        lines.append(f"{name:58}" + "".join(f"{mean!s:>10}" for mean in means))
    theirs = (average(printed(gpu)[name]) for name in ("gpumech_rr", "gpumech_gto"))
    return [*lines, f"{'the paper, against run times':58}" + "".join(f"{mean!s:>10}" for mean in theirs)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rodinia", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gpu", choices=list(TABLES), help="only this GPU, and every kernel")
    parser.add_argument("--all", action="store_true", help="the models that the paper's tables do not have, too")
    parser.add_argument("--gpumech", action="store_true", help="GPUMech under several readings, and nothing else")
    wanted = parser.parse_args(arguments)
    for gpu in [wanted.gpu] if wanted.gpu else TABLES:
        if wanted.gpumech:
            print("\n".join(readings(gpu)), end="\n\n")
            continue
        lines = report(gpu, against_simulation(gpu), bool(wanted.gpu))
        print("\n".join([*lines, *(others(gpu) if wanted.all else [])]), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
