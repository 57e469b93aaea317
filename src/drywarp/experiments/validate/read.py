"""Reads any file of measurements as a table; the content determines the format."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ...errors import InputFileError, UsageError
from ...frontends.profiles import bare_name, looks_like_rocprof, read_measured
from ...frontends.profiles.ncu import read_text
from ...kernel.profile import MeasuredKernel
from .read_csv import UNITS, MeasuredRow, Table, choose, is_parameter, parse_csv, seconds, unit_of

# Kernel Tuner's files: the cache that it writes while it tunes, and results in the T4 format.
#
# A cache maps each configuration's key to its parameters, ``time`` (the mean) and ``times`` in ms; it lacks its last
# brackets if tuning was interrupted. A T4 file lists results, each with a ``configuration`` and ``measurements`` with
# units. (Kernel Tuner's documentation, "Cache files" and "Output file formats".)

_FAILED_TIME = 1e20
"""What older versions write for a failed configuration, in ms."""


def parse_kernel_tuner(text: str, origin: str, time: str | None) -> Table:
    """The configurations in a cache or T4 file that ran.

    The columns are the parameters and ``median_ms`` (of the single runs, if they are listed), ``time_ms``, ``min_ms``
    and ``runs_spread``. Raises InputFileError for anything else.
    """
    content = _decoded(text, origin)
    if isinstance(content.get("cache"), dict):
        found, parameters = _cached(content), _strings(content.get("tune_params_keys"))
    elif isinstance(content.get("results"), list):
        found, parameters = _results(content, origin), []
    else:
        raise InputFileError(f'{origin}: expected Kernel Tuner\'s cache (with "cache") or T4 file (with "results")')
    rows: list[MeasuredRow] = []
    left_out: Counter[str] = Counter()
    column, unit = "", 0.0
    for number, (place, values, reason) in enumerate(found, 1):
        if reason:
            left_out[reason] += 1
            continue
        if not column:
            column, unit = choose(list(values), time, origin)
            parameters = parameters or [name for name in values if is_parameter(name)]
        if column not in values:
            left_out[f"no {column}"] += 1
            continue
        at = f"{origin}: {place}"
        rows.append(MeasuredRow(number, at, values, seconds(values[column], unit, at, column)))
    columns = tuple(dict.fromkeys(name for row in rows for name in row.cells))
    return Table(origin, columns, tuple(rows), tuple(parameters), column, dict(left_out))


def said_of(text: str, origin: str) -> dict[str, Any]:
    """A cache's metadata: the kernel's name, the problem size; empty for a T4 file."""
    content = _decoded(text, origin)
    return {name: content[name] for name in ("kernel_name", "problem_size", "tune_params") if name in content}


Found = tuple[str, dict[str, str], str]
"""The place of a configuration, its cells, and why it is left out (empty: it is not)."""


def _cached(content: Mapping[str, Any]) -> Iterator[Found]:
    for key, entry in content["cache"].items():
        place = f"configuration {key}"
        if not isinstance(entry, dict):
            yield place, {}, "no configuration"
            continue
        time = entry.get("time")
        if not isinstance(time, int | float) or isinstance(time, bool):
            yield place, {}, _words(entry.get("__error__", time))
        elif time >= _FAILED_TIME:
            yield place, {}, "failed"
        else:
            cells = {name: _cell(value) for name, value in entry.items() if _is_plain(value) and name != "time"}
            yield place, {**cells, "time_ms": repr(float(time)), **_runs(entry.get("times"), 1.0)}, ""


def _results(content: Mapping[str, Any], origin: str) -> Iterator[Found]:
    said = content.get("metadata")
    usual = unit_of(str(said.get("timeunit", ""))) if isinstance(said, dict) else None
    for number, result in enumerate(content["results"], 1):
        place = f"result {number}"
        if not isinstance(result, dict) or not isinstance(result.get("configuration"), dict):
            raise InputFileError(f'{origin}: {place}: expected an object with a "configuration"')
        invalid = result.get("invalidity", "correct")
        if invalid != "correct":
            yield place, {}, f"invalidity {invalid}"
            continue
        cells = {name: _cell(value) for name, value in result["configuration"].items() if _is_plain(value)}
        listed = result.get("measurements")
        measured = [m for m in listed if isinstance(m, dict)] if isinstance(listed, list) else []
        time = next((m for m in measured if m.get("name") == "time"), None)
        unit = (unit_of(str(time.get("unit", ""))) if time else None) or usual or "ms"
        runs = result["times"].get("runtimes") if isinstance(result.get("times"), dict) else None
        if time is not None and isinstance(time.get("value"), int | float):
            cells[f"time_{unit}"] = repr(float(time["value"]))
        yield place, {**cells, **_runs(runs, UNITS[usual or unit] / UNITS["ms"])}, ""


def _runs(times: Any, milliseconds: float) -> dict[str, str]:
    """Statistics of single runs, if listed: median and minimum in ms, and the longest over the shortest.

    The last excludes the first run, which may have cold caches.
    """
    if not isinstance(times, list) or not times or not all(isinstance(t, int | float) and t > 0 for t in times):
        return {}
    later = times[1:] or times
    return {
        "median_ms": repr(median(times) * milliseconds),
        "min_ms": repr(min(times) * milliseconds),
        "runs_spread": f"{max(later) / min(later):.4f}",
    }


def _decoded(text: str, origin: str) -> Mapping[str, Any]:
    cut_off = text.rstrip().rstrip(",")
    wrong = ""
    for attempt in (text, cut_off + "}}", cut_off + "}"):
        try:
            content = json.loads(attempt)
        except (json.JSONDecodeError, RecursionError) as error:
            wrong = (
                wrong or f"line {getattr(error, 'lineno', 1)}: not JSON: {getattr(error, 'msg', 'nested too deeply')}"
            )
            continue
        if isinstance(content, dict):
            return content
        raise InputFileError(f"{origin}: expected a JSON object, as Kernel Tuner writes")
    raise InputFileError(f"{origin}: {wrong} (expected a file of Kernel Tuner)")


def _strings(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _cell(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _words(time: Any) -> str:
    """Kernel Tuner's reason for a failed configuration, such as ``CompilationFailedConfig``."""
    if isinstance(time, dict):
        return str(next(iter(time.values()), "failed"))
    return str(time) if isinstance(time, str) else "no time"


