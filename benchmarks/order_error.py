"""How far predictions within one kernel are off but for a common factor, and whether the expected regret comes true.

    python benchmarks/order_error.py rows.csv…

Takes outputs of `drywarp validate --out`, one for each kernel and GPU, and prints for each the standard deviation of
log(measured / predicted), its median taken off, and over all the root mean square: `sigma` of
`src/drywarp/experiments/sweep/order_error.toml`. Then, for shares of configurations to keep, the expected regret and
what was lost in fact, both in the mean over random halves of the rows, since one table has one regret only.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from drywarp.experiments.sweep.prune import order_sigma
from drywarp.experiments.sweep.regret import expected_regret
from drywarp.experiments.validate.compare import read_rows

SHARES = (0.05, 0.1, 0.25)
HALVES = 200


def regrets(predicted: np.ndarray, measured: np.ndarray, share: float) -> tuple[float, float]:
    """Expected and true regret, in the mean over random halves."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(HALVES):
        half = rng.permutation(len(predicted))[: max(2, len(predicted) // 2)]
        order = half[np.argsort(predicted[half], kind="stable")]
        count = max(1, math.ceil(share * len(order)))
        expected = expected_regret(predicted[order[:count]], predicted[order[count:]], order_sigma())
        found.append((expected, measured[order[:count]].min() / measured[order].min() - 1))
    return float(np.mean([e for e, _ in found])), float(np.mean([t for _, t in found]))


def main() -> None:
    squares = []
    heads = " ".join(f"{f'{share:.0%}: expected':>13} {'true':>6}" for share in SHARES)
    print(f"{'rows':32} {'n':>5} {'sigma':>6}  {heads}")
    for name in sys.argv[1:]:
        _, models, rows = read_rows(Path(name))
        times = [(row.times[models[0]], row.measured_s) for row in rows if row.ok and models[0] in row.times]
        predicted, measured = (np.array(column) for column in zip(*times, strict=True))
        logs = np.log(measured / predicted)
        sigma = float((logs - np.median(logs)).std())
        squares.append(sigma**2)
        said = " ".join("{:13.2%} {:6.2%}".format(*regrets(predicted, measured, share)) for share in SHARES)
        print(f"{Path(name).stem:32} {len(times):5} {sigma:6.3f}  {said}")
    print(f"root mean square {math.sqrt(np.mean(squares)):.3f}, packaged {order_sigma():.3f}")


if __name__ == "__main__":
    main()
