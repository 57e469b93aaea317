"""`python -m benchmarks.accuracy`: keep rows, write the pages, find what has moved."""

from __future__ import annotations

import sys
from multiprocessing import Pool
from pathlib import Path
from typing import Annotated

import typer

from .counts import keep as keep_counts
from .counts import launches, of_hecbench
from .drift import accept, frozen, moved, predicted
from .pages import pages
from .rows import of_output, sets, write

PAGES = Path(__file__).parents[2] / "docs" / "accuracy"
program = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True)


@program.command()
def keep(
    name: Annotated[str, typer.Argument(metavar="SET", help="A name in sets.toml.")],
    output: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The output of the set's command.")],
    names: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="The validated table: its column `case` names rows."),
    ] = None,
) -> None:
    """Keep the rows of a set."""
    if name not in (known := [one.name for one in sets()]):
        raise typer.BadParameter(f"{name}: expected one of {', '.join(known)}")
    try:
        rows = of_output(output, names)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    print(f"{write(name, rows)}: {len(rows)} rows")


@program.command()
def count(
    sources: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="HeCBench's programs.")],
    seconds: Annotated[int, typer.Option(help="Leave out a kernel that takes longer.")] = 60,
) -> None:
    """Count other people's kernels again, for the frozen sample."""
    kept: list[dict[str, str]] = []
    for entry in launches():
        # A process each: it ends with its memory, and when its time is over.
        with Pool(1) as pool:
            try:
                rows = pool.apply_async(of_hecbench, (sources, entry)).get(seconds)
            except Exception as error:
                print(f"{entry['file']}: {error or type(error).__name__}", file=sys.stderr)
                continue
        kept += rows
        print(f"{entry['file']}: {len(rows)} groups", file=sys.stderr)
    print(f"{keep_counts(kept)}: {len(kept)} groups")


@program.command(name="pages")
def write_pages() -> None:
    """Write docs/accuracy/ from all kept rows."""
    PAGES.mkdir(exist_ok=True)
    for name, text in pages():
        (PAGES / name).write_text(text, encoding="utf-8")


@program.command(name="moved")
def find_moved(
    accepted: Annotated[bool, typer.Option("--accept", help="Freeze the predictions as they are now.")] = False,
    jobs: int | None = None,
) -> None:
    """Predict the frozen sample again; exit with status 1 if a prediction has moved by more than 0.5 %."""
    now = predicted(jobs)
    lines = list(moved(frozen(), now)) if not accepted else []
    print(*lines, f"{len(now)} predictions, {len(lines)} moved", sep="\n")
    if accepted:
        accept(now)
    elif lines:
        print("accept them with --accept and say why in CHANGELOG.md", file=sys.stderr)
        raise typer.Exit(1)


if __name__ == "__main__":
    program(prog_name="python -m benchmarks.accuracy")
