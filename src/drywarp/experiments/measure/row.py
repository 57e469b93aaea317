"""What a kernel should compute: the suite's NumPy functions, the comparison of outputs, and the measured rows.

A reference is a function in a Python file beside the suite. The file is executed: it is part of the suite, like a test.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputFileError, UsageError
from ...execution.emulator.content import buffer_content
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Buffer, Launch, Scalar
from ..rows.row_file import Form, RowFile
from .configuration import Configuration

Arrays = dict[str, npt.NDArray[Any]]
Reference = Callable[[dict[str, Any]], Mapping[str, Any]]
_CODES = {"float": "f4", "double": "f8", "unsigned": "u4", "unsigned int": "u4", "half": "f2", "__half": "f2"}


def load_reference(configuration: Configuration) -> Reference:
    """The reference of a kernel. Raises InputFileError that names the TOML file and what was expected."""
    kernel = configuration.kernel
    place = f"{kernel.described}: kernel {kernel.entry.name!r}: reference {kernel.entry.reference!r}"
    file, colon, function = kernel.entry.reference.rpartition(":")
    if not colon:
        raise InputFileError(f"{place}: expected FILE:FUNCTION")
    path = kernel.described.parent / file
    if not path.is_file():
        raise InputFileError(f"{place}: {path}: no such Python file")
    try:
        module = _module(path.resolve())
    except Exception as error:  # whatever the suite's own code does
        raise InputFileError(f"{place}: {path}: {type(error).__name__}: {error}") from None
    found = getattr(module, function, None)
    if not callable(found):
        raise InputFileError(f"{place}: {file} has no function {function!r}")
    return found  # type: ignore[no-any-return]


@cache
def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"drywarp_suite_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their own module there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check_arguments(kernel: Kernel, launch: Launch) -> None:
    """Raise UsageError for a kernel that takes textures, surfaces, tensor maps or `__constant__` variables."""
    other = [
        parameter.name
        for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True)
        if not isinstance(argument, Buffer | Scalar)
    ]
    if other or launch.constants:
        what = f"argument {other[0]}" if other else "its __constant__ variables"
        raise UsageError(f"{kernel.name}: {what}: only kernels with buffers and plain values can be measured")


def inputs_of(kernel: Kernel, launch: Launch) -> Arrays:
    """Every buffer of a launch before it runs, by the parameter's name."""
    return {
        parameter.name: buffer_content(argument, ordinal, launch.seed)
        for ordinal, (parameter, argument) in enumerate(zip(kernel.parameters, launch.arguments, strict=True))
        if isinstance(argument, Buffer)
    }


def expected_outputs(
    configuration: Configuration, kernel: Kernel, launch: Launch, inputs: Mapping[str, npt.NDArray[Any]]
) -> Arrays:
    """The reference's buffer contents after the launch; it gets copies. Raises InputFileError if it fails."""
    reference = load_reference(configuration)
    given: dict[str, Any] = {
        **{name: _number(value) for name, value in configuration.kernel.entry.macros.items()},
        **{name: _number(value) for name, value in configuration.values.items()},
        **{name: array.copy() for name, array in inputs.items()},
    }
    for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True):
        if isinstance(argument, Scalar):
            given[parameter.name] = _scalar(parameter.type, argument)
    place = f"{configuration.kernel.described}: kernel {configuration.name!r}"
    try:
        found = {name: np.asarray(array) for name, array in reference(given).items()}
    except Exception as error:  # whatever the suite's own code does
        raise InputFileError(f"{place}: its reference failed: {type(error).__name__}: {error}") from None
    for name, array in found.items():
        if name not in inputs:
            raise InputFileError(f"{place}: its reference returns {name!r}, which is not a buffer of the kernel")
        if array.size != inputs[name].size:
            raise InputFileError(
                f"{place}: its reference returns {array.size} elements for {name!r}, expected {inputs[name].size}"
            )
    return found


def difference(actual: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    """The error of an output: for integers 0 if equal, else infinity; for floats the largest deviation.

    Deviations are relative to the expected element, or to the root mean square of all elements if that is larger,
    because sums that cancel have no significant digits. Elements with an expected NaN are not compared.
    """
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    if actual.dtype.kind != "f":
        return 0.0 if np.array_equal(actual, expected.astype(actual.dtype)) else float("inf")
    wanted = expected.astype(np.float64)
    checked = ~np.isnan(wanted)
    with np.errstate(invalid="ignore"):
        wanted, found = wanted[checked], actual.astype(np.float64)[checked]
    if not wanted.size:
        return float("inf")
    if not np.isfinite(found).all():
        return float("inf")
    scale = np.maximum(np.abs(wanted), np.sqrt(np.mean(wanted**2)))
    off = np.abs(found - wanted)
    return float(np.max(np.divide(off, scale, out=np.where(off > 0, np.inf, 0.0), where=scale > 0)))


def _number(value: Any) -> Any:
    """A text with an integer as that integer; anything else unchanged."""
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _scalar(kind: str, value: Scalar) -> Any:
    code = _CODES.get(kind)
    if code is None:
        code = ("u" if kind.startswith(("u", "size_t")) else "i") + str(len(value.data))
    return np.frombuffer(value.data, f"<{code}")[0].item()


# A row of the output table: one launch at one occupancy, with everything needed to predict it.

OK, WRONG, FAILED = "ok", "wrong output", "failed"
COUNTERS = (
    *("smsp__inst_executed.sum", "gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    *("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    *("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"),
    *("dram__sectors_read.sum", "dram__sectors_write.sum"),
)
"""Nsight Compute's metrics in a profiled row."""


@dataclass(frozen=True, kw_only=True)
class MeasuredLaunch:
    """One launch. `median_us` is the median of `samples`, each the mean of `launches` in a row; `spread` is their
    interquartile range as a fraction of the median. `file` is the source relative to the table's folder, `launch` the
    launch in the form of a launch comment, `source_hash` the hash of the source. `off_by` is the largest deviation of
    an output from NumPy's, None if outputs were not compared. Clocks are medians of readings during the run.
    """

    kernel: str
    group: str
    variant: str
    threads: int
    dynamic_shared: int
    blocks_per_sm: int = 0
    resident_warps: int = 0
    registers_used: int = 0
    status: str = OK
    reason: str = ""
    median_us: float | None = None
    fastest_us: float | None = None
    spread: float | None = None
    samples: int = 0
    launches: int = 0
    off_by: float | None = None
    clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
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
        """Identifies the row."""
        return self.kernel, self.launch

    @property
    def ok(self) -> bool:
        """Whether it was measured and its outputs were correct."""
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
