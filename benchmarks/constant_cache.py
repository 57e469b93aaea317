"""Which loads of constants hit by MT4G's measurements, against the cache that `drywarp.memory.constants` simulates.

    git clone https://github.com/caps-tum/mt4g
    python benchmarks/constant_cache.py mt4g/sample_results

MT4G follows a chain through an array of constants, a load a line, after it has read all of it once. Its files `… -
Constant L1 Size.txt` have a row for each size of the array: the bytes, and the cycles of all loads but the first. For
each GPU this prints how many of these hit or miss as they do in the packaged geometry with sets that replace by a
tree, and as with LRU, and how much longer misses took than hits. The figures stand in `docs/accuracy.md` and in the
GPU files.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer

from drywarp.hardware import load_gpu
from drywarp.memory.constants import misses

SLOWER = 25
"""Cycles above a GPU's fastest load from which on one missed: hits scatter by less, misses take twice as much."""


def misses_of_lru(lines: int, sets: int, ways: int) -> list[bool]:
    """Which loads of lines in turn miss, read the second time: all of a set, if it is asked for more than it holds."""
    asked = np.bincount(np.arange(lines) % sets, minlength=sets)
    return [bool(asked[line % sets] > ways) for line in range(lines)]


def main(results: Annotated[Path, typer.Argument(exists=True, file_okay=False)], gpu: str = "a100") -> None:
    """Print a line per GPU."""
    cache = load_gpu(gpu).memory.constants
    if cache is None:
        raise typer.BadParameter(f"{gpu} has no [memory.constants]")
    sets = cache.bytes // (cache.line_bytes * cache.ways)
    files = sorted(results.glob("*/* - Constant L1 Size.txt"))
    if not files:
        raise typer.BadParameter(f"{results}: expected folders with files named '… - Constant L1 Size.txt'")
    print("GPU                            loads   tree    LRU  miss - hit")
    for path in files:
        rows = [[int(cell) for cell in line.split(",") if cell] for line in path.read_text().splitlines()]
        fastest = min(cycles for row in rows for cycles in row[1:])
        loads = tree = lru = 0
        hit: list[int] = []
        missed: list[int] = []
        for size, *cycles in rows:
            lines = size // cache.line_bytes
            measured = [one >= fastest + SLOWER for one in cycles]
            simulated = misses(np.arange(lines), sets, cache.ways)[1:].tolist()
            loads += len(measured)
            tree += sum(a == b for a, b in zip(measured, simulated, strict=True))
            lru += sum(a == b for a, b in zip(measured, misses_of_lru(lines, sets, cache.ways)[1:], strict=True))
            for one, late in zip(cycles, measured, strict=True):
                (missed if late else hit).append(one)
        later = median(missed) - median(hit) if missed and hit else float("nan")
        print(f"{path.parent.name:30} {loads:5} {tree:6} {lru:6} {later:11g}")


if __name__ == "__main__":
    typer.run(main)
