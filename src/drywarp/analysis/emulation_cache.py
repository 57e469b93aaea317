"""Emulates more blocks of a launch for their addresses, within deterministic limits, and caches emulations on disk.

Past the limits of emulation, the code is followed without data.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from .._version import __version__
from ..core.library import mode
from ..errors import EmulationLimitError
from ..execution.emulator.sampling import Limits
from ..frontends import cache as disk
from ..kernel.cfg import Loop, build_cfg
from ..kernel.kernel import Kernel
from ..kernel.launch.launch import Buffer, Launch, buffers_in
from ..kernel.profile import SPACE_GLOBAL, AccessLog, Profile, SampledBlock, Sampling, WarpPath
from ..memory.behaviour import MemoryBehaviour
from ..memory.followed import Look
from ..memory.table import MemoryGeometry
from ..support.folders import sources_digest
from .request import Options
from .without_data import Followed, static_answer

if TYPE_CHECKING:
    from ..execution.emulator.skim import Skim


MOST_ACCESSES = 20_000_000
"""Global-memory accesses over all blocks: some hundred MB."""
MOST_WARP_STEPS = 40_000_000
"""Warp instructions over all blocks that must run in full: a few seconds."""
LANE_STEPS = 10_000_000_000
"""Instructions times lanes of one wave that is run for its addresses, counting skipped instructions: seconds."""


class WholeBlocks:
    """Runs more blocks of a profile's launch; returns None if that would exceed a limit."""

    def __init__(self, seen: Profile, limits: Limits) -> None:
        self._seen, self._limits = seen, limits
        self._steps: float = MOST_WARP_STEPS
        self._accesses: float = MOST_ACCESSES
        self._addresses: Skim | None = None

    def __call__(self, blocks: Sequence[int]) -> Profile | None:
        """The global-memory accesses of some blocks, given as linear indices."""
        seen = self._seen
        share = len(blocks) / len(seen.blocks)
        self._accesses -= int((seen.accesses.space == SPACE_GLOBAL).sum()) * share
        if self._accesses < 0:
            return None
        if self._addresses is None:
            self._addresses = self._skim()
        found = self._addresses(blocks)
        return found if found is not None else self._in_full(blocks, seen.steps * share)

    def _in_full(self, blocks: Sequence[int], steps: float) -> Profile | None:
        """For kernels where it is unclear what may be skipped."""
        self._steps -= steps
        if self._steps < 0:
            return None
        from ..execution.emulator import emulate  # here, because loading it takes longer than an answer from the cache

        try:
            return emulate(self._seen.kernel, self._seen.launch, blocks=list(blocks), limits=self._limits).profile
        except EmulationLimitError:
            return None

    def briefly(self) -> Iterator[Look]:
        """Brief ways to run blocks, cheapest first: every loop once, then only nested loops, then deeper ones."""
        for once in self._seen.cfg.loops_by_depth():
            yield self._skim(once, lasting=True)

    def _skim(self, once: Sequence[Loop] = (), lasting: bool = False) -> Skim:
        from ..execution.emulator.skim import Skim

        seen = self._seen
        return Skim(seen.kernel, seen.launch, seen.cfg, Limits(lane_steps=LANE_STEPS), once, seen, lasting)


# Past the limits: what answers instead of an emulation.


def may_be_followed(options: Options, stopped: EmulationLimitError) -> bool:
    """Whether an emulation that a limit has stopped is replaced by an analysis without data.

    Not if the user decides what is emulated; nor if threads were waiting for others, which may be forever.
    """
    chosen = options.blocks is not None or options.confidence is not None or options.full_emulation
    return options.fall_back and not chosen and not options.limits.strict and not stopped.spins


