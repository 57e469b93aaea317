"""Groups of options: what is launched, and how it is emulated and simulated (see `spread`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from . import options as take
from .values import check_positive, pairs, parse_blocks, parse_shares, parse_trips

if TYPE_CHECKING:
    from ..emulator import Limits


@dataclass(frozen=True)
class LaunchOptions:
    """Which kernel of a file, compiled how, is launched with what."""

    PANEL: ClassVar = "Kernel and launch"

    entry: take.Entry = None
    grid: take.Grid = None
    block: take.Block = None
    arg: take.Arguments = None
    const: take.Constants = None
    shared: take.Shared = None
    define: take.Defines = None
    include: take.Includes = None
    std: take.Std = None
    max_registers: take.MaxRegisters = None
    config: take.Config = None

    def given(self) -> dict[str, Any]:
        """As the keywords of `drywarp.analyze` and its like. Raises UsageError for malformed values."""
        return {
            "entry": self.entry,
            "grid": self.grid,
            "block": self.block,
            "args": pairs(self.arg, "--arg"),
            "constants": pairs(self.const, "--const"),
            "shared": self.shared,
            "defines": self.macros,
            "includes": tuple(self.include or ()),
            "std": self.std,
            "max_registers": self.max_registers,
            "config": self.config,
        }

    @property
    def macros(self) -> dict[str, str]:
        """What -D says."""
        return pairs(self.define, "-D", value_needed=False)

    @property
    def stated(self) -> dict[str, Any]:
        """Only those of `given` that were given."""
        return {name: value for name, value in self.given().items() if value not in (None, (), {})}


@dataclass(frozen=True)
class RunOptions:
    """How blocks are chosen and emulated, and how the simulation goes about them."""

    PANEL: ClassVar = "Emulation and simulation"

    warm_l2: take.WarmL2 = False
    blocks: take.Blocks = None
    confidence: take.Confidence = None
    static: take.Static = False
    full_simulation: take.FullSimulation = False
    full_emulation: take.FullEmulation = False
    seconds: take.Seconds = None
    lane_steps: take.LaneSteps = 2e9

    def settings(self) -> dict[str, Any]:
        """As fields of `drywarp.Options`, but for the limits. Raises UsageError for malformed values."""
        return {
            "warm_l2": self.warm_l2,
            "blocks": parse_blocks(self.blocks),
            "confidence": self.confidence,
            "static": self.static,
            "full_simulation": self.full_simulation,
            "full_emulation": self.full_emulation,
        }

    def limits(self) -> Limits:
        """How far the emulation may go. Raises UsageError for numbers that are not positive."""
        check_positive(self.lane_steps, "--lane-steps")
        from ..emulator import Limits

        return Limits(int(self.lane_steps))


@dataclass(frozen=True)
class ClockOptions:
    """At which clock, under which scheduler, and how accesses are judged."""

    PANEL: ClassVar = "Assumptions about the GPU"

    clock: take.Clock = None
    scheduler: take.Scheduler = None
    profile: take.ProfileFile = None
    memory: take.Mapper = None

    def settings(self) -> dict[str, Any]:
        """As fields of `drywarp.Options`. Raises UsageError for a clock that is not positive."""
        check_positive(self.clock, "--clock")
        return {
            "clock_mhz": self.clock,
            "scheduler": self.scheduler,
            "profile": Path(self.profile) if self.profile else None,
            "memory": self.memory,
        }


@dataclass(frozen=True)
class StaticOptions:
    """What the static mode is told about loops, branches and accesses."""

    PANEL: ClassVar = "Static mode"

    trip: take.Trips = None
    taken: take.Taken = None
    access: take.Access = None

    def __bool__(self) -> bool:
        return bool(self.trip or self.taken or self.access)

    def settings(self) -> dict[str, Any]:
        """As fields of `drywarp.Options`. Raises UsageError for malformed values."""
        return {
            "trips": parse_trips(self.trip),
            "taken": parse_shares(self.taken),
            "access": pairs(self.access, "--access"),
        }
