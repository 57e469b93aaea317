"""Which line of the new source is which line of the old one: by content, as a diff does, not by number.

Only lines that cost something are known. Within a file their texts are aligned in order; what stands between aligned
lines is paired where the texts are alike (a line that was edited); what then is left over is paired where a text
occurs elsewhere unchanged (a line that was moved).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import PurePath

from .side import Line

ALIKE = 0.6
"""Likeness of two texts (difflib's ratio) from which on one counts as the other one edited."""
LONGEST_BLOCK, LONGEST_TEXT = 60, 200
"""Lines of a changed passage, and characters of a line, that are held against each other."""

Pair = tuple[Line | None, Line | None]


def match_lines(old: Sequence[Line], new: Sequence[Line], old_file: str = "", new_file: str = "") -> list[Pair]:
    """Pairs of a line and its new form; one of the two is None where a line was added or removed.

    Each line occurs once. `old_file` and `new_file` are the kernels' own files; headers are paired by how their
    paths end.
    """
    pairs: list[Pair] = []
    for before, after in _files(old, new, old_file, new_file):
        pairs += _match_file(before, after)
    return _moved(pairs)


def _files(
    old: Sequence[Line], new: Sequence[Line], old_file: str, new_file: str
) -> Iterator[tuple[list[Line], list[Line]]]:
    """The lines of each file and of its counterpart, in the order of their numbers."""
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
    """How many last parts of two paths are the same; code without a line (no file) goes with its like."""
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
    """The text without its spacing; where the source was not at hand, the number."""
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
    """Lines that are only there before and only there after, with the same text, are one line."""
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
