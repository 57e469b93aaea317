"""Read kernels, their parameters and includes from CUDA C++ text without compiling it.

Machine code has neither parameter names nor types, but users refer to arguments by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from .branches import compiled_branches

_BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)
_INSIDE = re.compile(r"[^\n\\]|\\(?!\r?\n)")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter as declared: its name, its type without qualifiers, and its pointer depth."""

    name: str
    type: str
    pointer: bool
    depth: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class KernelDeclaration:
    """A `__global__` function in the text. `line` counts from 1.

    `scope` is the enclosing namespaces (`a::b`, without unnamed ones). `template_parameters` are its template
    parameters with their defaults (``""`` if none); None for a plain function.
    """

    name: str
    parameters: tuple[Declared, ...]
    line: int
    scope: str = ""
    template_parameters: tuple[tuple[str, str], ...] | None = None

    @property
    def template(self) -> bool:
        """Whether it takes template arguments."""
        return self.template_parameters is not None

    @property
    def all_default(self) -> bool:
        """Whether all template parameters have defaults, so that the name alone is an instance."""
        return all(default for _, default in self.template_parameters or ())

    @property
    def qualified(self) -> str:
        """The name with its namespaces."""
        return f"{self.scope}::{self.name}" if self.scope else self.name


def decode(data: bytes) -> str:
    """Decode source text as compilers do: UTF-8, with or without a byte-order mark, or an older 8-bit encoding.

    Raises UnicodeDecodeError if the data is not text.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # An old file may have 8-bit characters in its comments; control characters mean that it is not text.
        if re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", data):
            raise
        return data.decode("latin-1")


def blank_comments(text: str, *, literals: bool = True) -> str:
    """The text with comments and literals blanked; lines and line continuations stay in place."""
    return _BLANKED.sub(lambda m: _INSIDE.sub(" ", m[0]) if literals or m[0][0] == "/" else m[0], text)


def includes(text: str) -> list[tuple[str, bool]]:
    """Included names, and whether each is in quotes."""
    without = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return [(name, mark == '"') for mark, name in _INCLUDE.findall(without)]


def _closing(text: str, start: int, opening: str, closing: str, end: int) -> int:
    depth = 0
    for position in range(start, end):
        depth += (text[position] == opening) - (text[position] == closing)
        if depth == 0:
            return position
    return end


def blank_directives(clean: str) -> str:
    """Blank the preprocessor directives in text without comments; lines stay in place."""
    return re.sub(r"^[ \t]*#(?:.*\\\r?\n)*.*$", lambda m: re.sub(r"[^\n]", " ", m[0]), clean, flags=re.M)


_ATTRIBUTE = re.compile(
    r"[\s\w]*?\b(?:__launch_bounds__|__cluster_dims__|__block_size__|__maxnreg__|__attribute__|alignas)\s*\("
)
_CALL = r"\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)"
"""What stands in parentheses, with up to two more pairs inside: `(warps(TYPE, size()) * 32, 1)`."""
_TEMPLATE = re.compile(rf"\btemplate\s*<([^;{{}}]*)>(?:\s++|[A-Za-z_]\w*+(?:\s*+{_CALL})?+)*+$")


_HEADER = re.compile(r"[^;{}()]*?(?<!\w)([A-Za-z_]\w*+)\s*+\(")
_NAME_AFTER = re.compile(
    r"\s*+(?!__attribute__|__launch_bounds__|noexcept)(?:[A-Za-z_]\w*+[\s*&]++)*?([A-Za-z_]\w*+)\s*+\("
)
_ANY_VALUE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]*)$", re.M)
_NAMESPACE_OR_BRACE = re.compile(r"\bnamespace\b\s*([\w:]*)\s*\{|[{}]")
_MOST_HEADER = 4000
"""Length limit in characters of the template parameters before a kernel, and of the text before its parameters."""


def find_kernels(text: str, included: Iterable[str] = ()) -> tuple[KernelDeclaration, ...]:
    """All `__global__` function definitions and declarations, each name once; macros of the `included` texts count.

    If a kernel is both declared and defined, the definition counts.
    """
    # A library's headers are many, each of which is read with the macros of all.
    macros = _kernel_macros(frozenset((text, *included)))
    if "__global__" not in text and not any(name in text for name in macros):
        return ()
    clean = blank_directives(blank_comments(text))
    if macros:  # `#define KERNEL extern "C" __global__ void`
        clean = re.sub(rf"\b(?:{'|'.join(sorted(macros))})\b", "__global__", clean)
    found: dict[str, KernelDeclaration] = {}
    scopes: list[str] = []
    line, seen = 1, 0
    for match in re.finditer(r"\b__global__\b", clean):
        _follow_scopes(clean, seen, match.start(), scopes)
        line, seen = line + clean.count("\n", seen, match.start()), match.start()
        at = match.end()
        following = clean.find("__global__", at)
        end = following if following >= 0 else len(clean)
        limit = min(at + _MOST_HEADER, end)
        while bounds := _ATTRIBUTE.match(clean, at, limit):
            at = _closing(clean, bounds.end() - 1, "(", ")", end) + 1
        header = _HEADER.match(clean, at, max(limit, at))
        if not header:
            continue
        closing = _closing(clean, header.end() - 1, "(", ")", end)
        # What seemed to be the name may be a macro for launch bounds, with the name behind it.
        while later := _NAME_AFTER.match(clean, closing + 1, max(limit, closing + 1)):
            header = later
            closing = _closing(clean, header.end() - 1, "(", ")", end)
        opening = header.end() - 1
        template = _TEMPLATE.search(clean, max(0, match.start() - _MOST_HEADER), match.start())
        declaration = KernelDeclaration(
            name=header[1],
            parameters=tuple(parameters_of(clean[opening + 1 : closing])),
            line=line,
            scope="::".join(name for name in scopes if name),
            template_parameters=tuple(map(_template_parameter, split_top(template[1]))) if template else None,
        )
        is_definition = re.compile(r"\s*+\{").match(clean, closing + 1) is not None
        if is_definition or declaration.qualified not in found:
            found[declaration.qualified] = declaration
    return tuple(found.values())


@lru_cache(maxsize=64)
def _kernel_macros(texts: frozenset[str]) -> set[str]:
    """Macros that expand to `__global__`, also by way of other macros, in whichever order they are defined.

    One that means something else elsewhere (`#ifdef … #define HD __device__`) does not mark kernels.
    """
    meanings: dict[str, list[frozenset[str]]] = {}
    for text in texts:
        for name, words in _macro_words(text):
            meanings.setdefault(name, []).append(words)
    marks = {"__global__"}
    while further := {n for n, said in meanings.items() if n not in marks and all(marks & words for words in said)}:
        marks |= further
    return marks - {"__global__"}


@lru_cache(maxsize=4096)
def _macro_words(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The macros with a value that a text defines, and the words of the value."""
    found = _ANY_VALUE.findall(blank_comments(text))
    return tuple((name, frozenset(re.findall(r"\w+", meaning))) for name, meaning in found)


