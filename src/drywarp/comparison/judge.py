"""Two answers for one GPU held against each other."""

from __future__ import annotations

from ..errors import UsageError
from .line_match import match_lines
from .result import CountChange, GpuComparison, LineChange, Match
from .side import Side


def judge(old: Side, new: Side, fail_above: float | None) -> GpuComparison:
    """Old against new. Raises UsageError where the two are not for the same GPU under the same assumptions."""
    if old.gpu != new.gpu:
        raise UsageError(f"old is for {old.gpu}, new for {new.gpu} (expected the same GPU)")
    for what in ("clock_hz", "l2", "scheduler"):
        before, after = getattr(old.assumptions, what), getattr(new.assumptions, what)
        if before != after:
            raise UsageError(f"{new.gpu}: old assumes {what} {before}, new {after} (expected the same)")
    if old.prediction.model != new.prediction.model:
        raise UsageError(
            f"{new.gpu}: old is predicted by {old.prediction.model}, new by {new.prediction.model} (expected the same)"
        )
    slower = new.time_s / old.time_s - 1
    regressed = fail_above is not None and slower > fail_above
    return GpuComparison(old, new, _counts(old, new), _lines(old, new), regressed, _notes(old, new))


def _counts(old: Side, new: Side) -> tuple[CountChange, ...]:
    before, after = {**old.figures(), **old.counts}, {**new.figures(), **new.counts}
    if not (old.counts and new.counts):
        # Metrics of one side alone are no comparison.
        before, after = old.figures(), new.figures()
    names = dict.fromkeys([*before, *after])
    return tuple(CountChange(name, before.get(name), after.get(name)) for name in names)


def _lines(old: Side, new: Side) -> tuple[LineChange, ...]:
    found = []
    for before, after in match_lines(old.lines, new.lines, old.source_file, new.source_file):
        match: Match
        if before is None or after is None:
            match = "added" if before is None else "removed"
        else:
            match = "same" if before.text.split() == after.text.split() else "edited"
        old_s = old.time_of(before) if before else 0.0
        new_s = new.time_of(after) if after else 0.0
        if old_s != new_s:
            found.append(LineChange(match, before, after, old_s, new_s))
    return tuple(sorted(found, key=lambda line: -abs(line.change_s)))


def _notes(old: Side, new: Side) -> tuple[str, ...]:
    """What makes the two less comparable than they look."""
    notes = []
    if old.gpu_hash != new.gpu_hash:
        notes.append(f"the GPU file of {new.gpu} is not the same for old and new: a part of the change is its own")
    for tool in dict.fromkeys([*old.versions, *new.versions]):
        before, after = old.versions.get(tool, "none"), new.versions.get(tool, "none")
        if before != after:
            notes.append(f"{tool} {before} for old, {after} for new: a part of the change may be its own")
    if old.launch != new.launch:
        notes.append(f"launches differ: {_launch(old)} for old, {_launch(new)} for new")
    return tuple(notes)


def _launch(side: Side) -> str:
    grid, block = (",".join(map(str, extents)) for extents in (side.launch.grid, side.launch.block))
    return f"grid {grid} block {block}"
