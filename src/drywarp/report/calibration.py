"""A calibration as text for the terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ..calibration.result import Calibration


def render_calibration(calibration: Calibration) -> Table:
    """Every figure with its spread."""
    table = Table(box=None, pad_edge=False, title_justify="left", title=Text(_title(calibration)))
    table.add_column("constant")
    for name in ("value", "±", "ns"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    for figure in calibration.figures:
        ns = "" if figure.ns is None else f"{figure.ns:.4g}"
        name = figure.key if figure.in_file else f"{figure.key} (report only)"
        table.add_row(Text(name), f"{figure.value:.5g}", f"{figure.spread:.2g}", ns, figure.unit)
    return table


def _title(calibration: Calibration) -> str:
    low, high = calibration.clock_range_mhz
    device = calibration.device
    return f"{device.name}, {device.driver}, {calibration.date}, SM clock {low:.0f} to {high:.0f} MHz"


def notes(calibration: Calibration) -> list[str]:
    """What was not shown, and what the file takes over, in lines."""
    lines = [f"not shown: {name}: {why}" for name, why in calibration.silent.items()]
    if calibration.gpu_file:
        lines.append(f"from the packaged architecture, not measured: {', '.join(calibration.inherited)}")
    return lines
