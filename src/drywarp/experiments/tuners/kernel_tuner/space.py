"""A tuning space, from the arguments of `kernel_tuner.tune_kernel` or from what it passes on; its configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....errors import UsageError
from .restrictions import Restriction, restrictions_of

BLOCK_SIZES = ("block_size_x", "block_size_y", "block_size_z")
MOST_THREADS = 1024
"""Most threads per block that CUDA allows (CUDA C++ Programming Guide, compute capabilities)."""
_CUDA = ("CUDA", "CUPY", "NVCUDA")
_MEANS_NOTHING = frozenset(
    "answer,atol,verify,verbose,device,platform,compiler,log,iterations,quiet,strategy,strategy_options,cache,metrics,"
    "simulation_mode,parallel,observers,objective,objective_higher_is_better,objectives,seed".split(",")
)
"""Arguments of tune_kernel that concern how to measure and search; they are ignored."""


@dataclass(frozen=True)
class TuningSpace:
    """What to tune. The fields are arguments of `kernel_tuner.tune_kernel` with the same meaning.

    `arguments` may also hold drywarp's texts, such as ``"f32[4096,4096]:random"``, so that no array is needed.
    `block_size_names` are always three. `allowed` are the restrictions as callables.
    """

    kernel_name: str
    kernel_source: Any
    problem_size: Any
    arguments: Sequence[Any]
    tune_params: Mapping[str, Sequence[Any]]
    grid_div: tuple[Any, Any, Any] = (None, None, None)
    block_size_names: tuple[str, ...] = BLOCK_SIZES
    smem_args: Mapping[str, Any] = field(default_factory=dict)
    cmem_args: Mapping[str, Any] = field(default_factory=dict)
    defines: Mapping[str, Any] | None = None
    compiler_options: Sequence[str] = ()
    allowed: tuple[Restriction, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in order."""
        return tuple(self.tune_params)

    def configurations(self) -> Iterator[dict[str, Any]]:
        """All allowed configurations; the last parameter varies fastest.

        A restriction is checked as soon as all its parameters are chosen, to skip excluded parts of the space.
        """
        ready: list[list[Restriction]] = [[] for _ in self.names]
        for restriction in self.allowed:
            places = [place for place, name in enumerate(self.names) if name in restriction.names]
            ready[max(places, default=0)].append(restriction)
        return self._from(0, {}, ready)

    def _from(self, place: int, chosen: dict[str, Any], ready: list[list[Restriction]]) -> Iterator[dict[str, Any]]:
        if place == len(self.names):
            yield dict(chosen)
            return
        name = self.names[place]
        for value in self.tune_params[name]:
            chosen[name] = value
            if all(restriction(chosen) for restriction in ready[place]):
                yield from self._from(place + 1, chosen, ready)
        del chosen[name]


def tuning_space(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    *,
    restrictions: Any = None,
    lang: str | None = None,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    **others: Any,
) -> TuningSpace:
    """The space of a call of `kernel_tuner.tune_kernel` with these arguments.

    Arguments that concern how to measure or search are accepted and ignored. Raises UsageError for what cannot be
    predicted: languages other than CUDA, texture references, parameters without values.
    """
    if unknown := sorted(others.keys() - _MEANS_NOTHING):
        raise UsageError(f"{kernel_name}: no argument {unknown[0]!r} (expected those of kernel_tuner.tune_kernel)")
    if lang is not None and lang.upper() not in _CUDA:
        raise UsageError(f"{kernel_name}: lang={lang!r}: only CUDA kernels can be predicted (expected lang='CUDA')")
    if texmem_args:
        raise UsageError(f"{kernel_name}: texmem_args: CUDA 12 removed texture references (expected none)")
    names = tuple(tune_params)
    for name in names:
        if isinstance(tune_params[name], str) or not len(tune_params[name]):
            raise UsageError(f"{kernel_name}: tune_params[{name!r}]: expected a list of values")
    blocks = _block_names(block_size_names, names)
    held = [name for name in blocks if name in names]
    threads = [" * ".join(held) + f" <= {MOST_THREADS}"] if held else []
    return TuningSpace(
        kernel_name=kernel_name,
        kernel_source=kernel_source,
        problem_size=problem_size,
        arguments=list(arguments),
        tune_params={name: list(tune_params[name]) for name in names},
        grid_div=(grid_div_x, grid_div_y, grid_div_z),
        block_size_names=blocks,
        smem_args=dict(smem_args or {}),
        cmem_args=dict(cmem_args or {}),
        defines=None if defines is None else dict(defines),
        compiler_options=tuple(compiler_options or ()),
        allowed=(*restrictions_of(restrictions, names), *restrictions_of(threads, names)),
    )


def _block_names(given: Sequence[str] | None, names: Sequence[str]) -> tuple[str, ...]:
    """Three names of block sizes: given ones, or parameters that match the defaults but for case, then the defaults."""
    if given is None:
        given = sorted((n for n in names if n.lower() in BLOCK_SIZES and n not in BLOCK_SIZES), key=str.casefold)
    return (*given, *BLOCK_SIZES[len(given) :])


def is_file(source: Any) -> bool:
    """Whether a kernel's source is a file name rather than text: Kernel Tuner accepts both in one argument."""
    return isinstance(source, Path) or (isinstance(source, str) and not any(c in source for c in "\n;{}()"))


def space_of(runner: Any, tuning_options: Any, compiler_options: Sequence[str] = ()) -> TuningSpace:
    """The space that Kernel Tuner is searching, from what it passes to a strategy. It applies restrictions itself."""
    options, source = runner.kernel_options, runner.kernel_source
    return tuning_space(
        options.kernel_name,
        source.kernel_sources,
        options.problem_size,
        options.arguments,
        tuning_options.tune_params,
        options.grid_div_x,
        options.grid_div_y,
        options.grid_div_z,
        lang=source.lang,
        smem_args=options.smem_args,
        cmem_args=options.cmem_args,
        texmem_args=options.texmem_args,
        compiler_options=compiler_options,
        defines=options.defines,
        block_size_names=options.block_size_names,
    )
