"""Convert a user's values for Triton: tensors by type, numbers by value, and Triton's own names."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError
from ...hardware import Gpu
from ...kernel.launch.launch import DTYPES, Buffer
from .embedded import literal, plain
from .isolation import Unknown, loaded, require

CPP_TYPES = {
    "i1": "bool", "u1": "bool", "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short",
    "i32": "int", "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long",
    "fp16": "half", "bf16": "__nv_bfloat16", "fp32": "float", "f32": "float", "fp64": "double",
}  # fmt: skip
"""C++ types of Triton's value types, as they appear in the parameter area."""


@dataclass(frozen=True)
class Dtype:
    """An element type that prints like PyTorch's, because Triton reads the printed name."""

    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class StandIn:
    """The tensor properties that Triton reads while compiling: type, alignment and shape."""

    shape: tuple[int, ...]
    dtype: Any

    def data_ptr(self) -> int:
        """An aligned address, like that of every buffer that a framework or drywarp allocates."""
        return 0

    def ptr_range(self) -> int:
        """Bytes reachable from the pointer (queried on non-NVIDIA GPUs only)."""
        return 0

    def stride(self, dimension: int | None = None) -> Any:
        """Strides in elements, row-major."""
        strides, step = [], 1
        for extent in reversed(self.shape):
            strides.append(step)
            step *= extent
        ordered = tuple(reversed(strides))
        return ordered if dimension is None else ordered[dimension]

    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def element_size(self) -> int:
        """Bytes of an element."""
        return next(size for name, size in DTYPES.values() if name == getattr(self.dtype, "name", str(self.dtype)))


def stand_in(buffer: Buffer) -> StandIn:
    """The stand-in of a buffer."""
    name = DTYPES[buffer.dtype][0]
    return StandIn(buffer.shape, getattr(sys.modules.get("torch"), name, None) or Dtype(name))


def runtime_value(value: Any, place: str) -> Any:
    """A launch argument: a stand-in for a buffer, a number, or None."""
    if isinstance(value, Buffer):
        return stand_in(value)
    found = plain(literal(value))
    if found is None or isinstance(found, bool | int | float):
        return found
    raise UsageError(f"{place}: got {value!r}, expected a buffer, a number or null, as in f32[1024]:random or 16")


def constant_value(value: Any, place: str) -> Any:
    """A `tl.constexpr`: a literal, a name in `triton.language` such as `tl.float16`, or else the text itself."""
    if isinstance(value, Buffer):
        raise UsageError(f"{place}: got a buffer, expected a constant, as in 1024")
    found = plain(literal(value))
    if not isinstance(found, str):
        return found
    head, _, rest = found.removeprefix("triton.language.").rpartition(".")
    if found.startswith(("tl.", "triton.language.")) and (head in ("tl", "")) and rest:
        import triton.language as tl

        if not hasattr(tl, rest):
            raise UsageError(f"{place}: triton.language has no {rest!r}")
        return getattr(tl, rest)
    return found


# Answer Triton's queries of a GPU during compilation, without a GPU.


def require_triton(origin: str) -> None:
    """Raise a ToolError with install instructions if Triton is missing."""
    require("triton", "Triton", "triton", origin)


def capability(gpu: Gpu) -> tuple[int, int]:
    """The GPU's own compute capability, whatever its kernels are compiled for."""
    major, _, minor = gpu.compute_capability.partition(".")
    return int(major), int(minor)


class _Properties(dict[str, Any]):
    """The properties that Triton's driver states of a GPU; those that the GPU's file lacks are unknown."""

    def __missing__(self, name: str) -> Unknown:
        return Unknown(f"the GPU's {name}", "which no GPU file states")


