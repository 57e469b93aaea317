"""What a static analysis assumed, as text: loops with their trips first, then all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .. import __version__
from ..result import SCHEMA_VERSION
from ..static.report import AccessReport, LoopReport, StaticReport, loop_dict

_MOST_LINES = 40
"""Assumptions that are printed; the JSON object has all."""


def render_static(report: StaticReport | None) -> list[RenderableType]:
    """Loops, addresses and assumptions; nothing where the kernel was emulated."""
    if report is None:
        return []
    parts: list[RenderableType] = [Text("")]
    if report.loops:
        parts += [Text("Loops", style="bold"), _loops(report.loops, counted=True), Text("")]
    if report.accesses:
        parts += [Text("Addresses, in bytes per step", style="bold"), _accesses(report.accesses), Text("")]
    parts.append(Text("Nothing was run. Assumed:", style="bold yellow"))
    if not report.assumptions:
        parts.append(Text("nothing: all that matters here is known from the launch", style="yellow"))
    for item in report.assumptions[:_MOST_LINES]:
        place = f"{item.file}:{item.line} " if item.line else ""
        parts.append(Text(f"{place}{item.what}: {item.assumed}", style="yellow"))
    more = len(report.assumptions) - _MOST_LINES
    if more > 0:
        parts.append(Text(f"and {more} more (--json has all)", style="yellow"))
    return parts


def render_loops(kernel: str, loops: Sequence[LoopReport]) -> Group:
    """The loops of a kernel, before anything is known of their trips."""
    if not loops:
        return Group(Text(f"{kernel} has no loops"))
    return Group(Text(f"Loops of {kernel}, as --trip names them"), _loops(loops, counted=False))


def loops_dict(kernel: str, loops: Sequence[LoopReport]) -> dict[str, Any]:
    """The documented JSON object of --list-loops (docs/json.md)."""
    kept = ("name", "file", "line", "last_line", "parent", "copies")
    rows = [{key: value for key, value in loop_dict(loop).items() if key in kept} for loop in loops]
    head = {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__}}
    return {**head, "kernel": kernel, "loops": rows}


def _loops(loops: Sequence[LoopReport], counted: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("loop", "in", "at", "copies"):
        table.add_column(name, no_wrap=True)
    if counted:
        table.add_column("turns", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
    for loop in loops:
        place = (
            f"{loop.file}:{loop.line}-{loop.last_line}" if loop.last_line > loop.line else f"{loop.file}:{loop.line}"
        )
        row = [loop.name, loop.parent, escape(place if loop.line else "?"), str(loop.copies) if loop.copies > 1 else ""]
        if counted:
            turns = "" if loop.trips is None else f"{loop.trips:.4g}"
            spread = f" ({loop.fewest} to {loop.most})" if loop.fewest != loop.most else ""
            row += [turns, f"{loop.known}{spread}"]
        table.add_row(*row, style="yellow" if counted and loop.known == "assumed" else None)
    return table


def _accesses(accesses: Sequence[AccessReport]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("line", "access", "address"):
        table.add_column(name, no_wrap=True)
    rows: dict[tuple[str, str, str], int] = {}
    for access in accesses:
        steps = " ".join(f"{value}·{name}" for name, value in access.coefficients.items()) or "the same everywhere"
        text = steps if access.affine else "not affine"
        known = "" if access.known == "known" else f"  ({access.known})"
        row = (str(access.line or "?"), f"{access.opcode} {access.space}", f"{text}{known}")
        rows[row] = rows.get(row, 0) + 1
    for row, count in rows.items():
        table.add_row(row[0], row[1] + (f" x{count}" if count > 1 else ""), row[2])
    return table
