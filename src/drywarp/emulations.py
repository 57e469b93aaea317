"""Emulations kept on disk: what a kernel did in a launch, and how its accesses behave in a GPU's memory.

A later run that asks for the same does not emulate again. An entry's name is a hash of all that it depends on: the
machine code, the launch with the content of its arrays, what was asked for, all sources of drywarp, and the
processor. Only what would come out the same again is kept: nothing that limits of time cut short.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from typing import Any

import msgspec
import numpy as np

from . import __version__
from .folders import sources_digest
from .frontends import cache as disk
from .kernel.cfg import build_cfg
from .kernel.kernel import Kernel
from .kernel.launch import Buffer, Launch
from .kernel.profile import AccessLog, Profile, SampledBlock, WarpPath
from .kernel.sampling import Sampling
from .kernel.texture import Texture
from .memory.behaviour import MemoryBehaviour
from .memory.geometry import MemoryGeometry
from .stored_code import machine

FOLDER = "emulations"
LARGEST_ENTRY, LARGEST_INPUT, MOST_BYTES = 64 << 20, 256 << 20, 512 << 20
"""Bytes of one entry and of the arrays of a launch that are looked through, and bytes of all entries together."""
LASTING = ("all", "proven", "uniform", "chosen")
"""Kinds of samples (see `Sampling`) that do not depend on how quick the machine was."""
_MEMBERS = ("instruction", "warp", "order", "base", "pattern", "space", "offsets", "masks")


class _Array(msgspec.Struct, array_like=True):
    type: str
    shape: tuple[int, ...]
    data: bytes


class _Entry(msgspec.Struct):
    """A profile without what the caller has already."""

    blocks: list[SampledBlock]
    paths: list[tuple[_Array, _Array]]
    accesses: list[_Array]
    thread_instructions: _Array
    allocations: dict[str, tuple[int, int]]
    steps: int
    notes: tuple[str, ...]
    syncs: _Array
    sampling: Sampling | None


@dataclass(frozen=True)
class Kept:
    """The place of one emulation; `key` is empty where none is kept."""

    key: str
    kernel: Kernel
    launch: Launch

    def profile(self) -> Profile | None:
        """The profile that an earlier run has left."""
        data = disk.read(FOLDER, self.key) if self.key else None
        if data is None:
            return None
        try:
            entry = msgspec.msgpack.decode(data, type=_Entry)
        except msgspec.MsgspecError:
            return None
        return Profile(
            kernel=self.kernel,
            launch=self.launch,
            cfg=build_cfg(self.kernel.instructions, self.kernel.code_entries),
            blocks=tuple(entry.blocks),
            paths=tuple(WarpPath(_array(blocks), _array(lanes)) for blocks, lanes in entry.paths),
            accesses=AccessLog(**{name: _array(kept) for name, kept in zip(_MEMBERS, entry.accesses, strict=True)}),
            thread_instructions=_array(entry.thread_instructions),
            allocations=entry.allocations,
            steps=entry.steps,
            notes=entry.notes,
            syncs=_array(entry.syncs),
            sampling=entry.sampling,
        )

    def keep_profile(self, profile: Profile) -> None:
        """Leave a profile for later runs, where it is one that would come out the same again."""
        log = profile.accesses
        lasting = profile.sampling is not None and profile.sampling.basis in LASTING and profile.logged is None
        if not self.key or not lasting or sum(getattr(log, name).nbytes for name in _MEMBERS) > LARGEST_ENTRY:
            return
        entry = _Entry(
            blocks=list(profile.blocks),
            paths=[(_kept(path.blocks), _kept(path.lanes)) for path in profile.paths],
            accesses=[_kept(getattr(log, name)) for name in _MEMBERS],
            thread_instructions=_kept(profile.thread_instructions),
            allocations={name: (start, size) for name, (start, size) in profile.allocations.items()},
            steps=profile.steps,
            notes=profile.notes,
            syncs=_kept(profile.syncs),
            sampling=profile.sampling,
        )
        disk.write(FOLDER, self.key, msgspec.msgpack.encode(entry), MOST_BYTES)

    def holds(self, geometry: MemoryGeometry, warm: bool) -> bool:
        """Whether profile and behaviour are there, so that a later run comes to the same."""
        return all(key and disk.exists(FOLDER, key) for key in (self.key, self._key_of(geometry, warm)))

    def _key_of(self, geometry: MemoryGeometry, warm: bool) -> str:
        return hashlib.sha256(repr((self.key, astuple(geometry), warm)).encode()).hexdigest() if self.key else ""

    def behaviour(self, geometry: MemoryGeometry, warm: bool, judge: Callable[[], MemoryBehaviour]) -> MemoryBehaviour:
        """What an earlier run found, else what `judge` says."""
        key = self._key_of(geometry, warm)
        data = disk.read(FOLDER, key) if key else None
        if data is not None:
            try:
                return msgspec.msgpack.decode(data, type=MemoryBehaviour)
            except msgspec.MsgspecError:
                pass
        found = judge()
        if key:
            disk.write(FOLDER, key, msgspec.msgpack.encode(found, enc_hook=_plain), MOST_BYTES)
        return found


def kept(kernel: Kernel, launch: Launch, *asked: object) -> Kept:
    """The place of the emulation of a launch; `asked` is what else it depends on, plain values."""
    arrays = [buffer.array for buffer in _buffers(launch) if buffer.array is not None]
    where = machine()
    if where is None or sum(array.nbytes for array in arrays) > LARGEST_INPUT:
        return Kept("", kernel, launch)
    digest = hashlib.sha256(f"{__version__} {np.__version__} {where} {sources_digest()}".encode())
    written = io.BytesIO()
    pickler = pickle.Pickler(written, protocol=5)
    pickler.fast = True  # what occurs twice is written twice, whether it is one object or two that are equal
    # An instruction is what the frontend, whose source counts too, reads in these; to pickle all their parts is slow.
    pickler.dump((replace(kernel, instructions=(), arch=_generation(kernel.arch)), launch, asked))
    digest.update(written.getbuffer())
    for i in kernel.instructions:
        digest.update(f"{i.pc}\0{i.text}\0{i.encoding}\0{i.class_}\0{i.source}\n".encode())
    return Kept(digest.hexdigest(), kernel, launch)


def _generation(arch: str) -> str:
    """Of the architecture all that the emulator asks: equal machine code of sm_86 and sm_89 is emulated once."""
    major = arch.removeprefix("sm_").rstrip("af")[:-1]
    return "sm_7 and sm_8" if major in ("7", "8") else arch


def _buffers(launch: Launch) -> list[Buffer]:
    values = [*launch.arguments, *launch.constants.values()]
    inside = [value.buffer if isinstance(value, Texture) else value for value in values]
    return [value for value in inside if isinstance(value, Buffer)]


def _plain(value: Any) -> Any:
    """A NumPy number as one of Python's."""
    return value.item()


def _kept(array: np.ndarray[Any, Any]) -> _Array:
    return _Array(array.dtype.str, array.shape, array.tobytes())


def _array(kept: _Array) -> np.ndarray[Any, Any]:
    return np.frombuffer(kept.data, np.dtype(kept.type)).reshape(kept.shape)
