"""A table of measurements as every reader delivers it: rows with a time, and which columns are parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import InputFileError
from ..rows.cells import Row

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_RESULTS = frozenset(
    "status,grid,block,kernel,kernel_name,regs,registers,smem,local_bytes,shared_bytes,n_reps,timestamp,label,name,"
    "gpu,device,gflops,gbs,time,times,duration,compile_time,verification_time,benchmark_time,strategy_time,"
    "framework_time,runs_spread,occupancy,row,id,index,objective,invalidity,correctness".split(",")
)
"""Names of columns that hold what was found, not what was chosen."""
_RESULT_ENDINGS = ("_ms", "_us", "_ns", "_s", "_seconds", "_gflops", "_giops", "_gbs", "_flopbyte", "_opbyte")


@dataclass(frozen=True)
class MeasuredRow(Row):
    """One measured configuration."""

    time_s: float


@dataclass(frozen=True)
class Table:
    """The rows of a file that have a time.

    `parameters` are the columns that tell configurations apart and may be macros; `timed_by` says which column the
    time was read from; `left_out` counts the rows without a usable time, by reason.
    """

    origin: str
    columns: tuple[str, ...]
    rows: tuple[MeasuredRow, ...]
    parameters: tuple[str, ...]
    timed_by: str
    left_out: Mapping[str, int] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """`name` itself where the table has such a column. Raises InputFileError naming those that it has."""
        if name not in self.columns:
            raise InputFileError(f"{self.origin}: no column {name!r}; it has: {', '.join(self.columns)}")
        return name


def is_parameter(name: str) -> bool:
    """Whether a column's name may be that of a tuning parameter: an identifier that names no result."""
    plain = name.lower()
    return (
        _IDENTIFIER.fullmatch(name) is not None
        and "__" not in name.strip("_")
        and plain not in _RESULTS
        and not plain.endswith(_RESULT_ENDINGS)
    )


def parameters_of(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that may be parameters."""
    return tuple(name for name in columns if is_parameter(name))
