"""A row of the table that comes out: one launch at one occupancy, with all that is needed to predict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import InputFileError
from ..rows.row_file import Form, RowFile

OK, WRONG, FAILED = "ok", "wrong output", "failed"
COUNTERS = (
    *("smsp__inst_executed.sum", "gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    *("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    *("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"),
    *("dram__sectors_read.sum", "dram__sectors_write.sum"),
)
"""Nsight Compute's metrics that a row has where it was profiled."""


@dataclass(frozen=True)
class MeasuredLaunch:
    """One launch. `median_us` is the median of `samples`, each the mean of `launches` in a row; `spread` is the
    difference of their quartiles, as a part of the median. `file` is the source seen from the table's folder, `launch`
    what a launch comment would say, `source_hash` what the source was known by. `off_by` is the largest deviation of
    an output from NumPy's, None where outputs were not compared. Clocks are medians of what was read meanwhile.
    """

    kernel: str
    group: str
    variant: str
    threads: int
    dynamic_shared: int
    blocks_per_sm: int
    resident_warps: int
    registers_used: int
    status: str
    reason: str
    median_us: float | None
    fastest_us: float | None
    spread: float | None
    samples: int
    launches: int
    off_by: float | None
    clock_mhz: float | None
    memory_clock_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    l2: str
    file: str
    source_hash: str
    launch: str
    device: str
    driver: str
    simulated: bool
    date: str
    drywarp: str
    counters: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """What tells rows apart."""
        return self.kernel, self.launch

    @property
    def ok(self) -> bool:
        """Whether it was measured, and computed what it should."""
        return self.status == OK


_OWN = tuple(f for f in fields(MeasuredLaunch) if f.name != "counters")
COLUMNS = (*(f.name for f in _OWN), *COUNTERS)


class MeasuredFile(RowFile[MeasuredLaunch]):
    """The table, growing row by row; see `RowFile`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Form("measure", COLUMNS, _cells, _read, lambda row: row.key))


def _cells(row: MeasuredLaunch) -> dict[str, Any]:
    own = {f.name: getattr(row, f.name) for f in _OWN}
    own = {name: int(value) if isinstance(value, bool) else value for name, value in own.items()}
    return {**own, **{name: row.counters.get(name) for name in COUNTERS}}


def _read(cells: Mapping[str, Any], columns: Sequence[str], place: str) -> MeasuredLaunch:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise InputFileError(f"{place}: no column {missing[0]!r} (expected rows that drywarp measure wrote)")

    def value(name: str, kind: str) -> Any:
        text = str(cells[name] or "")
        if kind.startswith("str"):
            return text
        if not text:
            if "None" in kind:
                return None
            raise InputFileError(f"{place}: {name} is empty, expected a number")
        try:
            return bool(int(text)) if kind == "bool" else int(text) if kind == "int" else float(text)
        except ValueError:
            raise InputFileError(f"{place}: {name} is {text!r}, expected a number") from None

    counters = {name: value(name, "float") for name in COUNTERS if cells[name]}
    return MeasuredLaunch(**{f.name: value(f.name, str(f.type)) for f in _OWN}, counters=counters)
