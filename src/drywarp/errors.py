"""Every error that drywarp raises deliberately, with the exit status it maps to.

All errors share the base class `DrywarpError`, so callers need to catch only that one. The command line
prints the error's text as one line on standard error. That line names the file, the line number if there
is one, and what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping


class DrywarpError(Exception):
    """Base class of all drywarp errors; `exit_status` is the exit status of the command line."""

    exit_status = 2


class UsageError(DrywarpError):
    """Incorrect usage: an unknown name, an unsuitable argument, a launch that exceeds the limits."""


class InputFileError(DrywarpError):
    """An unusable file; the message names the file, the line or key, and what was expected."""


class CompileError(DrywarpError):
    """The compiler rejected the source; the message is the first one that the compiler printed."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class ToolError(DrywarpError):
    """A tool that drywarp runs (NVRTC, nvdisasm) is missing or failed in a way that is not the user's."""


class EmulationError(DrywarpError):
    """The emulation cannot continue: an access outside every buffer, an unknown opcode.

    `space` names the memory of an access out of bounds, such as ``shared``.
    """

    def __init__(self, message: str, space: str = "") -> None:
        super().__init__(message)
        self.space = space


class InterruptedRunError(DrywarpError):
    """The user or the system interrupted a resumable run; the message states what was saved."""

    exit_status = 130


class StarvationError(EmulationError):
    """Threads spin on a condition that no emulated thread satisfies; blocks that were not emulated might."""


class UnsupportedInstructionError(EmulationError):
    """An opcode that the emulator does not implement; it is never skipped silently."""


class EmulationLimitError(EmulationError):
    """The emulation reached a limit; the message names the loop that was running, and the option that raises the limit.

    `limit` and `option` are these in words. `spins`: threads were waiting for others, so that a higher limit may not
    help. `iterations` says how often the loops had run by then, by the number of their first basic block, where no
    block of the grid had ended.
    """

    def __init__(self, message: str, limit: str = "", option: str = "", spins: bool = False) -> None:
        super().__init__(message)
        self.limit, self.option, self.spins = limit, option, spins
        self.iterations: Mapping[int, int] = {}
