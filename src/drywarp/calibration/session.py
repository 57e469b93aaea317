"""Asks a device for timings, through the journal, and makes estimates of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .device import Device, Program, Run, Value
from .estimate import Estimate
from .journal import Journal
from .machine_code import SPARE, check_loop

REPEATS = 15
"""Launches of each configuration."""
SHORT, LONG = 32, 256
"""Instructions of a turn of the loop, in the two programs whose difference is free of everything else."""
TURNS = 4


@dataclass
class Session:
    """One calibration of one device. `tell` hears of each launch configuration that is done."""

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

    def check(self, program: Program, wanted: Mapping[str, int], at_most: int | None = None) -> None:
        """See that the loop of a program holds so many instructions of each opcode, once for each program."""
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
        turns: int = TURNS,
        others: int = 0,
    ) -> Estimate:
        """Cycles that one step of a chain adds: the difference of a long and a short loop, over their steps.

        `opcodes` are what a step must have become in the machine code, and how many of each (of `A|B` either);
        `others` is how many instructions of other kinds it may have besides.
        """
        found = []
        for length in (SHORT, LONG):
            program = Program(template, (*defines.items(), ("LENGTH", str(length))))
            spare = SPARE + others * length
            self.check(program, {name: count * length for name, count in opcodes.items()}, spare)
            found.append(self.cycles(Run(program, grid, block, {"turns": turns, **arguments}, shared)))
        return (found[1] - found[0]) / (turns * (LONG - SHORT))

    def occupancy(self, warps: int) -> tuple[int, int]:
        """Blocks and threads of a grid that puts so many warps on every SM at once."""
        most = self.device.attributes.max_threads_per_block // 32
        blocks = -(-warps // most)
        return blocks * self.device.attributes.sm_count, warps // blocks * 32
