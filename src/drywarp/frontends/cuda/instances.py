"""Find the kernel template instances that a source's own host code launches, by scanning its text.

Host code is never compiled here, so nothing instantiates the kernels that it launches. A launch states the template
arguments (`sgemm<float, 16><<<…>>>`) or leaves them to be deduced from the call arguments. Both may use template
parameters of the host function, which its callers determine. The results are only candidates: the compiler decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...kernel.kernel import Symbol
from .deduce import deduced_arguments, local_constants
from .host_code import Piece, closing, pieces
from .host_values import split_commas
from .nvrtc import Translation
from .source import (
    Declared,
    KernelDeclaration,
    blank_comments,
    blank_directives,
    find_kernels,
    parameters_of,
    resolve,
    split_top,
    template_parameters_of,
)

_WORD = re.compile(r"[A-Za-z_]\w*")
_MOST_ROUNDS = 4
"""Maximum nesting of host templates that call host templates."""
_MOST_INSTANCES = 64
"""Maximum number of instances per source; large dispatch tables launch more than anybody needs."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A template with its arguments as a name expression, and the template's qualified name."""

    expression: str
    template: str


@dataclass(frozen=True, slots=True)
class _Mention:
    """`name<arguments>` in host code; `call` are the call arguments, None if there is no call."""

    name: str
    arguments: tuple[str, ...] | None
    call: tuple[str, ...] | None
    function: int


@dataclass(frozen=True)
class _Function:
    """A host function: its template parameters, its parameters and its text."""

    name: str
    template: tuple[tuple[str, str], ...]
    parameters: str
    text: str


def instances(translation: Translation) -> tuple[Instance, ...]:
    """The template instances that the source, or a file that it includes, launches, in source order."""
    # A launch within a macro may go over several lines.
    texts = [re.sub(r"\\(?=\r?\n)", " ", blank_comments(text)) for text in (translation.text, *translation.bodies)]
    templates = {d.name: d for text in texts for d in find_kernels(text, texts) if d.template}
    if not templates:
        return ()
    functions = [function for text in texts for function in _functions(text)]
    hosts = {f.name: f for f in functions if f.template}
    mentions = [m for n, f in enumerate(functions) for m in _mentions(f.text, n, {*templates, *hosts})]
    bindings = _host_bindings(functions, hosts, mentions)
    found: dict[str, Instance] = {}
    for mention in mentions:
        template = templates.get(mention.name)
        if template is None:
            continue
        function = functions[mention.function]
        for binding in bindings.get(function.name, [{}]) if function.template else [{}]:
            arguments = _arguments(mention, template, function, binding)
            if arguments is not None and len(found) < _MOST_INSTANCES:
                expression = f"{template.qualified}<{', '.join(arguments)}>"
                found.setdefault(expression, Instance(expression, template.qualified))
    return tuple(found.values())


def _functions(text: str) -> Iterator[_Function]:
    """Every function with a body; a class body counts as one function, and so does a macro."""
    for piece in pieces(text):
        if piece.body:
            yield _function(text, piece)
    for match in re.finditer(r"^[ \t]*#[ \t]*define\b(?:.*\\\r?\n)*.*$", text, re.M):
        if "<" in match[0]:
            yield _Function("", (), "", match[0].replace("\\\n", " \n"))


def _function(text: str, piece: Piece) -> _Function:
    header = piece.header.strip()
    template = template_parameters_of(header)
    plain = header
    opening = re.search(r"([A-Za-z_]\w*)\s*\(", plain)
    parameters = ""
    if opening:
        end = closing(plain, opening.end() - 1)
        parameters = plain[opening.end() : end]
    return _Function(opening[1] if opening else "", template, parameters, text[piece.start : piece.end])


