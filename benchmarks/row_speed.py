"""Where the processor time of one predicted row of a table goes: evenly spread rows, stage by stage.

    python benchmarks/row_speed.py 12 TABLE --kernel … --gpu … [further options of `drywarp validate`]

The rows are those that ``drywarp validate --rows 12`` takes. They are predicted in this process, one after the other,
in an empty cache ("from nothing"), once more ("cached profile": compiled and emulated before) and a third time ("cached
answer": predicted before). Times are seconds of the
processor, all threads and the tools that are run included; what a stage calls of another stage counts for that one. The
first row of a process, which loads libraries, is taken once before, and is not counted. With
``--no-band`` rows are predicted as a sweep does, without confidence bands. With ``--save FILE`` the answers are written
down, every digit of them, and with ``--against FILE`` compared with those of another version.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

STAGES = (
    ("compiler", "drywarp.frontends.cuda.build", "compile_program"),
    ("disassembler", "drywarp.frontends.cuda.build", "listing_of"),
    ("reading the listing", "drywarp.frontends.cuda.compile", "kernels_of"),
    ("the source", "drywarp.frontends.formats.own", "compile_cuda"),
    ("emulation", "drywarp.analysis.prepare", "_emulated"),
    ("key of the emulation", "drywarp.analysis.prepare", "cache_entry_of"),
    ("workload", "drywarp.analysis.prepare", "build_workload"),
    ("memory", "drywarp.analysis.prepare", "analyse_memory"),
    ("costs", "drywarp.analysis.prepare", "cost_workload"),
    ("models", "drywarp.experiments.rows", "predictions_of"),
    ("band", "drywarp.experiments.rows", "band_of"),
    ("whole row", "", ""),
)
"""Stages: how they are called, and the function, where it is called from."""
COLUMNS = ("from nothing", "cached profile", "cached answer")
LEFT_OUT = ("compile_s", "emulate_s", "memory_s", "models_s")
"""Facts of a row that are times of this machine."""


def spent() -> float:
    """Seconds of the processor that this process and its finished tools have taken."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


class Clock:
    """Seconds by stage; a stage inside another is taken off that one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.inside: list[float] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What runs in this context counts for `name`."""
        self.inside.append(0.0)
        started = spent()
        try:
            yield
        finally:
            took = spent() - started
            own = took - self.inside.pop()
            self.seconds[name] = self.seconds.get(name, 0.0) + own
            if self.inside:
                self.inside[-1] += took

    def watch(self, name: str, module: str, function: str) -> None:
        """Count every call of a function, as the module calls it, for a stage."""
        from importlib import import_module

        place = import_module(module)
        inner: Callable[..., Any] | None = getattr(place, function, None)
        if inner is None:
            return

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return inner(*args, **kwargs)

        setattr(place, function, timed)


def collected(arguments: list[str]) -> list[tuple[int, Any, Any]]:
    """Number, task and launch of every row that `drywarp validate` would predict, none of them predicted."""
    import drywarp.experiments.validate as run
    from drywarp.cli.main import whole_app

    found: list[tuple[int, Any, Any]] = []

    def instead(task: Any, rows: Any, jobs: int, limit: float) -> Iterator[Any]:
        for number, launch in rows:
            found.append((number, task, launch))
            yield number, "not predicted", 0.0

    run.run_rows = instead  # type: ignore[assignment]
    try:
        whole_app()(["validate", *arguments], standalone_mode=False)
    except BaseException as error:
        if not found:
            raise SystemExit(f"drywarp validate {' '.join(arguments)}: {error}") from None
    return sorted(found, key=lambda row: row[0])


def main() -> None:
    """Print the table of stages, and what the compiler takes for nothing; compare or save the answers."""
    given = sys.argv[1:]
    band = "--no-band" not in given
    given = [option for option in given if option != "--no-band"]
    files = {"--save": "", "--against": ""}
    for option in files:
        if option in given:
            at = given.index(option)
            files[option] = given[at + 1]
            del given[at : at + 2]
    os.environ["DRYWARP_PROGRESS"] = "off"
    standard, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    rows = collected([*given[1:], "--rows", given[0]])
    sys.stdout = standard
    from drywarp.experiments.rows import worker

    if not band:
        rows = [(n, replace(task, settings=replace(task.settings, band=False)), launch) for n, task, launch in rows]
    with tempfile.TemporaryDirectory() as warm:
        os.environ["DRYWARP_CACHE_DIR"] = warm
        worker.answer(rows[0][1], rows[0][2])
    clock = Clock()
    for name, module, function in STAGES:
        if module:
            clock.watch(name, module, function)
    answers, walls = {}, {}
    columns: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DRYWARP_CACHE_DIR"] = folder
        for name in COLUMNS:
            clock.seconds = {}
            if name == "cached profile":
                shutil.rmtree(os.path.join(folder, "answers"), ignore_errors=True)
            started = time.perf_counter()
            for number, task, launch in rows:
                with clock.stage("whole row"):
                    answers[name, number] = worker.answer(task, launch)
            walls[name] = (time.perf_counter() - started) / len(rows)
            columns[name] = dict(clock.seconds)
    print(f"{'processor time per row, s':28}" + "".join(f"{name:>14}" for name in columns))
    for name, module, _ in STAGES:
        label = name if module else "the rest"
        print(f"{label:28}" + "".join(f"{times.get(name, 0.0) / len(rows):14.3f}" for times in columns.values()))
    print(f"{'sum':28}" + "".join(f"{sum(times.values()) / len(rows):14.3f}" for times in columns.values()))
    print(f"{'wall time':28}" + "".join(f"{wall:14.3f}" for wall in walls.values()))
    from drywarp.frontends.cuda.nvrtc import compile_program

    started = spent()
    compile_program("__global__ void k() {}", "empty.cu", ["--gpu-architecture=sm_80", "-lineinfo"], ["k"])
    print(f"the compiler for an empty kernel: {spent() - started:.3f} s")
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")
    said = {str(number): plain(answers["from nothing", number]) for number, _, _ in rows}
    for name in COLUMNS[1:]:
        for number in (number for number in said if said[number] != plain(answers[name, int(number)])):
            # Where a limit of time cuts an emulation short, the answer hangs on how busy the machine was.
            print(f"row {number}: answered otherwise from a {name}")
    if files["--save"]:
        with open(files["--save"], "w") as file:
            json.dump(said, file, indent=1, sort_keys=True)
    if files["--against"]:
        with open(files["--against"]) as file:
            compare(json.load(file), said)


def plain(answer: Any) -> Any:
    """An answer without times of this machine, every number with all its digits."""
    if isinstance(answer, str):
        return answer
    facts = {name: repr(value) for name, value in answer.facts.items() if name not in LEFT_OUT}
    return {
        "facts": facts, "times": {n: repr(t) for n, t in answer.times.items()}, "limiters": dict(answer.limiters)
    }  # fmt: skip


def compare(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Say whether the answers of two versions are the same, digit by digit; fail where not."""
    if before.keys() != now.keys():
        raise SystemExit("other rows than those of the file")
    if not any(name.startswith("band") for answer in now.values() for name in answer.get("facts", ())):
        for answer in before.values():
            answer["facts"] = {n: f for n, f in answer.get("facts", {}).items() if not n.startswith("band")}
    differ = [number for number in now if before[number] != now[number]]
    for number in differ[:5]:
        print(f"row {number}: before {before[number]}\n  now {now[number]}")
    if differ:
        raise SystemExit(f"{len(differ)} of {len(now)} answers differ")
    print(f"all {len(now)} answers are the same, digit by digit")


if __name__ == "__main__":
    main()
