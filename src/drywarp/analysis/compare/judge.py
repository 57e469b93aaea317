"""Compares two answers for one GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path, PurePath
from typing import Any, TypeGuard

import msgspec

from ...errors import InputFileError, UsageError
from ...support.folders import read_bytes
from ..result import SCHEMA_VERSION
from .result import CountChange, GpuComparison, Line, LineChange, Match, Side, SideError, side_of

# Matches lines of the new source to lines of the old one, by content as a diff does, not by number.
#
# Only lines with a cost are known. Within a file their texts are aligned in order; lines between aligned ones are
# paired if their texts are similar (an edited line); remaining lines are paired if the same text occurs elsewhere (a
# moved line).

ALIKE = 0.6
"""Similarity of two texts (difflib's ratio) from which one counts as an edit of the other."""
LONGEST_BLOCK, LONGEST_TEXT = 60, 200
"""Most lines of a changed passage, and most characters of a line, that are compared."""

Pair = tuple[Line | None, Line | None]


def match_lines(old: Sequence[Line], new: Sequence[Line], old_file: str = "", new_file: str = "") -> list[Pair]:
    """Pairs of an old and a new line; one of the two is None if a line was added or removed.

    Each line occurs once. `old_file` and `new_file` are the kernels' own files; headers are paired by their path
    suffixes.
    """
    pairs: list[Pair] = []
    for before, after in _files(old, new, old_file, new_file):
        pairs += _match_file(before, after)
    return _moved(pairs)


def _files(
    old: Sequence[Line], new: Sequence[Line], old_file: str, new_file: str
) -> Iterator[tuple[list[Line], list[Line]]]:
    """The lines of each file and of its counterpart, in order of line number."""
    before, after = _by_file(old), _by_file(new)
    partner = {new_file: old_file} if new_file in after and old_file in before else {}
    for file in after:
        if file in partner:
            continue
        free = [name for name in before if name not in partner.values()]
        nearest = max(free, key=lambda name: _common_end(name, file), default=None)
        if nearest is not None and _common_end(nearest, file):
            partner[file] = nearest
    for file, lines in after.items():
        yield before.pop(partner[file]) if file in partner else [], lines
    for lines in before.values():
        yield lines, []


def _by_file(lines: Sequence[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: (line.file, line.line)):
        found[line.file].append(line)
    return dict(found)


def _common_end(one: str, other: str) -> int:
    """The number of equal trailing parts of two paths; code without a file only matches its like."""
    if not one or not other:
        return int(one == other)
    count = 0
    for a, b in zip(reversed(PurePath(one).parts), reversed(PurePath(other).parts), strict=False):
        if a != b:
            break
        count += 1
    return count


def _match_file(old: list[Line], new: list[Line]) -> Iterator[Pair]:
    matcher = SequenceMatcher(None, [_key(line) for line in old], [_key(line) for line in new], autojunk=False)
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what == "equal":
            yield from zip(old[i1:i2], new[j1:j2], strict=True)
        else:
            yield from _edited(old[i1:i2], new[j1:j2])


def _key(line: Line) -> str:
    """The text with normalized spacing; without source text, the line number."""
    return " ".join(line.text.split()) or f"\0{line.line}"


def _edited(old: list[Line], new: list[Line]) -> Iterator[Pair]:
    left, right = dict(enumerate(old)), dict(enumerate(new))
    if max(len(old), len(new)) <= LONGEST_BLOCK:
        likeness = [(_likeness(a, b), i, j) for i, a in left.items() for j, b in right.items()]
        for ratio, i, j in sorted(likeness, key=lambda found: (-found[0], abs(found[1] - found[2]), found[1])):
            if ratio >= ALIKE and i in left and j in right:
                yield left.pop(i), right.pop(j)
    yield from ((line, None) for line in left.values())
    yield from ((None, line) for line in right.values())


def _likeness(old: Line, new: Line) -> float:
    one, other = _key(old), _key(new)
    if not old.text or not new.text:
        return 0.0
    return SequenceMatcher(None, one[:LONGEST_TEXT], other[:LONGEST_TEXT], autojunk=False).ratio()


def _moved(pairs: list[Pair]) -> list[Pair]:
    """Merge a removed and an added line with the same text into one moved line."""
    removed: dict[str, list[Line]] = defaultdict(list)
    for old, new in pairs:
        if old is not None and new is None and old.text:
            removed[_key(old)].append(old)
    found: list[Pair] = []
    gone: set[int] = set()
    for old, new in pairs:
        if old is None and new is not None and removed.get(_key(new)):
            old = removed[_key(new)].pop(0)
            gone.add(id(old))
        found.append((old, new))
    return [(old, new) for old, new in found if new is not None or id(old) not in gone]


def judge(old: Side, new: Side, fail_above: float | None) -> GpuComparison:
    """Compare old and new. Raises UsageError unless both are for the same GPU under the same assumptions."""
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
        # Metrics of one side alone cannot be compared.
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
    """Reasons why the two are less comparable than they look."""
    notes = []
    if old.gpu_hash != new.gpu_hash:
        notes.append(f"the GPU file of {new.gpu} differs between old and new, which causes part of the change")
    for tool in dict.fromkeys([*old.versions, *new.versions]):
        before, after = old.versions.get(tool, "none"), new.versions.get(tool, "none")
        if before != after:
            notes.append(f"{tool} {before} for old, {after} for new, which may cause part of the change")
    if old.launch != new.launch:
        notes.append(f"launches differ: {_launch(old)} for old, {_launch(new)} for new")
    return tuple(notes)


def _launch(side: Side) -> str:
    grid, block = (",".join(map(str, extents)) for extents in (side.launch.grid, side.launch.block))
    return f"grid {grid} block {block}"


# Reads what `drywarp analyze --json` wrote.

EXPECTED = "what `drywarp analyze --json` writes"


def is_saved(source: object) -> TypeGuard[str | Path]:
    """Whether a source is the path of a saved answer: one that ends in ``.json``."""
    return isinstance(source, str | Path) and "\n" not in str(source) and str(source).lower().endswith(".json")


def read_saved(path: str | Path) -> Side:
    """Read a saved answer. Raises InputFileError with one line that gives the file, the key and what was expected."""
    content = _decoded(path)
    if not isinstance(content, dict):
        raise InputFileError(f"{path}: not a JSON object (expected {EXPECTED})")
    version = content.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        said = "none" if version is None else repr(version)
        raise InputFileError(
            f"{path}: schema_version: {said[:40]}, expected {SCHEMA_VERSION}: written by another version of drywarp "
            "or by something else; regenerate it"
        )
    if "launches" in content:
        raise InputFileError(f"{path}: holds several launches (expected {EXPECTED} for one)")
    try:
        return side_of(content)
    except SideError as error:
        raise InputFileError(f"{path}: {error} (expected {EXPECTED})") from None


def _decoded(path: str | Path) -> Any:
    data = read_bytes(Path(path), EXPECTED)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{path}: not JSON: {error} (expected {EXPECTED})") from None
