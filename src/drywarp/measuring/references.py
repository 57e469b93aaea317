"""What a kernel ought to have computed: the suite's own NumPy functions, and how outputs are held against them.

A reference is a function of a Python file beside the suite, which is executed: it is the suite's own, as a test is.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..emulator.content import buffer_content
from ..errors import InputFileError, UsageError
from ..kernel.kernel import Kernel
from ..kernel.launch import Buffer, Launch, Scalar
from .configuration import Configuration

Arrays = dict[str, npt.NDArray[Any]]
Reference = Callable[[dict[str, Any]], Mapping[str, Any]]
_CODES = {"float": "f4", "double": "f8", "unsigned": "u4", "unsigned int": "u4", "half": "f2", "__half": "f2"}


def load_reference(configuration: Configuration) -> Reference:
    """The reference of a kernel. Raises InputFileError naming the TOML file and what was expected."""
    kernel = configuration.kernel
    place = f"{kernel.described}: kernel {kernel.entry.name!r}: reference {kernel.entry.reference!r}"
    file, colon, function = kernel.entry.reference.rpartition(":")
    if not colon:
        raise InputFileError(f"{place}: expected FILE:FUNCTION")
    path = kernel.described.parent / file
    if not path.is_file():
        raise InputFileError(f"{place}: {path}: no such Python file")
    try:
        module = _module(path.resolve())
    except Exception as error:  # whatever the suite's own code does
        raise InputFileError(f"{place}: {path}: {type(error).__name__}: {error}") from None
    found = getattr(module, function, None)
    if not callable(found):
        raise InputFileError(f"{place}: {file} has no function {function!r}")
    return found  # type: ignore[no-any-return]


@cache
def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"drywarp_suite_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their own module up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check_arguments(kernel: Kernel, launch: Launch) -> None:
    """Raise UsageError for a kernel that takes textures, surfaces, tensor maps or `__constant__` variables."""
    other = [
        parameter.name
        for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True)
        if not isinstance(argument, Buffer | Scalar)
    ]
    if other or launch.constants:
        what = f"argument {other[0]}" if other else "its __constant__ variables"
        raise UsageError(f"{kernel.name}: {what}: expected buffers and values alone, the others are not measured")


def inputs_of(kernel: Kernel, launch: Launch) -> Arrays:
    """Every buffer of a launch before it runs, by the parameter's name."""
    return {
        parameter.name: buffer_content(argument, ordinal, launch.seed)
        for ordinal, (parameter, argument) in enumerate(zip(kernel.parameters, launch.arguments, strict=True))
        if isinstance(argument, Buffer)
    }


def expected_outputs(
    configuration: Configuration, kernel: Kernel, launch: Launch, inputs: Mapping[str, npt.NDArray[Any]]
) -> Arrays:
    """What the reference says that buffers hold afterwards; it gets copies. Raises InputFileError where it fails."""
    reference = load_reference(configuration)
    given: dict[str, Any] = {
        **{name: _number(value) for name, value in configuration.kernel.entry.macros.items()},
        **{name: _number(value) for name, value in configuration.values.items()},
        **{name: array.copy() for name, array in inputs.items()},
    }
    for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True):
        if isinstance(argument, Scalar):
            given[parameter.name] = _scalar(parameter.type, argument)
    place = f"{configuration.kernel.described}: kernel {configuration.name!r}"
    try:
        found = {name: np.asarray(array) for name, array in reference(given).items()}
    except Exception as error:  # whatever the suite's own code does
        raise InputFileError(f"{place}: its reference failed: {type(error).__name__}: {error}") from None
    for name, array in found.items():
        if name not in inputs:
            raise InputFileError(f"{place}: its reference speaks of {name!r}, which is no buffer of the kernel")
        if array.size != inputs[name].size:
            raise InputFileError(
                f"{place}: its reference has {array.size} elements for {name!r}, expected {inputs[name].size}"
            )
    return found


def difference(actual: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    """How far an output is off: 0 for integers that are equal, else infinity; for floats the largest deviation.

    Deviations are relative to the expected element, or to the root mean square of all where that is more: sums that
    cancel have no digits of their own. Elements for which NaN is expected are not compared.
    """
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    if actual.dtype.kind != "f":
        return 0.0 if np.array_equal(actual, expected.astype(actual.dtype)) else float("inf")
    wanted = expected.astype(np.float64)
    checked = ~np.isnan(wanted)
    with np.errstate(invalid="ignore"):
        wanted, found = wanted[checked], actual.astype(np.float64)[checked]
    if not wanted.size:
        return float("inf")
    if not np.isfinite(found).all():
        return float("inf")
    scale = np.maximum(np.abs(wanted), np.sqrt(np.mean(wanted**2)))
    off = np.abs(found - wanted)
    return float(np.max(np.divide(off, scale, out=np.where(off > 0, np.inf, 0.0), where=scale > 0)))


def _number(value: Any) -> Any:
    """A text that is a whole number as that number; numbers are what they are."""
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _scalar(kind: str, value: Scalar) -> Any:
    code = _CODES.get(kind)
    if code is None:
        code = ("u" if kind.startswith(("u", "size_t")) else "i") + str(len(value.data))
    return np.frombuffer(value.data, f"<{code}")[0].item()
