"""A space of configurations: its file, and its checks.

kernel = "tiled_matmul.cu"            # relative to this file
gpus = ["a100", "h100"]
grid = "cdiv(n,TILE), cdiv(n,TILE)"   # expressions over parameters and numeric macros
block = "TILE, TILE"
restrictions = ["TILE*TILE <= 1024"]

[parameters]
TILE = [8, 16, 32]
n = [1024]

[args]
A = "f32[n*n]:random"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ...errors import InputFileError, UsageError
from ...support.expressions import ExpressionError, names_in
from ...support.folders import read_toml
from ..rows import Settings
from ..rows.recipe import Recipe, named_columns, numbers_of, split
from ..rows.row_file import text_of

Cell = bool | int | float | str
Extents = int | str | list[int | str]
Amount = int | float | str
GPU = "gpu"
"""The name of the GPU in restrictions and expressions; no parameter may have it."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_EXTENTS_OF = re.compile(r"^\w+\[([^\]]*)\]")


class Optimisation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a variant: the values that it sets, and the potential benefits that it should collect."""

    set: Annotated[dict[str, Cell], msgspec.Meta(min_length=1)]
    benefits: list[Literal["b_itilp", "b_memlp", "b_fp", "b_serial"]] = []


class Space(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to sweep over; the keys of a space file are these fields.

    Every combination of `parameters` that satisfies the `restrictions` (conditions over parameters and ``gpu``), or the
    listed `configurations`, on each of the `gpus`. `problem` names parameters that define the problem, such as a size,
    rather than a choice: configurations compete at equal values of them. `macros` are the parameters that become
    macros (default: all that are not the name of an argument). The other launch fields are those of
    `drywarp.experiments.rows.recipe.Recipe`, and the last ones those of `drywarp.experiments.rows.Settings`
    (`policy` is its scheduler).

    `optimisations` are named changes of the first configuration, `steps` those that are applied one after the other;
    both matter only where the potential benefits are asked for.
    """

    kernel: Any
    gpus: Annotated[list[Any], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["a100"])
    parameters: dict[str, list[Cell]] = {}
    configurations: list[dict[str, Cell]] = []
    restrictions: list[str] = []
    problem: list[str] = []
    macros: list[str] | None = None
    defines: dict[str, Cell] = {}
    grid: Extents | None = None
    block: Extents | None = None
    args: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    shared: int | str | None = None
    cluster: Extents | None = None
    entry: str | None = None
    max_registers: int | str | None = None
    config: int | str | None = None
    clock: Amount | None = None
    includes: list[str] = []
    std: str | None = None
    compiler_options: list[str] = []
    models: Annotated[list[str], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["pipeline"])
    warm_l2: bool = False
    policy: str | None = None
    blocks: int | None = None
    confidence: float | None = None
    full_simulation: bool = False
    optimisations: dict[str, Optimisation] = {}
    steps: list[str] = []

    def names(self) -> tuple[str, ...]:
        """The parameters in order; the last one varies fastest."""
        listed = (name for configuration in self.configurations for name in configuration)
        return tuple(dict.fromkeys([*self.parameters, *listed]))

    def macro_names(self) -> tuple[str, ...]:
        """The parameters that become macros."""
        if self.macros is not None:
            return tuple(self.macros)
        return tuple(name for name in self.names() if name not in self.args)

    def recipe(self) -> Recipe:
        """How a configuration becomes a launch."""
        return Recipe(
            macros=self.macro_names(),
            defines={name: text_of(value) for name, value in self.defines.items()},
            grid=_extents(self.grid),
            block=_extents(self.block),
            args={name: _argument(value) for name, value in self.args.items()},
            constants={name: _argument(value) for name, value in self.constants.items()},
            shared=None if self.shared is None else str(self.shared),
            entry=self.entry,
            max_registers=None if self.max_registers is None else str(self.max_registers),
            clock=None if self.clock is None else str(self.clock),
            includes=tuple(self.includes),
            std=self.std,
            compiler_options=tuple(self.compiler_options),
            cluster=_extents(self.cluster),
            config=None if self.config is None else str(self.config),
        )

    def settings(self, band: bool = False, benefits: bool = False) -> Settings:
        """How configurations are predicted."""
        return Settings(
            models=tuple(dict.fromkeys(self.models)),
            warm_l2=self.warm_l2,
            scheduler=self.policy,
            blocks=self.blocks,
            confidence=self.confidence,
            full_simulation=self.full_simulation,
            band=band,
            cap=False,
            benefits=benefits,
        )


def read_space(path: Path) -> Space:
    """Read a space file. Raises InputFileError with the file, the line or key, and what was expected."""
    content = read_toml(path, "a space file")
    space = checked(content, str(path))
    if not isinstance(space.kernel, str):
        raise InputFileError(f"{path}: kernel is {space.kernel!r}, expected the path of a file")
    beside = [str(path.parent / folder) for folder in space.includes]
    if strange := [name for name in space.gpus if not isinstance(name, str)]:
        raise InputFileError(f"{path}: gpus: {strange[0]!r}, expected names of GPUs or GPU files")
    gpus = [str(path.parent / name) if name.endswith(".toml") else name for name in space.gpus]
    return msgspec.structs.replace(space, kernel=str(path.parent / space.kernel), includes=beside, gpus=gpus)