def _mentions(text: str, function: int, names: set[str]) -> Iterator[_Mention]:
    for match in _WORD.finditer(text):
        if match[0] not in names:
            continue
        at = match.end()
        arguments: tuple[str, ...] | None = None
        angle = re.compile(r"\s*<(?!<)").match(text, at)
        if angle:
            end = _closing_angle(text, angle.end() - 1)
            if end < 0:
                continue
            arguments = tuple(split_top(text[angle.end() : end]))
            at = end + 1
        launch = re.compile(r"\s*<<<").match(text, at)
        if launch:
            finish = text.find(">>>", launch.end())
            if finish < 0:
                continue
            at = finish + 3
        call = re.compile(r"\s*\(").match(text, at)
        inside = text[call.end() : closing(text, call.end() - 1)] if call else None
        if arguments is None and inside is None:
            continue
        yield _Mention(match[0], arguments, tuple(split_top(inside)) if inside is not None else None, function)


def _closing_angle(text: str, start: int) -> int:
    """Index of the `>` that closes the template arguments opened at `start`; -1 if the `<` is a comparison."""
    depth = round_ = 0
    for at in range(start, min(len(text), start + 2000)):
        char = text[at]
        if char in "([{":
            round_ += 1
        elif char in ")]}":
            round_ -= 1
            if round_ < 0:
                return -1
        elif char == ";":
            return -1
        elif round_ == 0 and char == "<":
            depth += 1
        elif round_ == 0 and char == ">":
            depth -= 1
            if depth == 0:
                return at
    return -1


def _host_bindings(
    functions: Sequence[_Function], hosts: Mapping[str, _Function], mentions: Sequence[_Mention]
) -> dict[str, list[dict[str, str]]]:
    """The template arguments of each host template, over all calls to it."""
    bindings: dict[str, list[dict[str, str]]] = {name: [] for name in hosts}
    for _ in range(_MOST_ROUNDS):
        grown = False
        for mention in mentions:
            host = hosts.get(mention.name)
            caller = functions[mention.function]
            if host is None or (caller.name == host.name):
                continue
            for binding in bindings.get(caller.name, [{}]) if caller.template else [{}]:
                declaration = KernelDeclaration(host.name, tuple(parameters_of(host.parameters)), 0, "", host.template)
                arguments = _arguments(mention, declaration, caller, binding)
                if arguments is None:
                    continue
                bound = {name: a for (name, _), a in zip(host.template, arguments, strict=False) if name}
                if bound not in bindings[host.name] and len(bindings[host.name]) < _MOST_INSTANCES:
                    bindings[host.name].append(bound)
                    grown = True
        if not grown:
            break
    return bindings


