"""What kernels are measured on: a card, or drywarp's own prediction in the place of one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ..device import Clocks
from .configuration import Configuration


@dataclass(frozen=True)
class Timing:
    """Samples of one launch's time in microseconds, each the mean of `launches` in a row, and the clocks meanwhile.

    `off_by` is how far each output is from NumPy's (`references.difference`), None where outputs were not computed.
    """

    samples_us: tuple[float, ...]
    launches: int
    clocks: Clocks
    off_by: Mapping[str, float] | None


class Prepared(Protocol):
    """A configuration that is compiled and has its data."""

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        ...

    @property
    def most_dynamic_shared(self) -> int:
        """Bytes of dynamic shared memory that a block may have."""
        ...

    def blocks_per_sm(self, dynamic_shared: int) -> int:
        """Blocks that an SM holds at once; 0 where one does not fit."""
        ...

    def time(self, dynamic_shared: int) -> Timing:
        """Launch it often. Raises DrywarpError where it cannot be launched."""
        ...


class Runner(Protocol):
    """`simulated` says that no card was there."""

    simulated: bool

    @property
    def device(self) -> str:
        """The device's name in the table."""
        ...

    @property
    def driver(self) -> str:
        """The driver's version, or what was in the place of the card."""
        ...

    def prepare(self, configuration: Configuration) -> AbstractContextManager[Prepared]:
        """Compile for this device, and make the data. Raises DrywarpError."""
        ...
