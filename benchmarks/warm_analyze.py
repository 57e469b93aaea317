"""A warm `drywarp analyze` of the tiled matrix multiplication, from start to exit of its process, and its parts.

    python benchmarks/warm_analyze.py

Wall time and processor time, the quickest of ten runs after one that fills the caches; then the parts in a process of
their own: importing, the GPU file, the kernel from the cache, the kept emulation and its memory behaviour, costs,
the simulation of the curve with the confidence band, the band alone, the report. On a machine that is busy with other
things the processor time says more.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "tiled_matmul.cu"
HELP = "import sys; sys.argv = ['drywarp', '--help']; from drywarp.cli.main import main; main()"
PARTS = """
import json, sys, time
parts, last = {}, [time.perf_counter(), time.process_time()]

def part(name):
    now = [time.perf_counter(), time.process_time()]
    parts[name] = [now[0] - last[0], now[1] - last[1]]
    last[:] = [time.perf_counter(), time.process_time()]

import drywarp.cli.main
part("imports: command line")
from drywarp.analysis.prepare import cost, execute, load, serve_memory
from drywarp.analysis.request import LaunchRequest, Options
from drywarp.analysis.stages import answer_prepared
from drywarp.analysis.uncertainty import band_of
part("imports: NumPy and drywarp")
from dataclasses import replace
from pathlib import Path
from drywarp.hardware import load_gpu
request, options = LaunchRequest(Path(sys.argv[1]), gpu=load_gpu("a100")), Options()
part("GPU file")
loaded = load(request, options)
part("kernel from the cache, parsed")
prepared = cost(serve_memory(execute(loaded, options), options))
part("cached emulation and memory, costs")
answer = answer_prepared(prepared, replace(options, findings=False))
part("simulation of the curve, uncertainty")
band_of(prepared, options, answer.prediction)
part("of that the uncertainty")
from rich.console import Console
from drywarp.report.terminal import print_analysis
print_analysis(answer, Console(highlight=False, file=sys.stderr))
part("report")
print(json.dumps(parts))
"""


def run(command: list[str]) -> tuple[float, float, str]:
    """Wall time and processor time of a process, and what it printed."""
    started = time.perf_counter()
    # Compiled modules are kept, as after `pip install`.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[:4]} failed with status {status}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, text


def main() -> None:
    """Print the whole, then the parts."""
    whole = [sys.executable, "-m", "drywarp", "analyze", str(EXAMPLE), "--gpu", "a100"]
    run(whole)
    walls, cpus, _ = zip(*(run(whole) for _ in range(10)), strict=True)
    print(f"whole process: {min(walls):.2f} s, {min(cpus):.2f} s of processor time")
    for name, code in {"Python alone": "", "NumPy alone": "import numpy", "drywarp --help": HELP}.items():
        walls, cpus, _ = zip(*(run([sys.executable, "-c", code]) for _ in range(10)), strict=True)
        print(f"{name}: {min(walls):.2f} s, {min(cpus):.2f} s of processor time")
    found = [json.loads(run([sys.executable, "-c", PARTS, str(EXAMPLE)])[2]) for _ in range(5)]
    for name in found[0]:
        wall, cpu = (min(parts[name][k] for parts in found) for k in (0, 1))
        print(f"{name:38} {wall:6.3f} s {cpu:6.3f} s of processor time")


if __name__ == "__main__":
    main()
