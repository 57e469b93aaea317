"""Follow a host function's text up to one place: the values of its variables there, and the memory that it allocated.

Branches are followed where their condition is known, as if the program was started without arguments. What a loop or
an undecided branch before the place assigns is unknown afterwards. A loop around the place is in its first iteration.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .host_code import closing
from .host_values import Allocation, State, Value, evaluate, extents, split_call, split_commas

_CONTROL = re.compile(r"(if|for|while|switch|else|do)\b(?:\s*constexpr\b)?")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*(?:(?:\.|->)\w+)*)\s*(?:([-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*(\w+)")
_ADDRESS = re.compile(r"[(,]\s*(?:\([^()]*\)\s*)?&\s*([A-Za-z_]\w*)\b(?!\s*[\[.-])")
_DECLARED = re.compile(
    r"((?:[A-Za-z_][\w:]*(?:\s*<[^;{}()]*>)?[\s*&]+)+)([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)(?=[=({,]|$)"
)
_DECLARATOR = re.compile(r"[\s*&]*([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)(?:=\s*(.*)|([({])(.*)[)}])?$", re.S)
_CALL = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^;{}()]*>)?\s*\(")
_READ = re.compile(r"\bcin\b(.*)", re.S)
_NO_TYPES = re.compile(r"\s*(?:return|delete|new|else|using|goto|throw|case|typedef|template|extern)\b")
_ALLOCATE = re.compile(r"\b(?:cuda|hip)Malloc(?:Managed|Async|Host)?\s*\(")
_CLEAR = re.compile(r"\b(?:cuda|hip)Memset(?:Async)?\s*\(")
_LAST_NAME = re.compile(r"([A-Za-z_]\w*(?:(?:\.|->)\w+)*)\s*\)*\s*$")
_VECTOR = re.compile(r"(?:device_vector|universal_vector)\s*<\s*([^<>]+?)\s*>")


def walk(text: str, at: int, end: int, state: State) -> None:
    """Follow the statements in `text` from `at` to `end`; `text` holds neither comments nor directives."""
    while at < end:
        if text[at].isspace() or text[at] in ";}":
            at += 1
        elif match := _CONTROL.match(text, at):
            at = _control(text, match, end, state)
        elif text[at] == "{":
            last = closing(text, at)
            walk(text, at + 1, min(last, end), state)
            at = last + 1
        else:
            last = _end_of_statement(text, at)
            if last <= end:
                statement(text[at:last], at, state)
            elif (inner := text.find("{", at, end)) >= 0:
                last = inner  # the place is in a function of a class, or in a lambda
            at = last + 1


def _control(text: str, match: re.Match[str], end: int, state: State) -> int:
    """Follow an `if` with all its branches, or a loop; return where to go on."""
    word, at, done = match[1], match.end(), False
    if word == "else":
        return at  # of an `if` around the place
    while True:
        head = ""
        if word not in ("else", "do"):
            opening = text.find("(", at)
            after = closing(text, opening) + 1
            head, at = text[opening + 1 : after - 1], after
        at = _skip_space(text, at)
        last = closing(text, at) + 1 if text[at : at + 1] == "{" else _end_of_statement(text, at) + 1
        if word in ("if", "while", "switch"):
            _allocations(head, match.start(), state)
        test = evaluate(head, state.scope) if word == "if" else 1 if word == "else" else None
        if test is None and word == "if" and last <= end and re.search(r"\bargv\b", head):
            test = 0
        if last > end:
            if word == "for":
                statement(head.partition(";")[0], match.start(), state)
            state.reached = state.reached and not done and (test is None or bool(test))
            return at
        if word not in ("if", "else") or test is None:
            _forget(f"{head};{text[at:last]}", state)
            done = done if word != "if" else None  # type: ignore[assignment]
        elif test and not done:
            if done is None:
                _forget(text[at:last], state)
            else:
                if re.search(r"\b(?:return|exit|abort)\b", text[at:last]):
                    # The program ends without arguments.
                    state.put("argc", None)
                walk(text, at, last, state)
                done = True
        at = last
        following = re.compile(r"\s*else\b").match(text, at)
        if word not in ("if", "else") or not following or following.end() > end:
            return at
        again = re.compile(r"\s*if\b").match(text, following.end())
        word, at = ("if", again.end()) if again else ("else", following.end())


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _end_of_statement(text: str, at: int) -> int:
    while at < len(text) and text[at] not in ";}":
        at = closing(text, at) + 1 if text[at] in "([{" else at + 1
    return at


def _forget(text: str, state: State) -> None:
    for match in _ASSIGNED.finditer(text):
        name = (match[1] or match[3]).replace("->", ".")
        owner = name.rpartition(".")[0]
        state.put(owner if isinstance(state.scope.values.get(owner), tuple) else name, None)
    for name in _ADDRESS.findall(text):
        state.put(name, None)
    _changed_by_calls(text, state)


def _changed_by_calls(text: str, state: State) -> None:
    """Forget what functions of the program take by reference, and what is read from standard input."""
    for match in _CALL.finditer(text):
        given = split_call(text[match.end() : closing(text, match.end() - 1)])
        for place in state.scope.changed.get(match[1], ()):
            if place < len(given):
                state.put(given[place], None)
    if read := _READ.search(text):
        for name in re.findall(r">>\s*([A-Za-z_][\w.]*)", read[1]):
            state.put(name, None)


def statement(text: str, at: int, state: State) -> None:
    """Follow one declaration, assignment or call that starts at `at`."""
    _allocations(text, at, state)
    _changed_by_calls(text, state)
    declared = None if _NO_TYPES.match(text) else _DECLARED.match(text)
    if declared:
        _declare(declared[1], text[declared.start(2) :], at, state)
        return
    match = _ASSIGNED.match(text.strip())
    if match is None:
        for name in _ADDRESS.findall(text):
            if name not in state.memory:
                state.put(name, None)
        return
    name = (match[1] or match[3]).replace("->", ".")
    rest, sign = text.strip()[match.end() :], match[2]
    value = evaluate(rest, state.scope) if rest else None
    if sign or not rest:
        value = evaluate(f"{name} {sign} ({rest})" if sign else f"{name} {'+' if '++' in text else '-'} 1", state.scope)
    owner, _, member = name.rpartition(".")
    held = state.scope.values.get(owner) if owner else None
    if isinstance(held, tuple) and member in ("x", "y", "z"):
        numbers: list[Value | None] = [*held]
        numbers["xyz".index(member)] = value
        state.put(owner, extents(numbers))
    else:
        state.put(name, value)
        _alias(name, rest, state)


def _declare(type_: str, declarators: str, at: int, state: State) -> None:
    scope, plain = state.scope, " ".join(type_.replace("*", " ").replace("&", " ").split())
    plain = re.sub(r"\b(?:const|static|constexpr|volatile|struct|register)\b\s*", "", plain).strip()
    for declarator in split_commas(declarators):
        match = _DECLARATOR.match(declarator)
        if match is None:
            continue
        name, initial = match[1], match[3] if match[3] is not None else match[5]
        scope.declared[name] = plain
        held = initial.strip() if initial is not None else ""
        if match[2]:
            state.lists[name] = held.strip("{} ")
            state.put(name, None)
        elif vector := _VECTOR.search(type_):
            count = evaluate(split_commas(held)[0], scope) if held else None
            size = scope.type_bytes(vector[1])
            if isinstance(count, int | float) and size:
                state.memory[name] = Allocation(int(count) * size, at)
        elif plain.split("::")[-1] == "dim3":
            sides = [evaluate(part, scope) for part in split_commas(held.removeprefix("{").removesuffix("}"))]
            state.put(name, extents(sides) if held else (1, 1, 1))
        else:
            value = evaluate(held, scope) if held else None
            number = isinstance(value, int | float) and scope.is_type(plain)
            state.put(name, evaluate(f"({plain})({held})", scope) if number else value)
            _alias(name, held, state)


def _alias(name: str, text: str, state: State) -> None:
    """A pointer that is set to another one leads to the same memory."""
    other = re.fullmatch(r"(?:\([^()]*\)\s*)?([A-Za-z_]\w*)", text.strip())
    if other and other[1] in state.memory:
        state.memory[name] = state.memory[other[1]]


def _allocations(text: str, at: int, state: State) -> None:
    for pattern in (_ALLOCATE, _CLEAR):
        for match in pattern.finditer(text):
            given = split_commas(text[match.end() : closing(text, match.end() - 1)])
            name = _LAST_NAME.search(given[0]) if len(given) > 1 else None
            if name is None:
                continue
            held = name[1].replace("->", ".")
            if pattern is _CLEAR:
                if held in state.memory and evaluate(given[1], state.scope) == 0:
                    state.memory[held] = replace(state.memory[held], zeros=True)
                continue
            size = evaluate(given[1], state.scope)
            if isinstance(size, int | float) and size >= 1:
                state.memory[held] = Allocation(int(size), at)
            else:
                state.memory.pop(held, None)
