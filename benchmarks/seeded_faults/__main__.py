"""Put faults into a copy of the repository, one at a time, and run the tests: see `benchmarks/seeded_faults`.

    python -m benchmarks.seeded_faults --count 240 --seed 1 --jobs 2 --out faults.jsonl

The faults are drawn by the seed from all that `changes.py` finds, room by room. For each the tests of its room run,
and those of whole answers where these see nothing. Those known to change nothing (`equivalent.toml`, each with
its reason) are not counted. Prints a table, then the survivors. Exit status 1 where less than `--least` are caught.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from threading import Lock

from drywarp.core.build import LIBRARY, compiler
from drywarp.core.library import library
from drywarp.support.folders import replace_file

from .changes import Change, changes
from .rooms import ROOMS, ROOT, WHOLE_ANSWERS

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
OPTIONS = ("-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:randomly", "-n0")


@dataclass(frozen=True)
class Outcome:
    """What became of one fault."""

    room: str
    change: Change
    caught_by: str
    """`room`, `whole answers`, `hang`, or nothing."""
    test: str
    seconds: float


def draw(count: int, seed: int, only: Iterable[str]) -> list[tuple[str, Change]]:
    """So many faults, spread over the rooms; the same for the same sources and seed."""
    rooms = {name: room for name, room in ROOMS.items() if not only or name in only}
    shares = sum(room.share for room in rooms.values())
    drawn: list[tuple[str, Change]] = []
    for name, room in rooms.items():
        chance = random.Random(f"{seed} {name}")
        found = [c for path in room.files() for c in changes(path, path.relative_to(ROOT).as_posix())]
        # One kind of fault is not to crowd out the others: an index is far more frequent than a comparison.
        by_kind: dict[str, list[Change]] = {}
        for change in found:
            by_kind.setdefault(change.kind, []).append(change)
        for kind in by_kind.values():
            chance.shuffle(kind)
        wanted = -(-count * room.share // shares)
        kinds = sorted(by_kind)
        while wanted > 0 and any(by_kind.values()):
            for kind in kinds:
                if by_kind[kind] and wanted > 0 and compiles(change := by_kind[kind].pop()):
                    drawn.append((name, change))
                    wanted -= 1
    return drawn


def compiles(change: Change) -> bool:
    """Whether a source in C is still one with this change; everything else runs without being compiled."""
    path = ROOT / change.file
    if path.suffix not in (".c", ".h"):
        return True
    with tempfile.TemporaryDirectory(prefix="drywarp-faults-") as folder:
        native = shutil.copytree(path.parent, Path(folder, "native"))
        (native / path.name).write_text(change.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        units = [native / path.name] if path.suffix == ".c" else sorted(native.glob("*.c"))
        command = [*(compiler() or ["cc"]), "-std=c11", "-fsyntax-only", "-w", '-DDRYWARP_DIGEST=""', *map(str, units)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def known_equivalent() -> set[Change]:
    """Faults that change no answer: those of the file, found by the line that they stand in."""
    with EQUIVALENT.open("rb") as file:
        rows = tomllib.load(file).get("fault", [])
    known = {(row["file"], row["line"], row["old"], row["new"]) for row in rows}
    found = set()
    for name in {row["file"] for row in rows if (ROOT / row["file"]).is_file()}:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        found |= {
            change
            for change in changes(ROOT / name, name)
            if (name, lines[change.line - 1].strip(), change.old, change.new) in known
        }
    return found


class Copy:
    """A copy of the repository's tracked files, in which one fault at a time lies."""

    def __init__(self, folder: Path, cache: Path, hangs_s: float) -> None:
        self.folder, self.hangs_s = folder, hangs_s
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in names.decode().split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self.core = folder / LIBRARY.relative_to(ROOT)
        library()  # compiled again here, if the sources have changed since
        shutil.copy2(LIBRARY, self.core)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DRYWARP_CACHE_DIR": str(cache),
            "HYPOTHESIS_DATABASE_FILE": str(folder / ".hypothesis"),
        }

    def ask(self, tests: tuple[str, ...]) -> tuple[str, str]:
        """Whether these tests fail: `passed`, `failed` or `hang`, and which was the first."""
        command = [sys.executable, "-m", "pytest", *OPTIONS, *tests]
        # Into a file: a pipe would stay open for as long as any process that the tests have left behind.
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=said, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(self.hangs_s)
            except subprocess.TimeoutExpired:
                return "hang", ""
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            said.seek(0)
            output = said.read()
        named = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return ("passed" if process.returncode == 0 else "failed"), (named[-1] if named else output[-200:])[:300]

    def try_out(self, room: str, change: Change) -> Outcome:
        """Put the fault in, run the tests, take it out."""
        path = self.folder / change.file
        before, built = path.read_text(encoding="utf-8"), self.core.read_bytes()
        began = time.monotonic()
        # Where it is in C, the tests compile the core of this copy again before they use it.
        path.write_text(change.applied(before), encoding="utf-8")
        try:
            stages = (("room", ROOMS[room].tests), ("whole answers", WHOLE_ANSWERS))
            for stage, tests in stages:
                said, test = self.ask(tests)
                if said != "passed":
                    return Outcome(room, change, "hang" if said == "hang" else stage, test, time.monotonic() - began)
            return Outcome(room, change, "", "", time.monotonic() - began)
        finally:
            path.write_text(before, encoding="utf-8")
            replace_file(self.core, built)


