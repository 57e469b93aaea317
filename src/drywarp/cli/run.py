"""`drywarp run`: a whole program, with no GPU."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import UsageError
from .groups import CompilerFlags
from .values import parse_clock


@dataclass(frozen=True)
class WhichLaunches:
    """Which launches are emulated, and which are predicted."""

    PANEL: ClassVar = "Which launches"

    emulate_steps: int | None = None
    emulate_total: int | None = None
    only: str | None = None
    skip: int = 0
    launches: int | None = None
    predictions: int | None = None
    sampled: bool = False

    def settings(self) -> dict[str, Any]:
        """The fields of a `ProgramRequest`. Raises UsageError for malformed values."""
        from ..program.asked import LAUNCH_STEPS, TOTAL_STEPS
        from ..program.estimates import PREDICTIONS, Choice

        for value, option in ((self.emulate_steps, "--emulate-steps"), (self.emulate_total, "--emulate-total")):
            if value is not None and value < 0:
                raise UsageError(f"{option} {value}: expected a number of warp instructions, or 0 to emulate nothing")
        try:
            only = None if self.only is None else re.compile(self.only)
        except re.error as error:
            raise UsageError(f"--only {self.only}: {error} (expected a regular expression)") from None
        return {
            "launch_steps": LAUNCH_STEPS if self.emulate_steps is None else self.emulate_steps,
            "total_steps": TOTAL_STEPS if self.emulate_total is None else self.emulate_total,
            "choice": Choice(only, self.skip, self.launches),
            "sampled": self.sampled,
            "predictions": PREDICTIONS if self.predictions is None else self.predictions,
        }


def run_command(
    command: list[str],
    *,
    which: WhichLaunches,
    gpu: str = "a100",
    devices: int = 1,
    clock: str | None = None,
    virtual_clock: bool = False,
    build: CompilerFlags,
    jobs: int | None = None,
    check: bool = False,
    keep: str | None = None,
    output: str | None = None,
    json: str | None = None,
    html: str | None = None,
    trace: str | None = None,
) -> int:
    """Run a CUDA program unchanged, with no GPU: emulate each launch for correct results, and predict its time.

    The program runs with your permissions; the report goes to standard error.
    Exit status: the program's, or 1 if that is 0 and --check found something.
    """
    for name in filter(None, (output, json, html, trace)):
        if not Path(name).absolute().parent.is_dir():
            raise UsageError(f"{name}: its folder does not exist")
    from ..frontends.cuda import CudaOptions
    from ..program.asked import quiet_options
    from ..program.server import ProgramRequest, run_program
    from ..report.html.page import program_page
    from ..report.program import render_program
    from ..report.text import json_text
    from ..report.trace import write_program_trace

    own = CudaOptions(build.macros, tuple(build.include or ()), build.std, build.max_registers).flags()
    request = ProgramRequest(
        tuple(command),
        gpu,
        quiet_options(clock_mhz=parse_clock(clock)),
        virtual_clock=virtual_clock,
        build=(*own, *shlex.split(" ".join(build.others))),
        keep=Path(keep) if keep else None,
        behind=html is not None,
        check=check,
        devices=devices,
        **which.settings(),
    )
    run = run_program(request)
    if json:
        Path(json).write_text(json_text(run.to_dict()), encoding="utf-8")
    if html:
        Path(html).write_text(program_page(run), encoding="utf-8")
    if trace:
        write_program_trace(run, Path(trace))
    if output:
        Path(output).write_text(render_program(run), encoding="utf-8")
    else:
        sys.stderr.write(f"\n{render_program(run)}")
    return run.exit_status
