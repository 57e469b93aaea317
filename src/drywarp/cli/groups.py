"""Groups of options that many verbs share, and how they become single options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_type_hints

from . import options as take
from .options import argument_file, check_positive, pairs, parse_blocks, parse_clock, parse_shares, parse_trips

if TYPE_CHECKING:
    from ..execution.emulator import Limits


@dataclass(frozen=True)
class CompilerFlags:
    """How to compile a source."""

    PANEL: ClassVar = "Compiler"

    define: take.Defines = None
    include: take.Includes = None
    std: take.Std = None
    max_registers: take.MaxRegisters = None
    compiler_option: take.CompilerOptions = None
    use_fast_math: take.FastMath = False

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

    entry: take.Entry = None
    grid: take.Grid = None
    block: take.Block = None
    arg: take.Arguments = None
    arg_file: take.ArgumentFile = None
    const: take.Constants = None
    shared: take.Shared = None
    cluster: take.Cluster = None
    config: take.Config = None

    def given(self) -> dict[str, Any]:
        """The keyword arguments for `drywarp.analyze` and similar functions. Raises UsageError for malformed values."""
        return {
            "entry": self.entry,
            "grid": self.grid,
            "block": self.block,
            "args": {**argument_file(self.arg_file), **pairs(self.arg, "--arg")},
            "constants": pairs(self.const, "--const"),
            "shared": self.shared,
            "cluster": self.cluster,
            "defines": self.macros,
            "includes": tuple(self.include or ()),
            "std": self.std,
            "max_registers": self.max_registers,
            "compiler_options": self.others,
            "config": self.config,
        }

    @property
    def stated(self) -> dict[str, Any]:
        """The entries of `given` that the user set."""
        return {name: value for name, value in self.given().items() if value not in (None, (), {})}


@dataclass(frozen=True)
class RunOptions:
    """How blocks are chosen and emulated, and how they are simulated."""

    PANEL: ClassVar = "Emulation and simulation"

    warm_l2: take.WarmL2 = False
    blocks: take.Blocks = None
    confidence: take.Confidence = None
    static: take.Static = False
    full_simulation: take.FullSimulation = False
    full_emulation: take.FullEmulation = False
    seconds: take.Seconds = None
    jobs: take.Jobs = None
    lane_steps: take.LaneSteps = 2e9
    recorded_accesses: take.RecordedAccesses = 4e7
    strict: take.Strict = False

    def settings(self) -> dict[str, Any]:
        """The fields of `drywarp.Options`, except the limits. Raises UsageError for malformed values."""
        return {
            "warm_l2": self.warm_l2,
            "blocks": parse_blocks(self.blocks),
            "confidence": self.confidence,
            "static": self.static,
            "full_simulation": self.full_simulation,
            "full_emulation": self.full_emulation,
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

    clock: take.Clock = None
    scheduler: take.Scheduler = None
    profile: take.ProfileFile = None
    memory: take.Mapper = None

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

    trip: take.Trips = None
    taken: take.Taken = None
    access: take.Access = None

    def __bool__(self) -> bool:
        return bool(self.trip or self.taken or self.access)

    def settings(self) -> dict[str, Any]:
        """The fields of `drywarp.Options`. Raises UsageError for malformed values."""
        return {
            "trips": parse_trips(self.trip),
            "taken": parse_shares(self.taken),
            "access": pairs(self.access, "--access"),
        }


# Options that many verbs share, declared once as a dataclass and expanded on each verb's command line.

R = TypeVar("R")


def spread(command: Callable[..., R]) -> Callable[..., R]:
    """Expand each parameter whose type is a dataclass into one option per field.

    The fields are typer parameters (see `options`); `PANEL` is their heading in --help. The command receives
    the dataclass instance built from them.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hints[name] for name in inspect.signature(command).parameters if is_dataclass(hints[name])}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameters += (
            _of_fields(groups[name]) if name in groups else [parameter.replace(annotation=take.as_flag(hints[name]))]
        )

    @wraps(command)
    def run(**given: Any) -> R:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        return command(**given, **made)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters], return_annotation=hints.get("return")
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": hints.get("return")}
    return run


def _of_fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            f.name,
            kind,
            default=None if f.default is MISSING else f.default,
            annotation=_in_panel(hints[f.name], group.PANEL),
        )
        for f in fields(group)
    ]


def _in_panel(hint: Any, panel: str) -> Any:
    """The same option, placed in the named panel of --help."""
    option = copy(hint.__metadata__[0])
    option.rich_help_panel = panel
    return take.as_flag(Annotated[hint.__origin__, option])
