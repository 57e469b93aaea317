"""What drywarp answers, before and after a change that should change no answer.

    python -m benchmarks.same_answers record before.jsonl --source OTHER_CHECKOUT/src
    python -m benchmarks.same_answers record after.jsonl
    python -m benchmarks.same_answers compare before.jsonl after.jsonl

`record` runs the command line on every example and every kernel of the suite on three GPUs, with advice, as counts and
without data; adds every model's curve, the papers' numbers, and each row of the sweeps. A line of the file is a command
and the JSON object that it printed, without times of the analysis, versions and digests. `compare` names every value
that differs and exits with 1 where one does. Both copies answer about the files of this checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GPUS = ("a100", "h100", "rtx2080ti")
SWEEPS = ("benchmarks/same_answers.toml",)
NOT_COMPARED = {"versions", "timing", "gpu_hash", "hash", "seconds", "tools", "source_hash", "wall_s", "drywarp"}
"""Keys that say when, how fast or by which version an answer was found."""


def commands() -> Iterator[list[str]]:
    """The commands, each without `--json`."""
    suite = sorted(path for path in (ROOT / "suite").glob("*.cu") if "// drywarp:" in path.read_text(encoding="utf-8"))
    for path in [*sorted((ROOT / "examples").glob("*.cu")), *sorted((ROOT / "examples/tutorial").glob("*.cu")), *suite]:
        name = str(path.relative_to(ROOT))
        for gpu in GPUS:
            yield ["analyze", name, "--gpu", gpu, "--advice"]
        yield ["analyze", name, "--gpu", "a100", "--static"]
        yield ["counts", name, "--gpu", "a100"]
        yield ["models", name, "--gpu", "a100"]
    yield ["analyze", "examples/hopper/wgmma_tile.cu", "--gpu", "h100"]
    yield ["analyze", "examples/axpy.ptx", "--gpu", "a100"]
    yield ["rank", "examples/saxpy.cu", "--gpu", "a100,h100,rtx3080"]
    yield ["compare", "examples/transpose_naive.cu", "examples/transpose_padded.cu", "--gpu", "a100,h100"]
    yield ["reproduce"]
    for sweep in SWEEPS:
        yield ["sweep", sweep]


def answer(command: list[str], source: Path, folder: str) -> dict[str, Any]:
    """What a command prints with `--json`, and its exit status."""
    environment = os.environ | {"PYTHONPATH": str(source), "DRYWARP_CACHE_DIR": folder}
    line = [sys.executable, "-m", "drywarp", *command, "--json"]
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        found = None
    error = done.stderr.strip().splitlines()[-1:] if found is None else []
    return {"command": " ".join(command), "status": done.returncode, "answer": found, "error": " ".join(error)}


def record(out: Path, source: Path, only: str) -> int:
    """Exit status 1 where a command gave no answer."""
    wanted = [command for command in commands() if only in " ".join(command)]
    silent = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool, out.open("w") as file:
        for found in pool.map(lambda one: answer(one, source, folder), wanted):
            file.write(json.dumps(found) + "\n")
            file.flush()
            if found["answer"] is None:
                silent += 1
                print(f"no answer: {found['command']}: status {found['status']}: {found['error']}")
    print(f"{len(wanted)} commands, {silent} without an answer")
    return 1 if silent else 0


def differences(old: Any, new: Any, texts: bool, at: str = "") -> Iterator[str]:
    """Where two JSON values differ, by dotted keys; texts are compared where wanted."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key in NOT_COMPARED:
                continue
            if key not in old or key not in new:
                yield f"{at}.{key}: {'new' if key in new else 'gone'}"
            else:
                yield from differences(old[key], new[key], texts, f"{at}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, texts, f"{at}[{number}]")
    elif old != new and (texts or not (isinstance(old, str) and isinstance(new, str))):
        yield f"{at}: {old!r} -> {new!r}"[:300]


def compare(old: Path, new: Path, texts: bool) -> int:
    """Exit status 1 where a value differs, or where a copy gave no answer: two errors are not called equal."""
    before, after = ({(line := json.loads(text))["command"]: line for text in path.open()} for path in (old, new))
    lines = [f"{command}: recorded once only" for command in before.keys() ^ after.keys()]
    for command in before.keys() & after.keys():
        one, other = before[command], after[command]
        if one["answer"] is None or other["answer"] is None:
            lines.append(f"{command}: no answer: {one['error'] or 'answered'} -> {other['error'] or 'answered'}")
            continue
        lines += [f"{command}: {found}" for found in differences(one["answer"], other["answer"], texts)]
    print(*sorted(lines), sep="\n")
    print(f"{len(before.keys() & after.keys())} answers compared, {len(lines)} differences")
    return 1 if lines else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("record")
    one.add_argument("out", type=Path)
    one.add_argument("--source", type=Path, default=ROOT / "src")
    one.add_argument("--only", default="", help="commands that contain this text")
    two = verbs.add_parser("compare")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    two.add_argument("--figures", action="store_true", help="compare figures and keys, and leave texts out")
    given = parser.parse_args()
    if given.verb == "record":
        return record(given.out, given.source.resolve(), given.only)
    return compare(given.old, given.new, not given.figures)


if __name__ == "__main__":
    sys.exit(main())
