"""Folders and files, cache keys, locks between processes, atomic replacement, threads, time limits, and progress."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from ..errors import InputFileError, UsageError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_PACKAGE = Path(__file__).parents[1]


def cache_folder() -> Path:
    """`$DRYWARP_CACHE_DIR`, else the user's cache folder of this platform."""
    override = os.environ.get("DRYWARP_CACHE_DIR")
    if override:
        return Path(override)
    import platformdirs  # slow to import, and not needed above

    return Path(platformdirs.user_cache_dir("drywarp"))


def own_gpu_folder() -> Path:
    """Where the user's own GPU files lie: `$DRYWARP_GPU_DIR`, else in the user's data folder of this platform."""
    override = os.environ.get("DRYWARP_GPU_DIR")
    if override:
        return Path(override)
    import platformdirs  # slow to import, and not needed above

    return Path(platformdirs.user_data_dir("drywarp")) / "gpus"


@cache
def sources_digest(*parts: str, suffixes: tuple[str, ...] = (".py", ".c", ".h")) -> str:
    """SHA-256 over names and contents of the sources below `parts` (files or folders; default: the whole package).

    It is part of every cache key, so that edited sources never use results of older ones. Sources whose sizes and times
    of change are known from an earlier run are not read again.
    """
    files = sorted(_files(parts or (".",), suffixes))
    stated = hashlib.sha256(f"{_PACKAGE}".encode())
    for path in files:
        status = os.stat(path)
        stated.update(f"\0{path}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    known = cache_folder() / "sources" / stated.hexdigest()
    with contextlib.suppress(OSError):
        if len(text := known.read_text("ascii", "replace")) == 64:
            return text
    digest = hashlib.sha256()
    for path in files:
        data = Path(path).read_bytes()
        digest.update(f"{os.path.relpath(path, _PACKAGE)}\0{len(data)}\0".encode() + data)
    replace_file(known, digest.hexdigest().encode())
    return digest.hexdigest()


def _files(parts: Iterable[str], suffixes: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        place = os.path.join(_PACKAGE, part)
        if not os.path.isdir(place):
            yield place
        for folder, _, names in os.walk(place):
            yield from (os.path.join(folder, name) for name in names if name.endswith(suffixes))


@contextlib.contextmanager
def scratch_folder(kind: str) -> Iterator[Path]:
    """A temporary folder of this process, ``drywarp-KIND-PID-…``, which is gone afterwards.

    One whose process was killed is removed by the next that makes one of the same kind: a process holds a lock on its
    folders for as long as it lives.
    """
    prefix = f"drywarp-{kind}-"
    _remove_orphans(Path(tempfile.gettempdir()), prefix)
    with contextlib.ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix=f"{prefix}{os.getpid()}-", ignore_cleanup_errors=True)
        name = stack.enter_context(made)
        if fcntl is not None:
            held = os.open(name, os.O_RDONLY)  # not inherited by whatever is started
            stack.callback(os.close, held)
            with contextlib.suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(name)


def _remove_orphans(place: Path, prefix: str) -> None:
    """Remove this user's folders whose names begin so, and whose processes are dead."""
    if fcntl is None:
        return
    for folder in place.glob(f"{prefix}*-*"):
        number = folder.name.removeprefix(prefix).partition("-")[0]
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if not (number.isdecimal() and stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()):
                continue
            if _is_alive(int(number)):
                continue
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                # Whose number means nothing here, in another container, is known by its lock.
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def read_bytes(path: Path, expected: str) -> bytes:
    """The content of a file that the user names. Raises InputFileError, which says what was `expected`."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file (expected {expected})") from None
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder (expected {expected})") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None


def read_toml(path: Path, expected: str) -> dict[str, Any]:
    """The content of a TOML file that the user names. Raises InputFileError, which says what was `expected`."""
    import tomllib

    try:
        return tomllib.loads(read_bytes(path, expected).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{path}: not TOML: {error} (expected {expected})") from None


def packaged_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file of the package, by its columns; lines that begin with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def write_file(path: Path, content: str | bytes, option: str = "") -> None:
    """Write a file that the user names, by this option. Raises UsageError that names both if it cannot be written."""
    try:
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written ({error.strerror})".lstrip()) from None


def replace_file(path: Path, data: bytes) -> None:
    """Write a file atomically, so that no reader sees a partial one; does nothing if the folder is not writable."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            temporary = file.name
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


# Threads.

_threads = 0


def thread_count() -> int:
    """How many threads may run the core's loops, which hold no interpreter lock; all cores if nobody says otherwise."""
    return _threads or len(os.sched_getaffinity(0))


def use_threads(count: int | None) -> None:
    """From now on, this process runs the core's loops in this many threads (None: on all cores)."""
    global _threads
    _threads = count or 0


# Time limits.


class OutOfTimeError(BaseException):
    """The time limit has expired. Not an `Exception`, so that the limited code does not catch it."""


def start(seconds: float) -> None:
    """Raise OutOfTimeError in the main thread after `seconds` of wall time."""

    def over(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"{seconds:g} s")

    signal.signal(signal.SIGALRM, over)
    # Repeat every second: an exception raised in a callback of compiled code is lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)


def stop() -> None:
    """Cancel the timer of `start`."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def time_box(seconds: float) -> Iterator[None]:
    """A `with` block with a time limit: `start`, then `stop` at the end. Blocks do not nest."""
    before = signal.getsignal(signal.SIGALRM)
    start(seconds)
    try:
        yield
    finally:
        stop()
        signal.signal(signal.SIGALRM, before)


# Progress within long phases: code below tells, and whoever shows it (the command line) listens; else nothing happens.


class Progress(NamedTuple):
    """How much of a phase is done; `at_most`: it may end earlier.

    `stage` is how the name of the stage that it belongs to begins.
    """

    done: float
    of: float
    at_most: bool = False
    stage: str = ""


class _Listener:
    """Who listens in this process. Workers that are forked from it show nothing."""

    hear: Callable[[Progress], None] | None = None
    process = 0


@contextmanager
def listening(hear: Callable[[Progress], None]) -> Iterator[None]:
    """Call `hear` with all progress in this process."""
    before = _Listener.hear, _Listener.process
    _Listener.hear, _Listener.process = hear, os.getpid()
    try:
        yield
    finally:
        _Listener.hear, _Listener.process = before


def tell_progress(progress: Progress) -> None:
    """Say how much of a phase is done."""
    if _Listener.hear is not None and _Listener.process == os.getpid():
        _Listener.hear(progress)
