"""A Triton kernel: Triton itself compiles it for the arguments of a launch, with no GPU."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import CompileError, ToolError, UsageError
from ...hardware import Gpu
from ...kernel.kernel import Kernel, Parameter
from ...kernel.launch.launch import Buffer
from ...support.by_name import version_of
from ..loaded import Specialised, cubin_kernels
from .isolation import Unknown, UnknownValue, diverted
from .triton_values import CPP_TYPES, compile_message, constant_value, offline, require_triton, runtime_value

_HIDDEN = ("global_scratch", "profile_scratch")
"""Parameters that Triton adds after the user's, in this order."""


@dataclass(frozen=True)
class TritonKernel:
    """A function under `@triton.jit`, optionally with `@triton.autotune` and `@triton.heuristics` above it.

    `function` is the outermost of these objects; `origin` is the file as the user named it; `max_registers` caps the
    registers per thread, like `maxnreg` in a launch. `around` holds what its file imports, and is entered where code of
    the file runs; such code may ask for the properties of `gpu`.
    """

    function: Any
    name: str
    origin: str
    max_registers: int | None = None
    around: AbstractContextManager[None] = field(default_factory=nullcontext, repr=False)
    gpu: Gpu | None = field(default=None, repr=False)

    def configs(self, arch: str) -> tuple[str, ...]:
        """The configurations of `@triton.autotune`, in order."""
        tuner = next((layer for layer in _layers(self.function) if hasattr(layer, "configs")), None)
        return tuple(_config_text(c) for c in tuner.configs) if tuner is not None else ()

    def tools(self) -> dict[str, str]:
        """Triton brings its own assembler."""
        return {"triton": version_of("triton")}

    def takes(self, arch: str) -> set[str]:
        """The function's parameters, and Triton's launch settings: num_warps, num_stages and the like."""
        require_triton(self.origin)
        with offline(arch, self.origin):
            return {p.name for p in _innermost(self.function, self.origin).params} | _settings()

    def specialise(self, arguments: Mapping[str, Any], arch: str, config: int | None) -> Specialised:
        """Compile for `arguments` on a GPU of `arch`.

        As in a launch, Triton specialises on values equal to 1 and multiples of 16. Raises UsageError for arguments
        that do not fit, CompileError with Triton's message.
        """
        require_triton(self.origin)
        jit = _innermost(self.function, self.origin)
        try:
            with offline(arch, self.origin, self.gpu), self.around:
                given = self._values(jit, arguments)
                called = self._call(given, config)
                defaults = {p.name: p.default for p in jit.params if p.has_default}
                for value in (defaults | called).values():
                    if isinstance(value, Unknown):
                        raise UnknownValue(value)
                compiled = self._compiled(jit, called)
        except UnknownValue as stopped:
            raise UsageError(stopped.value.said(self.origin, self.name)) from None
        return self._specialised(jit, compiled, arguments, called, arch)

    def _values(self, jit: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The user's values converted for Triton: parameters and compiler settings."""
        parameters = {parameter.name: parameter for parameter in jit.params}
        settings = _settings()
        given = {}
        for name, value in arguments.items():
            place = f"{self.name}: argument {name}"
            if name in parameters and not parameters[name].is_constexpr:
                given[name] = runtime_value(value, place)
            elif name in parameters or name in settings:
                given[name] = constant_value(value, place)
            else:
                raise UsageError(
                    f"{self.name}: no parameter named {name!r}; it takes: {', '.join(parameters)} "
                    f"(and num_warps, num_stages, …)"
                )
        return given

    def _call(self, given: dict[str, Any], config: int | None) -> dict[str, Any]:
        """All launch arguments: the given ones, those of a configuration, and those computed by heuristics."""
        called = {"maxnreg": self.max_registers, **given} if self.max_registers else dict(given)
        for layer in _layers(self.function):
            if hasattr(layer, "configs"):
                chosen = self._config(layer, config, called)
                if twice := given.keys() & chosen.all_kwargs().keys():
                    raise UsageError(f"{self.name}: {', '.join(sorted(twice))} is already set by its configurations")
                called.update(chosen.all_kwargs())
            elif isinstance(getattr(layer, "values", None), Mapping):
                for name, rule in layer.values.items():
                    try:
                        called[name] = rule(dict(called))
                    except KeyError as error:
                        raise UsageError(
                            f"{self.name}: its heuristic for {name} needs a value for {error.args[0]}; give it, "
                            f"as in --arg {error.args[0]}=null"
                        ) from None
                    except Exception as error:
                        reason = f"{type(error).__name__}: {error}"
                        raise UsageError(f"{self.name}: its heuristic for {name} failed: {reason}") from None
        return called

    def _config(self, tuner: Any, number: int | None, called: Mapping[str, Any]) -> Any:
        count = len(tuner.configs)
        kept = self._kept(tuner, called)
        if number is None and len(kept) > 1:
            listed = "; ".join(f"{n}: {_config_text(tuner.configs[n])}" for n in kept)
            raise UsageError(
                f"{self.origin}: {self.name} is autotuned over {len(kept)} configurations; "
                f"choose one with --config N, or --config best: {listed}"
            )
        if number is not None and not 0 <= number < count:
            raise UsageError(f"{self.origin}: no configuration {number}; {self.name} has 0 to {count - 1}")
        if number is not None and number not in kept:
            listed = ", ".join(map(str, kept)) or "none"
            raise UsageError(
                f"{self.origin}: {self.name} leaves out configuration {number} for these arguments "
                f"(early_config_prune); it keeps: {listed}"
            )
        return tuner.configs[kept[0] if number is None else number]

    def _kept(self, tuner: Any, called: Mapping[str, Any]) -> list[int]:
        """The configurations that the author's `early_config_prune` keeps for these arguments; all without one."""
        hook, every = getattr(tuner, "early_config_prune", None), list(range(len(tuner.configs)))
        # drywarp's own hook predicts each configuration, which would ask this again.
        if hook is None or type(hook).__module__.partition(".")[0] == "drywarp":
            return every
        try:
            remaining = hook(list(tuner.configs), dict(called), **called)
            kept = [number for number in every if any(tuner.configs[number] is one for one in remaining)]
        except UnknownValue:
            return every
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"{self.origin}: {self.name}: its early_config_prune failed: {reason}") from None
        if not kept:
            raise UsageError(f"{self.origin}: {self.name}: its early_config_prune keeps no configuration")
        return kept

    def _compiled(self, jit: Any, called: Mapping[str, Any]) -> Any:
        missing = [p.name for p in jit.params if p.name not in called and not p.has_default]
        if missing:
            raise UsageError(f"{self.name}: no value for {', '.join(missing)}; give each, as in --arg {missing[0]}=1")
        failure = None
        with diverted() as printed:
            try:
                compiled = jit.warmup(grid=(1,), **called)
            except Exception as error:
                failure = error
        if failure is not None:
            raise CompileError(compile_message(failure, jit, self.origin, printed[0]), printed[0]) from None
        return compiled

    def _specialised(
        self, jit: Any, compiled: Any, arguments: Mapping[str, Any], called: Mapping[str, Any], arch: str
    ) -> Specialised:
        names = {p.name: called.get(p.name, p.default) for p in jit.params}
        passed = dict(self._passed(compiled.src.signature))
        kernel = self._kernel(compiled, passed, arch)
        # The launch takes the user's values, because a stand-in has no data.
        values = {name: arguments.get(name, names[name]) for name in passed}
        values = {name: v if isinstance(v, Buffer) else runtime_value(v, name) for name, v in values.items()}
        scratch = {}
        for parameter in kernel.parameters[len(passed) :]:
            if size := getattr(compiled.metadata, f"{parameter.name}_size", 0):
                scratch[parameter.name] = int(size)
            values[parameter.name] = None
        threads = compiled.metadata.num_warps * 32
        shared, blocks = compiled.metadata.shared, compiled.metadata.num_ctas
        return Specialised(kernel, values, names, (threads, 1, 1), shared, scratch, blocks)

    def _passed(self, signature: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The parameters that remain in machine code: those that Triton did not treat as constants."""
        for name, type_ in signature.items():
            if isinstance(type_, tuple) or str(type_).startswith(("tensordesc", "nvTmaDesc")):
                raise UsageError(f"{self.name}: parameter {name} is a {type_}; expected tensors and numbers only")
            if type_ != "constexpr":
                yield name, str(type_)

    def _kernel(self, compiled: Any, passed: Mapping[str, str], arch: str) -> Kernel:
        kernels = cubin_kernels(compiled.asm["cubin"], arch, self.origin, self.origin)
        kernel = kernels.get(compiled.name) or next(iter(kernels.values()), None)
        named = [*passed.items(), *((name, "*i8") for name in _HIDDEN)]
        if kernel is None or not len(passed) <= len(kernel.parameters) <= len(named):
            raise ToolError(f"{self.origin}: this version of Triton uses an unknown parameter layout")
        parameters = [
            _parameter(parameter, name, type_)
            for parameter, (name, type_) in zip(kernel.parameters, named, strict=False)
        ]
        return replace(kernel, name=self.name, parameters=tuple(parameters))


def _parameter(parameter: Parameter, name: str, type_: str) -> Parameter:
    plain = type_.removeprefix("*").removeprefix("k")
    return replace(parameter, name=name, type=CPP_TYPES.get(plain, plain), pointer=type_.startswith("*"))


def _layers(function: Any) -> Iterator[Any]:
    """A decorated function's objects, outermost first."""
    while hasattr(function, "fn"):
        yield function
        function = function.fn


def _innermost(function: Any, origin: str) -> Any:
    jit = next((layer for layer in _layers(function) if hasattr(layer, "params")), None)
    if jit is None:
        raise UsageError(f"{origin}: not a function under @triton.jit (TRITON_INTERPRET must not be set)")
    return jit


def _settings() -> set[str]:
    """Names of Triton's launch settings: num_warps, num_stages and the like."""
    from triton.compiler import make_backend
    from triton.runtime import driver

    with diverted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return set(vars(make_backend(driver.active.get_current_target()).parse_options({})))


def _config_text(config: Any) -> str:
    shown = {n: repr(v) if isinstance(v, Unknown) else v for n, v in config.all_kwargs().items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items())
