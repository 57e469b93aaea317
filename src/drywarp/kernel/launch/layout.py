"""Where each field of a structure lies: the layout of a C++ type, as a compiler's debug information states it."""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...errors import UsageError

NUMBER, POINTER, STRUCTURE, UNION, ARRAY, ENUMERATION = "number pointer structure union array enumeration".split()

Step: TypeAlias = "str | int"
"""One step of a path into a value: the name of a field, or an index."""

_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[\s*(\d+)\s*\]")


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a structure or union, `offset` in bytes from its start.

    A field without a name is a base class or an anonymous member: its own fields count as those of the structure.
    `bits` is the position (from the lowest bit) and width of a bit-field within its type; None for others.
    """

    name: str
    offset: int
    type: Layout
    bits: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """A type of `size` bytes; `kind` is one of the constants above.

    `name` is the C++ type without qualifiers, of a pointer that of what it points to. A structure or union has
    `fields`, an array an `element` type and `extents`, an enumeration the values of its `enumerators`.
    """

    kind: str
    name: str
    size: int
    fields: tuple[Field, ...] = ()
    element: Layout | None = None
    extents: tuple[int, ...] = ()
    enumerators: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """The type as C++ spells it: `float*`, `int[2][3]`."""
        if self.kind == ARRAY:
            assert self.element is not None
            return self.element.text + "".join(f"[{extent}]" for extent in self.extents)
        return self.name + "*" * (self.kind == POINTER)

    @property
    def members(self) -> tuple[Field, ...]:
        """The fields by which a user may name them: those of base classes and anonymous members are among them."""
        found: list[Field] = []
        for one in self.fields:
            inside = () if one.name else one.type.members
            found += [Field(i.name, one.offset + i.offset, i.type, i.bits) for i in inside] or [one] * bool(one.name)
        return tuple(found)


@dataclass(frozen=True)
class Layouts:
    """What debug information says of a kernel's parameters, by position with their names, and of variables by name."""

    parameters: tuple[tuple[str, Layout], ...] = ()
    variables: Mapping[str, Layout] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A place in a value that takes one number, pointer, text or handle."""

    path: str
    offset: int
    type: Layout
    bits: tuple[int, int] | None = None

    @property
    def span(self) -> tuple[int, int]:
        """First bit and the one behind the last, from the start of the whole value."""
        first, width = self.bits or (0, 8 * self.type.size)
        return 8 * self.offset + first, 8 * self.offset + first + width


def steps_of(text: str, place: str) -> tuple[Step, ...]:
    """The steps of a path such as `.v.data[3]`. Raises UsageError naming `place` for a malformed one."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise UsageError(f"{place}: {text!r}: expected a field's path, as in v.data or s[1]")
        steps.append(match[1] if match[1] else int(match[2]))
        at = match.end()
    return tuple(steps)


def part_at(leaf: Leaf, path: str, place: str) -> Leaf:
    """The field or element of a value at a path such as `.v.data[3]`. Raises UsageError naming `place`."""
    for step in steps_of(path, place):
        leaf = step_into(leaf, step, place.partition(" (")[0])
    return leaf


def step_into(leaf: Leaf, step: Step, place: str) -> Leaf:
    """The field or element of a value. Raises UsageError naming `place` if it has no such part."""
    held = leaf.type
    if isinstance(step, int):
        if held.kind != ARRAY or held.element is None:
            raise UsageError(f"{place}: {leaf.path} ({held.text}) is not an array, so it has no element [{step}]")
        if step >= held.extents[0]:
            raise UsageError(
                f"{place}: {leaf.path} ({held.text}) has no element [{step}]; expected 0 to {held.extents[0] - 1}"
            )
        inner = element_of(held)
        return Leaf(f"{leaf.path}[{step}]", leaf.offset + step * inner.size, inner)
    members = {one.name: one for one in held.members}
    if step not in members:
        if not members:
            raise UsageError(f"{place}: {leaf.path} ({held.text}) is not a structure, so it has no field {step!r}")
        near = difflib.get_close_matches(step, members, 1)
        hint = f"did you mean {near[0]}? it" if near else "it"
        raise UsageError(f"{place}: {leaf.path} ({held.text}) has no field {step!r}; {hint} has: {members_text(held)}")
    one = members[step]
    return Leaf(f"{leaf.path}.{step}", leaf.offset + one.offset, one.type, one.bits)