def _follow_scopes(clean: str, start: int, end: int, scopes: list[str]) -> None:
    """Advance the list of open namespaces and braces from `start` to `end`."""
    for match in _NAMESPACE_OR_BRACE.finditer(clean, start, end):
        if match[0] != "}":
            scopes.append(match[1] or "")
        elif scopes:
            scopes.pop()


def template_parameters_of(header: str) -> tuple[tuple[str, str], ...]:
    """The template parameters, with their defaults, of a declaration whose text starts with `template <…>`."""
    match = re.match(r"\s*template\s*<", header)
    if not match:
        return ()
    depth = 0
    for at in range(match.end() - 1, len(header)):
        depth += (header[at] == "<") - (header[at] == ">")
        if depth == 0:
            return tuple(map(_template_parameter, split_top(header[match.end() : at])))
    return ()


def _template_parameter(text: str) -> tuple[str, str]:
    head, _, default = text.partition("=")
    name = re.search(r"([A-Za-z_]\w*)\s*$", head)
    return (name[1] if name else "", default.strip())


_TYPEDEF = re.compile(r"\btypedef\s+([^;{}()\[\]]+?)([\s*])([A-Za-z_]\w*)\s*;")
_USING = re.compile(r"\busing\s+([A-Za-z_]\w*)\s*=\s*([^;{}]+);")
_ANY_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(?:[ \t]+(.*?))?[ \t]*$", re.M)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(?:[ \t]+([A-Za-z_][\w \t:*]*?))?[ \t]*$", re.M)


