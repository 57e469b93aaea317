"""Runs on a device: did the compiler make the intended code, and raw timings on disk, so that they resume."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from ...errors import DrywarpError, UsageError
from ...kernel.cfg import build_cfg
from ...kernel.instruction import Instruction
from ...kernel.kernel import Kernel
from ...support.growing_file import JsonLines
from .device import Attributes, Device, Program, Run, Timing, Value, Watched, Zeros
from .result import Estimate

# Checks that the compiler produced the intended code, and what its schedule adds to a chain of loads.


SPARE = 12
"""Instructions that a loop may need for itself: counting, comparing, constants."""


class WrongCodeError(DrywarpError):
    """A micro-benchmark was not compiled to the intended machine code."""


def loop_of(kernel: Kernel) -> list[Instruction]:
    """The instructions of the largest loop that holds no other, in order."""
    graph = build_cfg(kernel.instructions)
    outer = {loop.parent for loop in graph.loops}
    loops = [
        [kernel.instructions[i] for b in sorted(loop.blocks) for i in range(graph.blocks[b].start, graph.blocks[b].end)]
        for index, loop in enumerate(graph.loops)
        if index not in outer
    ]
    return max(loops, key=len, default=[])


def check_loop(kernel: Kernel, program: Program, wanted: Mapping[str, int], at_most: int | None = None) -> None:
    """Check that the loop has the wanted count of each opcode (``A|B``: of either) and little else.

    Raises WrongCodeError with the kernel, the architecture, what was expected and what was found. `at_most` is the most
    other instructions that the loop may have; None: what a loop needs for itself.
    """
    loop = loop_of(kernel)
    found = Counter(instruction.opcode for instruction in loop)
    rest = len(loop)
    for names, count in wanted.items():
        there = sum(found[name] for name in names.split("|"))
        # The loop's own counting may use the same opcode.
        if not count <= there <= count + SPARE // 4:
            seen = ", ".join(f"{number} {name}" for name, number in found.most_common(6)) or "no loop"
            raise WrongCodeError(
                f"{program} on {kernel.arch}: expected {count} {names.replace('|', ' or ')} in the loop, got {seen}"
            )
        rest -= there
    spare = SPARE if at_most is None else at_most
    if rest > spare:
        seen = ", ".join(f"{number} {name}" for name, number in found.most_common(6))
        raise WrongCodeError(f"{program} on {kernel.arch}: {rest} extra instructions in the loop: {seen}")


def waits_for_result(kernel: Kernel, opcodes: str) -> bool:
    """Whether these opcodes (``A|B``) in the loop set a scoreboard; otherwise their Λ is a scheduled distance."""
    chain = [i for i in loop_of(kernel) if i.opcode in opcodes.split("|")]
    return any(i.control.write_barrier is not None for i in chain)


def cycles_between_loads(kernel: Kernel, opcode: str) -> float:
    """Mean cycles from the wait for a load's result to the next load, by the compiler's schedule.

    In a chain where each load waits for the previous one, a step takes this much longer than Λ.
    """
    loop = loop_of(kernel)
    loads = [index for index, instruction in enumerate(loop) if instruction.opcode == opcode]
    gaps = [_gap(loop, a, b) for a, b in pairwise(loads)]
    return sum(gaps) / len(gaps)


def _gap(loop: Sequence[Instruction], load: int, following: int) -> int:
    slot = loop[load].control.write_barrier
    for index in range(load + 1, following + 1):
        if slot is not None and loop[index].control.wait_mask >> slot & 1:
            return sum(max(loop[i].control.stall, 1) for i in range(index, following))
    raise WrongCodeError(f"{loop[load].text}: no instruction before the next load waits for it")


class Journal(JsonLines):
    """A JSON-lines file: the device first, then one line per run.

    Without a path, timings are kept in memory only. Raises UsageError for a file that cannot be written, that another
    process is writing, or that has other settings, and InputFileError for one that is not a journal (left unchanged).
    """

    expected = "a line of a journal of drywarp calibrate"

    def __init__(self, path: Path | None, device: Attributes, settings: dict[str, Any]) -> None:
        super().__init__(path, {"device": asdict(device), **settings}, "timings")
        self.known: dict[str, list[Timing]] = {}
        self.watched: dict[str, Watched] = {}

    def __enter__(self) -> Self:
        if self.path is not None:
            with contextlib.suppress(OSError):  # then it cannot be opened either
                self.path.parent.mkdir(parents=True, exist_ok=True)
        return super().__enter__()

    def find(self, run: Run) -> list[Timing] | None:
        """An earlier run's timings of the same launch, or None."""
        return self.known.get(key_of(run))

    def add(self, run: Run, timings: Sequence[Timing]) -> None:
        """Store the timings of a launch; a line is written completely or not at all."""
        key = key_of(run)
        self.known[key] = list(timings)
        self.append({"run": json.loads(key), "timings": [[t.cycles, t.ns, t.sm_mhz] for t in timings]})

    def add_watched(self, run: Run, found: Watched) -> None:
        """Store a launch that was watched warp by warp; `watched` has it by `key_of(run)`."""
        key = key_of(run)
        self.watched[key] = found
        self.append({"run": json.loads(key), "watched": [found.warps, found.latencies]})

    def check_head(self, head: Mapping[str, Any]) -> None:
        """The device and the settings."""
        if "device" not in head:
            raise ValueError(head)
        for name, value in self.head.items():
            if head.get(name) != value:
                raise UsageError(
                    f"{self.path}: timings of another {name} ({_shown(head.get(name, '?'))}; this is {_shown(value)}): "
                    "delete the file, or name another with --journal"
                )

    def take(self, row: Mapping[str, Any]) -> None:
        """The timings of a launch, or what was watched of it."""
        key = json.dumps(row["run"], sort_keys=True)
        if "watched" in row:
            warps, latencies = row["watched"]
            lives = tuple((float(start), float(end)) for start, end in warps)
            self.watched[key] = Watched(lives, tuple(map(float, latencies)))
        else:
            self.known[key] = [Timing(*map(float, timing)) for timing in row["timings"]]