def table(outcomes: list[Outcome], equivalent: set[Change]) -> str:
    """What was caught, by room, as Markdown."""
    rows = ["| room | faults | its tests fail | never end | whole answers fail | survived |", "|---|" + "---:|" * 5]
    total: Counter[str] = Counter()
    for room in dict.fromkeys(outcome.room for outcome in outcomes):
        here = [o for o in outcomes if o.room == room and not is_equivalent(o, equivalent)]
        by = Counter(outcome.caught_by for outcome in here)
        rows.append(f"| {room} | {len(here)} | {_cells(by)} |")
        total.update(by)
    count = total.total()
    caught = count - total[""]
    rows.append(f"| **all** | {count} | {_cells(total)} |")
    share = f"{100 * caught / count:.1f} %" if count else "none drawn"
    left_out = sum(is_equivalent(outcome, equivalent) for outcome in outcomes)
    return "\n".join([*rows, "", f"Caught: {caught} of {count}, {share}; {left_out} more change no answer."])


def _cells(by: Counter[str]) -> str:
    return " | ".join(str(by[kind]) for kind in ("room", "hang", "whole answers", ""))


def is_equivalent(outcome: Outcome, equivalent: set[Change]) -> bool:
    """Whether it survived, and is known to change nothing."""
    return not outcome.caught_by and outcome.change in equivalent


def main() -> int:
    """Draw, try, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rooms", default="", help="only these, separated by commas")
    parser.add_argument("--out", type=Path, help="outcomes as JSON lines; what it holds already is not tried again")
    parser.add_argument(
        "--again", action="store_true", help="try what survived in `--out` again, after tests were added"
    )
    parser.add_argument(
        "--hangs-after", type=float, default=400, help="seconds after which tests are said never to end: caught"
    )
    parser.add_argument("--list", action="store_true", help="print the faults, run nothing")
    parser.add_argument("--least", type=float, default=0.9, help="share that has to be caught")
    given = parser.parse_args()
    only = [name.strip() for name in given.rooms.split(",") if name.strip()]
    if unknown := set(only) - set(ROOMS):
        parser.error(f"unknown rooms: {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    drawn = draw(given.count, given.seed, only)
    if given.list:
        print("\n".join(f"{room}: {change.kind}: {change}" for room, change in drawn))
        return 0
    outcomes = []
    if given.out and given.out.is_file():
        for line in given.out.read_text().splitlines():
            row = json.loads(line)
            outcomes.append(Outcome(**{**row, "change": Change(**row["change"])}))
        # A fault that was tried again stands there twice: the later outcome counts.
        outcomes = [*{outcome.change: outcome for outcome in outcomes}.values()]
        wanted = set(drawn)
        outcomes = [o for o in outcomes if (o.room, o.change) in wanted and (o.caught_by or not given.again)]
    done = {outcome.change for outcome in outcomes}
    lock = Lock()
    with tempfile.TemporaryDirectory(prefix="drywarp-faults-") as scratch:
        cache = Path(os.environ.get("DRYWARP_CACHE_DIR", f"{scratch}/cache"))
        copies: Queue[Copy] = Queue()
        for number in range(given.jobs):
            copies.put(Copy(Path(scratch, f"copy{number}"), cache, given.hangs_after))

        def one(room: str, change: Change) -> None:
            place = copies.get()
            try:
                outcome = place.try_out(room, change)
            finally:
                copies.put(place)
            with lock:
                outcomes.append(outcome)
                said = outcome.caught_by or "SURVIVED"
                print(f"{len(outcomes)}/{len(drawn)} {outcome.seconds:.0f} s {room}: {said}: {change}", flush=True)
                if given.out:
                    with given.out.open("a") as file:
                        file.write(json.dumps(asdict(outcome)) + "\n")

        with ThreadPoolExecutor(given.jobs) as pool:
            for future in [pool.submit(one, room, change) for room, change in drawn if change not in done]:
                future.result()
    equivalent = known_equivalent()
    order = {change: number for number, (_, change) in enumerate(drawn)}
    outcomes.sort(key=lambda outcome: order[outcome.change])
    print(table(outcomes, equivalent))
    survivors = [o for o in outcomes if not o.caught_by and not is_equivalent(o, equivalent)]
    for outcome in survivors:
        print(f"survived: {outcome.change}")
    counted = sum(not is_equivalent(outcome, equivalent) for outcome in outcomes)
    return 0 if counted and 1 - len(survivors) / counted >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
