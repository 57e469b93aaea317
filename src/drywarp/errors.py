"""Every error that drywarp raises on purpose, and the exit status it maps to.

One base class, so that a caller catches `DrywarpError` and the command line maps it to one line on
standard error. The text of an error is that line: it names the file, the line where there is one,
and what was expected.
"""

from __future__ import annotations


class DrywarpError(Exception):
    """Base of all errors of ours; `exit_status` is what the command line ends with."""

    exit_status = 2


class UsageError(DrywarpError):
    """Wrong usage: an unknown name, an argument that does not fit, a launch beyond the limits."""


class InputFileError(DrywarpError):
    """A file that cannot be used: names the file, the line or key, and what was expected."""


class CompileError(DrywarpError):
    """The compiler refused the source; carries the compiler's own first message."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class ToolError(DrywarpError):
    """A tool that drywarp runs (NVRTC, nvdisasm) is missing or failed in a way that is not the user's."""


class EmulationError(DrywarpError):
    """The kernel did something that cannot go on: an access outside every buffer, an unknown opcode."""


class InterruptedRunError(DrywarpError):
    """The user, or the system, ended a run that can go on; says what is kept of it."""

    exit_status = 130


class StarvationError(EmulationError):
    """Threads wait in a loop for what no emulated thread does; blocks that were not emulated may do it."""


class UnsupportedInstructionError(EmulationError):
    """An opcode that the emulator does not execute; never skipped in silence."""


class EmulationLimitError(EmulationError):
    """The limits of emulation were reached; names the loop that was running."""
