"""Locate NVIDIA's compiler library and disassembler as installed by pip, and cache compiled kernels on disk."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from ..errors import ToolError
from ..support.by_name import folders_of, version_of
from ..support.folders import cache_folder, replace_file


@cache
def toolkit_folder() -> Path:
    """The folder `nvidia/cu13` of the installed packages. Raises ToolError if it is missing."""
    for place in folders_of("nvidia"):
        if (folder := place / "cu13").is_dir():
            return folder
    raise ToolError("NVRTC is not installed (expected: pip install nvidia-cuda-nvrtc nvidia-cuda-nvdisasm)")


def programs(name: str) -> Iterator[Path]:
    """Where a program of CUDA's toolkit may lie: in `$CUDA_HOME`, in `$CUDA_PATH`, and on PATH."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder) / "bin" / name
    if found := shutil.which(name):
        yield Path(found)


@cache
def release_of(tool: Path) -> str:
    """The release that a tool of CUDA reports, such as ``13.0.88``; empty if it cannot be run."""
    try:
        text = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\bV(\d[\d.]*)", text)
    return match[1] if match else ""


COMPILER_VARIABLE = "DRYWARP_NVRTC"
"""Environment variable with the path of another libnvrtc, such as the one in the user's own toolkit."""


@cache
def compiler_library() -> Path:
    """The NVRTC library to compile with. Raises ToolError if there is none."""
    chosen = os.environ.get(COMPILER_VARIABLE)
    if chosen:
        path = Path(chosen)
        if not path.is_file():
            raise ToolError(f"{COMPILER_VARIABLE}={chosen}: no such file (expected the path of a libnvrtc.so)")
        return path.resolve()
    return packaged_library()


@cache
def toolkit_headers() -> Path | None:
    """The headers of the toolkit that `COMPILER_VARIABLE` points into; None if it is unset or there are no headers."""
    if not os.environ.get(COMPILER_VARIABLE):
        return None
    # lib64/libnvrtc.so of a toolkit, or nvidia/cuda_nvrtc/lib of a wheel with nvidia/cuda_runtime beside it.
    folder = compiler_library().parent.parent
    places = (folder / "include", folder.parent / "include", folder.parent / "cuda_runtime" / "include")
    return next((place for place in places if (place / "cuda_fp16.h").is_file()), None)


@cache
def packaged_library() -> Path:
    """The NVRTC library that was installed with drywarp. Raises ToolError if there is none."""
    folder = toolkit_folder() / "lib"
    found = sorted(folder.glob("libnvrtc.so.*")) or sorted(folder.glob("libnvrtc*.so*"))
    if not found:
        raise ToolError(f"NVRTC cannot be loaded from {folder}: it holds no libnvrtc")
    return found[0]


def _version_of(library: Path) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:
        ctypes.CDLL(str(library)).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    except (OSError, AttributeError):
        return "unusable"
    return f"{major.value}.{minor.value} ({library})"


@cache
def tool_versions() -> dict[str, str]:
    """Versions of the packages that turn source into machine code, as recorded by pip.

    A compiler set with `COMPILER_VARIABLE` is listed with its path.
    """
    versions = {}
    for tool, package in (("nvrtc", "nvidia-cuda-nvrtc"), ("nvdisasm", "nvidia-cuda-nvdisasm")):
        versions[tool] = version_of(package) or "missing"
    if os.environ.get(COMPILER_VARIABLE):
        versions["nvrtc"] = _version_of(compiler_library())
    return versions


@cache
def library_folders() -> tuple[Path, ...]:
    """Include folders of NVIDIA's device libraries, installed by pip (`nvidia-curand`) or by a toolkit."""
    toolkits = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [toolkit_folder(), *(Path(toolkit) for toolkit in toolkits if toolkit), Path("/usr/local/cuda")]
    found = [place / "include" for place in places if (place / "include" / "curand_kernel.h").is_file()]
    return tuple(found[:1])


# Compiled and disassembled kernels on disk, keyed by their content.
#
# An entry is written to a temporary file and renamed, so that neither concurrent processes nor a kill can leave
# a partial entry. Each entry ends with a checksum. A damaged or unreadable entry counts as absent and is rebuilt.
# If the cache cannot be written, drywarp works without it.


class Entry(msgspec.Struct, frozen=True):
    """One cached compilation; `notes` are shown with the prediction."""

    cubin: bytes
    listing: str
    log: str
    symbols: dict[str, str]
    notes: tuple[str, ...] = ()
    compiler: str = ""


