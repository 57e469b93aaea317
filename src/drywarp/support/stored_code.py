"""Functions that Numba compiles, cached on disk by what they are made of.

Numba checks only the date of a function's own file, and so misses edits to functions that it calls. Here a digest of
all sources is part of the cache key, and processes that need the same code at once compile it once.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from .folders import Progress, cache_folder, in_turn, sources_digest, tell_progress

FOLDER = "loops"
"""The subfolder of the cache folder with the compiled functions."""
LONGEST = {"advance": ("the emulator's", 25.0)}
"""Functions that take long to compile: what they are, and about how many seconds they take."""


@contextmanager
def _compiling(name: str) -> Iterator[None]:
    """Say that a function is being compiled, by this process or another one for which it waits."""
    what, seconds = LONGEST.get(name, ("small ones", 0.0))
    phase = f"compiling drywarp's inner loops, once per installation ({what})"
    tell_progress(Progress(0, 1, phase=phase, seconds=seconds))
    try:
        yield
    finally:
        tell_progress(Progress(1, 1, phase=phase))


@cache
def machine() -> str | None:
    """A hash of the compiler's versions and the processor; None if llvmlite is missing or unfamiliar."""
    try:
        import llvmlite
        from llvmlite import binding

        numba = importlib.util.find_spec("numba")
        if numba is None or numba.origin is None:
            return None
        version = (Path(numba.origin).parent / "_version.py").read_text(encoding="utf-8")
        parts = (
            sys.version, llvmlite.__version__, version, binding.get_host_cpu_name(),
            binding.get_host_cpu_features().flatten(), os.environ.get("NUMBA_CPU_NAME", ""),
        )  # fmt: skip
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    except (ImportError, AttributeError, OSError, RuntimeError):
        return None


def cached(*sources: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's `njit` with its on-disk cache in drywarp's cache folder; `sources` are those of `sources_digest`."""
    from numba import njit

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        dispatcher._cache = _cache_of(function, sources_digest(*sources))
        return dispatcher

    return decorate


def _cache_of(function: Callable[..., Any], digest: str) -> Any:
    """Numba's cache of a function; processes that need the same code simultaneously compile it once."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

    class Place(_CacheLocator):
        def get_cache_path(self) -> str:
            return str(cache_folder() / FOLDER)

        def get_source_stamp(self) -> str:
            return digest

        def get_disambiguator(self) -> str:
            return digest[:32]

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Place:
            return cls()

    class Implementation(CompileResultCacheImpl):
        _locator_classes: ClassVar[list[Any]] = [Place]

    class Cache(FunctionCache):
        _impl_class = Implementation
        turn = ExitStack()

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            self.turn.enter_context(_compiling(function.__name__))
            self.turn.enter_context(in_turn(Path(self.cache_path) / f"{self._impl.filename_base}.lock"))
            with suppress(Exception):  # a damaged file: unpickling it raises anything
                found = super().load_overload(sig, target_context)
                if found is not None:
                    self.turn.close()
                return found
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with self.turn, suppress(OSError):
                super().save_overload(sig, data)

    return Cache(function)
