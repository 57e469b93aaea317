"""What a run over a folder takes besides the folder and the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settings:
    """Limits hold for each module: seconds of wall time, and bytes that its process may have resident.

    `static_limit_s` is what the static predictions of a module's kernels may take of it; kernels left over get none.
    `jobs` modules are looked at side by side. `defines`, `includes` and `std` go to the compiler, for every
    source of the folder; folders of headers that the sources name are guessed besides (see `headers`).
    """

    jobs: int = 1
    time_limit_s: float = 60.0
    static_limit_s: float = 15.0
    memory_limit: int = 4 << 30
    defines: Mapping[str, str] = field(default_factory=dict)
    includes: tuple[str, ...] = ()
    std: str | None = None
