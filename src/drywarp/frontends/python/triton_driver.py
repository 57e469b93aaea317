"""What Triton asks of a GPU while it compiles, answered without one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .packages import loaded, require


def require_triton(origin: str) -> None:
    """Raise ToolError that says what to install where Triton is missing."""
    require("triton", "Triton", "triton", origin)


class OfflineDriver:
    """Stands where Triton has the driver of a GPU, for one architecture (`number` of ``sm_80`` is 80)."""

    def __init__(self, number: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", number, 32)

    def get_current_device(self) -> str:
        """Triton keeps compiled kernels by device; ours must never meet those of a real one."""
        return f"drywarp sm_{self._target.arch}"

    def get_current_stream(self, device: object = None) -> int:
        """The default stream; nothing is launched on it."""
        return 0

    def get_current_target(self) -> Any:
        """What to compile for."""
        return self._target


@contextlib.contextmanager
def offline(arch: str, origin: str) -> Iterator[None]:
    """Let Triton believe that a GPU of `arch` is there; what was before comes back afterwards."""
    driver = loaded("triton.runtime", origin).driver
    number = int("".join(c for c in arch.removeprefix("sm_") if c.isdigit()))
    # Triton restores only its own default, and looks for a GPU to do so.
    saved = dict(vars(driver))
    driver.set_active(OfflineDriver(number))
    try:
        yield
    finally:
        vars(driver).update(saved)
