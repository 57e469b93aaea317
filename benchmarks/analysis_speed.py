"""How long the bundled examples take, first run and warm, and how much memory.

    python benchmarks/analysis_speed.py [example.cu …]

"First" runs with empty caches (compiled kernels, headers); "warm" is the
quickest of three runs after it. Each run is a new process; peak memory is the process's own.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def timed(example: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of wall time and peak MiB of one run."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "drywarp", "analyze", str(example), "--gpu", "a100", "--json"],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{example} failed with status {status}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def main() -> None:
    names = sys.argv[1:] or sorted(str(p) for p in (ROOT / "examples").glob("*.cu"))
    print(f"{'example':24} {'first s':>8} {'warm s':>8} {'peak MiB':>9}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "DRYWARP_CACHE_DIR": folder}
            first, peak = timed(Path(name), environment)
            warm = min((timed(Path(name), environment) for _ in range(3)), key=lambda run: run[0])
            print(f"{Path(name).name:24} {first:8.2f} {warm[0]:8.2f} {max(peak, warm[1]):9.0f}")


if __name__ == "__main__":
    main()