def _shown(value: Any) -> str:
    return str(value.get("name", "?")) if isinstance(value, dict) else str(value)


def key_of(run: Run) -> str:
    """A launch as text: equal for equal launches."""
    arguments = {name: {"zeros": v.nbytes} if isinstance(v, Zeros) else v for name, v in run.arguments.items()}
    what = {
        "template": run.program.template,
        "defines": dict(run.program.defines),
        "grid": run.grid,
        "block": run.block,
        "shared": run.shared,
        "arguments": arguments,
    }
    return json.dumps(what, sort_keys=True)


# Gets timings from a device, through the journal, and turns them into estimates.

REPEATS = 15
"""Launches of each configuration."""
SHORT, LONG = 32, 256
"""Instructions per iteration of the loop in the two programs, whose difference excludes all other costs."""
ITERATIONS = 4


@dataclass
class Session:
    """One calibration of one device. `tell` is called for each finished launch configuration."""

    device: Device
    journal: Journal
    repeats: int = REPEATS
    tell: Callable[[str], None] = lambda what: None
    launches: int = 0
    clocks: list[float] = field(default_factory=list)
    checked: set[Program] = field(default_factory=set)

    def cycles(self, run: Run) -> Estimate:
        """Cycles of a launch."""
        return self._timed(run)[0]

    def nanoseconds(self, run: Run) -> Estimate:
        """Nanoseconds of a launch."""
        return self._timed(run)[1]

    def _timed(self, run: Run) -> tuple[Estimate, Estimate]:
        timings = self.journal.find(run)
        if timings is None:
            timings = list(self.device.time(run, self.repeats))
            self.journal.add(run, timings)
            self.tell(str(run.program))
        self.launches += len(timings)
        self.clocks += [t.sm_mhz for t in timings]
        return Estimate.of([t.cycles for t in timings]), Estimate.of([t.ns for t in timings])

    def watch(self, run: Run) -> Watched:
        """One launch, warp by warp."""
        found = self.journal.watched.get(key_of(run))
        if found is None:
            found = self.device.watch(run)
            self.journal.add_watched(run, found)
            self.tell(str(run.program))
        self.launches += 1
        return found

    def check(self, program: Program, wanted: Mapping[str, int], at_most: int | None = None) -> None:
        """Check the instruction counts in a program's loop, once per program."""
        if program not in self.checked:
            check_loop(self.device.code(program), program, wanted, at_most)
            self.checked.add(program)

    def per_instruction(
        self,
        template: str,
        defines: Mapping[str, str],
        opcodes: Mapping[str, int],
        grid: int,
        block: int,
        arguments: Mapping[str, Value],
        shared: int = 0,
        *,
        others: int = 0,
    ) -> Estimate:
        """Cycles per step of a chain: the time difference of a long and a short loop, divided by the extra steps.

        `opcodes` are the opcodes that a step must compile to, with counts (`A|B`: either); `others` is how many other
        instructions a step may have.
        """
        found = []
        for length in (SHORT, LONG):
            program = Program(template, (*defines.items(), ("LENGTH", str(length))))
            spare = SPARE + others * length
            self.check(program, {name: count * length for name, count in opcodes.items()}, spare)
            found.append(self.cycles(Run(program, grid, block, {"iterations": ITERATIONS, **arguments}, shared)))
        return (found[1] - found[0]) / (ITERATIONS * (LONG - SHORT))

    def occupancy(self, warps: int) -> tuple[int, int]:
        """Blocks and threads of a grid that puts this many warps on every SM at once."""
        most = self.device.attributes.max_threads_per_block // 32
        blocks = -(-warps // most)
        return blocks * self.device.attributes.sm_count, warps // blocks * 32
