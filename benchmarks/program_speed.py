"""What `drywarp run` adds to a program: for each of a hundred small launches, and for one of 100 M warp instructions.

    python benchmarks/program_speed.py [--gpu GPU] [--repeats N]

Builds program_speed.cu with nvcc, and takes the fastest of N runs of each kind. The time of a run without launches is
subtracted. CPU time is that of all cores. Needs what `drywarp run` needs to build a program.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from drywarp.hardware import load_gpu

SOURCE = Path(__file__).with_name("program_speed.cu")
SMALL, ROUNDS = 100, 21_700
"""Small launches, and rounds of the long one's loop, which make 100 M warp instructions."""


Times = tuple[float, float, int, int]


def seconds(program: Path, gpu: str, launches: int, rounds: int, repeats: int) -> Times:
    """The fastest run's seconds, the least CPU time, how many launches were computed, and their warp instructions."""
    fastest = least = float("inf")
    for _ in range(repeats):
        found = program.with_suffix(".json")
        words = [sys.executable, "-m", "drywarp", "run", "--gpu", gpu, "--json", str(found), "--output", "/dev/null"]
        began, used = time.perf_counter(), processor()
        command = [*words, "--", str(program), str(launches), str(rounds)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        fastest = min(fastest, time.perf_counter() - began)
        least = min(least, processor() - used)
        made = json.loads(found.read_text())["launches"]
    computed = sum(one["count"] for one in made if one["computed"])
    return fastest, least, computed, sum(one["count"] * one["warp_instructions"] for one in made)


def processor() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", default="a100")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        arch = load_gpu(given.gpu).arch
        subprocess.run(["nvcc", f"-arch={arch}", "-o", str(program), str(SOURCE)], check=True)
        start, before, _, _ = seconds(program, given.gpu, 0, 0, given.repeats)
        small, _, computed, _ = seconds(program, given.gpu, SMALL, 0, given.repeats)
        long, used, _, instructions = seconds(program, given.gpu, 0, ROUNDS, given.repeats)
    each = 1e3 * (small - start) / SMALL
    print(f"start and end of a program: {start:.2f} s")
    print(f"each of {computed} small launches, all of which find something else: {each:.1f} ms")
    print(
        f"a launch of {instructions / 1e6:.0f} M warp instructions, computed and predicted: {long - start:.2f} s,"
        f" {used - before:.2f} s of CPU time"
    )


if __name__ == "__main__":
    main()
