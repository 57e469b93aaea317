"""A study of the papers' size: 14 kernels at all occupancies on 3 GPUs.

    python benchmarks/study.py

The papers' simulator (Lemeire, Cornelis and Konstantinidis) took about 3 minutes for 678 experiments: 14 kernels at all
occupancies on 3 GPUs. An experiment is one run of ω warps that start together. Here: 14 of the bundled CUDA kernels,
their real machine code on an A100, an RTX 3090 and an RTX 4090; and the packaged abstract kernels of the papers on
the papers' Fermi, Kepler and Pascal GPUs (those that state the costs of their instructions run on each). Kernels
are compiled, emulated and bound beforehand; what is timed is the simulation, on all cores.
"""

import os
import time
from dataclasses import replace
from pathlib import Path

from drywarp.analysis.prepare import prepare_kernel
from drywarp.errors import DrywarpError
from drywarp.hardware import load_gpu
from drywarp.models.pipeline import Pipeline
from drywarp.workload.abstract import most_warps, read_workload, settings_of, tie, workload_names
from drywarp.workload.cost import CostedWorkload

EXAMPLES = Path(__file__).parents[1] / "examples"
KERNELS = (
    "axpy.ptx", "black_scholes.cu", "collatz.cu", "double_precision.cu", "half2.cu", "histogram.cu",
    "integer_division.cu", "reduction.cu", "saxpy.cu", "softmax.cu", "stencil.cu", "tiled_matmul.cu",
    "transpose_naive.cu", "transpose_padded.cu",
)  # fmt: skip
GPUS = ("a100", "rtx3090", "rtx4090")
PAPER_GPUS = ("papers/analysis-fermi", "papers/analysis-kepler", "papers/analysis-pascal")

Study = list[tuple[str, CostedWorkload, list[int]]]


def real() -> Study:
    study: Study = []
    for gpu in GPUS:
        for name in KERNELS:
            work = replace(prepare_kernel(EXAMPLES / name, gpu=gpu).costed, runs=1)
            blocks = range(1, work.max_blocks_per_sm + 1)
            study.append((f"{name} on {gpu}", work, [count * work.warps_per_block for count in blocks]))
    return study


def abstract() -> Study:
    study: Study = []
    for gpu in map(load_gpu, PAPER_GPUS):
        for name in workload_names():
            file = read_workload(name)
            try:
                values = settings_of(file, {})
                per_block, most = most_warps(file, gpu, values)
                work = tie(file, gpu, values)
            except DrywarpError:
                continue  # it asks for what this GPU's file does not state
            study.append((f"{name} on {gpu.name}", work, list(range(per_block, most + 1, per_block))))
    return study


def main() -> None:
    model = Pipeline()
    for title, study in (("machine code", real()), ("abstract kernels", abstract())):
        for in_order in (True, False):  # loads the compiled loops
            for _, work, occupancies in [part for part in study if part[1].in_order == in_order][:1]:
                model.predict(work, occupancies[:1])
        experiments = sum(len(occupancies) for _, _, occupancies in study)
        warps = sum(
            sum(occupancies) * sum(path.length for path in work.paths) / len(work.paths)
            for _, work, occupancies in study
        )
        started = time.perf_counter(), time.process_time()
        for _, work, occupancies in study:
            model.predict(work, occupancies)
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        print(
            f"{title}: {len(study)} workloads, {experiments} experiments of {warps / 1e6:.0f} million warp instructions"
            f" in {wall:.2f} s ({cpu:.2f} s of processor time, {os.cpu_count()} cores)"
        )


if __name__ == "__main__":
    main()
