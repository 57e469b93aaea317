"""Read how a source's own host code launches a kernel: grid, block, shared memory, values and sizes of buffers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...kernel.kernel import Kernel, Parameter
from ...kernel.launch.arguments import parameter_name
from ...kernel.launch.values import element_type, number_code
from ..loaded import HostLaunch
from .host_program import HostProgram, HostText, host_program
from .host_values import State, Value, evaluate, extents, split_commas
from .instances import LaunchSite, launch_sites
from .nvcc import canonical, is_alike, with_meanings
from .nvrtc import Translation
from .source import split_top, type_names

_POINTER = re.compile(
    r"(?:(?:thrust::)?raw_pointer_cast\s*\()?\s*&?\s*([A-Za-z_]\w*(?:(?:\.|->)(?!data\b)\w+)*)"
    r"(?:\.data\(\)(?:\.get\(\))?|\.begin\(\))?\s*(?:(?:\[|\+)\s*([^\]]+?)\s*\]?)?\)?"
)
_PARAMETER = re.compile(r"\b(?:typename|class)\s+(\w+)\s*[,>=]")
_SETTLED = re.compile(r"\d+|(?:un)?(?:signed)?(?:char|short|int|long|longlong)|float|double|bool|half2?|nv_bfloat162?")
_CAST = re.compile(r"^(?:\(\s*[\w:\s]+[\s*]*\)\s*|(?:reinterpret|static|const)_cast\s*<[^<>]*>\s*)")


def host_launches(
    translation: Translation, kernel: Kernel, given: Mapping[str, int | float], defines: Mapping[str, str]
) -> tuple[HostLaunch, ...]:
    """Every launch of the kernel in the source and the files that it includes, in order, that its host code reaches.

    `given` are the numbers that the user states for arguments: a variable that the launch passes has that value.
    """
    program = host_program(translation, tuple(sorted(defines.items())))
    name = kernel.name.partition("<")[0].strip().split("::")[-1]
    sites = [(held, site) for held in program.texts for site in launch_sites(held.text, name)]
    aliases = _aliases(translation, defines)
    meant = {site.template: with_meanings(f"<{site.template}>", aliases)[1:-1] for _, site in sites}
    spelt = with_meanings(kernel.name, aliases)
    sites = [both for both in sites if not _is_other_instance(meant[both[1].template], spelt)]
    # Text that names another alias may mean the same instance.
    sites.sort(key=lambda both: not _is_this_instance(meant[both[1].template], spelt))
    found = [_settled(program, held, site, kernel, given) for held, site in sites]
    return tuple(launch for launch, reached in found if reached or not any(other for _, other in found))


def _aliases(translation: Translation, defines: Mapping[str, str]) -> Mapping[str, str]:
    """The aliases of types, without names that are also a template's parameters."""
    known = type_names((*translation.bodies, translation.text), defines)
    return {name: meaning for name, meaning in known.items() if name not in _PARAMETER.findall(translation.text)}


def _is_this_instance(template: str, name: str) -> bool:
    """Whether both name an instance of a template by the same arguments."""
    return bool(template) and canonical(f"k<{template}>") == canonical(f"k<{_arguments(name)}>")


def _is_other_instance(template: str, name: str) -> bool:
    """Whether both name an instance of a template by numbers and types, and not the same one."""
    ours, theirs = (split_top(canonical(f"k<{one}>")[2:-1]) for one in (template, _arguments(name)))
    given = list(zip(ours, theirs, strict=False))
    settled = all(_SETTLED.fullmatch(one) and _SETTLED.fullmatch(two) for one, two in given)
    return settled and any(not is_alike(one, two) for one, two in given)


def _arguments(name: str) -> str:
    return name.partition("<")[2].rpartition(">")[0]


def _template_arguments(template: str, name: str) -> dict[str, str]:
    """What the names in a launch's template arguments are in this instance: N is 64 for ``k<T, N>``, ``k<int, 64>``."""
    both = zip(split_top(template), split_top(_arguments(name)), strict=False)
    return {text: value for text, value in both if text.isidentifier()}