_ID = re.compile(r'(^|[",;])ID[",;]')
_LINES_BEFORE = 5000
"""Most lines that a profiled program may have printed before the table."""
_GZIP = b"\x1f\x8b"
_LARGEST = 1 << 30
"""Most bytes that a compressed file may unpack to."""


def read_table(path: Path, *, time: str | None = None, entry: str | None = None) -> Table:
    """Read a CSV table, a Kernel Tuner file (also gzip), or a profiler's export.

    `time` is ``COLUMN`` or ``COLUMN:UNIT`` if the usual names do not apply; `entry` is the kernel of a profile. Raises
    InputFileError or UsageError with file, line and what was expected; a table without rows is an error too.
    """
    text = _text(path)
    start = text.lstrip()[:1]
    if start == "{" and '"kernels"' not in text[:4096]:
        table = parse_kernel_tuner(text, str(path), time)
    elif start == "{" or _is_profile(text):
        table = read_profile(path, entry)
    elif not text.strip():
        raise InputFileError(f"{path}: empty (expected a table of measurements)")
    else:
        table = parse_csv(text, str(path), time)
    if not table.rows:
        why = ", ".join(f"{count} with {reason}" for reason, count in table.left_out.items()) or "none at all"
        raise InputFileError(f"{path}: no row with a time (rows left out: {why})")
    return table


def read_header(path: Path) -> dict[str, Any]:
    """The metadata of a Kernel Tuner cache (`said_of`)."""
    return said_of(_text(path), str(path))


def _is_profile(text: str) -> bool:
    if looks_like_rocprof(text):
        return True
    return any("Kernel Name" in line and _ID.search(line) for line in text.splitlines()[:_LINES_BEFORE])


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == _GZIP
        if not compressed:
            return read_text(path)
        with gzip.open(path) as unpacked:
            data = unpacked.read(_LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputFileError(f"{path}: cannot be read ({reason}; expected a table of measurements)") from None
    if len(data) > _LARGEST:
        raise InputFileError(f"{path}: unpacks to more than {_LARGEST >> 20} MiB")
    return data.decode("utf-8-sig", "replace")


# A profiler's export as a table of measurements: one row for each grid and block of one kernel.

TIMED_BY = "gpu__time_duration.sum"


def read_profile(path: Path, entry: str | None) -> Table:
    """The launches in a CSV file of Nsight Compute or rocprof, or in the output of `drywarp import-ncu`.

    Launches of the same grid and block form one row with their median time and metrics. `entry` selects the kernel if
    the file holds several. Raises UsageError that lists them.
    """
    origin = str(path)
    launches = [k for k in read_measured(path).kernels if k.time_s]
    if not launches:
        raise InputFileError(f"{origin}: no launch has a time (expected the metric {TIMED_BY})")
    names = sorted({bare_name(k.name) for k in launches})
    if entry is not None:
        chosen = [k for k in launches if bare_name(k.name) == bare_name(entry)]
        if not chosen:
            raise UsageError(f"{origin}: no launch of {entry}; it holds: {', '.join(names)}")
    elif len(names) > 1:
        raise UsageError(f"{origin}: launches of several kernels, name one with --entry: {', '.join(names)}")
    else:
        chosen = launches
    alike: dict[tuple[object, object], list[MeasuredKernel]] = {}
    for kernel in chosen:
        alike.setdefault((kernel.grid, kernel.block), []).append(kernel)
    rows = [_row(number, same) for number, same in enumerate(alike.values(), 1)]
    columns = tuple(dict.fromkeys(name for row in rows for name in row.cells))
    return Table(origin, columns, tuple(rows), (), TIMED_BY)


def _row(number: int, launches: Sequence[MeasuredKernel]) -> MeasuredRow:
    first = launches[0]
    cells = {"kernel": bare_name(first.name), "launches": str(len(launches))}
    for what, extents in (("grid", first.grid), ("block", first.block)):
        if extents is not None:
            cells[what] = ",".join(map(str, extents))
    for metric in dict.fromkeys(name for k in launches for name in k.metrics):
        cells[metric] = repr(median(k.metrics[metric] for k in launches if metric in k.metrics))
    return MeasuredRow(number, first.place, cells, median(k.time_s or 0.0 for k in launches))