def _arguments(
    mention: _Mention, template: KernelDeclaration, function: _Function, binding: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The template arguments at one mention; None if they cannot be determined."""
    given = list(mention.arguments or ())
    wanted = template.template_parameters or ()
    if len(given) < sum(1 for _, default in wanted if not default) and mention.call is not None:
        deduced = deduced_arguments(template, given, mention.call, function.parameters, function.text)
        if deduced is None:
            return None
        given = deduced
    constants = {**local_constants(function.text), **binding}
    texts = [_substituted(text, constants) for text in given]
    unbound = {name for name, _ in function.template} - set(binding)
    if any(word in unbound for text in texts for word in _WORD.findall(text)):
        return None
    return tuple(texts)


def _substituted(text: str, names: Mapping[str, str]) -> str:
    for _ in range(3):
        fresh = _WORD.sub(lambda m: names.get(m[0], m[0]), text)
        if fresh == text:
            break
        text = fresh
    return " ".join(text.split())


# Launches in host code, with the expressions that they state.

_CALLED = re.compile(r"\b(cudaLaunchKernelEx|(?:cuda|hip)Launch(?:Cooperative)?Kernel|hipLaunchKernelGGL)\s*\(")


@dataclass(frozen=True)
class LaunchSite:
    """A launch in the text: the expressions of its configuration and of its arguments."""

    at: int
    template: str
    grid: str
    block: str
    shared: str
    arguments: Sequence[str] | str


def launch_sites(text: str, name: str) -> Iterator[LaunchSite]:
    """The launches of a kernel with this name in a text without comments, by `<<<…>>>` first, then by functions."""
    triple = re.compile(rf"(?<!\w){re.escape(name)}\s*(?:<(?!<)([^;{{}}]*?)>)?\s*<<<")
    for match in triple.finditer(text):
        end = text.find(">>>", match.end())
        opening = text.find("(", end)
        if end < 0 or opening < 0 or text[end + 3 : opening].strip():
            continue
        config = [*split_commas(text[match.end() : end]), "", "", ""]
        call = split_commas(text[opening + 1 : closing(text, opening)])
        yield LaunchSite(match.start(), match[1] or "", config[0], config[1], config[2] or "0", call)
    for match in _CALLED.finditer(text):
        given = [*split_commas(text[match.end() : closing(text, match.end() - 1)]), "", "", "", ""]
        by_config = match[1] == "cudaLaunchKernelEx"
        called = re.search(rf"(?<!\w){re.escape(name)}\b\s*(?:<(.*)>)?", given[1 if by_config else 0], re.S)
        if called is None:
            continue
        if by_config:
            owner = given[0].lstrip("& ")
            grid, block, shared = (f"{owner}.{part}" for part in ("gridDim", "blockDim", "dynamicSmemBytes"))
            yield LaunchSite(match.start(), called[1] or "", grid, block, shared, [text for text in given[2:] if text])
        elif match[1] == "hipLaunchKernelGGL":
            call = [text for text in given[5:] if text]
            yield LaunchSite(match.start(), called[1] or "", given[1], given[2], given[3] or "0", call)
        else:
            yield LaunchSite(match.start(), called[1] or "", given[1], given[2], given[4] or "0", given[3])


# Types of `__constant__` and `__device__` variables, read from the source: machine code has only their sizes.

_DECLARATION = re.compile(r"(?:^|[;{}])([^;{}]*?)\b(?:__constant__\b([^;={]*)|__device__\b([^;={(]*)(?=[;={]))", re.M)
_STORAGE = re.compile(
    r"\b(?:static|extern|inline|constexpr|const|volatile|__device__|__constant__|__managed__|__restrict__)\b"
    r"|\b(?:alignas|__align__|__attribute__)\s*\([^)]*\)+|\btemplate\s*<[^<>]*>"
)
_DECLARATOR = re.compile(r"^(.*?)([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)$", re.S)


def constant_types(text: str) -> dict[str, tuple[str, bool, bool]]:
    """Element type of each `__constant__` or `__device__` variable, whether it is a pointer, and whether an array."""
    return dict(_constant_types(text))


@lru_cache(maxsize=4096)  # every kernel of a file asks for those of all its headers
def _constant_types(text: str) -> dict[str, tuple[str, bool, bool]]:
    if "__constant__" not in text and "__device__" not in text:
        return {}
    clean = blank_directives(blank_comments(text))
    found = {}
    for match in _DECLARATION.finditer(clean):
        first, *others = _split(_STORAGE.sub(" ", f"{match[1]} {match[2] or match[3]}"))
        if not (parts := _DECLARATOR.match(first.strip())):
            continue
        base = " ".join(parts[1].replace("*", " ").split())
        if not base:
            continue
        found[parts[2]] = (base, "*" in parts[1], bool(parts[3]))
        for other in others:
            if more := _DECLARATOR.match(other.strip()):
                found[more[2]] = (base, "*" in more[1], bool(more[3]))
    return found


def _split(declarators: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(declarators):
        depth += (char in "<([") - (char in ">)]")
        if char == "," and depth == 0:
            parts.append(declarators[start:position])
            start = position + 1
    return [*parts, declarators[start:]]


def typed(
    symbols: Mapping[str, Symbol], declared: Mapping[str, tuple[str, bool, bool]], names: Mapping[str, str]
) -> dict[str, Symbol]:
    """The symbols, with source types for variables; `names` maps type aliases to types."""
    done = dict(symbols)
    for name, symbol in symbols.items():
        plain = name.rpartition("::")[2]
        if symbol.space in ("constant", "global") and plain in declared:
            base, pointer, array = declared[plain]
            meant = resolve(Declared(plain, base, pointer), names)
            done[name] = replace(symbol, type=meant.type + ("*" if meant.pointer else "") + ("[]" if array else ""))
    return done
