"""`drywarp corpus`: every kernel in a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options as take
from .options import check_positive, pairs
from .output import print_json
from .progress import counter, resumable

if TYPE_CHECKING:
    from ..experiments.corpus.result import Row


def corpus_command(
    folder: Annotated[str, typer.Argument(help="Folder with .cu, .ptx, .cubin and other machine code.", metavar="DIR")],
    *,
    gpu: take.GpuName = "a100",
    jobs: take.Workers = None,
    time_limit: Annotated[float, typer.Option(help="Time limit per module, in seconds.", metavar="S")] = 60.0,
    static_limit: Annotated[
        float, typer.Option(help="Part of --time-limit for static predictions, in seconds.", metavar="S")
    ] = 15.0,
    memory_limit: Annotated[float, typer.Option(help="Memory limit per module, in GiB.", metavar="GIB")] = 4.0,
    define: take.Defines = None,
    include: take.Includes = None,
    std: take.Std = None,
    compiler_option: take.CompilerOptions = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Save each row to this file; interrupted runs resume from it.", metavar="FILE"),
    ] = None,
    json: take.Json = False,
) -> int:
    """Analyse every module in a folder, each in its own process.

    Exit status 1 if a module compiled but could not be analysed.
    """
    from ..experiments.corpus import Settings, run_corpus
    from ..report.validation import print_corpus

    check_positive(time_limit, "--time-limit")
    check_positive(static_limit, "--static-limit")
    check_positive(memory_limit, "--memory-limit")
    settings = Settings(
        jobs=jobs or os.cpu_count() or 1,
        time_limit_s=time_limit,
        static_limit_s=static_limit,
        memory_limit=int(memory_limit * 2**30),
        defines=pairs(define, "-D", value_needed=False),
        includes=tuple(include or ()),
        std=std,
        compiler_options=tuple(compiler_option or ()),
    )
    with counter() as shown, resumable(shown, rows, "--rows") as tell:

        def on_row(row: Row, done: int, of: int) -> None:
            tell(f"{row.file}: {row.status.replace('_', ' ')}", done, of)

        report = run_corpus(
            Path(folder), gpu=gpu, settings=settings, on_row=on_row, rows_file=Path(rows) if rows else None
        )
    if json:
        print_json(report.to_dict())
    else:
        print_corpus(report)
    return 0 if report.all_analysed else 1
