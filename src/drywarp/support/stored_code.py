"""Compiled functions cached as machine code, so that later processes run them without Numba.

Importing Numba and loading a function from its own cache takes longer than most simulations. So when Numba
compiles a function here, the optimised LLVM code is turned into an object file in the cache folder; later
processes load it with llvmlite and call it by address. The file name contains a hash of everything it depends
on: the sources, the versions of Numba and llvmlite, the processor, and the argument types. Numba's calling
convention is verified against the generated code; if it is not as expected, or anything else fails, nothing
is stored, and Numba handles every call.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from .folders import Progress, cache_folder, in_turn, replace_file, sources_digest, tell_progress

FOLDER = "loops"
"""The subfolder of the cache folder with the object files."""
LONGEST = {"advance": ("1 of 2, the emulator's", 25.0), "run_in_order": ("2 of 2, the simulation's", 20.0)}
"""Functions that take long to compile: what they are, and about how many seconds they take."""
_KNOWN = frozenset({"memset", "memcpy", "memmove"})
"""Functions that stored code may call, since every process provides them."""
_MEANT = {"i8": ctypes.c_uint8, "i64": ctypes.c_int64, "ptr": ctypes.c_void_p}
_HEAD = re.compile(r"^define [^@\n]*\bi32 @(\S+?)\((.*)\) [^()\n]*\{", re.MULTILINE)
_WRAPPER = re.compile(r"^define [^@\n]*@\"?(?:_ZN7cpython|cfunc\.)[^\n]*\{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
_DECLARED = re.compile(r"^declare [^@\n]*@\"?([^\s\"(]+)\"?\([^\n]*\n", re.MULTILINE)
_TYPED = re.compile(r"(\w+)\b[^%]*%[^,]+(?:, |$)")
_lock = Lock()


class Stored:
    """A function that is compiled on its first call in any process, and only loaded in later processes.

    `jit` compiles it with Numba; `digest` identifies all sources of its code. It accepts integers, and arrays
    that it may modify, and returns an integer or nothing; each combination of argument types is compiled separately.
    """

    def __init__(self, function: Callable[..., Any], jit: Callable[[Callable[..., Any]], Any], digest: str) -> None:
        self.function, self.jit, self.digest = function, jit, digest
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._entries: dict[tuple[str, ...], Callable[..., Any] | None] = {}
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """The function compiled by Numba."""
        if self._dispatcher is None:
            self._dispatcher = self.jit(self.function)
        return self._dispatcher

    def __call__(self, *arguments: Any) -> Any:
        """Call the stored code, or Numba's if there is none."""
        kinds = tuple(map(_kind, arguments))
        with _lock:
            if kinds not in self._entries:
                self._entries[kinds] = self._load(kinds) or self._made(kinds, arguments)
            entry = self._entries[kinds]
        return self.dispatcher(*arguments) if entry is None else entry(*arguments)

    def _load(self, kinds: tuple[str, ...]) -> Callable[..., Any] | None:
        path = self._path(kinds)
        if path is None:
            return None
        try:
            head, _, code = path.read_bytes().partition(b"\n")
            said = json.loads(head)
            if hashlib.sha256(code).hexdigest() != said["sha256"]:
                return None
            return _callable(code, said["symbol"], kinds, said["returns"])
        except (OSError, ValueError, KeyError, RuntimeError):
            return None

    def _made(self, kinds: tuple[str, ...], arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
        """The code that another process has stored in the meantime; otherwise compile and store it, and return None."""
        path = self._path(kinds)
        with _compiling(self.__name__), in_turn(path.with_suffix(".lock")) if path else nullcontext():
            found = self._load(kinds)
            if found is None:
                self._compile(kinds, arguments)
            return found

    def _compile(self, kinds: tuple[str, ...], arguments: tuple[Any, ...]) -> None:
        """Compile the code for these arguments with Numba, and store it if possible."""
        from numba import typeof

        dispatcher = self.dispatcher
        signature = tuple(typeof(argument) for argument in arguments)  # type: ignore[no-untyped-call]
        dispatcher.compile(signature)
        path = self._path(kinds)
        returns = str(dispatcher.overloads[signature].signature.return_type)
        if path is None or returns not in ("int64", "none") or "?" in kinds:
            return
        text = _without_wrappers(dispatcher.inspect_llvm(signature))
        found = next((f for f in _HEAD.finditer(text) if _as_expected(f[2], kinds)), None)
        if found:
            code = _object_code(text)
            if code:
                head = {
                    "symbol": found[1].strip('"'), "returns": returns, "sha256": hashlib.sha256(code).hexdigest()
                }  # fmt: skip
                replace_file(path, json.dumps(head).encode() + b"\n" + code)

    def _path(self, kinds: tuple[str, ...]) -> Path | None:
        where = machine()
        if where is None:
            return None
        key = hashlib.sha256("\n".join((self.digest, where, *kinds)).encode()).hexdigest()
        return cache_folder() / FOLDER / f"{self.__name__}-{key[:32]}.o"


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


def _kind(argument: Any) -> str:
    """The type of an argument as a short string; ``?`` for one that stored code does not accept."""
    if isinstance(argument, np.ndarray):
        plain = argument.flags.c_contiguous and argument.flags.aligned and argument.flags.writeable
        return f"{argument.dtype.str}{argument.ndim}" if plain else "?"
    if isinstance(argument, bool | np.bool_):
        return "bool"
    return "int" if isinstance(argument, int | np.int64) else "?"


def _layout(kinds: tuple[str, ...]) -> list[str]:
    """Types of the machine-level arguments as Numba passes them, starting with pointers for result and error.

    An array is passed as its owner, parent, number of items, item size, address, shape and strides.
    """
    types = ["ptr", "ptr"]
    for kind in kinds:
        if kind in ("bool", "int"):
            types.append("i8" if kind == "bool" else "i64")
        else:
            types += ["ptr", "ptr", "i64", "i64", "ptr", *["i64"] * (2 * int(kind[-1]))]
    return types


def _as_expected(parameters: str, kinds: tuple[str, ...]) -> bool:
    """Whether the code takes its arguments as in `_layout`."""
    return _TYPED.findall(parameters) == _layout(kinds)


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


@cache
def _target() -> Any:
    """The target machine of the code: this one."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


def _without_wrappers(text: str) -> str:
    """The code without the wrappers that call it from Python, and without declarations that only they need."""
    text = _WRAPPER.sub("", text)
    uses = _DECLARED.sub("", text)
    return _DECLARED.sub(lambda found: found[0] if re.search(rf'@"?{re.escape(found[1])}\b', uses) else "", text)


def _object_code(text: str) -> bytes:
    """Machine code of LLVM code; empty if it needs functions that only Numba provides."""
    from llvmlite import binding

    module = binding.parse_assembly(text)
    needs = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    return bytes(_target().emit_object(module)) if needs <= _KNOWN else b""


_engines: list[Any] = []
"""Engines that own the loaded code; they live until the process ends."""


def _callable(code: bytes, symbol: str, kinds: tuple[str, ...], returns: str) -> Callable[..., Any]:
    """The stored function as a Python callable; it releases the GIL while running."""
    from llvmlite import binding

    target = _target()
    empty = binding.parse_assembly("")
    empty.triple = target.triple
    engine = binding.create_mcjit_compiler(empty, target)
    _engines.append(engine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(symbol)
    if not address:
        raise ValueError(symbol)
    types = _layout(kinds)
    native = ctypes.CFUNCTYPE(ctypes.c_int32, *(_MEANT[kind] for kind in types))(address)

    def call(*arguments: Any) -> int | None:
        result, error = ctypes.c_int64(0), ctypes.c_void_p(None)
        flat: list[Any] = [ctypes.addressof(result), ctypes.addressof(error)]
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                flat += [None, None, argument.size, argument.itemsize, argument.ctypes.data]
                flat += argument.shape
                flat += argument.strides
            else:
                flat.append(int(argument))
        status = native(*flat)
        if status != 0 and returns == "int64":
            raise AssertionError(f"stored code returned status {status}")
        return result.value if returns == "int64" else None

    return call


def cached(*sources: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's `njit` with its on-disk cache, for functions whose arguments `Stored` cannot pass.

    Numba checks only the date of a function's own file, and so misses edits to functions that it calls. Here the
    digest of `sources` (see `sources_digest`) is part of the cache key. The files are in drywarp's cache folder.
    """
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