def checked(given: Space | Mapping[str, Any], origin: str) -> Space:
    """A space with all names and expressions checked. Raises InputFileError with the key and what was expected."""
    content = msgspec.structs.asdict(given) if isinstance(given, Space) else dict(given)
    try:
        space = msgspec.convert(content, Space)
    except msgspec.ValidationError as error:
        keys = f" (expected {', '.join(Space.__struct_fields__)})" if "unknown field" in str(error) else ""
        raise InputFileError(f"{origin}: {error}{keys}") from None
    try:
        _check(space)
    except (UsageError, ExpressionError) as error:
        raise InputFileError(f"{origin}: {error}") from None
    return space


def _check(space: Space) -> None:
    if bool(space.parameters) == bool(space.configurations):
        raise UsageError("expected either parameters (every combination is used) or configurations")
    names = space.names()
    for name in names:
        if not _NAME.fullmatch(name) or name == GPU:
            raise UsageError(f"parameters.{name}: expected an identifier other than {GPU!r}")
    for name, values in space.parameters.items():
        texts = [text_of(value) for value in values]
        if not values or len(set(texts)) < len(values):
            raise UsageError(f"parameters.{name}: expected distinct values")
    for number, configuration in enumerate(space.configurations, 1):
        if missing := [name for name in names if name not in configuration]:
            raise UsageError(f"configurations: number {number} has no {missing[0]!r}, which others have")
    first: dict[tuple[str, ...], int] = {}
    for number, configuration in enumerate(space.configurations, 1):
        same = first.setdefault(tuple(text_of(configuration[name]) for name in names), number)
        if same != number:
            raise UsageError(f"configurations: number {number} repeats number {same}, expected distinct ones")
    values = [v for listed in space.parameters.values() for v in listed]
    values += [v for configuration in space.configurations for v in configuration.values()]
    if broken := [v for v in values if isinstance(v, str) and (not v.strip() or not v.isprintable())]:
        raise UsageError(f"parameters: {broken[0]!r}: expected a non-empty string of one line")
    for key, chosen in (("macros", space.macros or []), ("problem", space.problem)):
        if unknown := [name for name in chosen if name not in names]:
            raise UsageError(f"{key}: no parameter {unknown[0]!r}; there are: {', '.join(names)}")
    known = {*names, GPU}
    for text in space.restrictions:
        _check_names(text, known, "restrictions")
    _check_optimisations(space)
    recipe = space.recipe()
    known |= {*space.defines, *numbers_of(recipe.args)}
    for key in ("grid", "block", "shared", "cluster", "max_registers", "config", "clock"):
        # A configuration has constants of its own, which the grid may use.
        free = (key == "grid" and recipe.config) or (key == "config" and "best" in (recipe.config or ""))
        for part in split(getattr(recipe, key) or ""):
            if part.strip() and not free:
                _check_names(part, known, key)
    if strange := sorted(named_columns(recipe.entry) - known):
        raise UsageError(f"entry: unknown name {strange[0]!r}; known: {', '.join(sorted(known))}")
    for table in ("args", "constants"):
        for name, value in getattr(recipe, table).items():
            if isinstance(value, str) and (match := _EXTENTS_OF.match(value.strip())):
                for part in split(match[1]):
                    if part.strip():
                        _check_names(part, known, f"{table}.{name}")


def _check_optimisations(space: Space) -> None:
    for name, change in space.optimisations.items():
        for parameter, value in change.set.items():
            if parameter in space.problem or parameter not in space.names():
                choices = ", ".join(known for known in space.names() if known not in space.problem)
                raise UsageError(f"optimisations.{name}: no parameter {parameter!r} to choose; there are: {choices}")
            listed = [c[parameter] for c in space.configurations] or space.parameters[parameter]
            values = list(dict.fromkeys(map(text_of, listed)))
            if text_of(value) not in values[1:]:
                others = " or ".join(values[1:]) or "another value, of which there is none"
                raise UsageError(f"optimisations.{name}: {parameter} = {text_of(value)}, expected {others}")
    for number, name in enumerate(space.steps):
        if name not in space.optimisations or name in space.steps[:number]:
            known = ", ".join(space.optimisations) or "none"
            raise UsageError(f"steps: {name!r}: expected names of optimisations, each once; there are: {known}")


def _check_names(text: str, known: set[str], key: str) -> None:
    try:
        unknown = sorted(names_in(text) - known)
    except ExpressionError as error:
        raise UsageError(f"{key}: {error}") from None
    if unknown:
        raise UsageError(f"{key}: {text!r}: unknown name {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _extents(value: Extents | None) -> str | None:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return None if value is None else str(value)


def _argument(value: Any) -> Any:
    """Numbers as texts, so that arguments from a file and the command line are equal; arrays are unchanged."""
    return text_of(value) if isinstance(value, Cell) else value


def optimisations_of(
    values: Mapping[str, Sequence[Cell]], given: Mapping[str, Optimisation], problem: Sequence[str]
) -> dict[str, Optimisation]:
    """The space's own, or else every value but the first of each parameter that is a choice; `values` lists them."""
    if given:
        return dict(given)
    return {
        f"{name}={text_of(value)}": Optimisation({name: value})
        for name, listed in values.items()
        if name not in problem
        for value in listed[1:]
    }
