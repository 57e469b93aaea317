"""The command line: the verbs, and the one place where errors become exit statuses.

Exit status 0: success; 1: a comparison or check failed; 2: incorrect usage or bad input, with one line on
standard error.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from .._version import __version__
from ..errors import CompileError, DrywarpError, InterruptedRunError
from ..support.folders import OutOfTimeError, stop
from ..support.text import in_other_words
from . import analyze, calibrate, compare, corpus, counts, lists, measure, papers, serve, sweep, upkeep, validate
from .groups import spread
from .options import Shown, Verbose, with_verbose

INTERRUPTED = InterruptedRunError.exit_status

app = typer.Typer(
    name="drywarp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Dry-run a GPU kernel: predict its time, occupancy and limiter on a named GPU, with no GPU needed.",
)

DOES_NOT_COMPILE = {
    upkeep.doctor_command,
    upkeep.cache_command,
    lists.gpus_command,
    lists.workloads_command,
    lists.explain_command,
    papers.reproduce_command,
    papers.profile_command,
    counts.import_ncu_command,
}

for verb in (
    analyze.analyze_command,
    lists.list_command,
    lists.gpus_command,
    upkeep.doctor_command,
    upkeep.cache_command,
    papers.models_command,
    papers.profile_command,
    counts.counts_command,
    counts.import_ncu_command,
    lists.workloads_command,
    papers.cusp_command,
    papers.reproduce_command,
    lists.explain_command,
    corpus.corpus_command,
    validate.validate_command,
    measure.measure_command,
    compare.compare_command,
    compare.rank_command,
    serve.serve_command,
    calibrate.calibrate_command,
    sweep.sweep_command,
):
    command = spread(verb) if verb in DOES_NOT_COMPILE else with_verbose(spread(verb))
    app.command(name=verb.__name__.removesuffix("_command").replace("_", "-"))(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"drywarp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    Shown.whole_logs = False
    try:
        status = app(arguments, standalone_mode=False, prog_name="drywarp")
    except CompileError as error:
        return _refused(error)
    except DrywarpError as error:
        return _complain(str(error), error.exit_status)
    except TyperException as error:
        # Usage errors name the option only in format_message.
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        return _complain(text, 2)
    except OutOfTimeError as over:
        return _complain(f"no result after {over} (--seconds)", 2)
    except (typer.Abort, KeyboardInterrupt):
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe: not our error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.filename is None:
            raise
        return _complain(f"{error.filename}: {error.strerror}", 2)
    finally:
        stop()
    return status if isinstance(status, int) else 0


def _refused(error: CompileError) -> int:
    """Print the compiler's first error in one line, and with --verbose its whole log; returns the exit status."""
    if not Shown.whole_logs:
        return _complain(re.sub(r"\(and (\d+) more\)", r"(and \1 more: --verbose)", str(error)), error.exit_status)
    status = _complain(str(error), error.exit_status)
    print(error.log.strip() or "the compiler printed nothing else", file=sys.stderr)
    return status


def _complain(message: str, status: int) -> int:
    print(f"drywarp: {' '.join(message.split())}", file=sys.stderr)
    return status


def main() -> None:
    """Entry point of the installed command."""
    codecs.register_error(in_other_words.__name__, in_other_words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=in_other_words.__name__)
    status = run(sys.argv[1:])
    if status == INTERRUPTED:
        # Python notes an interrupt that leaves code run from text (named tuples at import time), and would end with the
        # signal instead of the status; running some text again clears that note.
        exec("pass")
    sys.exit(status)
