"""Runs of whole programs that the tests of their page show."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from drywarp.analysis.result import Analysis
from drywarp.hardware import load_gpu
from drywarp.program.asked import Outcome
from drywarp.program.result import LaunchDone, ProcessRun, ProgramRun
from drywarp.program.sum_up import finished
from drywarp.program.timeline import Stream, Timeline

from .html_answers import answer


def run_of(launches: list[tuple[str, int]], kernel: Analysis | None = None, processes: int = 1) -> ProgramRun:
    """A program of these launches, each a kernel and a stream (0, 1, …), with a copy before them."""
    found = kernel or replace(answer(), detail=None)
    made = []
    for _ in range(processes):
        line = Timeline(load_gpu("a100"))
        handles = defaultdict(line.handle, {0: 0})
        done = []
        line.copy(0, "copy to device", 1 << 20, waits=True)
        for number, (name, stream) in enumerate(launches):
            line.streams.setdefault(handles[stream], Stream(blocking=False))
            line.kernel(handles[stream], name, found.time_s, 0.25, number)
            outcome = Outcome(found, True, 1000, kept=f"{number:04}-x.launch" if number < 2 else "")
            done.append(LaunchDone(number, name, (1, 1, 1), (32, 1, 1), 0, handles[stream], outcome))
        made.append(ProcessRun(line, {name: found for name, _ in launches}, len(done), done))
    return finished(("./program", "--size", "4"), 0, made, 1.41e9)


def small() -> ProgramRun:
    """Two kernels on two streams."""
    return run_of([("scale", 0), ("add_up", 1), ("scale", 1), ("add_up", 0), ("scale", 0)])
