"""Whole programs under `drywarp run`: which build, run in full, are sampled or stopped, and pass their own check.

    python benchmarks/whole_programs.py PROGRAMS.csv FOLDER [--jobs N] [--seconds S] [--sample N] [--out FILE]

PROGRAMS.csv has a row for each program with the columns `program`, its folder in FOLDER, and `arguments` (only a
program's first row counts). It is built into `main` by the command in the column `build`, in which {arch} stands for
ARCH, or with make where there is none, as for HeCBench's src/. The columns `needs` (why it is not tried: a library, a
display, a data file) and `also` (further options of drywarp) may be empty or missing. Each is stopped after S seconds;
with --cpu, after as much processor time, for machines that are busy with other work, or four times S by the clock.
--sample N takes N of the programs at random, the same on every machine; --also gives all of them further options.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

FAILS = re.compile(
    r"\bFAIL(ED|URE)?\b|\bfailed\b|\bmismatch|\bincorrect\b|\bPercent: [1-9]"
    r"|\b(?<!L1 )(?<!L1-)(?<!absolute )(?<!Beyond )Error\b(?! is \d)(?!: *\d)",
    re.I,
)
PASSES = re.compile(r"\bPASS(ED)?\b|\bsuccess\b|\bcorrect\b|\bPercent: 0\b", re.I)
COLUMNS = (
    "program", "outcome", "check", "launches", "computed", "estimated", "without_prediction", "seconds", "cpu_seconds",
    "memory_mib", "said",
)  # fmt: skip
_MOST_BY_CLOCK = 4
"""Seconds by the clock for each second of processor time, at most."""


def build(folder: Path, command: str, arch: str, compiler: str) -> str:
    """Build `main` if it is not there; returns what went wrong."""
    if (folder / "main").exists():
        return ""
    words = ["make", "-s", f"ARCH={arch}", f"CC={compiler}"]
    if command:
        words = ["sh", "-c", command.replace("{arch}", arch)]
    try:
        made = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return "the build takes longer than 600 s"
    made_now = [path for path in folder.iterdir() if path.is_file() and _is_program(path)]
    if len(made_now) == 1 and not (folder / "main").exists():
        (folder / "main").symlink_to(made_now[0].name)  # a makefile with another name for it
    if (folder / "main").exists():
        return ""
    lines = [line for line in (made.stderr + made.stdout).splitlines() if "rror" in line]
    return lines[0].strip() if lines else "no main was built"


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"


def run(folder: Path, arguments: str, gpu: tuple[str, ...], seconds: float, cpu: bool) -> dict[str, object]:
    """Run a program; what became of it. `gpu` are drywarp's options, `cpu` whether seconds are of processor time."""
    with tempfile.TemporaryDirectory() as place:
        found = Path(place) / "run.json"
        words = [sys.executable, "-m", "drywarp", "run", *gpu, "--json", str(found)]
        words += ["--output", str(Path(place) / "report"), "--", "./main", *shlex.split(arguments)]
        began = time.monotonic()
        with open(Path(place) / "output", "wb") as output:
            process = subprocess.Popen(
                words,
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            memory, used, stopped = _ended(process, seconds, cpu)
        text = (Path(place) / "output").read_text(errors="replace")
        last = (text.strip().splitlines() or [""])[-1][:200]
        spent = {"seconds": round(time.monotonic() - began, 1), "cpu_seconds": round(used, 1), "memory_mib": memory}
        if stopped or not found.exists():
            return {"outcome": "stopped" if stopped else "refused", **spent, "said": last}
        answer = json.loads(found.read_text())
    launches = sum(one["launches"] for one in answer["kernels"])
    computed = sum(one["computed"] for one in answer["kernels"])
    unpredicted = sum(one["without_prediction"] for one in answer["kernels"])
    said = [*(one["text"] for one in answer["faults"]), *answer["notes"], *answer["not_modelled"], *answer["findings"]]
    outcome = "faulty" if answer["faults"] else "in full" if computed == launches else "sampled"
    if not launches and not answer["faults"]:
        outcome = "no launch"
    if 128 < answer["exit_status"] < 128 + 65:  # a signal
        outcome = "crashed"
    check = "fails" if FAILS.search(text) or answer["exit_status"] else "passes" if PASSES.search(text) else "none"
    if check == "fails" and not said:
        said = [next((line for line in text.splitlines() if FAILS.search(line)), f"status {answer['exit_status']}")]
    return {
        "outcome": outcome, "check": check, "launches": launches, "computed": computed,
        "estimated": sum(one["estimated"] for one in answer["kernels"]),
        "without_prediction": unpredicted, **spent, "said": "; ".join(said)[:300],
    }  # fmt: skip


def _ended(process: subprocess.Popen[bytes], seconds: float, cpu: bool) -> tuple[int, float, bool]:
    """Wait for a program; the most MiB of one of its processes, its processor time, and if it had to be stopped."""
    asked, stopped = (signal.SIGINT, signal.SIGKILL), 0
    until, looked = time.monotonic() + seconds * (_MOST_BY_CLOCK if cpu else 1), time.monotonic()
    while True:
        number, status, used = os.wait4(process.pid, os.WNOHANG)
        if number:
            process.returncode = os.waitstatus_to_exitcode(status)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # whatever it has left
            return round(used.ru_maxrss / 1024), used.ru_utime + used.ru_stime, stopped > 0
        if cpu and not stopped and time.monotonic() > looked + 1:
            looked = time.monotonic()
            until = looked if _processor_s(process.pid) > seconds else until
        if time.monotonic() >= until and stopped < len(asked):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, asked[stopped])
            stopped, until = stopped + 1, time.monotonic() + 10
        time.sleep(0.02)


