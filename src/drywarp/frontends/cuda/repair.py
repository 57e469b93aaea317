"""Make a source with interfering host code compile as device code, guided by one compiler log after another.

Host code is hidden first. Remaining errors are then repaired where possible: a name that a host header would have
defined gets a stand-in, a hidden piece that turns out to be needed is restored, a piece or member that only host code
can use is hidden, and a missing header is dropped. The first error in device code that none of this fixes is reported
to the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ...errors import CompileError
from ...support.text import some_text
from ..binary.signatures import plain_name
from .headers import Remedy, empty_headers, last_resort, remedies_for, remedies_for_libraries
from .host_code import (
    Piece,
    device_macros,
    hidden_libraries,
    hide_host_includes,
    is_device,
    is_function,
    is_host_only,
    members,
    pieces,
    without,
)
from .nvrtc import NAME_MAP, Translation

_ERROR = re.compile(
    r"^(?:(.+?)\((\d+)\): |At end of source: )?(?:catastrophic |ptxas )?(?:error|fatal)\s*: ?(.*)$", re.M
)
_MISSING = re.compile(r'cannot open source file "([^"]+)"')
_NEEDED = re.compile(
    r'(?:identifier|incomplete type|no member|no tag member named|inline function) "(?:\w+::)*([A-Za-z_]\w*)"'
    r'|^"?(?:class |struct )?"?([A-Za-z_]\w*)"? is not a (?:template|class)|argument list for \w+ template "(\w+)"'
)
_UNRESOLVED = re.compile(r"extern function '(\w+)'")
_COMPOUND = re.compile(r"\(\s*([A-Za-z_][\w:]*)\s*\)(\s*)\{")
_LAMBDA = re.compile(r"(\]\s*)((?:__(?:host|device)__\s*)+)(?=[({])")
_MOST_ATTEMPTS = 40

T = TypeVar("T")
Attempt = Callable[[str, Mapping[str, str], Sequence[str]], T]
"""Compile a text with headers given as text, and additional flags."""


@dataclass(frozen=True, slots=True)
class _Error:
    file: str
    line: int
    message: str


@dataclass
class _Source:
    """One file: its pieces, and which of them are hidden. Nothing ever moves to another line."""

    text: str
    pieces: tuple[Piece, ...]
    macros: frozenset[str]
    hidden: set[int] = field(default_factory=set)
    restored: set[int] = field(default_factory=set)
    ranges: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str, macros: frozenset[str]) -> _Source:
        text = hide_host_includes(text)
        cut = tuple(pieces(text))
        hidden = {n for n, piece in enumerate(cut) if is_host_only(piece, macros)}
        return cls(text, cut, macros, hidden)

    def is_device(self, piece: Piece) -> bool:
        return is_device(self.text, piece, self.macros)

    def visible(self) -> str:
        return without(self.text, [(self.pieces[n].start, self.pieces[n].end) for n in self.hidden] + self.ranges)

    def piece_at(self, line: int) -> int | None:
        """The piece on a line; the last one if there are several."""
        found = None
        for number, piece in enumerate(self.pieces):
            body = self.text[piece.start : piece.end]
            first = self.text.count("\n", 0, piece.start + len(body) - len(body.lstrip())) + 1
            if first <= line <= self.text.count("\n", 0, piece.end) + 1:
                found = number
        return found

    def line(self, number: int) -> str:
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


def compile_repaired(translation: Translation, attempt: Attempt[T], error: CompileError, *, whole: bool) -> T:
    """Compile a source that failed with `error`: without its host code, and with stand-ins for missing names.

    `whole` is true if the source has host code, so that missing headers may be host headers. Raises CompileError
    with the first error in device code that cannot be repaired.
    """
    bodies = (translation.text, *translation.bodies)
    macros = device_macros(bodies)
    sources = {translation.origin: _Source.of(translation.text, macros)}
    # A file under several names is one file to `#pragma once`.
    first: dict[Path, str] = {}
    for included in translation.included:
        if first.setdefault(included.path.resolve(), included.name) == included.name:
            sources.setdefault(included.name, _Source.of(included.text, macros))
    repair = _Repair(sources, remedies_for_libraries({n for body in bodies for n in hidden_libraries(body)}), whole)
    # If nothing is hidden yet, compiling again would fail in the same way.
    if not (repair.taken or any(source.hidden for source in sources.values())) and not repair.mend(error):
        raise error
    others = {i.name: f'#include "{first[i.path.resolve()]}"\n' for i in translation.included if i.name not in sources}
    while True:
        texts = {name: source.visible() for name, source in sources.items()}
        text = texts.pop(translation.origin)
        try:
            return attempt(text, {**empty_headers([*texts, *others]), **texts, **others}, repair.flags())
        except CompileError as following:
            if not repair.mend(following):
                raise _with_missing(following, repair.missing) from None


def _with_missing(error: CompileError, missing: Sequence[str]) -> CompileError:
    """The error together with the headers that were left out, which may be its cause."""
    if not missing:
        return error
    return CompileError(f"{error}; not found, and left out: {some_text(missing)} (-I adds a folder)", error.log)


@dataclass
class _Repair:
    """The repairs applied to the sources of one compilation."""

    sources: Mapping[str, _Source]
    taken: list[Remedy]
    whole: bool
    attempts: int = 0
    missing: list[str] = field(default_factory=list)

    def flags(self) -> list[str]:
        return [flag for remedy in self.taken for flag in remedy.flags()]

    def mend(self, error: CompileError) -> bool:
        """Apply possible repairs for the errors in a log; false if there is nothing left to try."""
        self.attempts += 1
        if self.attempts > _MOST_ATTEMPTS:
            return False
        # Errors in names of template instances may disappear with the others; on their own, the caller handles them,
        # unless a header is missing: the user may ask for `<half>` where the source has no such type.
        sources, found = self.sources, list(_errors(error))
        names = [e for e in found if e.file.startswith(NAME_MAP)]
        errors = [e for e in found if e not in names]
        if not errors:
            fresh = [r for e in names for r in remedies_for(e.message, "") if r not in self.taken]
            self.taken += dict.fromkeys(fresh)
            return bool(fresh)
        if (self.whole and _leave_out_missing(sources, errors, self.missing)) | _respell(sources, errors):
            return True
        kept = [e for e in errors if _is_kept(sources, e)]
        fresh = [r for e in kept for r in remedies_for(e.message, _text_of(sources, e)) if r not in self.taken]
        if fresh:
            self.taken += dict.fromkeys(fresh)
            return True
        if _restore(sources, kept) or (self.whole and _hide(sources, errors)):
            return True
        texts = [source.text for source in sources.values()]
        last = [remedy for remedy in last_resort(texts) if self.whole and remedy not in self.taken]
        self.taken += last
        return bool(last)


def _errors(error: CompileError) -> Iterator[_Error]:
    for file, line, message in _ERROR.findall(error.log or str(error)):
        yield _Error(file, int(line or 0), message)


def _source(sources: Mapping[str, _Source], error: _Error) -> _Source | None:
    """The source that contains an error."""
    file = error.file
    # A header given as text may be reported with the folder of the including file.
    name = file if file in sources else next((n for n in sources if file.endswith("/" + n)), None)
    return sources[name] if name else None


def _place(sources: Mapping[str, _Source], error: _Error) -> tuple[_Source, int] | None:
    """The source and piece that contain an error."""
    source = _source(sources, error)
    piece = source.piece_at(error.line) if source else None
    return (source, piece) if source and piece is not None else None


def _text_of(sources: Mapping[str, _Source], error: _Error) -> str:
    """The source line of an error."""
    source = _source(sources, error)
    return source.line(error.line) if source else ""


def _is_kept(sources: Mapping[str, _Source], error: _Error) -> bool:
    """Whether an error is in code known to be needed: device code, restored pieces, and text outside any piece."""
    found = _place(sources, error)
    if found is None or error.message.startswith("#error"):
        return True
    source, number = found
    return number in source.restored or source.is_device(source.pieces[number])


def _leave_out_missing(sources: Mapping[str, _Source], errors: Sequence[_Error], missing: list[str]) -> bool:
    changed = False
    for error in errors:
        match = _MISSING.search(error.message)
        if not match:
            continue
        for name, source in sources.items():
            if error.file == name or error.file.endswith("/" + name):
                start = sum(len(line) + 1 for line in source.text.split("\n")[: error.line - 1])
                end = start + len(source.line(error.line))
                if match[1] in source.text[start:end]:
                    source.text = source.text[:start] + " " * (end - start) + source.text[end:]
                    missing.append(match[1])
                    changed = True
    return changed


def _respell(sources: Mapping[str, _Source], errors: Sequence[_Error]) -> bool:
    """Rewrite `(type){…}`, a host compiler extension, as `type{…}`; and take the qualifiers off device lambdas.

    NVRTC has no host code, so that its lambdas need none.
    """
    changed = False
    for error in errors:
        found = _place(sources, error)
        if found and ("expected an expression" in error.message or "annotation on lambda" in error.message):
            source, lines = found[0], found[0].text.split("\n")
            line = lines[error.line - 1]
            plain = _COMPOUND.sub(lambda m: f" {m[1]} {m[2]}{{", line)
            lines[error.line - 1] = _LAMBDA.sub(lambda m: m[1] + " " * len(m[2]), plain)
            if lines[error.line - 1] != line:
                source.text, changed = "\n".join(lines), True
    return changed


def _restore(sources: Mapping[str, _Source], errors: Sequence[_Error]) -> bool:
    """Restore hidden pieces that declare missing names, each once."""
    missed = {name for e in errors for groups in _NEEDED.findall(e.message) for name in groups if name}
    missed |= {plain_name(symbol).split("::")[-1] for e in errors for symbol in _UNRESOLVED.findall(e.message)}
    changed = False
    for source in sources.values():
        for number in sorted(source.hidden - source.restored):
            if missed & declared_names(source.text, source.pieces[number]):
                source.hidden.discard(number)
                source.restored.add(number)
                changed = True
    return changed


def declared_names(text: str, piece: Piece) -> set[str]:
    """The names that a piece declares in its namespace."""
    header = re.sub(r"\btemplate\s*<[^(){};]*>", " ", piece.header)
    before_parameters = re.match(r"[^(=]*?([A-Za-z_]\w*)\s*\(", header)
    if before_parameters and not re.search(r"\b(typedef|using)\b", header):
        return {before_parameters[1]}
    names = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"=[^,;]*", " ", header)))
    if piece.body:
        body = text[piece.start : piece.end]
        names |= set(re.findall(r"[A-Za-z_]\w*", body.rpartition("}")[2]))
        if re.search(r"\benum\b", header):
            names |= set(re.findall(r"[A-Za-z_]\w*", body.partition("{")[2]))
    return names


def _hide(sources: Mapping[str, _Source], errors: Sequence[_Error]) -> bool:
    """Hide the pieces that contain errors and that only host code can use, and such members of the other classes."""
    changed = False
    # The errors of one line may all come from the first member that is hidden there.
    for error in {(error.file, error.line): error for error in reversed(errors)}.values():
        found = _place(sources, error)
        if found is None:
            continue
        source, number = found
        piece = source.pieces[number]
        if not source.is_device(piece) and number not in source.restored:
            if number not in source.hidden:
                source.hidden.add(number)
                changed = True
        elif span := _member(source, piece, error.line):
            source.ranges.append(span)
            changed = True
    return changed


def _member(source: _Source, piece: Piece, line: int) -> tuple[int, int] | None:
    """The host-only class member on this line that is left to hide, if any.

    Functions go before data, without which the others would lie elsewhere.
    """
    found = []
    for member in members(source.text, piece):
        span = member.start, member.end
        body = source.text[member.start : member.end]
        first = source.text.count("\n", 0, member.start + len(body) - len(body.lstrip())) + 1
        last = source.text.count("\n", 0, member.end) + 1
        if first <= line <= last and not source.is_device(member) and span not in source.ranges:
            found.append((not is_function(member.header), span))
    return min(found)[1] if found else None
