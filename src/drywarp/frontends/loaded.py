"""What the frontends deliver: a kernel, or one that can only be compiled once its arguments are known."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

import msgspec

from ..errors import DrywarpError, InputFileError, UsageError
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Dim3, Launch
from ..kernel.launch.layout import Layouts
from ..kernel.launch.structures import gives_fields, lacks_structure, with_layouts
from ..support.folders import read_toml
from ..support.text import kernels_text
from .binary.cubin import kernels_of
from .binary.sass import listing_of
from .binary.signatures import demangled, plain_name, without_parameters
from .cuda import FLAG, CudaOptions

# The launch that a kernel file may carry in a comment, written as on the command line.
#
# // drywarp: --grid 64,64 --block 16,16
# // drywarp: --arg A=f32[1024,1024]:random --arg n=1024
#
# In Python, the comment starts with `#`.

_LINE = re.compile(r"^\s*+(?://|\*|/\*|#)\s*+drywarp:(.*)$")
_REPEATED = {"--arg": "arguments", "--const": "constants", "-D": "defines"}
_SINGLE = {f"--{name}": name for name in ("grid", "block", "shared", "cluster", "entry", "std", "config")}
_FAST_MATH = "--use_fast_math"


@dataclass
class LaunchComment:
    """The options in a launch comment, as text; None or empty where the comment does not set them."""

    grid: str | None = None
    block: str | None = None
    shared: str | None = None
    cluster: str | None = None
    entry: str | None = None
    std: str | None = None
    config: str | None = None
    arguments: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    defines: dict[str, str] = field(default_factory=dict)
    compiler_options: list[str] = field(default_factory=list)

    @property
    def options(self) -> CudaOptions:
        """What it says to the compiler."""
        return CudaOptions(self.defines, std=self.std, compiler_options=self.compiler_options)

    def stated(self) -> dict[str, Any]:
        """What it states, as keyword arguments of `drywarp.analyze` and similar functions."""
        values = {
            **{name: getattr(self, name) for name in (*_SINGLE.values(), "constants", "defines")},
            "args": self.arguments,
            "shared": None if self.shared is None else int(self.shared),
            "compiler_options": tuple(self.compiler_options),
        }
        return {name: value for name, value in values.items() if value not in (None, {}, ())}


def launch_comment(text: str, origin: str) -> LaunchComment:
    """Read the launch comment of a source text. Raises InputFileError naming the line."""
    comment = LaunchComment()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LINE.match(line):
            _take(comment, match[1].strip().removesuffix("*/"), f"{origin}:{number}: launch comment")
    return comment


def launch_options(text: str, origin: str) -> LaunchComment:
    """Parse the text of a launch comment on its own. Raises InputFileError naming `origin`."""
    comment = LaunchComment()
    _take(comment, text, origin)
    return comment


def _take(comment: LaunchComment, text: str, place: str) -> None:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputFileError(f"{place}: {error}") from None
    known = ", ".join([*_SINGLE, *_REPEATED, FLAG, _FAST_MATH])
    at = 0
    while at < len(words):
        option, _, value = words[at].partition("=") if words[at].startswith("--") else (words[at], "", "")
        if option.startswith("-D") and len(option) > 2:
            option, value = "-D", words[at][2:]
        if words[at] == _FAST_MATH:
            option, value = FLAG, _FAST_MATH
        if option not in (*_SINGLE, *_REPEATED, FLAG):
            raise InputFileError(f"{place}: unknown option {option!r}; expected {known}")
        if not value and not words[at].endswith("="):
            at += 1
            if at >= len(words):
                raise InputFileError(f"{place}: {option} needs a value")
            value = words[at]
        if not value:
            raise InputFileError(f"{place}: {option} needs a value")
        if option == "--shared" and not value.isdecimal():
            raise InputFileError(f"{place}: --shared {value!r}: expected a number of bytes")
        if option == FLAG:
            comment.compiler_options.append(_compiler_option(value, place))
        elif option in _SINGLE:
            setattr(comment, _SINGLE[option], value)
        else:
            name, equals, text = value.partition("=")
            if not equals and option != "-D":
                raise InputFileError(f"{place}: {option} {value!r}: expected name=value")
            getattr(comment, _REPEATED[option])[name] = text
        at += 1


def _compiler_option(value: str, place: str) -> str:
    try:
        read = CudaOptions(compiler_options=[value])
    except UsageError as error:
        raise InputFileError(f"{place}: {error}") from None
    if read.includes:
        raise InputFileError(f"{place}: {FLAG} {value}: include folders are given on the command line")
    return value


@dataclass(frozen=True)
class HostLaunch:
    """A launch in a source's own host code, as far as its text settles it; values are as in a launch comment.

    `place` is its file and line, and `places` those where the memory of each buffer is allocated. `open` holds the text
    of what is not settled, by ``grid``, ``block``, ``shared`` or the argument's name.
    """

    place: str
    grid: str | None = None
    block: str | None = None
    shared: int | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)


# A launches file: several kernels of one source, or several launches of one, in a single run.
#
#     [[launch]]
#     kernel = "saxpy"                     # as --entry; optional if the source has only one kernel
#     grid = [65536]
#     block = 256
#     args = { n = 16777216, a = 2.0, x = "f32[16777216]:random", y = "f32[16777216]" }
#     times = 10                           # number of launches; default 1
#
# Further keys: `name` (for the report), `shared` (bytes), `cluster` (as `grid`, in blocks), `constants` and `defines`
# (tables), and `config` (a number, "best" or "best:N") for an autotuned kernel. A Triton kernel takes no `block`.

Extents = int | Annotated[list[int], msgspec.Meta(min_length=1, max_length=3)]


class LaunchEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[launch]]` table; a grid may be a string with expressions over the arguments."""

    grid: Extents | str
    block: Extents | None = None
    kernel: str | None = None
    name: str | None = None
    args: dict[str, str | int | float | bool | dict[str, Any]] = {}
    constants: dict[str, str | int | float | bool | dict[str, Any]] = {}
    defines: dict[str, str | int] = {}
    shared: Annotated[int, msgspec.Meta(ge=0)] | None = None
    cluster: Extents | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] = 1
    config: Annotated[int, msgspec.Meta(ge=0)] | Annotated[str, msgspec.Meta(pattern="^best(:[0-9]+)?$")] | None = None