def _processor_s(session: int) -> float:
    """Processor time of all processes of a session, and of those of their children that have ended."""
    total = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = place.read_text().rpartition(")")[2].split()
            total += sum(map(int, words[11:15])) if int(words[3]) == session else 0
    return total / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu", default="rtx3080")
    parser.add_argument("--clock")
    parser.add_argument("--arch", default="sm_86")
    parser.add_argument("--compiler", default="nvcc")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--also", default="")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with given.programs.open(newline="") as file:
        rows: dict[str, dict[str, str]] = {}
        for row in csv.DictReader(file):
            rows.setdefault(row["program"], row)
    wanted = [name for name in rows if not given.only or name in given.only]
    if given.sample is not None:
        wanted = sorted(wanted, key=lambda name: hashlib.sha256(name.encode()).digest())[: given.sample]
    gpu = ("--gpu", given.gpu, *(("--clock", given.clock) if given.clock else ()), *shlex.split(given.also))

    def one(name: str) -> dict[str, object]:
        folder, row = given.folder / name, rows[name]
        if row.get("needs"):
            return {"program": name, "outcome": "not tried", "said": row["needs"]}
        if not folder.is_dir():
            return {"program": name, "outcome": "absent"}
        if failed := build(folder, row.get("build", ""), given.arch, given.compiler):
            return {"program": name, "outcome": "not built", "said": failed[:200]}
        if given.build_only:
            return {"program": name, "outcome": "built"}
        options = (*gpu, *shlex.split(row.get("also") or ""))
        return {"program": name, **run(folder, row["arguments"], options, given.seconds, given.cpu)}

    out = given.out.open("w", newline="") if given.out else sys.stdout
    writer = csv.DictWriter(out, COLUMNS, restval="")
    writer.writeheader()
    counts: dict[str, int] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(one, wanted):
            writer.writerow(row)
            out.flush()
            key = f"{row['outcome']}" + (f", check {row['check']}" if row.get("check") else "")
            counts[key] = counts.get(key, 0) + 1
    print("\n".join(f"{count:4}  {what}" for what, count in sorted(counts.items())), file=sys.stderr)


if __name__ == "__main__":
    main()
