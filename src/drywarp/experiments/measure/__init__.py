"""Measures kernels on a real GPU over block sizes and occupancies, row by row into a table of times."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from ..._version import __version__
from ...errors import DrywarpError, InputFileError, UsageError
from ..device import DeviceError
from .configuration import Configuration, Occupied, SuiteKernel, configurations, occupancies, read_suite
from .row import FAILED, OK, WRONG, MeasuredFile, MeasuredLaunch
from .simulated import Prepared, Runner, Timing

POINTS, SAMPLES = 8, 15
L2 = "warm"
"""A launch finds the previous launch's data in the L2."""
_HARMLESS = ("CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
"""Errors after which the GPU remains usable."""

OnRow = Callable[[MeasuredLaunch, int, int], None]
"""Called with each new row, the number of configurations done, and the total."""
Profile = Callable[[Configuration, Occupied], Mapping[str, float]]
"""Counters of a launch by Nsight Compute's names; empty if there are none."""


@dataclass(frozen=True)
class Measured:
    """All rows of the table, and how many of them it already held."""

    rows: tuple[MeasuredLaunch, ...]
    before: int

    def count(self, status: str) -> int:
        """The number of rows with a status."""
        return sum(row.status == status for row in self.rows)


def measure(
    suite: str | Path,
    out: str | Path,
    runner: Runner,
    *,
    only: Sequence[str] = (),
    small: bool = False,
    points: int = POINTS,
    profile: Profile | None = None,
    on_row: OnRow = lambda row, done, of: None,
) -> Measured:
    """Measure the kernels of a suite's folder on a runner, and append each row to `out` (.csv) as it is done.

    `only` are names of kernels or TOML files, with ``*`` as a wildcard; `small` uses the suite's small sizes; `points`
    is the most occupancies per block size. Rows already in `out` are not measured again. Raises DrywarpError for an
    unusable suite or table, and if the GPU fails permanently.
    """
    table = Path(out)
    if table.suffix != ".csv":
        raise UsageError(f"{table}: expected a name that ends in .csv")
    wanted = [c for kernel in _chosen(read_suite(Path(suite)), only) for c in configurations(kernel, small=small)]
    with MeasuredFile(table) as file:
        there = {row.key: row for row in file.rows()}
        run = _Run(runner, table, points, profile)
        for row in there.values():
            run.check(row)
        rows = list(there.values())
        for done, configuration in enumerate(wanted, 1):
            for row in run.rows(configuration, there):
                file.append(row)
                rows.append(row)
                on_row(row, done, len(wanted))
    return Measured(tuple(rows), len(there))


def _chosen(kernels: Sequence[SuiteKernel], only: Sequence[str]) -> list[SuiteKernel]:
    for pattern in only:
        if not any(_matches(kernel, pattern) for kernel in kernels):
            names = ", ".join(kernel.entry.name for kernel in kernels)
            raise UsageError(f"--only {pattern}: the suite has no such kernel; it has: {names}")
    return [k for k in kernels if not only or any(_matches(k, pattern) for pattern in only)]


def _matches(kernel: SuiteKernel, pattern: str) -> bool:
    return fnmatchcase(kernel.entry.name, pattern) or fnmatchcase(kernel.group, pattern)


@dataclass(frozen=True)
class _Run:
    runner: Runner
    table: Path
    points: int
    profile: Profile | None

    def check(self, row: MeasuredLaunch) -> None:
        """Check that a row is of the same device: a table holds rows of only one."""
        mine = (self.runner.device, self.runner.driver)
        if (row.device, row.driver) != mine:
            raise InputFileError(
                f"{self.table}: holds rows of {row.device} ({row.driver}), this is {mine[0]} ({mine[1]}): "
                "expected another -o"
            )

    def rows(
        self, configuration: Configuration, there: Mapping[tuple[str, str], MeasuredLaunch]
    ) -> Iterator[MeasuredLaunch]:
        """The missing rows of a configuration, highest occupancy first."""
        blank = self._blank(configuration)
        try:
            with self.runner.prepare(configuration) as prepared:
                for place, occupied in enumerate(self._occupancies(configuration, prepared)):
                    row = self._at(blank, configuration, prepared, occupied)
                    if (old := there.get(row.key)) is not None:
                        self._check_source(old, configuration)
                        continue
                    row = self._timed(row, configuration, prepared, occupied)
                    if place == 0 and self.profile is not None and row.ok:
                        row = replace(row, counters=self.profile(configuration, occupied))
                    yield row
        except InputFileError:
            raise
        except DeviceError as error:
            if error.code not in _HARMLESS:
                raise
            yield from self._failed(blank, error, there)
        except DrywarpError as error:
            yield from self._failed(blank, error, there)

    def _failed(
        self, blank: MeasuredLaunch, error: DrywarpError, there: Mapping[tuple[str, str], MeasuredLaunch]
    ) -> Iterator[MeasuredLaunch]:
        if blank.key not in there:
            yield replace(blank, status=FAILED, reason=" ".join(str(error).split()))

    def _occupancies(self, configuration: Configuration, prepared: Prepared) -> list[Occupied]:
        own = configuration.shared
        found = occupancies(prepared.blocks_per_sm, own, prepared.most_dynamic_shared, self.points)
        if not found:
            raise UsageError(f"{configuration.name}: no block of {configuration.threads} threads fits this GPU")
        return found

    def _at(
        self, blank: MeasuredLaunch, configuration: Configuration, prepared: Prepared, occupied: Occupied
    ) -> MeasuredLaunch:
        return replace(
            blank,
            launch=configuration.launch_text(occupied.dynamic_shared),
            dynamic_shared=occupied.dynamic_shared,
            blocks_per_sm=occupied.blocks,
            resident_warps=occupied.blocks * -(-configuration.threads // 32),
            registers_used=prepared.registers,
        )

    def _timed(
        self, row: MeasuredLaunch, configuration: Configuration, prepared: Prepared, occupied: Occupied
    ) -> MeasuredLaunch:
        try:
            timing = prepared.time(occupied.dynamic_shared)
        except DeviceError as error:
            if error.code not in _HARMLESS:
                place = f"{configuration.name} ({configuration.variant or 'its only variant'})"
                raise DeviceError(f"{place}: {error}; rows so far are in {self.table}", error.code) from None
            return replace(row, status=FAILED, reason=str(error))
        return _with(row, timing, configuration.kernel.entry.tolerance)

    def _check_source(self, row: MeasuredLaunch, configuration: Configuration) -> None:
        if row.source_hash != configuration.source_hash:
            raise InputFileError(
                f"{self.table}: kernel {row.kernel!r} was measured with a different version of {configuration.source}: "
                "expected another -o, or its rows deleted"
            )

    def _blank(self, configuration: Configuration) -> MeasuredLaunch:
        return MeasuredLaunch(
            kernel=configuration.name,
            group=configuration.kernel.group,
            variant=configuration.variant,
            threads=configuration.threads,
            dynamic_shared=configuration.shared,
            l2=L2,
            file=os.path.relpath(configuration.source, self.table.parent),
            source_hash=configuration.source_hash,
            launch=configuration.launch_text(configuration.shared),
            device=self.runner.device,
            driver=self.runner.driver,
            simulated=self.runner.simulated,
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
            drywarp=__version__,
        )


def _with(row: MeasuredLaunch, timing: Timing, tolerance: float) -> MeasuredLaunch:
    samples = sorted(timing.samples_us)
    median = statistics.median(samples)
    quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [median] * 3
    off_by = max(timing.off_by.values()) if timing.off_by else None
    wrong = [f"{name} is off by {off:.3g}" for name, off in (timing.off_by or {}).items() if off > tolerance]
    return replace(
        row,
        status=WRONG if wrong else OK,
        reason=f"{', '.join(wrong)} (at most {tolerance:g})" if wrong else "",
        median_us=float(f"{median:.6g}"),
        fastest_us=float(f"{samples[0]:.6g}"),
        spread=float(f"{(quartiles[2] - quartiles[0]) / median:.3g}"),
        samples=len(samples),
        launches=timing.launches,
        off_by=None if off_by is None else float(f"{off_by:.3g}"),
        clock_mhz=timing.clocks.sm_mhz,
        memory_clock_mhz=timing.clocks.memory_mhz,
        temperature_c=timing.clocks.temperature_c,
        power_w=timing.clocks.power_w,
    )