class OfflineDriver:
    """Replaces Triton's GPU driver for one architecture (`number` is 80 for ``sm_80``).

    What programs ask it about the GPU is answered from `gpu`.
    """

    def __init__(self, number: int, gpu: Gpu | None = None) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", number, 32)
        self._gpu = gpu

    @property
    def utils(self) -> OfflineDriver:
        """Where Triton's driver has `get_device_properties`."""
        return self

    def get_device_properties(self, device: object = None) -> Mapping[str, Any]:
        """What a program may ask of the GPU, under Triton's names."""
        if self._gpu is None:
            return _Properties(warpSize=32)
        limits = self._gpu.occupancy
        return _Properties(
            max_shared_mem=limits.shared_bytes_per_block_optin,
            max_num_regs=limits.max_registers_per_block,
            multiprocessor_count=self._gpu.device.sm_count,
            warpSize=limits.warp_size,
        )

    def get_active_torch_device(self) -> Any:
        """`torch.device("cuda", 0)`, of the stand-in while a file is executed."""
        return importlib.import_module("torch").device("cuda", 0)

    def get_device_interface(self) -> Any:
        """`torch.cuda`."""
        return importlib.import_module("torch").cuda

    def get_current_device(self) -> str:
        """A device name of our own: Triton caches kernels by device, and these must not mix with a real GPU's."""
        return f"drywarp sm_{self._target.arch}"

    def get_current_stream(self, device: object = None) -> int:
        """The default stream; nothing is launched on it."""
        return 0

    def get_current_target(self) -> Any:
        """The compilation target."""
        return self._target


@contextlib.contextmanager
def offline(arch: str, origin: str, gpu: Gpu | None = None) -> Iterator[None]:
    """Make Triton believe that a GPU of `arch` is present, and find names of earlier releases; restores both."""
    driver = loaded("triton.runtime", origin).driver
    number = int("".join(c for c in arch.removeprefix("sm_") if c.isdigit()))
    # Triton restores only its own default, and looks for a GPU to do so.
    saved = dict(vars(driver))
    driver.set_active(OfflineDriver(number, gpu))
    moved = _moved_names(origin)
    for module, name, value in moved:
        setattr(module, name, value)
    try:
        yield
    finally:
        vars(driver).update(saved)
        for module, name, _ in moved:
            delattr(module, name)


def _moved_names(origin: str) -> list[tuple[Any, str, Any]]:
    """Names that earlier releases of Triton had elsewhere: module, name, and what this release has instead.

    Triton 2 had the functions of libdevice as `tl.math.tanh` and `tl.libdevice.tanh`.
    """
    language, library = (loaded(f"triton.{name}", origin) for name in ("language", "language.extra.cuda.libdevice"))
    functions = {n: f for n, f in vars(library).items() if not n.startswith("_") and inspect.isfunction(f)}
    moved = [
        (language.math, name, function) for name, function in functions.items() if not hasattr(language.math, name)
    ]
    if not hasattr(language, "libdevice"):
        moved.append((language, "libdevice", library))
    return moved


# Turn Triton's compile errors into one line with the file and line number.

_NATIVE = [
    re.compile(pattern, re.M)
    for pattern in (r"; (?:error|fatal)\s*:\s*(.*)$", r"(?<!PTXAS )\berror\s*:\s*(.*)$", r"\b(Assertion .*)$")
]
"""Error patterns in the output of ptxas and Triton's own passes, the most informative first."""

_VAGUE = ("PASS PIPELINE", "PASSMANAGER", "PTXAS ERROR")
"""Markers of messages that say only where an error occurred."""


def compile_message(error: Exception, jit: Any, origin: str, printed: str) -> str:
    """One-line message for `error`, which Triton raised while compiling `jit`; `printed` is its native output.

    An error inside a function that the kernel calls is a chain of errors, the kernel's own first.
    """
    place, reason = origin, ""
    for link in _chain(error):
        node, source = getattr(link, "node", None), getattr(link, "src", None)
        if node is not None and source and hasattr(node, "lineno") and (first := _line_of(source, jit)):
            place = f"{origin}:{first + node.lineno - 1}"
        said = getattr(link, "error_message", None) if node is not None else str(link)
        reason = " ".join(str(said).split()) if said else reason
    if not reason or any(word in reason.upper() for word in _VAGUE):
        text = f"{error}\n{printed}"
        native = next((match for pattern in _NATIVE if (match := pattern.search(text))), None)
        reason = (native[1].strip() if native else "") or reason or type(error).__name__
    return f"{place}: error: {_shortened(reason)}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _line_of(source: str, jit: Any) -> int | None:
    """The line where a function's source starts in the file of `jit`; None if it is in another file."""
    try:
        with open(jit.fn.__code__.co_filename, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    at = text.find(source.rstrip())
    return text.count("\n", 0, at) + 1 if at >= 0 else None


def _shortened(text: str, most: int = 400) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
