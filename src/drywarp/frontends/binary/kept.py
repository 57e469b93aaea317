"""Launches that a program made, each in a file: machine code, arguments, and the memory that the launch finds.

A file is a header and pieces of memory, each packed by zlib; the header is MessagePack and comes last, so that memory
is written as it is read. Nothing in it is executed on loading, and every number is checked before it is used.
"""

from __future__ import annotations

import hashlib
import os
import struct
import weakref
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec

from ...errors import InputFileError, ToolError, UsageError
from ...kernel.kernel import Kernel
from ...kernel.launch.arguments import cluster_for
from ...kernel.launch.launch import SCRATCH_BYTES, DeviceImage, Launch, Scalar, Texture
from ...kernel.launch.textures import parse_texture
from ...kernel.launch.values import as_buffer
from . import KEPT_MAGIC

SUFFIX = ".launch"
MOST_MEMORY = 2 << 30
"""Most bytes of memory of one file, unpacked."""
PIECE_BYTES = 1 << 20
_HEAD = struct.Struct("<QQ")
"""Where the packed header begins, and its size in bytes unpacked."""
_FORM = 1
_MOST_HEADER = 1 << 27
_MOST_ADDRESS = 1 << 47
_MOST_SPAN = 1 << 40
_MOST_DIGESTED = 256 << 20
_CONSTANT_BANK = 3
_ALIGNMENT, _GAP = 512, 1 << 16
_MOST_THREADS, _MOST_CLUSTER = 1024, 16

_Extent = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
_Address = Annotated[int, msgspec.Meta(ge=0, lt=_MOST_ADDRESS)]
_Size = Annotated[int, msgspec.Meta(ge=1, lt=_MOST_ADDRESS)]
_Place = tuple[str, _Address, Annotated[int, msgspec.Meta(ge=0, lt=_MOST_ADDRESS)]]
_Extents = tuple[_Extent, _Extent, _Extent]
_Object = tuple[
    Annotated[int, msgspec.Meta(ge=1, lt=1 << 32)],
    _Address,
    Annotated[str, msgspec.Meta(max_length=200)],
    Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)],
]


class KeptLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch as a program made it. Sizes in bytes.

    `code` is a fat binary with all images that hold the kernel; `arch` and `gpu` are what it ran as, and `places` are
    the module's variables there: space, offset and size by name. `parameters` are the bytes of all arguments, as the
    kernel reads them; `constants` is constant bank 3. `areas` are all allocations in order of their addresses, each
    with its name, and `pieces` the content that is not zero: address, size, and size in the file. Memory lies from
    `start` on, the module's variables at `variables`. `objects` are texture and surface objects: handle, address of the
    first texel, what it is in the user's syntax, and the distance of rows in texels. `host` names the areas in
    host memory.
    """

    form: int = _FORM
    name: str
    symbol: str
    arch: str
    gpu: str
    code: bytes
    grid: _Extents
    block: _Extents
    cluster: _Extents
    shared: Annotated[int, msgspec.Meta(ge=0, lt=1 << 20)]
    parameters: Annotated[bytes, msgspec.Meta(max_length=1 << 16)]
    constants: Annotated[bytes, msgspec.Meta(max_length=1 << 16)]
    places: dict[str, _Place]
    start: _Address
    variables: _Address
    areas: list[tuple[str, _Address, _Size]]
    pieces: list[tuple[_Address, Annotated[int, msgspec.Meta(ge=1, le=PIECE_BYTES)], _Size]] = []
    objects: list[_Object] = []
    host: list[str] = []


class _Form(msgspec.Struct):
    form: int


def variables_of(kernel: Kernel) -> dict[str, tuple[str, int, int]]:
    """The variables of a kernel's module in device and constant memory: space, offset and size by name."""
    known = kernel.symbols.items()
    return {name: (s.space, s.offset, s.size) for name, s in known if s.space in ("constant", "global")}


def scalars(kernel: Kernel, parameters: bytes) -> tuple[Scalar, ...]:
    """The arguments of a launch, from the bytes of all."""
    parts = [parameters[parameter.offset : parameter.offset + parameter.size] for parameter in kernel.parameters]
    return tuple(Scalar(part, f"0x{part[::-1].hex()}") for part in parts)


# Write -------------------------------------------------------------------------------------------------------------


