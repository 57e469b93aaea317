"""The command line: the verbs, and the one place where errors become exit statuses.

Exit status 0: done; 1: a comparison or check failed; 2: wrong usage or bad input, with one line on
standard error.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from .. import __version__
from ..errors import DrywarpError
from ..time_box import OutOfTimeError, stop
from . import (
    analyze,
    cache,
    calibrate,
    compare,
    corpus,
    counts,
    cusp,
    doctor,
    explain,
    gpus,
    import_ncu,
    measure,
    models,
    rank,
    reproduce,
    serve,
    sweep,
    validate,
    workloads,
)

app = typer.Typer(
    name="drywarp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Dry-run a GPU kernel: its time, occupancy and limiter on a named GPU, with no GPU in hand.",
)
analyze.add_to(app)
gpus.add_to(app)
doctor.add_to(app)
cache.add_to(app)
models.add_to(app)
counts.add_to(app)
import_ncu.add_to(app)
workloads.add_to(app)
cusp.add_to(app)
reproduce.add_to(app)
explain.add_to(app)
corpus.add_to(app)
validate.add_to(app)
measure.add_to(app)
compare.add_to(app)
rank.add_to(app)
serve.add_to(app)
calibrate.add_to(app)
sweep.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"drywarp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    try:
        status = app(arguments, standalone_mode=False, prog_name="drywarp")
    except DrywarpError as error:
        return _complain(str(error), error.exit_status)
    except TyperException as error:
        # Usage errors name the option in format_message alone.
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        return _complain(text, 2)
    except OutOfTimeError as over:
        return _complain(f"no answer after {over} (--seconds)", 2)
    except (typer.Abort, KeyboardInterrupt):
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader of a pipe went away: not our error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    finally:
        stop()
    return status if isinstance(status, int) else 0


def _complain(message: str, status: int) -> int:
    print(f"drywarp: {' '.join(message.split())}", file=sys.stderr)
    return status


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))
