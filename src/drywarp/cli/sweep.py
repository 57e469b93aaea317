"""`drywarp sweep`: every configuration of a space, predicted."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InterruptedRunError, UsageError
from . import options as take
from .progress import rated
from .values import check_positive

if TYPE_CHECKING:
    from ..sweeps import SweepResult, SweepRow


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="sweep")(command)


def command(
    space: Annotated[str, typer.Argument(help="The space: kernel, parameters, restrictions, launch.", metavar="TOML")],
    gpu: Annotated[str | None, typer.Option(help="GPUs instead of the space's: a100,h100.", metavar="NAMES")] = None,
    out: Annotated[
        str | None,
        typer.Option(help="Write rows as they are done (.csv, .jsonl, .parquet); go on from there.", metavar="FILE"),
    ] = None,
    prune: Annotated[
        float | None,
        typer.Option(help="Keep this share, to try on hardware, and say what is lost by it.", metavar="SHARE"),
    ] = None,
    kept: Annotated[
        str | None, typer.Option(help="With --prune: write the configurations that are kept.", metavar="FILE")
    ] = None,
    best: Annotated[int, typer.Option(help="Show so many of each GPU's best configurations.", min=1)] = 10,
    jobs: Annotated[int | None, typer.Option(help="Configurations side by side; all cores unless said.", min=1)] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Dask scheduler whose workers predict: tcp://host:8786.", metavar="ADDRESS")
    ] = None,
    band: Annotated[bool, typer.Option("--band", help="The confidence band of every row too; takes longer.")] = False,
    time_limit: Annotated[float, typer.Option(help="Seconds that one configuration may take.", metavar="S")] = 300.0,
    restart: Annotated[bool, typer.Option("--restart", help="Discard the rows that --out holds.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Predict rows that failed again.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Only count the configurations.")] = False,
    json: take.Json = False,
) -> None:
    """Predict every configuration of a space of macros, blocks, register caps, arguments and GPUs."""
    check_positive(time_limit, "--time-limit")
    if kept is not None and prune is None:
        raise UsageError("--kept needs --prune, as in --prune 0.05")
    from ..sweeps import check_target, count_of, sweep, write_rows

    if count:
        print(count_of(space, gpu))
        return
    if prune is not None and not 0 < prune <= 1:
        raise UsageError(f"--prune {prune:g}: expected a share above 0 and up to 1, as 0.05")
    if kept is not None:
        check_target(Path(kept), Path(out) if out else None)
    latest = (0, 0)
    with _terminated(), _progress() as tell:

        def on_row(row: SweepRow, done: int, of: int) -> None:
            nonlocal latest
            latest = (done, of)
            tell(_line(row), done, of)

        try:
            found = sweep(
                space,
                gpus=gpu,
                out=out,
                jobs=jobs,
                scheduler=scheduler,
                band=band,
                time_limit_s=time_limit,
                restart=restart,
                retry_failed=retry_failed,
                on_row=on_row,
                on_note=lambda note: print(f"drywarp: {note}", file=sys.stderr, flush=True),
            )
        except KeyboardInterrupt:
            done, of = latest
            end = f"{out} keeps them, and the same command goes on" if out else "none is kept (expected --out FILE)"
            raise InterruptedRunError(f"interrupted after {done} of {of or '?'} rows; {end}") from None
    _show(found, prune, best, json)
    if kept is not None and prune is not None:
        write_rows(Path(kept), found, found.prune(prune).rows)


def _line(row: SweepRow) -> str:
    from ..report.units import time_text

    said = " ".join(f"{name}={value}" for name, value in row.parameters.items())
    return f"{row.gpu} {said}: " + (f"failed: {row.reason}" if row.time_s is None else time_text(row.time_s))


def _show(found: SweepResult, prune: float | None, best: int, json: bool) -> None:
    if json:
        from ..report.json_text import json_text

        sys.stdout.write(json_text(found.to_dict(prune)))
        return
    from rich.console import Console

    from ..report.sweep import render_sweep

    Console(highlight=False).print(render_sweep(found, best, prune), soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Rate and time left where a person looks on; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, of: None
        return
    with rated() as tell:
        yield tell


@contextmanager
def _terminated() -> Iterator[None]:
    """A polite end is one as by Ctrl-C: workers are stopped and files closed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
