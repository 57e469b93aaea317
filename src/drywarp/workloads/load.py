"""Abstract kernels by name: packaged ones lie beside this file, a user's is a path that ends in ``.toml``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from ..bound import BoundWorkload
from ..errors import UsageError
from ..frontends.abstract import AbstractFile, read_abstract
from ..hardware import Gpu
from .settings import settings_of
from .tie import tie

PackagedWorkload = AbstractFile
_FOLDER = Path(__file__).parent


def workload_names() -> list[str]:
    """Names of the packaged abstract kernels."""
    names = (path.relative_to(_FOLDER).as_posix().removesuffix(".toml") for path in _FOLDER.rglob("*.toml"))
    return sorted(names, key=lambda name: ("/mb" in name, name))


def is_workload(name_or_path: str) -> bool:
    """Whether this names an abstract kernel, and not a source or machine code."""
    return name_or_path.endswith(".toml") or name_or_path in workload_names()


def read_workload(name_or_path: str) -> AbstractFile:
    """Read a packaged abstract kernel or a file of the user's."""
    if name_or_path.endswith(".toml"):
        return read_abstract(Path(name_or_path))
    names = workload_names()
    if name_or_path in names:
        return read_abstract(_FOLDER / f"{name_or_path}.toml", name_or_path)
    nearest = difflib.get_close_matches(name_or_path, names, n=3, cutoff=0.3) or names
    raise UsageError(f"unknown workload {name_or_path!r}; nearest: {', '.join(nearest)}; or a path ending in .toml")


def load_workload(
    name_or_path: str,
    gpu: Gpu,
    settings: Mapping[str, float | str] | None = None,
    *,
    occupancy: int | None = None,
    runs: int = 1,
    clock_mhz: float | None = None,
    policy: str | None = None,
) -> BoundWorkload:
    """An abstract kernel tied to a GPU.

    `settings` vary it (numbers, or texts as a user types them). `occupancy` in warps per SM is the launch's
    own in place of the file's, and what λ and Λ that depend on it are taken at. With `runs` 1 so many warps
    start together and nothing replaces them; with N each SM runs N times as many. `policy` and `clock_mhz`
    replace the GPU's. Raises InputFileError or UsageError with one line that says what was expected.
    """
    file = read_workload(name_or_path)
    return tie(
        file, gpu, settings_of(file, settings or {}), occupancy=occupancy, runs=runs, clock_mhz=clock_mhz, policy=policy
    )
