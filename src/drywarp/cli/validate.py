"""Many kernels: `drywarp validate` predicts each row of a table of measurements, `corpus` each file of a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import UsageError
from .groups import AS_TYPED
from .output import check_plot, print_json, print_text, write_plot
from .progress import counter, rated, resumable
from .values import check_positive, pairs, parse_blocks

if TYPE_CHECKING:
    from ..experiments.corpus.result import Row
    from ..experiments.validate.accuracy import ValidationReport
    from ..experiments.validate.compare import RatioReport
    from ..experiments.validate.row import RowResult


@dataclass(frozen=True)
class RowLaunchOptions:
    """How a row of the table becomes a launch; texts may be expressions over its columns."""

    PANEL: ClassVar = "Kernel and launch (may refer to columns)"

    kernel: str | None = None
    entry: str | None = None
    grid: str | None = None
    block: str | None = None
    arg: list[str] | None = None
    const: list[str] | None = None
    shared: str | None = None
    cluster: str | None = None
    macros: str | None = None
    define: list[str] | None = None
    include: list[str] | None = None
    std: str | None = None
    compiler_option: list[str] | None = None
    max_registers: str | None = None
    config: str | None = None
    clock: str | None = None

    def given(self) -> dict[str, Any]:
        """The keyword arguments of `validate`. Raises UsageError for malformed values."""
        return {
            **{name: getattr(self, name) for name in (*AS_TYPED, "clock")},
            "kernel": None if self.kernel is None else Path(self.kernel),
            "args": pairs(self.arg, "--arg"),
            "constants": pairs(self.const, "--const"),
            "macros": None if self.macros is None else [name for name in self.macros.split(",") if name],
            "defines": pairs(self.define, "-D", value_needed=False),
            "includes": self.include or (),
            "compiler_options": tuple(self.compiler_option or ()),
        }


@dataclass(frozen=True)
class RowChoiceOptions:
    """Which rows of the table are used."""

    PANEL: ClassVar = "Rows of the table"

    time: str | None = None
    where: str | None = None
    rows: int | None = None
    split: str | None = None
    like: str | None = None


def validate_command(
    tables: list[str],
    *,
    launch: RowLaunchOptions,
    choice: RowChoiceOptions,
    gpu: str = "a100",
    models: str | None = None,
    out: str | None = None,
    jobs: int | None = None,
    time_limit: float = 300.0,
    seconds: float | None = None,
    scheduler: str | None = None,
    warm_l2: bool = False,
    blocks: str | None = None,
    full_simulation: bool = False,
    report: bool = False,
    compare: bool = False,
    worst: int = 5,
    plot: str | None = None,
    figure_theme: str | None = None,
    json: bool = False,
) -> None:
    """Predict every row of a table of measurements, and report the prediction errors."""
    wanted = _names(models)
    check_plot(plot, figure_theme)
    if compare:
        _compare(tables, json, plot)
        return
    if len(tables) != 1:
        raise UsageError(f"{len(tables)} tables, expected one (two with --compare)")
    from ..experiments.rows import Settings
    from ..experiments.validate import report_again, validate

    check_positive(time_limit, "--time-limit")
    if report:
        if launch.kernel is not None:
            raise UsageError("--report reads an output of this verb: it cannot be combined with --kernel")
        found = report_again(tables[0], split=choice.split, models=wanted)
    else:
        settings = Settings(
            warm_l2=warm_l2, scheduler=scheduler, blocks=parse_blocks(blocks), full_simulation=full_simulation
        )
        with rated() as shown, resumable(shown, out) as tell:
            found = validate(
                tables[0],
                gpu=gpu,
                **launch.given(),
                **vars(choice),
                models=wanted,
                out=out,
                jobs=jobs,
                time_limit_s=time_limit,
                settings=settings,
                on_row=lambda row, done, of: tell(_line(row), done, of),
            )
    write_plot(found, plot, figure_theme)
    _show(found, worst, json)
    if out is not None and not json:
        print(f"\nthe same report without predicting: drywarp validate --report {out}")


def _names(models: str | None) -> list[str] | None:
    return None if models is None or models == "all" else [name for name in models.split(",") if name]


def _line(row: RowResult) -> str:
    from ..support.text import time_text

    if not row.ok:
        return f"row {row.row} failed: {row.reason}"
    primary = next(iter(row.times.values()), None)
    said = "no prediction" if primary is None else time_text(primary)
    return f"row {row.row}: {said} predicted, {time_text(row.measured_s)} measured"


def _show(report: ValidationReport, worst: int, json: bool) -> None:
    if json:
        print_json(report.to_dict(worst))
        return
    from ..report.validation import render_validation

    print_text(render_validation(report, worst))


def _compare(tables: list[str], json: bool, plot: str | None) -> None:
    if len(tables) != 2:
        raise UsageError(f"--compare: {len(tables)} files, expected two outputs of this verb")
    if plot is not None:
        raise UsageError("--plot cannot be combined with --compare")
    from ..experiments.validate.compare import compare_rows

    report: RatioReport = compare_rows(tables[0], tables[1])
    if json:
        print_json(report.to_dict())
        return
    from ..report.validation import render_ratios

    print_text(render_ratios(report))


# `drywarp corpus`: every kernel in a folder.


def corpus_command(
    folder: str,
    *,
    gpu: str = "a100",
    jobs: int | None = None,
    time_limit: float = 60.0,
    static_limit: float = 15.0,
    memory_limit: float = 4.0,
    define: list[str] | None = None,
    include: list[str] | None = None,
    std: str | None = None,
    compiler_option: list[str] | None = None,
    rows: str | None = None,
    json: bool = False,
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