Entry = TypeVar("Entry", bound=LaunchEntry)


class _File(msgspec.Struct, Generic[Entry], frozen=True, forbid_unknown_fields=True):
    launch: Annotated[list[Entry], msgspec.Meta(min_length=1)]


def read_launches(path: Path) -> list[LaunchEntry]:
    """Read the launches in a file. Raises InputFileError naming the file, the key and what was expected."""
    return read_entries(path, LaunchEntry)


def read_entries(path: Path, form: type[Entry]) -> list[Entry]:
    """Read the launches in a file, each as a `form`. Raises InputFileError naming file, key and what was expected."""
    content = read_toml(path, "a launches file")
    try:
        return msgspec.convert(content, _File[form]).launch  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise InputFileError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Specialised:
    """A kernel compiled for specific arguments.

    `arguments` are the values of the kernel's own parameters, by name; the compiler may have dropped some of the
    user's arguments and added others. `names` are all values that a grid expression may use. `block` and `shared`
    (bytes) are the values that the compiler fixed; None leaves them to the launch. `scratch` lists additional
    buffers that the launch must allocate: bytes per block by parameter. `cluster_blocks` blocks in x run for each
    program of the grid that the user states.
    """

    kernel: Kernel
    arguments: Mapping[str, Any]
    names: Mapping[str, Any]
    block: Dim3 | None = None
    shared: int | None = None
    scratch: Mapping[str, int] = field(default_factory=dict)
    cluster_blocks: int = 1


class Deferred(Protocol):
    """A kernel in a language that compiles it for the arguments of a call."""

    @property
    def name(self) -> str:
        """The function's name."""

    @property
    def origin(self) -> str:
        """The file name that messages use."""

    def tools(self) -> dict[str, str]:
        """Versions of the compilers involved, by name."""

    def takes(self, arch: str) -> set[str]:
        """Valid argument names."""

    def specialise(self, arguments: Mapping[str, Any], arch: str, config: int | None) -> Specialised:
        """Compile for these arguments: buffers, and Python values or the text that a user typed."""

    def configs(self, arch: str) -> tuple[str, ...]:
        """The author's autotune configurations, as text; empty if there are none."""


