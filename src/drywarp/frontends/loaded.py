"""What the frontends hand over: a kernel, or one that can only be compiled once its arguments are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..kernel.kernel import Kernel
from ..kernel.launch import Dim3
from .comment import LaunchComment


@dataclass(frozen=True)
class Specialised:
    """A kernel compiled for certain arguments.

    `arguments` are what the kernel's own parameters get, by name: its compiler may have left some of the
    user's out and added others. `names` are all values that an expression for the grid may use; `block`
    and `shared` (bytes) what the compiler fixed, None where it leaves them to the launch. `scratch` are
    buffers that the launch has to bring besides: bytes per block by parameter.
    """

    kernel: Kernel
    arguments: Mapping[str, Any]
    names: Mapping[str, Any]
    block: Dim3 | None = None
    shared: int | None = None
    scratch: Mapping[str, int] = field(default_factory=dict)


class Deferred(Protocol):
    """A kernel of a language that compiles it for the arguments of a call."""

    @property
    def name(self) -> str:
        """The function's name."""

    @property
    def origin(self) -> str:
        """The file that messages name."""

    def tools(self) -> dict[str, str]:
        """Versions of what compiles it, by name."""

    def takes(self, arch: str) -> set[str]:
        """Names that an argument may have."""

    def specialise(self, arguments: Mapping[str, Any], arch: str, config: int | None) -> Specialised:
        """Compile for these arguments: buffers, and values as Python has them or as a user types them."""

    def configs(self, arch: str) -> tuple[str, ...]:
        """The settings that its author lists to choose from, as texts; empty where there are none."""


@dataclass(frozen=True)
class Loaded:
    """A source that was read: its kernel, and the launch comment of its file.

    `text` is the kernel's source where it lies in no file, or not with the lines that the file has;
    `tools` are versions of what compiles it besides drywarp's own compiler and disassembler.
    """

    kernel: Kernel | Deferred
    comment: LaunchComment
    text: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)
