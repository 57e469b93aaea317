"""Loops that turn too often to be run: what repeats is followed once, and held against the turns that were run.

Where no branch depends on the block or on data (`emulator.dependence`), a block that is not done after some
millions of instructions is given up. The code is then followed without data (`static`): turns of a loop that do the
same as those before them, every number that matters moving by the same step, are written down once. That is
taken where nothing had to be assumed for it, and where it does what the given-up block did, block by block and
address by address, for as long as that ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .emulator.limits import Limits
from .errors import DrywarpError, EmulationLimitError
from .kernel.cfg import build_cfg
from .kernel.kernel import Kernel
from .kernel.launch import Launch
from .kernel.profile import SPACE_GLOBAL, AccessLog, Profile
from .kernel.sampling import Sampling

TRIAL_LANE_STEPS = 100_000_000
"""Instructions times lanes of the one block that is run, a third of a second; one that takes fewer is run."""
MOST_ACCESSES = 5_000_000
"""Accesses of all sampled blocks that are written down; fewer blocks are followed where there would be more."""


def extrapolated(kernel: Kernel, launch: Launch, limits: Limits) -> Profile | None:
    """The profile of a launch whose blocks turn in long loops; None where they do not, or it cannot be told so.

    Where not all accesses are written down, `logged` says which share is (see `Profile`): what goes to L2 and
    DRAM is an estimate then.
    """
    cfg = build_cfg(kernel.instructions, kernel.code_entries)
    if not cfg.loops:
        return None
    from .emulator.dependence import all_alike
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
        pass  # the emulation will say so itself
    return None


def _followed(kernel: Kernel, launch: Launch, few: list[int], seen: Profile) -> Profile | None:
    from .emulator.sampling import stratified
    from .static import static_profile
    from .static.walk import Effort

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
    turns = len(seen.paths[0].blocks)
    note = (
        f"long loops: turns that repeat were followed once, not run one by one; the first {turns:,} basic blocks of"
        " a warp were run and are the same (--full-emulation runs all)"
    )
    loops = sum(loop.most > 1 for loop in answer.report.loops)
    notes = [note]
    if found.logged is not None:
        share = float(found.logged.min())
        notes.append(f"of the accesses in long loops {share:.1%} were judged: L2 and DRAM figures are estimates")
    sampling = Sampling(len(found.blocks), launch.blocks, total, total, total, "proven", extrapolated_loops=loops)
    return replace(found, launch=launch, notes=tuple(notes), sampling=sampling)


def begins_alike(found: Profile, seen: Profile) -> bool:
    """Whether what was followed begins as the block that was run did, warp by warp."""
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
        # Where turns are left out of the log, its first half lies before them.
        number = min(len(first), len(rows) if found.logged is None else len(rows) // 2)
        if (number < len(first) and found.logged is None) or not _same(seen, first[:number], found, rows[:number]):
            return False
    return True


def _rows(profile: Profile, warp: int) -> npt.NDArray[np.intp]:
    return np.flatnonzero(profile.accesses.warp == warp)


def _same(left: Profile, left_rows: npt.NDArray[np.intp], right: Profile, right_rows: npt.NDArray[np.intp]) -> bool:
    """Whether two lists of accesses are the same, wherever the buffers lie."""
    if len(left_rows) != len(right_rows):
        return False
    names = sorted(left.allocations.keys() & right.allocations.keys())
    sides = ((left, left_rows), (right, right_rows))
    ours, theirs = (_columns(p.accesses, rows, [p.allocations[name] for name in names]) for p, rows in sides)
    return all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


def _columns(
    log: AccessLog, rows: npt.NDArray[np.intp], buffers: Sequence[tuple[int, int]]
) -> tuple[npt.NDArray[np.int64], ...]:
    """What is accessed: instruction, space, lanes, buffer, place in it, and the lanes' offsets."""
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
