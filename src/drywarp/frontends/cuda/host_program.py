"""A source's host code as a program: its functions, macros and constants, and what is known at any place of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .branches import compiled_branches
from .host_code import HostFunction, closing, functions_of, pieces
from .host_values import Scope, State, Value, evaluate, split_call, split_commas
from .host_walk import statement, walk
from .nvrtc import Translation
from .source import blank_comments, blank_directives, parameters_of, type_names

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^()]*\))?[ \t]*((?:[^\n]*\\\n)*[^\n]*)$", re.M)
_RETURNS = re.compile(r"\{\s*return\b([^;]+);\s*\}\s*;?\s*$")
_DEEPEST = 3
"""How many callers up the parameters of a host function are followed."""


@dataclass(frozen=True)
class HostText:
    """A text without comments, directives and branches that are not compiled, and its functions."""

    origin: str
    text: str
    functions: tuple[HostFunction, ...]

    def place(self, at: int) -> str:
        """File and line of a place, as messages write it."""
        return f"{self.origin}:{self.text.count(chr(10), 0, at) + 1}"


@dataclass(frozen=True)
class HostProgram:
    """The source and the files that it includes, the source first, and what names mean outside of functions."""

    texts: tuple[HostText, ...]
    globals: Scope

    def state_at(
        self, held: HostText, at: int, fixed: Mapping[str, Value], types: Mapping[str, str], depth: int = 0
    ) -> State:
        """What is known at a place, with the parameters of its function from the first call of that.

        `fixed` are the values of variables, and `types` what type names mean, whatever the call says.
        """
        base = self.globals
        scope = Scope(
            {**base.values, "argc": 1, **fixed}, base.macros, base.functions, dict(base.types), {}, base.changed
        )
        state = State(scope, fixed=fixed)
        function = next((f for f in held.functions if f.piece.start <= at < f.piece.end), None)
        if function is None:
            return state
        if depth < _DEEPEST:
            self._bind(function, state, depth)
        scope.types.update(types)
        walk(held.text, function.body + 1, at, state)
        return state

    def _bind(self, function: HostFunction, state: State, depth: int) -> None:
        declared = parameters_of(function.parameters)
        defaults = [text.partition("=")[2].strip() for text in split_commas(function.parameters)]
        caller = self._caller(function) if declared or function.template else None
        for one, default in zip(declared, defaults, strict=False):
            state.scope.declared[one.name] = one.type
            if one.name != "argc":
                state.put(one.name, evaluate(default, state.scope) if default else None)
        if caller is None:
            return
        held, at, template, call = caller
        fixed = {
            text: state.fixed[one.name]
            for one, text in zip(declared, call, strict=False)
            if one.name in state.fixed and text.isidentifier()
        }
        outer = self.state_at(held, at, {**state.fixed, **fixed}, {}, depth + 1)
        for name, text in zip(function.template, template, strict=False):
            state.put(name, evaluate(text, outer.scope))
            state.scope.types[name] = text
        for one, text in zip(declared, call, strict=False):
            state.put(one.name, evaluate(text, outer.scope))
            plain = text.lstrip("&* ").replace("->", ".")
            if plain in outer.memory:
                state.memory[one.name] = outer.memory[plain]

    def _caller(self, function: HostFunction) -> tuple[HostText, int, list[str], list[str]] | None:
        called = re.compile(rf"(?<![\w.>]){re.escape(function.name)}\s*(?:<([^;{{}}()]*)>)?\s*\(")
        for held in self.texts:
            for match in called.finditer(held.text) if function.name else ():
                if any(f.body < match.start() < f.piece.end and f != function for f in held.functions):
                    call = held.text[match.end() : closing(held.text, match.end() - 1)]
                    return held, match.start(), split_commas(match[1] or ""), split_call(call)
        return None


@lru_cache(maxsize=4)
def host_program(translation: Translation, defines: tuple[tuple[str, str], ...]) -> HostProgram:
    """Read a source with the macros that the user defines, as (name, value)."""
    given = {name: value or "1" for name, value in defines}
    macros: dict[str, str] = {}
    functions: dict[str, tuple[Sequence[str], str]] = {}
    texts = []
    held_texts = [(str(one.path), one.text) for one in reversed(translation.included)]
    for origin, body in (*held_texts, (translation.origin, translation.text)):
        clean = compiled_branches(blank_comments(body), {"__CUDACC__": "1", "__NVCC__": "1", **macros, **given})
        for name, parameters, meaning in _DEFINE.findall(clean):
            meaning = meaning.replace("\\\n", " ").strip()
            if parameters:
                functions[name] = ([p.strip() for p in parameters.strip("()").split(",")], meaning)
            elif meaning:
                macros[name] = meaning
        text = blank_directives(clean)
        texts.append(HostText(origin, text, tuple(functions_of(text))))
    changed: dict[str, Sequence[int]] = {}
    types = type_names((*translation.bodies, translation.text), given)
    scope = Scope({}, {**given, **macros}, functions, types, {}, changed)
    for held in texts:
        for function in held.functions:
            listed = [text.partition("=")[0] for text in split_commas(function.parameters)]
            if places := [n for n, text in enumerate(listed) if "&" in text and not re.search(r"\bconst\b", text)]:
                changed[function.name] = places
            if match := _RETURNS.match(held.text, function.body, function.piece.end):
                functions[function.name] = ([p.name for p in parameters_of(function.parameters)], match[1])
        _globals(held, scope)
    return HostProgram(tuple(reversed(texts)), scope)


def _globals(held: HostText, scope: Scope) -> None:
    """Add the constants of a text, and its variables that nothing assigns again."""
    for piece in pieces(held.text):
        text = held.text[piece.start : piece.end].strip().rstrip(";")
        if match := re.match(r"enum\b[^{};]*\{([^{}]*)\}", text):
            number: Value | None = -1
            for entry in split_commas(match[1]):
                name, _, value = entry.partition("=")
                number = evaluate(value or "last + 1", Scope({**scope.values, "last": number}, scope.macros))
                scope.values[name.strip()] = number
            continue
        if piece.body and "=" not in piece.header:
            continue
        own = State(Scope(dict(scope.values), scope.macros, scope.functions, scope.types, scope.declared))
        statement(text, piece.start, own)
        constant = re.search(r"\b(?:const|constexpr)\b", piece.header)
        for name in own.scope.values.keys() - scope.values.keys():
            again = re.findall(rf"(?<![\w.]){re.escape(name)}\s*(?:(?:[-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--)", held.text)
            scope.values[name] = own.scope.values[name] if constant or len(again) == 1 else None