def write_kept(path: Path, launch: KeptLaunch, memory: Iterable[tuple[int, bytes]]) -> None:
    """Write a launch, for its owner's eyes; `memory` are pieces of at most `PIECE_BYTES` with their addresses.

    If it fails, no file remains: raises UsageError if that is more than `MOST_MEMORY`, ToolError if it cannot be
    written.
    """
    part = path.with_name(f".{path.name}")  # until it is whole
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(KEPT_MAGIC + _HEAD.pack(0, 0))
            pieces, total = [], 0
            for address, content in memory:
                total += len(content)
                check_size(total)
                packed = zlib.compress(content, 1)
                pieces.append((address, len(content), len(packed)))
                file.write(packed)
            header = msgspec.msgpack.encode(msgspec.structs.replace(launch, pieces=pieces))
            if len(header) > _MOST_HEADER:
                raise UsageError(f"its machine code takes {len(header) >> 20} MiB")
            place = file.tell()
            file.write(zlib.compress(header, 1))
            file.seek(len(KEPT_MAGIC))
            file.write(_HEAD.pack(place, len(header)))
        part.rename(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ToolError(f"{path}: cannot be written ({error.strerror})") from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def check_size(size: int) -> None:
    """Raise UsageError if that is more memory than one file may hold."""
    if size > MOST_MEMORY:
        raise UsageError(f"it finds more than {MOST_MEMORY >> 30} GiB of memory")


# Read --------------------------------------------------------------------------------------------------------------


def read_kept(data: bytes, origin: str) -> KeptLaunch:
    """The launch in a file, without its memory. Raises InputFileError if it is damaged or of a later version."""
    try:
        place, size = _HEAD.unpack_from(data, len(KEPT_MAGIC))
        if size > _MOST_HEADER or place > len(data):
            raise ValueError("its header is not where it should be")
        header = _unpacked(data[place:], size)
        form = msgspec.msgpack.decode(header, type=_Form).form
        if form == _FORM:
            kept = msgspec.msgpack.decode(header, type=KeptLaunch)
            _check(kept, place)
            return kept
    except (ValueError, struct.error, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        raise InputFileError(f"{origin}: damaged kept launch ({' '.join(str(error).split())[:200]})") from None
    raise InputFileError(f"{origin}: a kept launch of form {form}, from another version of drywarp (expected {_FORM})")


def _unpacked(packed: bytes, size: int) -> bytes:
    """Exactly this many bytes, and never more in memory."""
    opened = zlib.decompressobj()
    content = opened.decompress(packed, size + 1)
    if len(content) != size or not opened.eof:
        raise ValueError("a part has another size than stated")
    return content


def _check(kept: KeptLaunch, place: int) -> None:
    """Raise ValueError if numbers contradict each other; `place` is where the packed pieces end."""
    if kept.block[0] * kept.block[1] * kept.block[2] > _MOST_THREADS:
        raise ValueError(f"a block of {kept.block} threads")
    if max(kept.grid[1:]) >= 1 << 16:
        raise ValueError(f"a grid of {kept.grid} blocks")
    if kept.cluster[0] * kept.cluster[1] * kept.cluster[2] > _MOST_CLUSTER:
        raise ValueError(f"clusters of {kept.cluster} blocks")
    if kept.start % (1 << 16) or kept.start == 0:
        raise ValueError("memory at an odd address")
    end = kept.start
    for name, start, size in kept.areas:
        if start < end or len(name) > _MOST_THREADS:
            raise ValueError("allocations that overlap")
        end = start + size
    if end - kept.start > _MOST_SPAN:
        raise ValueError("allocations that are far apart")
    at, areas, total, packed_total = kept.start, iter(kept.areas), 0, len(KEPT_MAGIC) + _HEAD.size
    area_start = area_end = 0
    for address, size, packed in kept.pieces:
        while address >= area_end:
            _, area_start, area_size = next(areas, ("", _MOST_ADDRESS, 1))
            area_end = area_start + area_size
        if address < max(at, area_start) or address + size > area_end:
            raise ValueError("memory outside its allocations")
        at, total, packed_total = address + size, total + size, packed_total + packed
    starts = [start for _, start, _ in kept.areas]
    for handle, address, text, row in kept.objects:
        _, start, size = kept.areas[bisect_right(starts, address) - 1] if kept.areas else ("", 0, 0)
        if address < start or address + _object(text, row).nbytes > start + size:
            raise ValueError(f"texels of object {handle} outside all allocations")
    if total > MOST_MEMORY or packed_total != place:
        raise ValueError("its memory has another size than stated")


def _object(text: str, row: int) -> Texture:
    """A texture or surface object. Raises ValueError if it is none."""
    try:
        made = parse_texture(text, "object", as_buffer)
    except UsageError as error:
        raise ValueError(str(error)) from None
    if made is None:
        raise ValueError(f"an object {text!r}")
    return replace(made, row=row)


def launch_in(kept: KeptLaunch, data: bytes, kernel: Kernel, origin: str) -> tuple[Kernel, Launch]:
    """The launch with its memory, and `kernel` with the constants that it finds.

    `kernel` is what the file holds for the GPU at hand: variables that it has elsewhere are found by their names.
    Raises InputFileError if the memory is damaged or the arguments are not the kernel's.
    """
    if max((one.offset + one.size for one in kernel.parameters), default=0) > len(kept.parameters):
        raise InputFileError(f"{origin}: damaged kept launch (it lacks arguments of {kernel.name})")
    own = variables_of(kernel)
    areas, variables, moved = list(kept.areas), kept.variables, own != kept.places
    if kernel.global_image and (moved or variables not in {start for _, start, _ in areas}):
        end = areas[-1][1] + areas[-1][2] if areas else kept.start
        variables = -(-(end + _GAP) // _ALIGNMENT) * _ALIGNMENT
        areas.append(("variables", variables, len(kernel.global_image)))
    digest = hashlib.sha256(data).hexdigest() if len(data) <= _MOST_DIGESTED else ""
    image = _filled(kept, data, tuple(areas), variables, digest, origin)
    constants = kept.constants
    if moved:
        found = bytearray(kernel.global_image)
        if kept.variables:
            _carry(kept.places, own, "global", lambda at, size: _read(image, kept.variables + at, size), found)
        if found:
            os.pwrite(image.file, found, variables - kept.start)
        found = bytearray(kernel.constant_banks.get(_CONSTANT_BANK, b""))
        _carry(kept.places, own, "constant", lambda at, size: kept.constants[at : at + size], found)
        constants = bytes(found)
    banks = {**kernel.constant_banks, _CONSTANT_BANK: constants} if constants else kernel.constant_banks
    notes = kernel.notes
    if kernel.arch != kept.arch:
        notes += (f"the program ran its code for {kept.arch} on {kept.gpu}; this is its code for {kernel.arch}",)
    kernel = replace(kernel, constant_banks=banks, notes=notes)
    try:
        cluster = cluster_for(kernel, kept.grid, None if kept.cluster == (1, 1, 1) else kept.cluster)
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from None
    arguments = scalars(kernel, kept.parameters)
    return kernel, Launch(kept.grid, kept.block, arguments, kept.shared, cluster=cluster, memory=image)


def _filled(
    kept: KeptLaunch, data: bytes, areas: tuple[tuple[str, int, int], ...], variables: int, digest: str, origin: str
) -> DeviceImage:
    """The memory of a kept launch, in an anonymous file that ends with it."""
    file = os.memfd_create("drywarp-launch", os.MFD_CLOEXEC)
    objects = tuple((handle, _object(text, row), address) for handle, address, text, row in kept.objects)
    image = DeviceImage(file, kept.start, areas, variables, digest, objects, host=tuple(kept.host))
    weakref.finalize(image, os.close, file)
    os.ftruncate(file, image.scratch + SCRATCH_BYTES - kept.start)
    at, held = len(KEPT_MAGIC) + _HEAD.size, memoryview(data)
    for address, size, packed in kept.pieces:
        try:
            os.pwrite(file, _unpacked(bytes(held[at : at + packed]), size), address - kept.start)
        except (ValueError, zlib.error) as error:
            raise InputFileError(f"{origin}: damaged kept launch ({error})") from None
        at += packed
    return image


def _read(image: DeviceImage, address: int, size: int) -> bytes:
    return os.pread(image.file, size, address - image.start) if address >= image.start else b""


def _carry(
    before: Mapping[str, _Place],
    now: Mapping[str, _Place],
    space: str,
    read: Callable[[int, int], bytes],
    to: bytearray,
) -> None:
    """Copy variables of one space to where they lie now, those of another size left as the code has them."""
    for name, (where, offset, size) in now.items():
        held = before.get(name)
        if where == space and held and (held[0], held[2]) == (space, size):
            content = read(held[1], size)
            to[offset : offset + len(content)] = content
