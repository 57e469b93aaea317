"""Writes the findings as a GPU file that inherits from the packaged architecture and marks what was measured.

The only part of the calibration that uses the packaged hardware data: for the scopes of pipes, and for what was not
measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError
from ...hardware.load import Resolved, resolve
from ...hardware.toml_file import DATA, read
from .device import Attributes
from .result import Figure, Findings

# The packaged architecture of a compute capability and its values: the base of a new GPU file.


def architecture_of(compute_capability: str) -> str:
    """The name from which a GPU file of this compute capability inherits, such as ``arch/ga100`` for ``"8.0"``.

    Raises UsageError if no packaged architecture has that capability.
    """
    known: dict[str, str] = {}
    for path in sorted((DATA / "arch").glob("*.toml")):
        name = f"arch/{path.stem}"
        parents = read(name, path).content.get("inherits", [])
        for parent in parents if isinstance(parents, list) else [parents]:
            if parent.startswith("cc/") and parent != "cc/sources":
                known[parent.removeprefix("cc/")] = name
    try:
        return known[compute_capability]
    except KeyError:
        there = ", ".join(sorted(known, key=lambda c: tuple(map(int, c.split(".")))))
        raise UsageError(
            f"no packaged architecture has compute capability {compute_capability}; expected one of: {there}"
        ) from None


def values_of(architecture: str) -> Mapping[str, Any]:
    """The sections of an architecture as plain values, including inherited ones."""
    return _resolved(architecture).values


def _resolved(architecture: str) -> Resolved:
    return resolve(architecture, DATA / f"{architecture}.toml")


WHOLE = 0.03
"""An issue limit this close to an integer is rounded to it (as in the analysis paper, §4.3)."""
NEEDED = ("read_gbs", "write_gbs", "copy_gbs", "latency_ns")
"""Keys of ``memory.dram`` that no architecture provides."""
PEAK = "memory.dram.peak_gbs"
RATES = ("memory.dram.read_gbs", "memory.dram.write_gbs", "memory.dram.copy_gbs")


@dataclass(frozen=True)
class Line:
    """One entry: a dotted key with its value and where it comes from."""

    key: str
    value: float | int
    source: str
    kind: str
    note: str = ""


def missing_figures(findings: Findings) -> list[str]:
    """Missing keys without which no GPU file can be written."""
    return [f"memory.dram.{name}" for name in NEEDED if f"memory.dram.{name}" not in findings.figures]


def gpu_file(
    attributes: Attributes, findings: Findings, date: str, clocks: tuple[float, float]
) -> tuple[str, list[str]]:
    """The text of the file, and the keys of an SM's costs that are inherited from the architecture.

    Raises UsageError if no packaged architecture has the device's compute capability.
    """
    architecture = architecture_of(attributes.compute_capability)
    packaged = values_of(architecture)
    lines = _driver(attributes, clocks) + _measured(attributes, findings, packaged)
    lines += _peak(findings)
    lines += _not_beyond_limit(lines, packaged)
    inherited = _inherited(packaged, {line.key for line in lines})
    what = "calibrated on" if not attributes.simulated else "drywarp calibrate --simulated, no GPU:"
    at = f"SM clock {clocks[0]:.0f} to {clocks[1]:.0f} MHz"
    sources = {
        "calibrated": f"{what} {attributes.name}, driver {attributes.driver}, {date}, {at}",
        "driver": f"stated by the driver of {attributes.name} ({attributes.driver})",
    }
    head = [
        "# Written by drywarp calibrate. Everything else is inherited from the architecture.",
        "format = 1",
        f"title = {_text(attributes.name)}",
        f"inherits = {_text(architecture)}",
        "",
        "[sources]",
        *(f"{key} = {_text(text)}" for key, text in sources.items()),
    ]
    return "\n".join([*head, *_tables(lines)]) + "\n", inherited


def _driver(attributes: Attributes, clocks: tuple[float, float]) -> list[Line]:
    low = min(clocks[0], attributes.clock_mhz)
    note = "the driver reports no base clock: the lowest clock observed during the runs"
    return [
        Line("device.sm_count", attributes.sm_count, "driver", "documented"),
        Line("device.base_clock_mhz", _rounded(low), "calibrated", "assumed", note),
        Line("device.boost_clock_mhz", _rounded(attributes.clock_mhz), "driver", "documented"),
        Line("memory.l2.bytes", attributes.l2_bytes, "driver", "documented"),
    ]


def _measured(attributes: Attributes, findings: Findings, packaged: Mapping[str, Any]) -> list[Line]:
    kind = "derived" if attributes.simulated else "measured"
    lines = []
    for figure in findings.figures.values():
        if not figure.in_file:
            continue
        if figure.value <= 0:
            findings.silent[figure.key] = f"not above the noise: {figure.value:.3g}"
            continue
        value, how = figure.value, figure.how
        if figure.key == "scheduler.issue_per_cycle" and abs(value / max(1, round(value)) - 1) <= WHOLE:
            how, value = f"{how}: {value:.4f}", float(max(1, round(value)))
        if figure.key.startswith("classes.") and figure.key.endswith(".lambda"):
            value, more = _at_packaged_scope(figure, findings, packaged)
            how += more
        if figure.key in RATES and 0 < attributes.memory_peak_gbs < value:
            how, value = f"{how}; {value:.5g} measured, limited to the driver's peak", attributes.memory_peak_gbs
        whole = figure.unit == ""
        stated = figure.key == PEAK
        lines.append(
            Line(
                figure.key,
                round(value) if whole else _rounded(value),
                "driver" if stated else "calibrated",
                "documented" if stated else kind,
                how if whole or stated else f"± {figure.spread:.2g}{_in_ns(figure)}; {how}",
            )
        )
    return lines


def _peak(findings: Findings) -> list[Line]:
    """A peak bandwidth if the driver reports no memory clock: a GPU file needs one."""
    if findings.value(PEAK, 0) > 0:
        return []
    largest = max(findings.value(key, 0) for key in RATES)
    note = "the driver reports no memory clock: the largest measured rate"
    return [Line(PEAK, _rounded(largest), "calibrated", "assumed", note)]


def _in_ns(figure: Figure) -> str:
    return f" = {figure.ns:.4g} ns" if figure.ns is not None and figure.unit == "cycles" else ""


def _at_packaged_scope(figure: Figure, findings: Findings, packaged: Mapping[str, Any]) -> tuple[float, str]:
    """λ converted to the scope of the pipe that the file's class names: partition or SM."""
    class_ = figure.key.split(".")[1]
    found = findings.scopes.get(class_, "sm")
    pipe = packaged["classes"][class_]["subsystem"]
    named = packaged["subsystems"][pipe]["scope"]
    if found == named:
        return figure.value, ""
    partitions = findings.value("scheduler.partitions", packaged["scheduler"]["partitions"])
    factor = partitions if named == "partition" else 1 / partitions
    return figure.value * factor, f"; measured as a pipe per {found}, the file has one per {named}"