def followed_instead(kernel: Kernel, launch: Launch, options: Options, stopped: EmulationLimitError) -> Followed:
    """As `static_answer`, for a launch of which no block ended within the limits of emulation."""
    from ..execution.symbolic.parameters import complete

    profile, report, whole_blocks, looks = static_answer(kernel, complete(launch, kernel), options, stopped.iterations)
    endless = [loop for loop in report.loops if loop.known == "assumed"]
    doubt = (
        f"no block finished within {stopped.limit} ({stopped.option} raises the limit), so the"
        " code was followed without data, as with --static"
    )
    if endless:
        trips = ", ".join(f"{loop.name} {loop.trips or 0:,.0f}" for loop in endless)
        doubt += (
            f"; loops that depend on data are given the iterations emulated until then ({trips}), so the kernel"
            " probably takes longer, and never ends if the data never ends such a loop"
        )
    short = tuple(note for note in profile.notes if "counts" in note)
    notes = tuple(note for note in profile.notes if note not in short)
    return replace(profile, doubts=(doubt, *short, *profile.doubts), notes=notes), report, whole_blocks, looks


# Emulations cached on disk: what a kernel did in a launch, and how its accesses behave in a GPU's memory.
#
# A later identical request does not emulate again. An entry's name is a hash of everything it depends on: the machine
# code, the launch with the content of its arrays, the options, all drywarp sources, and the processor. Only
# reproducible results are cached: nothing that a time limit cut short.

FOLDER = "emulations"
LARGEST_ENTRY, LARGEST_LOG, LARGEST_INPUT, MOST_BYTES = 64 << 20, 512 << 20, 256 << 20, 512 << 20
"""Most bytes of one entry, of the accesses in it, of a launch's arrays that are hashed, and of all entries together."""
LASTING = ("all", "proven", "uniform", "chosen")
"""Kinds of samples (see `Sampling`) that do not depend on the speed of the machine."""
_MEMBERS = ("instruction", "warp", "base", "pattern", "space", "offsets", "masks")


class _Array(msgspec.Struct, array_like=True):
    type: str
    shape: tuple[int, ...]
    data: bytes


class _Entry(msgspec.Struct):
    """A profile without what the caller already has."""

    blocks: list[SampledBlock]
    paths: list[tuple[_Array, _Array]]
    accesses: list[_Array]
    thread_instructions: _Array
    allocations: dict[str, tuple[int, int]]
    steps: int
    notes: tuple[str, ...]
    doubts: tuple[str, ...]
    syncs: _Array
    sampling: Sampling | None
    products: dict[int, tuple[str, ...]]
    constant_addresses: dict[int, float]
    constants: _Array
    tensor_columns: int
    starts: int


