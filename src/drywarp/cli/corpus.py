"""`drywarp corpus`: every kernel of a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .progress import counter
from .values import check_positive, pairs

if TYPE_CHECKING:
    from ..corpus.result import Row


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="corpus")(command)


def command(
    folder: Annotated[str, typer.Argument(help="Folder of .cu, .ptx, .cubin and other machine code.", metavar="DIR")],
    gpu: Annotated[str, typer.Option(help="A GPU that `drywarp gpus` lists, or a GPU file (.toml).")] = "a100",
    jobs: Annotated[int | None, typer.Option(help="Modules side by side; all cores unless said.", min=1)] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds that one module may take.", metavar="S")] = 60.0,
    static_limit: Annotated[float, typer.Option(help="Seconds of it for static predictions.", metavar="S")] = 15.0,
    memory_limit: Annotated[float, typer.Option(help="Memory that one module may take.", metavar="GIB")] = 4.0,
    define: Annotated[list[str] | None, typer.Option("--define", "-D", help="Macro.", metavar="NAME[=VALUE]")] = None,
    include: Annotated[list[str] | None, typer.Option("--include", "-I", help="Folder of headers.")] = None,
    std: Annotated[str | None, typer.Option(help="C++ standard, such as c++17.")] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="File that keeps each row; a run that was stopped goes on from it.", metavar="FILE"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> int:
    """Analyse every module of a folder, each in a process of its own.

    Exit status 1 where something that compiles could not be analysed.
    """
    import os

    from ..corpus import Settings, run_corpus
    from ..report.corpus import print_corpus
    from ..report.json_text import json_text

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
    )
    with counter() as tell:

        def on_row(row: Row, done: int, of: int) -> None:
            tell(f"{row.file}: {row.status.replace('_', ' ')}", done, of)

        report = run_corpus(
            Path(folder), gpu=gpu, settings=settings, on_row=on_row, rows_file=Path(rows) if rows else None
        )
    if json:
        sys.stdout.write(json_text(report.to_dict()))
    else:
        print_corpus(report)
    return 0 if report.all_analysed else 1
