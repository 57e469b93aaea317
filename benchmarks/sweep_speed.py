"""Rows per second of a sweep, from nothing and with what an earlier one kept, and the memory of its processes.

    python benchmarks/sweep_speed.py [SPACE.toml] [--rows 200] [--jobs 2]

Without a space it takes a tiled matrix product in `--rows` versions that differ in a constant, so that each is compiled
and emulated. The cache is an empty folder at first. Memory is the resident set of the parent and of the largest worker,
after a quarter, half and all of the rows: it must not grow with them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

import drywarp
from drywarp.experiments.sweep.row import SweepRow
from drywarp.experiments.sweep.space import Space

KERNEL = Path(__file__).parents[1] / "examples" / "tiled_matmul.cu"


def versions(count: int) -> Space:
    """So many kernels that differ in a constant."""
    buffers = dict.fromkeys("ABC", "f32[n*n]:random")
    return Space(
        kernel=KERNEL.read_text().replace("= sum;", "= sum + float(VERSION);"),
        parameters={"VERSION": list(range(count))},
        grid="n/16,n/16",
        block="16,16",
        args={**buffers, "n": 256},
    )


def resident(pid: int | str) -> float:
    """Megabytes that a process holds now."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return float(status.partition("VmRSS:")[2].split()[0]) / 1024 if "VmRSS:" in status else 0.0


def children() -> list[str]:
    """The processes that this one has started."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += (task / "children").read_text().split()
    return found


def main(
    space: Annotated[Path | None, typer.Argument(help="A space file.")] = None,
    rows: Annotated[int, typer.Option(help="Versions of the packaged kernel.")] = 200,
    jobs: Annotated[int | None, typer.Option(help="Processes; all cores unless said.")] = None,
) -> None:
    given: Any = space or versions(rows)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DRYWARP_CACHE_DIR"] = folder
        for name in ("from nothing", "kept"):
            held: dict[int, str] = {}

            def on_row(row: SweepRow, done: int, of: int, held: dict[int, str] = held) -> None:
                if done in (of // 4, of // 2, of):
                    largest = max((resident(pid) for pid in children()), default=0.0)
                    held[done] = f"{done} rows: {resident('self'):.0f} + {largest:.0f} MB"

            found = drywarp.sweep(given, jobs=jobs, on_row=on_row)
            rate = len(found.rows) / found.seconds
            print(f"{name}: {len(found.rows)} rows, {rate:.2f} a second; {'; '.join(held.values())}", flush=True)
            if found.failed:
                print(f"failed: {found.failed}")


if __name__ == "__main__":
    typer.run(main)