def _settled(
    program: HostProgram, held: HostText, site: LaunchSite, kernel: Kernel, given: Mapping[str, int | float]
) -> tuple[HostLaunch, bool]:
    """The launch at a place, and whether host code reaches it."""
    names = [parameter_name(p) for p in kernel.parameters]
    types = _template_arguments(site.template, kernel.name)
    numbers = {text: evaluate(value, program.globals) for text, value in types.items()}
    instance = {text: value for text, value in numbers.items() if value is not None}

    def fixed(call: Sequence[str]) -> dict[str, Value]:
        passed = zip(names, call, strict=False)
        stated = {text: given[name] for name, text in passed if name in given and text.isidentifier()}
        return {**instance, **stated}

    call = [] if isinstance(site.arguments, str) else site.arguments
    state = program.state_at(held, site.at, fixed(call), types)
    if isinstance(site.arguments, str):
        listed = state.lists.get(site.arguments.strip(), "")
        call = [_CAST.sub("", text).lstrip("& ") for text in split_commas(listed)]
        state = program.state_at(held, site.at, fixed(call), types)
    open_: dict[str, str] = {}
    sizes: dict[str, str | None] = {}
    for what, text in (("grid", site.grid), ("block", site.block)):
        value = extents([evaluate(text, state.scope)])
        shown = value[: 3 if value[2] > 1 else 2 if value[1] > 1 else 1] if value and min(value) > 0 else ()
        sizes[what] = ",".join(map(str, shown)) or None
        if sizes[what] is None:
            open_[what] = " ".join(text.split())
    shared = evaluate(site.shared, state.scope)
    if not isinstance(shared, int | float):
        open_["shared"] = " ".join(site.shared.split())
    arguments, places = {}, {}
    for parameter, name, text in zip(kernel.parameters, names, call, strict=False):
        value_text, at = _argument(parameter, text, state)
        if value_text is None:
            open_[name] = " ".join(text.split())
            continue
        arguments[name] = value_text
        if at is not None:
            places[name] = held.place(at)
    dynamic = int(shared) if isinstance(shared, int | float) else None
    launch = HostLaunch(held.place(site.at), sizes["grid"], sizes["block"], dynamic, arguments, places, open_)
    return launch, state.reached


def _argument(parameter: Parameter, text: str, state: State) -> tuple[str | None, int | None]:
    """The value of an argument as on the command line, and where its memory is allocated."""
    while parameter.pointer and (cast := _CAST.match(text)):
        text = text[cast.end() :].strip()
    opaque = not parameter.pointer and parameter.size == 8 and not number_code(parameter.type)
    if parameter.pointer and text in ("nullptr", "NULL", "0"):
        return "null", None
    if parameter.pointer or opaque:
        match = _POINTER.fullmatch(text)
        memory = state.memory.get(match[1].replace("->", ".")) if match else None
        if match is not None and memory is not None:
            dtype, size = element_type(parameter)
            skipped = evaluate(match[2], state.scope) if match[2] else 0
            if not isinstance(skipped, int | float):
                return None, None
            count = memory.bytes // size - int(skipped)
            known = dtype != "u8" or number_code(parameter.type)
            fill = ":random" if known and not memory.zeros else ""
            return (f"{dtype}[{count}]{fill}", memory.at) if count > 0 else (None, None)
        if parameter.pointer:
            return None, None
    value = evaluate(text, state.scope)
    if not isinstance(value, int | float):
        return None, None
    whole = number_code(parameter.type)[-1:] not in ("", "e", "f", "d") or isinstance(value, int)
    if whole and value == value and abs(value) < 1e18:
        return str(_wrapped(int(value), parameter)), None
    return repr(value), None


def _wrapped(value: int, parameter: Parameter) -> int:
    """The number that a parameter of this type holds, as C++ converts it: 0xffffffff is -1 in an int."""
    code = number_code(parameter.type)[-1:]
    if code not in ("b", "h", "i", "q"):
        return value
    bits = 8 * parameter.size
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
