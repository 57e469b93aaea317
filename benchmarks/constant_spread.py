"""How far firm values of one constant lie apart from GPU to GPU: what a value taken over from another GPU may be off.

    python benchmarks/constant_spread.py

Of every constant that several packaged GPU files state firmly (`measured` or `derived`), each pair of files gives a
ratio. A proxy is the value of another GPU, so that these ratios are the errors of proxies. Bandwidth of DRAM is taken
relative to its peak and that of the L2 per SM, as proxies were scaled. The figures stand in
`src/drywarp/analysis/uncertainty/uncertainty.toml`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations

from drywarp.hardware import Gpu, gpu_names, load_gpu

FIRM = ("measured", "derived")


def kind_of(key: str) -> str:
    """What sort of constant a dotted key is; empty for one that no part of the band scales."""
    name = key.rpartition(".")[2]
    if "latency" in name:
        return "memory latency" if key.startswith("memory.") else "class latency" if key.startswith("classes.") else ""
    if name == "lambda":
        return "class lambda"
    return "bandwidth" if name.endswith("_gbs") or name.startswith("bytes_per_cycle") else ""


def value_of(gpu: Gpu, key: str, value: float) -> float:
    """The value as proxies of it are scaled."""
    if key.startswith("memory.dram.") and key.endswith("_gbs"):
        return value / gpu.memory.dram.peak_gbs
    return value / gpu.device.sm_count if key == "memory.l2.bytes_per_cycle" else value


def main() -> None:
    """Print a line per sort of constant."""
    stated: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for gpu in (load_gpu(name) for name in gpu_names() if "/" not in name):
        if gpu.is_amd:
            continue
        for key, fact in gpu.facts():
            if fact.kind in FIRM and kind_of(key) and not key.endswith("peak_gbs"):
                stated[key][fact.file, fact.note] = value_of(gpu, key, float(str(fact.value)))
    ratios: dict[str, list[float]] = defaultdict(list)
    for key, values in stated.items():
        ratios[kind_of(key)] += [abs(math.log(a / b)) for a, b in combinations(values.values(), 2)]
    print(f"{'constant':<16}{'pairs':>6}  {'median':>7}  {'90 %':>7}")
    for name, found in sorted(ratios.items()):
        found.sort()
        half, most = (found[min(len(found) - 1, int(share * len(found)))] for share in (0.5, 0.9))
        print(f"{name:<16}{len(found):>6}  {math.exp(half):>7.3f}  {math.exp(most):>7.3f}")


if __name__ == "__main__":
    main()
