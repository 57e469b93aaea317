"""Addresses as affine functions of thread, block and loop counters, where the walk confirms it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...kernel.profile import SPACE_GLOBAL, SPACE_LOCAL, SPACE_SHARED, AccessLog, Profile
from .flow import Flow
from .report import AccessReport, LoopReport
from .state import ASSUMED, DATA

_ROWS = 96
"""Requests of an instruction on which the fit is made and checked, spread over all recorded ones."""
_SPACES = {SPACE_GLOBAL: "global", SPACE_SHARED: "shared", SPACE_LOCAL: "local"}

Ints = npt.NDArray[np.int64]


def access_reports(
    profile: Profile, flow: Flow, loops: Sequence[LoopReport], unsure: Mapping[int, int]
) -> tuple[AccessReport, ...]:
    """One report for each instruction and space accessed, in code order, excluding the stack."""
    log = profile.accesses
    found = []
    if not len(log):
        return ()
    kinds = np.unique(np.stack([log.instruction, log.space.astype(np.int32)]), axis=1)
    for number, space in kinds.T.tolist():
        if space == SPACE_LOCAL:
            continue
        rows = np.flatnonzero((log.instruction == number) & (log.space == space))
        instruction = profile.kernel.instructions[number]
        flags = unsure.get(number, 0)
        coefficients = _fit(profile, log, rows, _counters(flow, loops, number, log, rows))
        source = instruction.source
        found.append(
            AccessReport(
                pc=instruction.pc,
                opcode=instruction.opcode,
                file=source.file if source else "",
                line=source.line if source else 0,
                space=_SPACES[space],
                affine=coefficients is not None,
                known="data" if flags & DATA else "assumed" if flags & ASSUMED else "known",
                coefficients=coefficients or {},
            )
        )
    return tuple(found)


def _counters(
    flow: Flow, loops: Sequence[LoopReport], number: int, log: AccessLog, rows: npt.NDArray[np.intp]
) -> dict[str, Ints]:
    """Iteration of each loop around an instruction at each of its requests, as far as all trip counts are equal."""
    warp = log.warp[rows]
    iteration = np.arange(len(rows)) - np.searchsorted(warp, warp, side="left")
    counters: dict[str, Ints] = {}
    block = next(b.index for b in flow.blocks if b.start <= number < b.end)
    for index in flow.loop_at[block]:
        report = loops[index]
        # A counter is the remainder by the trip count; the quotient counts the loop around it.
        if report.trips is None:
            break
        even = report.fewest == report.most and report.most > 0
        counters[report.name] = iteration % report.most if even else iteration
        if not even:
            break
        iteration = iteration // report.most
    return counters


def _fit(
    profile: Profile, log: AccessLog, rows: npt.NDArray[np.intp], counters: Mapping[str, Ints]
) -> dict[str, int] | None:
    """Bytes per step of every variable that addresses depend on; None if no affine function gives all of them."""
    launch = profile.launch
    pick = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(np.int64))
    chosen = rows[pick]
    pattern, warp = log.pattern[chosen], log.warp[chosen]
    lanes = log.offsets.shape[1]
    there = ((log.masks[pattern].astype(np.uint64)[:, None] >> np.arange(lanes, dtype=np.uint64)) & np.uint64(1)) != 0
    address = (log.base[chosen, None] + log.offsets[pattern])[there]
    per_block = launch.warps_per_block
    thread = (warp[:, None] % per_block) * lanes + np.arange(lanes)
    x, y, _ = launch.block
    columns: dict[str, Ints] = {"tid.x": thread % x, "tid.y": thread // x % y, "tid.z": thread // (x * y)}
    places = np.array([b.coordinates for b in profile.blocks], np.int64)[warp // per_block]
    for axis, name in enumerate("xyz"):
        columns[f"ctaid.{name}"] = np.broadcast_to(places[:, axis, None], thread.shape)
    for name, iterations in counters.items():
        columns[name] = np.broadcast_to(iterations[pick][:, None], thread.shape)
    names, values = [], []
    for name, column in columns.items():
        here = column[there].astype(np.int64)
        if (here != here[0]).any():
            names.append(name)
            values.append(here - here[0])
    target = address - address[0]
    if not names:
        return {} if not target.any() else None
    matrix = np.stack(values, axis=1)
    if np.abs(target).max() >= 1 << 52:
        return None
    solved = np.rint(np.linalg.lstsq(matrix.astype(float), target.astype(float), rcond=None)[0]).astype(np.int64)
    if not np.array_equal(matrix @ solved, target):
        return None
    return {name: int(value) for name, value in zip(names, solved, strict=True) if value}
