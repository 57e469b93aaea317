"""How long two tensor-core kernels of real size take: a product of 8192³, and attention of 16,384 tokens, on an H100.

    python benchmarks/hopper_speed.py

Both are examples of ours (docs/hopper.md). "First" runs with empty caches; "warm" is the quicker of two runs after it.
Each run is a process of its own; on a machine that is busy with other things the processor time says more. Fails where
a warm run takes more processor time than stated: 10 s for the product, 15 s for attention.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOPPER = Path(__file__).parents[1] / "examples" / "hopper"
PRODUCT = {
    "A": "tensormap(box=128x64,swizzle=128):f16[8192,8192]:random",
    "B": "tensormap(box=256x64,swizzle=128):f16[8192,8192]:random",
    "C": "f16[8192,8192]",
    "n": "8192",
    "k": "8192",
}
CASES = {
    "product of 8192³": ("wgmma_tile.cu", ["--grid", "32,64"], PRODUCT, 10.0),
    "attention, 16,384 tokens": ("attention.cu", [], {}, 15.0),
}


def timed(words: list[str], cache: str) -> tuple[float, float]:
    """Seconds of wall time and of processor time of one run."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "drywarp", "analyze", *words, "--gpu", "h100", "--json"]
    environment = {**os.environ, "DRYWARP_CACHE_DIR": cache}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{words[0]} failed with status {status}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print a line for each kernel."""
    late = []
    print(f"{'kernel':26} {'first s':>9} {'CPU s':>7} {'warm s':>8} {'CPU s':>7} {'limit':>7}")
    for name, (file, more, arguments, limit) in CASES.items():
        words = [str(HOPPER / file), *more]
        for argument, value in arguments.items():
            words += ["--arg", f"{argument}={value}"]
        with tempfile.TemporaryDirectory() as cache:
            first = timed(words, cache)
            warm = min((timed(words, cache) for _ in range(2)), key=lambda run: run[1])
        print(f"{name:26} {first[0]:9.1f} {first[1]:7.1f} {warm[0]:8.1f} {warm[1]:7.1f} {limit:7.1f}", flush=True)
        late += [name] if warm[1] > limit else []
    if late:
        raise SystemExit(f"slower than stated: {', '.join(late)}")


if __name__ == "__main__":
    main()
