"""Deduce the template arguments that a call omits from the declared types of its arguments.

This covers the part of C++ deduction that kernel sources use: pointers and values of a type parameter, passed as
variables, casts, literals, or a pointer plus an offset. Anything else is not deduced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .source import Declared, KernelDeclaration, blank_directives, parameters_of

_CONSTANT = re.compile(r"\b(?:const|constexpr)\b[\w\s:]*?\b([A-Za-z_]\w*)\s*=\s*([^;{}]+?)\s*;")
_ALIAS = re.compile(r"\busing\s+([A-Za-z_]\w*)\s*=\s*([^;{}]+);")
_CAST = re.compile(r"^\(\s*((?:const\s+)?[A-Za-z_][\w:\s]*(?:<[^()]*>)?)\s*(\**)\s*(?:const\s*)?\)\s*(?=[\w&(])")
_NAMED_CAST = re.compile(r"^(?:reinterpret|static|const)_cast\s*<\s*([^<>*]+(?:<[^<>]*>)?)\s*(\**)\s*(?:const\s*)?>")
_RAW = re.compile(r"^(?:thrust::)?raw_pointer_cast\s*\((.*)\)$", re.S)
_LITERALS = (
    (re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+\.?)([eE][-+]?\d+)?[fF]$"), "float"),
    (re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+[eE][-+]?\d+)([eE][-+]?\d+)?$"), "double"),
    (re.compile(r"^[-+]?(0x[0-9a-fA-F]+|\d+)$"), "int"),
    (re.compile(r"^(\d+)[uU]$"), "unsigned int"),
    (re.compile(r"^(true|false)$"), "bool"),
)
_NO_TYPES = {"return", "delete", "new", "else", "case", "goto", "throw", "using", "typename", "sizeof"}


@dataclass(frozen=True, slots=True)
class _Type:
    base: str
    depth: int


def local_constants(text: str) -> dict[str, str]:
    """Constants and type aliases that a function's text introduces, with their values."""
    clean = blank_directives(text)
    names = {name: value for name, value in _CONSTANT.findall(clean) if not re.search(r"[\"?]", value)}
    names.update({name: value.strip() for name, value in _ALIAS.findall(clean)})
    return {name: value for name, value in names.items() if not re.search(rf"\b{name}\b", value)}


def deduced_arguments(
    template: KernelDeclaration, given: Sequence[str], call: Sequence[str], parameters: str, text: str
) -> list[str] | None:
    """All arguments of a template; those after `given` are deduced from the arguments of a call.

    `parameters` and `text` belong to the calling function. None if an argument cannot be deduced.
    """
    wanted = template.template_parameters or ()
    known: dict[str, str] = dict(zip((name for name, _ in wanted), given, strict=False))
    local = {declared.name: declared for declared in parameters_of(parameters) if declared.name}
    for parameter, argument in zip(template.parameters, call, strict=False):
        for name, _ in wanted:
            if name and name not in known and re.search(rf"\b{re.escape(name)}\b", parameter.type):
                type_ = _type_of(argument.strip(), local, text)
                value = _matched(parameter, name, type_) if type_ else None
                if value:
                    known[name] = value
    arguments = []
    for name, default in wanted:
        if name in known:
            arguments.append(known[name])
        elif default:
            break
        else:
            return None
    return arguments


def _matched(parameter: Declared, name: str, type_: _Type) -> str | None:
    """The value of `name` if a parameter of this form takes an argument of this type."""
    if parameter.type == name:
        more = type_.depth - parameter.depth
        return type_.base + "*" * more if more >= 0 else None
    pattern = re.escape(parameter.type).replace(r"\ ", r"\s*")
    form = re.sub(rf"\b{re.escape(name)}\b", "(.+)", pattern, count=1)
    match = re.fullmatch(form, type_.base)
    return match[1].strip() if match and parameter.depth == type_.depth else None


def _type_of(argument: str, local: Mapping[str, Declared], text: str) -> _Type | None:
    """The type of a call argument; None if it cannot be determined."""
    if match := _RAW.match(argument):
        inner = match[1].strip().removeprefix("&").split("[")[0].removesuffix(".data()")
        held = _type_of(inner.strip(), local, text)
        element = re.search(r"<\s*([^<>]+?)\s*>$", held.base) if held else None
        return _Type(element[1], 1) if element else None
    for pattern in (_CAST, _NAMED_CAST):
        if match := pattern.match(argument):
            return _Type(_plain(match[1]), len(match[2]))
    for literal, name in _LITERALS:
        if literal.match(argument):
            return _Type(name, 0)
    reference = argument.startswith("&")
    simple = re.match(r"^&?\s*([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)(?:[+]\s*[\w\s*+()]+)?$", argument)
    if not simple:
        return None
    found = _declared(simple[1], local, text)
    if found is None:
        return None
    depth = found.depth + reference - simple[2].count("[")
    return _Type(found.base, depth) if depth >= 0 else None


def _declared(name: str, local: Mapping[str, Declared], text: str) -> _Type | None:
    if name in local:
        return _Type(local[name].type, local[name].depth)
    # `float *a, *b = …, c[4];` in the function's text; the last declaration before the use would be exact.
    pattern = re.compile(
        r"(?:^|[;{}(,])\s*(?:(?:static|const|extern|thrust)\b(?:::)?\s*)*"
        r"((?:unsigned\s+|signed\s+|long\s+|std::|thrust::)*[A-Za-z_][\w:]*(?:\s*<[^;{}()]*>)?)"
        rf"((?:[\s*&]+(?:[A-Za-z_]\w*\s*(?:\[[^\]]*\])*\s*(?:=[^,;]*)?,[\s*&]*)*?))(?<![\w])({re.escape(name)})"
        r"\s*((?:\[[^\]]*\]\s*)*)(?=[,;=({)])",
        re.M,
    )
    for match in pattern.finditer(text):
        base = match[1].strip()
        if base.split()[0] in _NO_TYPES or base == "auto":
            continue
        stars = match[2].rpartition(",")[2].count("*")
        return _Type(_plain(base), stars + match[4].count("["))
    return None


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\b(const|volatile|struct|typename|static)\b", " ", text).split())