def element_of(array: Layout) -> Layout:
    """What an array consists of along its first extent: its elements, or arrays of one dimension less."""
    assert array.element is not None
    rest = array.extents[1:]
    return Layout(ARRAY, "", array.element.size * math.prod(rest), (), array.element, rest) if rest else array.element


def parts_of(leaf: Leaf) -> list[Leaf]:
    """The fields or elements of a value; none of a number, a pointer and the like."""
    if leaf.type.kind == ARRAY:
        return [step_into(leaf, index, "") for index in range(leaf.type.extents[0])]
    return [Leaf(f"{leaf.path}.{one.name}", leaf.offset + one.offset, one.type, one.bits) for one in leaf.type.members]


def leaves(leaf: Leaf, whole: Callable[[Layout], bool]) -> Iterator[Leaf]:
    """All places of a value that take one number, pointer or handle; an array of those is one place.

    Types for which `whole` holds are not taken apart.
    """
    held = leaf.type
    inner = held.element if held.kind == ARRAY and held.element is not None else held
    if inner.kind not in (STRUCTURE, UNION) or whole(inner):
        yield leaf
        return
    for part in parts_of(leaf):
        yield from leaves(part, whole)


_MOST_SHOWN = 24


def members_text(held: Layout) -> str:
    """The fields with their types, for messages: `float* data, int n`."""
    shown = [f"{one.type.text or 'struct'} {one.name}" for one in held.members]
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    return ", ".join(shown[:_MOST_SHOWN]) + more


# Fields as users write them: `p.v.data=…`, `{n=1, v.data=f32[4]}`, or JSON.

_PATH = re.compile(r"[.\[]")
_BARE = re.compile(
    r"""(?P<kept>"(?:[^"\\]|\\.)*"|'[^']*')"""
    r"""|(?P<before>=\s*)(?P<value>(?!(?:true|false|inf|nan)\s*[,}\]])[A-Za-z_@]"""
    r"""(?:[^,{}()\[\]"']|\([^()]*\)|\[[^\[\]]*\])*)"""
)
"""A value without quotation marks in a TOML table, such as `f32[64,64]:random(0,1)` or an enumerator."""


def root_of(name: str, names: Collection[str]) -> str:
    """The parameter that an argument's name begins with: `p` for `p.v.data`; a parameter's own name is left alone."""
    return name if name in names else _PATH.split(name, maxsplit=1)[0]


def tables_in(value: Any, place: str) -> Any:
    """What a text of fields (`{n=1, v.data=f32[4]}`, or JSON) or of elements (`[1, 2]`) stands for; other values."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    text = value.strip()
    try:
        return json.loads(text)
    except ValueError:
        pass
    quoted = _BARE.sub(lambda m: m["kept"] or m["before"] + json.dumps(m["value"].strip()), text)
    try:
        return tomllib.loads(f"v = {quoted}")["v"]
    except tomllib.TOMLDecodeError as error:
        reason = re.sub(r" \(at .*\)$", "", str(error)).lower()
        raise UsageError(f"{place}: {value!r}: {reason}; expected fields, as in {{n=1024, s=[0, 2.5, 0]}}") from None


def flat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the fields of structures under their own names (`p.n`), for expressions."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        held = tables_in(value, f"argument {name}") if is_table(value) else value
        found |= (
            {f"{name}.{key}": one for key, one in flat(held).items()} if isinstance(held, Mapping) else {name: held}
        )
    return found


def is_table(value: Any) -> bool:
    """Whether a value is several fields: a mapping, or its text."""
    return isinstance(value, Mapping) or (isinstance(value, str) and value.strip().startswith("{"))