def _not_beyond_limit(lines: list[Line], packaged: Mapping[str, Any]) -> list[Line]:
    """λ at the issue limit for classes that noise, or the architecture's value, would put below it."""
    scheduler = dict(packaged["scheduler"]) | {
        line.key.split(".")[1]: line.value for line in lines if line.key.startswith("scheduler.")
    }
    rate, partitions = scheduler["issue_per_cycle"], scheduler["partitions"]
    at = {line.key: index for index, line in enumerate(lines)}
    more = []
    for class_, cost in packaged["classes"].items():
        key = f"classes.{class_}.lambda"
        scope = packaged["subsystems"][cost["subsystem"]]["scope"]
        least = 1 / (rate * (partitions if scope == "sm" else 1))
        value = lines[at[key]].value if key in at else cost["lambda"]
        if value >= least:
            continue
        limit = Line(key, _up(least), "calibrated", "derived", f"the issue limit; {value:.4g} without it")
        if key in at:
            limit = Line(key, limit.value, "calibrated", lines[at[key]].kind, f"{lines[at[key]].note}; {limit.note}")
            lines[at[key]] = limit
        else:
            more.append(limit)
    return more


def _inherited(packaged: Mapping[str, Any], written: set[str]) -> list[str]:
    keys = [f"classes.{class_}.{name}" for class_, cost in packaged["classes"].items() for name in cost]
    keys += [f"tensor.{name}" for name in packaged.get("tensor", {})]
    keys += [f"memory.{level}.{name}" for level in ("l1", "shared", "l2") for name in packaged["memory"].get(level, {})]
    return [key for key in keys if key not in written and not key.endswith(".subsystem")]


def _tables(lines: list[Line]) -> list[str]:
    tables: dict[str, list[Line]] = {}
    for line in lines:
        tables.setdefault(line.key.rpartition(".")[0], []).append(line)
    text: list[str] = []
    for table, rows in sorted(tables.items()):
        text += ["", f"[{table}]"]
        for row in rows:
            note = f", note = {_text(row.note)}" if row.note else ""
            name = row.key.rpartition(".")[2]
            text.append(f'{name} = {{ value = {row.value}, source = "{row.source}", kind = "{row.kind}"{note} }}')
    return text


def _rounded(value: float) -> float:
    """Rounded to five digits: more than any measurement here has."""
    return float(f"{value:.5g}")


def _up(value: float) -> float:
    """Rounded up to five digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 4)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.5g}")


def _text(text: str) -> str:
    """A TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in escaped) + '"'
