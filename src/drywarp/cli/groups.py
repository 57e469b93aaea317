"""Groups of options that many verbs share, and how they become single options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .values import argument_file, check_positive, pairs, parse_blocks, parse_clock, parse_shares, parse_trips

if TYPE_CHECKING:
    from ..execution.emulator import Limits


AS_TYPED = ("entry", "grid", "block", "shared", "cluster", "std", "max_registers", "config")
"""What a launch consists of besides pairs and lists."""


@dataclass(frozen=True)
class CompilerFlags:
    """How to compile a source."""

    PANEL: ClassVar = "Compiler"

    define: list[str] | None = None
    include: list[str] | None = None
    std: str | None = None
    max_registers: int | None = None
    compiler_option: list[str] | None = None
    use_fast_math: bool = False

    @property
    def others(self) -> tuple[str, ...]:
        """The options that have none of their own here, in nvcc's spelling."""
        return (*(self.compiler_option or ()), *(["--use_fast_math"] if self.use_fast_math else []))

    @property
    def macros(self) -> dict[str, str]:
        """The macros defined with -D."""
        return pairs(self.define, "-D", value_needed=False)


@dataclass(frozen=True)
class LaunchOptions(CompilerFlags):
    """The kernel within its file, how to compile it, and how to launch it."""

    PANEL: ClassVar = "Kernel and launch"

    entry: str | None = None
    grid: str | None = None
    block: str | None = None
    arg: list[str] | None = None
    arg_file: str | None = None
    const: list[str] | None = None
    shared: int | None = None
    cluster: str | None = None
    config: str | None = None

    def given(self) -> dict[str, Any]:
        """The keyword arguments for `drywarp.analyze` and similar functions. Raises UsageError for malformed values."""
        return {
            **{name: getattr(self, name) for name in AS_TYPED},
            "args": {**argument_file(self.arg_file), **pairs(self.arg, "--arg")},
            "constants": pairs(self.const, "--const"),
            "defines": self.macros,
            "includes": tuple(self.include or ()),
            "compiler_options": self.others,
        }

    @property
    def stated(self) -> dict[str, Any]:
        """The entries of `given` that the user set."""
        return {name: value for name, value in self.given().items() if value not in (None, (), {})}


_SETTINGS = ("warm_l2", "confidence", "static", "full_simulation", "full_emulation")


@dataclass(frozen=True)
class RunOptions:
    """How blocks are chosen and emulated, and how they are simulated."""

    PANEL: ClassVar = "Emulation and simulation"

    warm_l2: bool = False
    blocks: str | None = None
    confidence: float | None = None
    static: bool = False
    full_simulation: bool = False
    full_emulation: bool = False
    seconds: float | None = None
    jobs: int | None = None
    lane_steps: float = 2e9
    recorded_accesses: float = 4e7
    strict: bool = False

    def settings(self) -> dict[str, Any]:
        """The fields of `drywarp.Options`, except the limits. Raises UsageError for malformed values."""
        return {
            "blocks": parse_blocks(self.blocks),
            **{name: getattr(self, name) for name in _SETTINGS},
        }

    def limits(self) -> Limits:
        """The limits of the emulation. Raises UsageError for numbers that are not positive."""
        check_positive(self.lane_steps, "--lane-steps")
        check_positive(self.recorded_accesses, "--recorded-accesses")
        from ..execution.emulator import Limits

        return Limits(int(self.lane_steps), self.strict, int(self.recorded_accesses))


@dataclass(frozen=True)
class ClockOptions:
    """The clock, the scheduler policy, and how memory accesses are modelled."""

    PANEL: ClassVar = "Assumptions about the GPU"

    clock: str | None = None
    scheduler: str | None = None
    profile: str | None = None
    memory: str | None = None

    def settings(self) -> dict[str, Any]:
        """The fields of `drywarp.Options`. Raises UsageError for an invalid clock."""
        return {
            "clock_mhz": parse_clock(self.clock),
            "scheduler": self.scheduler,
            "profile": Path(self.profile) if self.profile else None,
            "memory": self.memory,
        }


@dataclass(frozen=True)
class StaticOptions:
    """What the user specifies about loops, branches and accesses in static mode."""

    PANEL: ClassVar = "Static mode"

    trip: list[str] | None = None
    taken: list[str] | None = None
    access: list[str] | None = None

    def __bool__(self) -> bool:
        return bool(self.trip or self.taken or self.access)

    def settings(self) -> dict[str, Any]:
        """The fields of `drywarp.Options`. Raises UsageError for malformed values."""
        return {
            "trips": parse_trips(self.trip),
            "taken": parse_shares(self.taken),
            "access": pairs(self.access, "--access"),
        }
