"""`drywarp run`: a whole program, with no GPU."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ..errors import UsageError
from . import options as take
from .groups import CompilerFlags
from .options import parse_clock


@dataclass(frozen=True)
class WhichLaunches:
    """Which launches are emulated, and which are predicted."""

    PANEL: ClassVar = "Which launches"

    emulate_steps: Annotated[
        int | None,
        typer.Option(help="Maximum warp instructions to emulate per launch; longer launches are sampled.", metavar="N"),
    ] = None
    emulate_total: Annotated[
        int | None, typer.Option(help="Maximum warp instructions to emulate in the whole program.", metavar="N")
    ] = None
    only: Annotated[
        str | None,
        typer.Option(
            help="Predict only launches of kernels whose name matches, like ncu -k regex:REGEX.", metavar="REGEX"
        ),
    ] = None
    skip: Annotated[
        int, typer.Option(help="Of those launches, skip the first N, like ncu --launch-skip.", metavar="N", min=0)
    ] = 0
    launches: Annotated[
        int | None,
        typer.Option(help="Predict at most N launches, like ncu --launch-count.", metavar="N", min=1),
    ] = None
    predictions: Annotated[
        int | None,
        typer.Option(
            help="Different launches of a kernel to predict before others are estimated from them; 0 predicts each.",
            metavar="N",
            min=0,
        ),
    ] = None
    sampled: Annotated[
        bool, typer.Option("--sampled", help="Emulate only those launches whose results the host reads.")
    ] = False

    def settings(self) -> dict[str, Any]:
        """The fields of a `ProgramRequest`. Raises UsageError for malformed values."""
        from ..program.keep import PREDICTIONS, Choice
        from ..program.launches import LAUNCH_STEPS, TOTAL_STEPS

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
    command: Annotated[
        list[str],
        typer.Argument(help="The program and its arguments; a .cu file is built first.", metavar="PROGRAM [ARGS]..."),
    ],
    *,
    which: WhichLaunches,
    gpu: take.GpuName = "a100",
    devices: Annotated[
        int, typer.Option(help="Number of these GPUs that the program sees.", metavar="N", min=1, max=16)
    ] = 1,
    clock: take.Clock = None,
    virtual_clock: Annotated[
        bool,
        typer.Option("--virtual-clock", help="Make the host's clocks show predicted time instead of emulation time."),
    ] = False,
    build: CompilerFlags,
    jobs: take.Jobs = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Look for errors that a GPU would not report; exit status 1 if there are any."),
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(help="Write each distinct launch, with the memory it touches, to this folder.", metavar="DIR"),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write the report to this file instead of standard error.", metavar="FILE"),
    ] = None,
    json: Annotated[str | None, typer.Option(help="Write the result as JSON.", metavar="FILE")] = None,
    html: Annotated[
        str | None,
        typer.Option(help="Write an HTML page: the timeline of streams, and a report on each kernel.", metavar="FILE"),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(help="Write the timeline for Perfetto, with a track for each stream.", metavar="FILE")
    ] = None,
) -> int:
    """Run a CUDA program unchanged, with no GPU: emulate each launch for correct results, and predict its time.

    The program runs with your permissions; the report goes to standard error.
    Exit status: the program's, or 1 if that is 0 and --check found something.
    """
    for name in filter(None, (output, json, html, trace)):
        if not Path(name).absolute().parent.is_dir():
            raise UsageError(f"{name}: its folder does not exist")
    from ..frontends.cuda import CudaOptions
    from ..program.launches import quiet_options
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
