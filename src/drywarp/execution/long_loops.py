"""Loops with too many iterations to run: repetition is analysed once and checked against the iterations that ran.

If no branch depends on the block or on data (`emulator.deadlock`), a block that has not ended after some millions of
instructions is abandoned. The code is then followed without data (`symbolic`): iterations of a loop that repeat the
previous ones, with every relevant number moving by the same step, are recorded once. The result is used if it needed no
assumptions and matches the abandoned block, basic block by basic block and address by address, for as long as that ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import DrywarpError, EmulationLimitError
from ..kernel.cfg import build_cfg
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Launch
from ..kernel.profile import SPACE_GLOBAL, AccessLog, Profile, Sampling
from .emulator.sampling import Limits

TRIAL_LANE_STEPS = 100_000_000
"""Limit of instructions times lanes for the single block that is run, a third of a second."""
MOST_ACCESSES = 5_000_000
"""Most recorded accesses of all sampled blocks; fewer blocks are followed if there would be more."""


def extrapolated(kernel: Kernel, launch: Launch, limits: Limits) -> Profile | None:
    """The profile of a launch whose blocks run long loops; None if they do not, or if it cannot be derived.

    If not all accesses are recorded, `logged` gives the fraction that is (see `Profile`): L2 and DRAM traffic is then
    an estimate.
    """
    cfg = build_cfg(kernel.instructions, kernel.code_entries)
    if not cfg.loops:
        return None
    from .emulator.deadlock import all_alike
    from .emulator.sampling import fewest, stratified
    from .emulator.session import Session

    if not all_alike(kernel.instructions, cfg):
        return None
    plan = [block for block, _ in stratified(launch.grid)]
    inside = sorted(plan)[len(plan) // 2]
    session = Session(kernel, launch, replace(limits, lane_steps=min(limits.lane_steps, TRIAL_LANE_STEPS)))
    try:
        session.run([inside])
    except EmulationLimitError:
        return _followed(kernel, launch, sorted({inside, *fewest(launch.grid)}), session.seen())
    except DrywarpError:
        pass  # the emulation will report it itself
    return None


def _followed(kernel: Kernel, launch: Launch, few: list[int], seen: Profile) -> Profile | None:
    from .emulator.sampling import stratified
    from .symbolic import static_profile
    from .symbolic.walk import Effort

    many = len(stratified(launch.grid)) * len(seen.accesses) > MOST_ACCESSES
    for blocks in (few,) if many else (None, few):
        answer = static_profile(kernel, launch, blocks=blocks, effort=Effort(accesses=MOST_ACCESSES))
        found = answer.profile
        known = all(loop.known in ("derived", "not reached") for loop in answer.report.loops)
        if not known or answer.report.assumptions or found.notes:
            return None
        if found.logged is None:
            break
    if not begins_alike(found, seen):
        return None
    total = float(found.executions().sum())
    emulated = len(seen.paths[0].blocks)
    note = (
        f"long loops: repeating iterations were analysed once instead of emulated; the first {emulated:,} basic blocks "
        "of a warp were emulated and match (--full-emulation emulates all)"
    )
    loops = sum(loop.most > 1 for loop in answer.report.loops)
    notes = [note]
    if found.logged is not None:
        share = float(found.logged.min())
        notes.append(f"{share:.1%} of the accesses in long loops were modelled: L2 and DRAM figures are estimates")
    sampling = Sampling(len(found.blocks), launch.blocks, total, total, total, "proven", extrapolated_loops=loops)
    return replace(found, launch=launch, notes=tuple(notes), sampling=sampling)


def begins_alike(found: Profile, seen: Profile) -> bool:
    """Whether the followed code begins as the block that was run did, warp by warp."""
    places = {sample.linear: number for number, sample in enumerate(found.blocks)}
    (block,) = seen.blocks
    if block.linear not in places:
        return False
    at = places[block.linear]
    per_block = found.launch.warps_per_block
    for warp, path in enumerate(block.paths):
        ran = seen.paths[path].blocks
        whole = found.paths[found.blocks[at].paths[warp]].blocks
        if not len(ran) or not np.array_equal(whole[: len(ran)], ran):
            return False
        first, rows = _rows(seen, warp), _rows(found, at * per_block + warp)
        # If iterations are missing from the log, its first half precedes them.
        number = min(len(first), len(rows) if found.logged is None else len(rows) // 2)
        if (number < len(first) and found.logged is None) or not _same(seen, first[:number], found, rows[:number]):
            return False
    return True


def _rows(profile: Profile, warp: int) -> npt.NDArray[np.intp]:
    return np.flatnonzero(profile.accesses.warp == warp)


def _same(left: Profile, left_rows: npt.NDArray[np.intp], right: Profile, right_rows: npt.NDArray[np.intp]) -> bool:
    """Whether two lists of accesses are the same, regardless of buffer addresses."""
    if len(left_rows) != len(right_rows):
        return False
    names = sorted(left.allocations.keys() & right.allocations.keys())
    sides = ((left, left_rows), (right, right_rows))
    ours, theirs = (_columns(p.accesses, rows, [p.allocations[name] for name in names]) for p, rows in sides)
    return all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


def _columns(
    log: AccessLog, rows: npt.NDArray[np.intp], buffers: Sequence[tuple[int, int]]
) -> tuple[npt.NDArray[np.int64], ...]:
    """The content of accesses: instruction, space, lanes, buffer, position in it, and the lanes' offsets."""
    base, masks = log.base[rows], log.masks[log.pattern[rows]]
    number, place = np.full(len(rows), -1, np.int64), base.copy()
    for index, (start, size) in enumerate(buffers):
        inside = (log.space[rows] == SPACE_GLOBAL) & (base >= start) & (base < start + size)
        number[inside], place[inside] = index, base[inside] - start
    lanes = np.arange(log.offsets.shape[1])
    on = (masks[:, None].astype(np.int64) >> lanes) & 1
    offsets = np.where(on == 1, log.offsets[log.pattern[rows]], 0)
    fixed = (log.instruction[rows], log.space[rows], masks)
    return (*(column.astype(np.int64) for column in fixed), number, place, offsets)
