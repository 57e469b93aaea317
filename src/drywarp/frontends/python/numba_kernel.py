"""A Numba-CUDA kernel: Numba compiles it to PTX for the types of a launch's arguments, with no GPU."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...errors import CompileError, DrywarpError, ToolError, UsageError
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import DTYPES, Buffer
from ...support.by_name import version_of
from ..cuda import CudaOptions
from ..loaded import Specialised
from ..ptx import read_ptx
from ..ptx.assembler import ptx_kernels, ptx_tools
from .embedded import literal, plain
from .isolation import UnknownValue, diverted, loaded, require

_SIGNATURES = "_drywarp_signatures"


def require_numba_cuda(origin: str) -> None:
    """Raise a ToolError with install instructions if Numba-CUDA is missing."""
    require("numba_cuda", "Numba-CUDA", "numba-cuda", origin)


@contextlib.contextmanager
def offline(arch: str, origin: str) -> Iterator[None]:
    """Make Numba believe that a GPU of `arch` is present; this covers queries of its compute capability only.

    A kernel with types in its decorator is not compiled immediately, because that would load it onto the GPU; the
    types are recorded instead.
    """
    module = loaded("numba.cuda.dispatcher", origin)
    kind = module.CUDADispatcher

    def remember(self: Any, signature: Any) -> None:
        self.__dict__.setdefault(_SIGNATURES, []).append(tuple(signature))

    device = SimpleNamespace(compute_capability=_capability(arch))
    with _replaced(
        (module, "get_current_device", lambda: device),
        (kind, "compile", remember),
        (kind, "disable_compile", lambda self, val=True: None),
    ):
        yield


def _capability(arch: str) -> tuple[int, int]:
    digits = "".join(c for c in arch.removeprefix("sm_") if c.isdigit())
    return int(digits[:-1]), int(digits[-1])


@contextlib.contextmanager
def _replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Temporarily replace attributes of Numba."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@dataclass(frozen=True)
class NumbaKernel:
    """A function under `@numba.cuda.jit`; `origin` is its file as the user named it.

    `max_registers` caps the registers per thread and overrides the decorator.
    """

    function: Any
    name: str
    origin: str
    max_registers: int | None = None

    def configs(self, arch: str) -> tuple[str, ...]:
        """Numba has no configurations."""
        return ()

    def tools(self) -> dict[str, str]:
        """Numba generates the PTX, ptxas the machine code."""
        return {"numba-cuda": version_of("numba-cuda"), **ptx_tools()}

    def takes(self, arch: str) -> set[str]:
        """The function's parameters."""
        return set(inspect.signature(self.function.py_func).parameters)

    def specialise(self, arguments: Mapping[str, Any], arch: str, config: int | None) -> Specialised:
        """Compile for the types of `arguments`, as a launch would: int and float are 64 bits wide.

        Raises UsageError for arguments that do not fit, CompileError with Numba's message.
        """
        require_numba_cuda(self.origin)
        if config is not None:
            raise UsageError(f"{self.origin}: {self.name} has no configurations (--config is for Triton's autotune)")
        given = {name: value if isinstance(value, Buffer) else literal(value) for name, value in arguments.items()}
        types = self._types(self._ordered(given))
        try:
            text = self._ptx(types, arch)
        except UnknownValue as stopped:
            raise UsageError(stopped.value.said(self.origin, self.name)) from None
        registers = self.max_registers or getattr(self.function, "targetoptions", {}).get("max_registers")
        found = list(
            ptx_kernels(text, read_ptx(text), arch, self.origin, CudaOptions(max_registers=registers)).values()
        )
        if len(found) != 1:
            raise ToolError(f"{self.origin}: Numba compiled {self.name} to {len(found)} kernels; expected one")
        expanded = [field for name, type_ in types.items() for field in _expanded(name, type_, given[name])]
        names = {name: plain(value) for name, value in given.items() if not isinstance(value, Buffer)}
        kernel = self._named(found[0], [(name, what) for name, what, _ in expanded])
        return Specialised(kernel, {name: value for name, _, value in expanded}, names)

    def _ordered(self, given: Mapping[str, Any]) -> dict[str, Any]:
        wanted = list(inspect.signature(self.function.py_func).parameters)
        for name in given:
            if name not in wanted:
                raise UsageError(f"{self.name}: no parameter named {name!r}; it takes: {', '.join(wanted)}")
        missing = [name for name in wanted if name not in given]
        if missing:
            raise UsageError(f"{self.name}: no value for {', '.join(missing)}; give each, as in --arg {missing[0]}=1")
        return {name: given[name] for name in wanted}

    def _types(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Numba's types of the arguments: those in the decorator, if it has any."""
        stated = getattr(self.function, _SIGNATURES, None) or list(getattr(self.function, "overloads", {}))
        fitting = [s for s in stated if len(s) == len(given) and all(map(_fits, s, given.values()))]
        if stated and not fitting:
            listed = " or ".join(f"({', '.join(map(str, s))})" for s in stated)
            raise UsageError(f"{self.name}: is compiled for {listed}; the given arguments have other types")
        if fitting:
            return dict(zip(given, fitting[0], strict=True))
        return {name: _type_of(value, f"{self.name}: argument {name}") for name, value in given.items()}

    def _ptx(self, types: Mapping[str, Any], arch: str) -> str:
        options = getattr(self.function, "targetoptions", {})
        if options.get("link"):
            raise UsageError(f"{self.origin}: {self.name} links other files (link=…), which is not supported")
        failure = None
        with diverted(), offline(arch, self.origin), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cuda = loaded("numba.cuda", self.origin)
            try:
                text, _ = cuda.compile(
                    self.function.py_func,
                    tuple(types.values()),
                    cc=_capability(arch),
                    device=False,
                    abi="numba",
                    lineinfo=True,
                    fastmath=bool(options.get("fastmath")),
                    opt=options.get("opt"),
                    launch_bounds=options.get("launch_bounds"),
                    output="ptx",
                )
            except Exception as error:
                failure = error
        if failure is not None:
            raise self._refused(failure)
        return str(text)

    def _refused(self, error: Exception) -> DrywarpError:
        """Numba's error message on one line, with the function's line if the message has none."""
        code = self.function.py_func.__code__
        stated = re.search(rf'{re.escape(os.path.basename(code.co_filename))}"?,? (?:line |\()(\d+)', str(error))
        line = getattr(getattr(error, "loc", None), "line", None) or (stated[1] if stated else code.co_firstlineno)
        reason = " ".join(str(error).split())
        return CompileError(f"{self.origin}:{line}: error: {self.name}: {reason[:400]}", str(error))

    def _named(self, kernel: Kernel, fields: list[tuple[str, str]]) -> Kernel:
        if len(kernel.parameters) != len(fields):
            raise ToolError(f"{self.origin}: this version of Numba-CUDA uses an unknown argument layout")
        parameters = tuple(
            replace(parameter, name=name, type=what.removesuffix("*"), pointer=what.endswith("*"))
            for parameter, (name, what) in zip(kernel.parameters, fields, strict=True)
        )
        return replace(kernel, name=self.name, parameters=parameters)


_CPP = {
    "bool": "bool", "boolean": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "float16": "half", "float32": "float", "float64": "double",
}  # fmt: skip


_PYTHON: dict[type, str] = {bool: "bool", int: "int64", float: "float64"}


def _type_of(value: Any, place: str) -> Any:
    """Numba's type of a value, as its own `typeof` gives it."""
    types = loaded("numba.cuda.types", place)
    if isinstance(value, Buffer):
        name = DTYPES[value.dtype][0]
        if not hasattr(types, name) or value.dtype == "bf16":
            raise UsageError(f"{place}: Numba has no arrays of {value.dtype}")
        return types.Array(getattr(types, name), len(value.shape), "C")
    kind = value.dtype.name if isinstance(value, np.generic) else _PYTHON.get(type(value))
    if kind is None or kind not in _CPP:
        raise UsageError(f"{place}: got {value!r}, expected a buffer or a number, as in f32[1024] or float32(0.5)")
    return types.boolean if kind == "bool" else getattr(types, kind)


def _fits(type_: Any, value: Any) -> bool:
    """Whether a value may be passed as a type from the decorator."""
    if isinstance(value, Buffer):
        same = getattr(getattr(type_, "dtype", None), "name", "") == DTYPES[value.dtype][0]
        return same and getattr(type_, "ndim", 0) == len(value.shape)
    return str(type_) in _CPP


def _expanded(name: str, type_: Any, value: Any) -> Iterator[tuple[str, str, Any]]:
    """The machine-code parameters of one Numba parameter: name, C++ type and value.

    An array is passed as a flattened structure: two owner pointers (null for a kernel), the number of elements, the
    element size in bytes, the address, then one extent and one stride in bytes per dimension.
    """
    if not isinstance(value, Buffer):
        yield name, _CPP[str(type_)], plain(value)
        return
    size = DTYPES[value.dtype][1]
    yield f"{name}.meminfo", "void*", None
    yield f"{name}.parent", "void*", None
    yield f"{name}.nitems", "long long", value.count
    yield f"{name}.itemsize", "long long", size
    yield f"{name}.data", f"{_CPP[DTYPES[value.dtype][0]]}*", value
    for number, extent in enumerate(value.shape):
        yield f"{name}.shape[{number}]", "long long", extent
    step = size
    strides = []
    for extent in reversed(value.shape):
        strides.append(step)
        step *= extent
    for number, stride in enumerate(reversed(strides)):
        yield f"{name}.strides[{number}]", "long long", stride