@dataclass(frozen=True)
class Loaded:
    """A loaded source: its kernel, and the launch comment of its file.

    `text` is the kernel's source if it is not in a file, or if its line numbers differ from the file's. `tools` are
    the versions of compilers other than drywarp's own compiler and disassembler. `compiled` is true if drywarp's
    compiler generated the machine code; the user's own build may use a different one. `launches` finds the launches of
    a kernel in the source's host code, given the numbers that the user states for arguments; None without host code.
    `layouts` looks up where the fields of a kernel's structures lie, with a second build; None if that is not possible.
    `launch` is the launch with its data, where the file holds one.
    """

    kernel: Kernel | Deferred
    comment: LaunchComment
    text: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)
    compiled: bool = False
    launches: Callable[[Kernel, Mapping[str, int | float]], Sequence[HostLaunch]] | None = None
    layouts: Callable[[Kernel, bool], Layouts] | None = None
    launch: Launch | None = None

    def with_fields(self, arguments: Mapping[str, Any], constants: Mapping[str, Any], static: bool = False) -> Loaded:
        """The kernel with the layouts of its structures, if the launch states fields or leaves out a structure.

        The static mode assumes structures that are left out. Raises CompileError if the launch states fields, but the
        second build fails.
        """
        kernel = self.kernel
        if self.layouts is None or not isinstance(kernel, Kernel):
            return self
        stated = gives_fields(kernel, arguments, constants)
        if not stated and (static or not lacks_structure(kernel, arguments)):
            return self
        try:
            return replace(self, kernel=with_layouts(kernel, self.layouts(kernel, stated)))
        except DrywarpError:
            if stated:
                raise
            return self


# Select one of several kernels in machine code and PTX, where only symbols distinguish them.


def chosen(found: Mapping[str, Kernel], entry: str | None, origin: str) -> Kernel:
    """The kernel that `entry` names: by symbol, by plain name if that is unique, or by name and template arguments.

    `found` maps symbols to kernels. Raises UsageError listing them.
    """
    names = entry_names(found)
    listed = kernels_text(sorted(names.values()), entry, origin)
    if entry is None:
        if len(found) == 1:
            return next(iter(found.values()))
        raise UsageError(f"{origin}: several kernels; name one with --entry: {listed}")
    spelt = {symbol: (symbol, plain_name(symbol), name, name.split("::")[-1]) for symbol, name in names.items()}
    matches = [symbol for symbol, known in spelt.items() if entry in known or _close(entry) in map(_close, known)]
    if not matches:
        from .cuda.nvcc import expressions_of

        matches = list(expressions_of(list(found), [entry]).values())
    if len(matches) == 1:
        return replace(found[matches[0]], name=entry)
    if matches:
        few = kernels_text(sorted(names[symbol] for symbol in matches), None, origin)
        raise UsageError(f"{origin}: {entry} is ambiguous; name one with --entry: {few}")
    raise UsageError(f"{origin}: no kernel named {entry!r}; it holds: {listed}")


def entry_names(symbols: Iterable[str], *, instances: bool = False) -> dict[str, str]:
    """The shortest distinguishing name of each symbol: `scale`, `shift<1>`, or the symbol itself.

    With `instances`, templates always have their arguments, without which a source's compiler does not find them.
    """
    names = {symbol: _instance(symbol) if instances else plain_name(symbol) for symbol in symbols}
    for shorter in (_instance, str):
        often = Counter(names.values())
        names = {symbol: name if often[name] == 1 else shorter(symbol) for symbol, name in names.items()}
    return names


def _instance(symbol: str) -> str:
    """A template with its arguments, without casts of numbers: `shift<1, float>`."""
    return re.sub(
        r"\((?:unsigned )?(?:int|long|short|char|bool|long long)\)", "", without_parameters(demangled(symbol))
    )


def _close(name: str) -> str:
    return "".join(name.split())


# Kernels from an existing CUBIN, disassembled once and cached.


def cubin_kernels(cubin: bytes, arch: str, origin: str, source: str = "") -> dict[str, Kernel]:
    """All kernels of a CUBIN for `arch` by symbol; `origin` is the file name that messages use.

    `source` is the source file as the user named it. Compilers write its absolute path into the line table; this
    function restores the user's spelling.
    """
    listing = listing_of(cubin, origin)
    if source:
        listing = listing.replace(f'"{os.path.abspath(source)}"', f'"{source}"')
    return kernels_of(cubin, listing, arch, origin)
