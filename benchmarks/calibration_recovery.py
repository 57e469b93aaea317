"""Calibrates drywarp's own simulation and sets what comes out beside what the GPU file holds.

    python benchmarks/calibration_recovery.py a100 rtx3090 [--only chains,dram]

`drywarp calibrate --simulated` never sees the file's numbers; this script compares afterwards. docs/calibration.md
says why some constants cannot come out.
"""

from __future__ import annotations

import argparse
import sys

from drywarp.experiments.calibrate import calibrate
from drywarp.experiments.calibrate.card import SimulatedCard
from drywarp.hardware import load_gpu

WITHIN = 0.03


def main() -> None:
    """One table for each GPU, and how many constants are within 3 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpus", nargs="+", help="names or files")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.gpus:
        found = calibrate(
            SimulatedCard(name, options.seed),
            only=[part for part in options.only.split(",") if part],
            tell=lambda what, done, of: print(f"\r\033[K[{done}/{of}] {what}", end="", file=sys.stderr, flush=True),
        )
        print(file=sys.stderr)
        known = dict(load_gpu(name).facts())
        errors = {}
        print(f"{name}: {found.launches} timings in {found.seconds:.0f} s")
        for figure in found.figures:
            fact = known.get(figure.key)
            if fact is None or not isinstance(fact.value, int | float):
                continue
            errors[figure.key] = figure.value / fact.value - 1
            mark = "" if abs(errors[figure.key]) <= WITHIN else "  <-- " + figure.how
            print(f"  {figure.key:40} {fact.value:10g} {figure.value:10.5g} {errors[figure.key]:+7.1%}{mark}")
        close = sum(abs(error) <= WITHIN for error in errors.values())
        print(f"  {close} of {len(errors)} within {WITHIN:.0%}")


if __name__ == "__main__":
    main()
