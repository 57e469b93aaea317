"""The command line: the verbs, and the one place where errors become exit statuses.

Exit status 0: success; 1: a comparison or check failed; 2: incorrect usage or bad input, with one line on
standard error.
"""

from __future__ import annotations

import codecs
import gc
import io
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from ..errors import CompileError, DrywarpError, InterruptedRunError
from ..support.folders import OutOfTimeError, packaged_rows, stop
from ..support.text import in_other_words
from .options import Shown, as_command, without_validators

INTERRUPTED = InterruptedRunError.exit_status

VERBS = {row["verb"]: row for row in packaged_rows(Path(__file__).with_name("verbs.csv"))}
"""By its name, the row of each verb. Its module is imported when it is called, and its help needs no import."""
TAKES_A_COMMAND = {"allow_interspersed_args": False}
"""For `run`: everything after the program belongs to the program."""


def command_of(verb: str) -> Callable[..., object]:
    """The function that runs a verb, with all its options as parameters."""
    module = import_module(f".{VERBS[verb]['module']}", __package__)
    return as_command(verb, getattr(module, f"{verb.replace('-', '_')}_command"), bool(VERBS[verb]["compiles"]))


def app_for(arguments: list[str]) -> typer.Typer:
    """The application with the verb that a command line names, or with all for shell completion; else their list."""
    named = next((argument for argument in arguments if not argument.startswith("-")), "")
    if any(variable.endswith("_DRYWARP_COMPLETE") for variable in os.environ):
        return whole_app()
    return _app([named]) if named in VERBS else _app([])


def whole_app() -> typer.Typer:
    """The application with all verbs and their options."""
    return _app(list(VERBS))


def _app(verbs: list[str]) -> typer.Typer:
    """The application with the given verbs; without any, with a placeholder for each, which is enough to list them."""
    app = typer.Typer(
        name="drywarp",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Plain text for the list of verbs: loading what draws panels takes longer than all else.
        rich_markup_mode="rich" if verbs else None,
        help="Dry-run a GPU kernel: predict its time, occupancy and limiter on a named GPU, with no GPU needed.",
    )
    app.callback()(as_command("", _options))
    for verb in verbs:
        app.command(name=verb, context_settings=TAKES_A_COMMAND if verb == "run" else None)(command_of(verb))
    for verb, row in VERBS.items() if not verbs else ():
        app.command(name=verb, short_help=row["help"])(_nothing)
    return app


def _nothing() -> None:
    """Placeholder for a verb that is only listed, not run."""


def _options(version: bool = False, verbose: bool = False) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    Shown.whole_logs = False
    try:
        command = without_validators(get_command(app_for(arguments)))
        status = command(arguments or ["--help"], standalone_mode=False, prog_name="drywarp")
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
    # Imports make many objects and next to no cycles: by default, looking for those takes a twentieth of a short run.
    gc.set_threshold(100_000)
    # NumPy's linear algebra, here used for small matrices only, starts a thread on each core when it is loaded.
    # A program under `drywarp run` keeps its environment.
    if sys.argv[1:2] != ["run"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    codecs.register_error(in_other_words.__name__, in_other_words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=in_other_words.__name__)
    status = run(sys.argv[1:])
    if status == INTERRUPTED:
        # Python notes an interrupt that leaves code run from text (named tuples at import time), and would end with the
        # signal instead of the status; running some text again clears that note.
        exec("pass")
    gc.freeze()  # the process ends: nobody need look for cycles once more
    sys.exit(status)
