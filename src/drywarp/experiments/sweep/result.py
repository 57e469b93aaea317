"""The result of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...errors import UsageError
from ...frontends.cache import tool_versions
from ...support.by_name import figures, notebook
from ...support.folders import write_file
from ..rows.row_file import RowFile, check_suffix
from .prune import Pruned, prune, ranked
from .row import SweepRow, form_of, single, tuner_files
from .space import Cell, Optimisation
from .study import Study, studies

SCHEMA_VERSION = 2


def check_target(path: Path, out: Path | None = None) -> None:
    """Raise UsageError, before a sweep, if `write_rows` could not write this file or it is the sweep's own `out`."""
    check_suffix(path)
    if not path.parent.is_dir():
        raise UsageError(f"{path}: cannot be written (no folder {path.parent})")
    if path.is_dir():
        raise UsageError(f"{path}: cannot be written (it is a folder)")
    if out is not None and path.resolve() == out.resolve():
        raise UsageError(f"{path}: is --out, which holds all rows (expected another --kept)")


def write_rows(path: Path, found: SweepResult, rows: Sequence[SweepRow]) -> None:
    """Write these rows of a sweep to a separate file (.csv, .jsonl or .parquet), replacing an existing one atomically.

    Raises UsageError if another process is writing to it.
    """
    with RowFile(path, form_of(found.parameters, found.models, found.band, found.benefits)) as file:
        file.replace(rows)


@dataclass(frozen=True)
class SweepResult:
    """Every configuration of a space in canonical order: by GPU, with the last parameter varying fastest.

    `notes` are remarks about the run. `there` counts the rows that the output file already held; `seconds` is wall
    time. `problem` are the parameters that must be equal for configurations to compete. `kernel` is the kernel's name,
    or its file's. `optimisations` and `steps` are the space's.
    """

    space: str
    rows: tuple[SweepRow, ...]
    parameters: tuple[str, ...]
    models: tuple[str, ...]
    problem: tuple[str, ...] = ()
    band: bool = False
    benefits: bool = False
    optimisations: Mapping[str, Optimisation] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    there: int = 0
    seconds: float = 0.0
    kernel: str = ""
    tools: Mapping[str, str] = field(default_factory=tool_versions)

    @cached_property
    def failed(self) -> dict[str, int]:
        """How many configurations failed, by reason, most frequent first."""
        return dict(Counter(row.reason for row in self.rows if not row.ok).most_common())

    def best(self, k: int = 1, gpu: str | None = None, **problem: Cell) -> list[SweepRow]:
        """The `k` rows predicted fastest, on all GPUs or one, optionally at these parameter values."""
        rows = [row for row in self.rows if all(row.parameters[name] == value for name, value in problem.items())]
        return ranked([row for row in rows if gpu in (None, row.gpu)])[:k]

    @cached_property
    def _compared(self) -> tuple[tuple[Study, ...], dict[str, str]]:
        if not self.benefits:
            raise UsageError("the sweep has no potential benefits (expected --benefits)")
        return studies(self.rows, self.problem, self.optimisations, self.steps)

    @property
    def studies(self) -> tuple[Study, ...]:
        """GPUPerf's benefits by GPU and problem, where the baseline has a time. UsageError if not asked for."""
        return self._compared[0]

    @property
    def not_compared(self) -> dict[str, str]:
        """Why there is no study, by GPU and problem."""
        return self._compared[1]

    def figure(self, name: str, **settings: Any) -> Any:
        """A chart of the potential benefits as a Matplotlib figure (docs/benefits.md): `theme`, and `width` in inches.

        `name` is ``steps``, ``variants``, ``alone``, or an optimisation. Raises UsageError for several GPUs or
        problems.
        """
        if len(self.studies) + len(self.not_compared) > 1:
            raise UsageError(f"figure {name}: expected a sweep of one GPU and one problem")
        if not self.studies:
            raise UsageError(f"figure {name}: {next(iter(self.not_compared.values()))}")
        return figures().study(self.studies[0], name, **settings)

    def prune(self, share: float) -> Pruned:
        """The best `share` (0.05 is 5 %) of each GPU's configurations, with the expected regret."""
        return prune(self.rows, share, self.problem)

    def export(self, path: str | Path, form: str = "kernel-tuner") -> None:
        """Write all rows for another tuner: its cache (``kernel-tuner``), or ``t4`` results with a metadata file.

        Raises UsageError for several GPUs or problems, and if a file cannot be written.
        """
        versions = {"drywarp": __version__, **self.tools}
        rows = single(self.rows, self.problem)
        for suffix, text in tuner_files(rows, self.kernel, self.problem, form, versions).items():
            write_file(Path(path).with_name(Path(path).stem + suffix), text)

    def columns(self) -> tuple[str, ...]:
        """The names of a row's cells."""
        return form_of(self.parameters, self.models, self.band, self.benefits).columns

    def cells(self, rows: Sequence[SweepRow] | None = None) -> list[dict[str, Any]]:
        """Rows in tabular form: a value or None for each of `columns`."""
        form = form_of(self.parameters, self.models, self.band, self.benefits)
        return [dict(form.cells(row)) for row in (self.rows if rows is None else rows)]

    def to_pandas(self) -> Any:
        """All rows as a pandas data frame. Raises UsageError if pandas is not installed."""
        return notebook().frame_of(self.cells())

    def to_dict(self, prune_share: float | None = None, best: int | None = None) -> dict[str, Any]:
        """The documented JSON object (docs/json.md): all rows, the best ones, or those kept by pruning.

        If nothing was predicted, nothing is pruned.
        """
        pruned = None if prune_share is None or not any(row.ok for row in self.rows) else self.prune(prune_share)
        rows = self.rows if best is None else self.best(best)
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": {"drywarp": __version__, **self.tools},
            "space": self.space,
            "models": list(self.models),
            "configurations": {"total": len(self.rows), "predicted": sum(row.ok for row in self.rows)},
            "failed": self.failed,
            "notes": list(self.notes),
            "seconds": self.seconds,
            "benefits": [study.to_dict() for study in self.studies] if self.benefits else None,
            "rows": self.cells(rows if pruned is None else pruned.rows),
            "pruned": None if pruned is None else pruned.to_dict(),
        }