def type_names(texts: Iterable[str], defines: Mapping[str, str] | None = None) -> dict[str, str]:
    """Type aliases that the texts introduce: typedef, using, and macros that may expand to a type or to nothing.

    `defines` are macros given to the compiler. The last text is the file itself, whose macros its headers see. A name
    with several possible meanings that the visible macros do not resolve is left out.
    """
    return dict(_type_names(tuple(texts), tuple((defines or {}).items())))


@lru_cache(maxsize=16)  # every kernel of a file asks for the same
def _type_names(texts: tuple[str, ...], given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    cleaned = [blank_comments(text) for text in texts]
    defines = dict(given)
    macros = {name: value or "1" for name, value in given}
    own = dict(_ANY_MACRO.findall(cleaned[-1])) if cleaned else {}
    names: dict[str, str] = {}
    for clean in cleaned:
        # A text's own include guard is not defined at its start.
        begins = {name: value for name, value in own.items() if not re.search(rf"#[ \t]*define[ \t]+{name}\b", clean)}
        clean = compiled_branches(clean, begins | macros)
        meanings: dict[str, set[str]] = {}
        for name, meaning in _MACRO.findall(clean):
            meanings.setdefault(name, set()).add(meaning)
        clean = blank_directives(clean)
        for name, meaning in _USING.findall(clean):
            meanings.setdefault(name, set()).add(meaning.strip())
        for meaning, mark, name in _TYPEDEF.findall(clean):
            meanings.setdefault(name, set()).add(f"{meaning}{mark}".strip())
        for name, found in meanings.items():
            names.pop(name, None)
            if len(found) == 1:
                names[name] = found.pop()
    return names | {name: value for name, value in defines.items() if value}


def template_arguments(declaration: KernelDeclaration, entry: str) -> dict[str, str]:
    """The value of each template parameter in a name expression such as ``sgemm<128, float>``."""
    inner = entry.partition("<")[2].rpartition(">")[0]
    given = split_top(inner)
    parameters = declaration.template_parameters or ()
    return {
        name: given[number] if number < len(given) else default
        for number, (name, default) in enumerate(parameters)
        if name and (number < len(given) or default)
    }


def resolve(declared: Declared, names: Mapping[str, str]) -> Declared:
    """The parameter with every alias from `names` in its type resolved."""
    text = declared.type
    for _ in range(4):  # an alias may refer to another alias; a circular one must terminate too
        text = re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m[0], m[0]), text)
    pointer = declared.pointer or "*" in text
    return replace(declared, type=_plain_type(text), pointer=pointer)


def _plain_type(text: str) -> str:
    return " ".join(_QUALIFIERS.sub(" ", text).replace("*", " ").replace("&", " ").split())


def split_top(text: str) -> list[str]:
    """The parts between commas outside all brackets, without empty ones."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


_QUALIFIERS = re.compile(
    r"\b(const|volatile|restrict|__restrict__|__restrict|struct|enum|typename|__grid_constant__|register)\b"
)
_POINTER_TO = re.compile(r"^([^()]*)\(\s*[*&]\s*([A-Za-z_]\w*)\s*\)\s*[\[(]", re.S)
_TYPE_WORDS = {"signed", "unsigned", "char", "short", "int", "long", "float", "double", "bool", "half"}


def parameters_of(text: str) -> list[Declared]:
    """The parameters declared between a function's parentheses."""
    found = []
    for part in split_top(text):
        if part == "void":
            continue
        part = _QUALIFIERS.sub(" ", part.split("=")[0])
        if inner := _POINTER_TO.match(part):  # float (*rows)[32], or a function
            found.append(Declared(inner[2], _plain_type(inner[1]), True, 1))
            continue
        array = re.search(r"\[[^\]]*\]\s*$", part)
        part = re.sub(r"(\[[^\]]*\]\s*)+$", "", part)
        match = re.match(r"^(.*?)([A-Za-z_]\w*)\s*$", part, re.S)
        pointer = "*" in part or "&" in part or array is not None
        named = match is not None and match[1].strip() and match[2] not in _TYPE_WORDS
        type_text, name = (match[1], match[2]) if match and named else (part, "")
        depth = part.count("*") + (array is not None)
        found.append(Declared(name, _plain_type(type_text), pointer, depth))
    return found