_FORMAT = b"7"
"""Changes whenever the content of an entry changes for the same key parts."""


def key_of(*parts: str | bytes) -> str:
    """SHA-256 over the parts, each prefixed with its length so that no two lists collide."""
    digest = hashlib.sha256(_FORMAT)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _path(key: str) -> Path:
    return cache_folder() / "kernels" / key[:2] / f"{key[2:]}.msgpack"


_CHECKSUM = 16
LOOK_EVERY = 32
"""Entries that a process writes to a folder between two checks of its size."""
ROOM = 0.9
"""Fraction of the size limit that a folder is trimmed to once it exceeds the limit."""
written: Counter[str] = Counter()
damaged: list[Path] = []
"""Damaged entries that this process found, for reporting."""


def _sealed(data: bytes) -> bytes:
    return data + hashlib.blake2b(data, digest_size=_CHECKSUM).digest()


def _opened(path: Path) -> bytes | None:
    """The data of a file without its checksum; None if the file is missing or the checksum does not match."""
    try:
        held = path.read_bytes()
    except OSError:
        return None
    data = held[:-_CHECKSUM]
    if _sealed(data) != held:
        damaged.append(path)
        return None
    return data


def read(part: str, key: str) -> bytes | None:
    """The data cached under a key in one of the cache's folders, or None."""
    return _opened(_place(part, key))


def exists(part: str, key: str) -> bool:
    """Whether there is a cached entry for a key."""
    return os.path.isfile(_place(part, key))


def write(part: str, key: str, data: bytes, most: int) -> None:
    """Cache data; the oldest entries of a folder larger than `most` bytes are deleted. Does nothing if not writable."""
    path = _place(part, key)
    replace_file(path, _sealed(data))
    written[part] += 1
    if (written[part] - 1) % LOOK_EVERY:
        return
    _trim(path.parent, most)


def _trim(folder: Path, most: int) -> None:
    """If a folder is larger than `most` bytes, delete its oldest files until there is room again."""
    files = []
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            # Another process may delete it at the same time.
            with contextlib.suppress(OSError):
                stat = file.stat()
                files.append((stat.st_mtime_ns, stat.st_size, file))
    held = sum(size for _, size, _ in files)
    if held <= most:
        return
    for _, size, file in sorted(files):
        if held <= ROOM * most:
            break
        with contextlib.suppress(OSError):
            file.unlink()
        held -= size


def _place(part: str, key: str) -> Path:
    return cache_folder() / part / f"{key}.msgpack"


def load(key: str) -> Entry | None:
    """The entry of this key, or None."""
    data = _opened(_path(key))
    try:
        return None if data is None else msgspec.msgpack.decode(data, type=Entry)
    except (ValueError, msgspec.MsgspecError):
        return None


def store(key: str, entry: Entry) -> None:
    """Cache an entry; does nothing if the folder cannot be written."""
    replace_file(_path(key), _sealed(msgspec.msgpack.encode(entry)))


@dataclass(frozen=True, slots=True)
class Usage:
    """Cache usage: number of kernels, and bytes of all drywarp files, compiler headers included."""

    folder: Path
    entries: int
    bytes: int
    writable: bool


def usage() -> Usage:
    """Measure the cache. Does not create it."""
    folder = cache_folder()
    entries = size = 0
    for part in _PARTS:
        # os.walk passes over folders that cannot be read.
        for place, _, names in os.walk(folder / part):
            entries += sum(part == "kernels" and name.endswith(".msgpack") for name in names)
            for name in names:
                # A file may vanish: another process may clear the cache or rename its temporary file.
                with contextlib.suppress(OSError):
                    size += os.stat(os.path.join(place, name)).st_size
    return Usage(folder, entries, size, writable())


def writable() -> bool:
    """Whether the cache can be written. Creates nothing."""
    existing = cache_folder()
    # os.path's functions, unlike Path's, take a folder that may not be looked into for one without the file.
    while not os.path.lexists(existing):
        existing = existing.parent
    return os.path.isdir(existing) and os.access(existing, os.W_OK | os.X_OK)


def clear() -> Usage:
    """Empty the cache, deleting only drywarp's own files; returns the usage before."""
    held = usage()
    for part in _PARTS:
        shutil.rmtree(held.folder / part, ignore_errors=True)
    return held


_PARTS = ("kernels", "listings", "drywarp-headers", "loops", "emulations", "answers")
"""The folders that drywarp owns (`loops`: earlier versions did); anything else beside them is left alone."""