@dataclass(frozen=True)
class CacheEntry:
    """The cache entry of one emulation; `key` is empty if it cannot be cached."""

    key: str
    kernel: Kernel
    launch: Launch

    def profile(self) -> Profile | None:
        """The profile that an earlier run cached, else None."""
        data = disk.read(FOLDER, self.key) if self.key else None
        if data is None:
            return None
        try:
            entry = msgspec.msgpack.decode(zlib.decompress(data), type=_Entry)
        except (msgspec.MsgspecError, zlib.error):
            return None
        return Profile(
            kernel=self.kernel.with_tensor_use(entry.products, entry.tensor_columns),
            launch=replace(self.launch, starts=entry.starts),
            cfg=build_cfg(self.kernel.instructions, self.kernel.code_entries),
            blocks=tuple(entry.blocks),
            paths=tuple(WarpPath(_array(blocks), _array(lanes)) for blocks, lanes in entry.paths),
            accesses=AccessLog(**{name: _array(packed) for name, packed in zip(_MEMBERS, entry.accesses, strict=True)}),
            thread_instructions=_array(entry.thread_instructions),
            allocations=entry.allocations,
            steps=entry.steps,
            notes=entry.notes,
            doubts=entry.doubts,
            syncs=_array(entry.syncs),
            sampling=entry.sampling,
            products=entry.products,
            constant_addresses=entry.constant_addresses,
            constants=_array(entry.constants),
        )

    def cache_profile(self, profile: Profile) -> None:
        """Cache a profile for later runs, if it is reproducible."""
        log = profile.accesses
        lasting = profile.sampling is not None and profile.sampling.basis in LASTING and profile.logged is None
        logged = sum(getattr(log, name).nbytes for name in _MEMBERS) + profile.constants.nbytes
        if not self.key or not lasting or logged > LARGEST_LOG:
            return
        entry = _Entry(
            blocks=list(profile.blocks),
            paths=[(_packed(path.blocks), _packed(path.lanes)) for path in profile.paths],
            accesses=[_packed(getattr(log, name)) for name in _MEMBERS],
            thread_instructions=_packed(profile.thread_instructions),
            allocations={name: (start, size) for name, (start, size) in profile.allocations.items()},
            steps=profile.steps,
            notes=profile.notes,
            doubts=profile.doubts,
            syncs=_packed(profile.syncs),
            sampling=profile.sampling,
            products=dict(profile.products),
            constant_addresses=dict(profile.constant_addresses),
            constants=_packed(profile.constants),
            tensor_columns=profile.kernel.resources.tensor_columns,
            starts=profile.launch.starts,
        )
        packed = zlib.compress(msgspec.msgpack.encode(entry), 1)
        if len(packed) <= LARGEST_ENTRY:
            disk.write(FOLDER, self.key, packed, MOST_BYTES)

    def holds(self, geometry: MemoryGeometry, warm: bool) -> bool:
        """Whether both profile and behaviour are cached."""
        return all(key and disk.exists(FOLDER, key) for key in (self.key, self._key_of(geometry, warm)))

    def _key_of(self, geometry: MemoryGeometry, warm: bool) -> str:
        return hashlib.sha256(repr((self.key, astuple(geometry), warm)).encode()).hexdigest() if self.key else ""

    def behaviour(self, geometry: MemoryGeometry, warm: bool, judge: Callable[[], MemoryBehaviour]) -> MemoryBehaviour:
        """The cached behaviour, else the result of `judge`."""
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


def cache_entry_of(kernel: Kernel, launch: Launch, *asked: object) -> CacheEntry:
    """The cache entry of a launch's emulation; `asked` is what else it depends on, as plain values."""
    arrays = [buffer.array for buffer in _buffers(launch) if buffer.array is not None]
    stated, memory = launch, launch.memory
    if memory is not None:
        # Memory that changes as a program runs has no digest.
        if not memory.digest:
            return CacheEntry("", kernel, launch)
        stated, asked = replace(launch, memory=None), (*asked, memory.digest, memory.variables)
    if sum(array.nbytes for array in arrays) > LARGEST_INPUT:
        return CacheEntry("", kernel, launch)
    digest = hashlib.sha256(f"{__version__} {np.__version__} {mode()} {sources_digest()}".encode())
    written = io.BytesIO()
    pickler = pickle.Pickler(written, protocol=5)
    pickler.fast = True  # no memo: equal objects are written alike, whether identical or not
    # The frontend, whose source is hashed too, derives an instruction from these fields; pickling all parts is slow.
    pickler.dump((replace(kernel, instructions=(), arch=_generation(kernel.arch)), stated, asked))
    digest.update(written.getbuffer())
    for i in kernel.instructions:
        digest.update(f"{i.pc}\0{i.text}\0{i.encoding}\0{i.class_}\0{i.source}\n".encode())
    return CacheEntry(digest.hexdigest(), kernel, launch)


def _generation(arch: str) -> str:
    """What the emulator needs of the architecture: equal machine code for sm_86 and sm_89 is emulated once."""
    major = arch.removeprefix("sm_").rstrip("af")[:-1]
    return "sm_7 and sm_8" if major in ("7", "8") else arch


def _buffers(launch: Launch) -> list[Buffer]:
    values = [*launch.arguments, *launch.constants.values()]
    return [buffer for value in values for buffer in buffers_in(value)]


def _plain(value: Any) -> Any:
    """A NumPy number as a Python number."""
    return value.item()


def _packed(array: np.ndarray[Any, Any]) -> _Array:
    return _Array(array.dtype.str, array.shape, array.tobytes())


def _array(packed: _Array) -> np.ndarray[Any, Any]:
    return np.frombuffer(packed.data, np.dtype(packed.type)).reshape(packed.shape)
