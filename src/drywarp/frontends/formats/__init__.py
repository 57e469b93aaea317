"""The input formats, each found by looking in this folder: how to recognize a source, and how to load a kernel.

What loads a kernel is imported when a kernel of that format is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from ...hardware import Gpu
from ...support.by_name import plugins_of
from ..cuda import CudaOptions
from ..cuda.compile import INLINE_NAME
from ..loaded import LaunchComment, Loaded

GROUP = "drywarp.formats"
"""Entry-point group: formats from other packages, tried before the built-in ones."""
NVIDIA, AMD = "NVIDIA", "AMD"


@dataclass(frozen=True)
class Source:
    """An input: a path or source text, its content, and its launch comment.

    `text` and `comment` are empty where the content is machine code. `gpu` is the GPU that the kernel is loaded for,
    where the caller names one: a Python file may ask for its properties.
    """

    given: str | Path
    data: bytes
    text: str = ""
    comment: LaunchComment = field(default_factory=LaunchComment)
    gpu: Gpu | None = None

    @property
    def origin(self) -> str:
        """The name that messages use."""
        return str(self.given) if isinstance(self.given, Path) else INLINE_NAME

    @property
    def inline(self) -> str:
        """The text of a source that is not in a file."""
        return "" if isinstance(self.given, Path) else self.text


@dataclass(frozen=True)
class Format:
    """An input format: how to recognize it, and how to load a kernel from it for an architecture.

    `vendor` names the vendor of the GPUs that it targets; empty means any. A format that `catches_all` is tried last.
    """

    name: str
    vendor: str
    recognizes: Callable[[Source], bool]
    load: Callable[[Source, str, str | None, CudaOptions], Loaded]
    catches_all: bool = False


@cache
def formats() -> tuple[Format, ...]:
    """All formats in the order in which they are tried: those of other packages, then drywarp's, catch-alls last."""
    modules = [import_module(f".{file.name}", __name__) for file in iter_modules(__path__)]
    own = [one for module in modules for one in module.FORMATS]
    return (*plugins_of(GROUP, Format), *sorted(own, key=lambda one: one.catches_all))
