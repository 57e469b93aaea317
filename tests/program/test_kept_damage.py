"""Damaged files of kept launches: one clear line, soon and in little memory, whatever somebody has written there."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import tracemalloc
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.errors import DrywarpError
from drywarp.frontends import loaded as machine_code
from drywarp.frontends.binary import is_kept
from drywarp.frontends.binary.kept import KeptLaunch, read_kept, write_kept
from drywarp.frontends.binary.sass import disassemble
from drywarp.frontends.load import load
from drywarp.program.heap import START
from tests.cli.command import complaint
from tests.cli.command import run as command
from tests.counting import no_hang
from tests.effort import examples
from tests.frontends.damage import damaged_bytes

from .kept import cubin, keep

MOST_BYTES = 200 << 20
MOST_SECONDS = 300
"""Ends what never ends: each of these takes milliseconds."""
HEAD = struct.Struct("<QQ")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return keep(tmp_path_factory.mktemp("kept")).read_bytes()


@cache
def listing() -> str:
    return disassemble(cubin(), "f")


@pytest.fixture
def no_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvdisasm is another program: what it prints for the undamaged file stands for what it would print."""
    printed = listing()
    monkeypatch.setattr(machine_code, "listing_of", lambda made, origin: printed)


def outcome(path: Path, data: bytes) -> str:
    """What reading a file says; empty if nothing is wrong with it."""
    path.write_bytes(data)
    tracemalloc.start()
    said = ""
    try:
        with no_hang(MOST_SECONDS):
            load(path, arch="sm_80")
    except DrywarpError as error:
        said = str(error)
        assert said.startswith(f"{path}: ")
        assert "\n" not in said
        assert len(said) < 1000
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_BYTES
    return said


def content(path: Path) -> tuple[KeptLaunch, bytes]:
    """Everything that a file holds, but for how its parts are packed."""
    launch = load(path, arch="sm_80").launch
    assert launch is not None
    assert launch.memory is not None
    memory = launch.memory
    parts = [os.pread(memory.file, size, start - memory.start) for _, start, size in memory.areas]
    return msgspec.structs.replace(read_kept(path.read_bytes(), "f"), pieces=[]), b"".join(parts)


def unchanged(whole: bytes, path: Path) -> tuple[KeptLaunch, bytes]:
    path.write_bytes(whole)
    return content(path)


def opened(data: bytes) -> tuple[bytes, int, bytes]:
    """What comes before the two numbers, where the header begins, and the header unpacked."""
    before = data[: len(data) - len(data.lstrip(b"\x93drywarp launch\n"))]
    place, _ = HEAD.unpack_from(data, 16)
    assert len(before) >= 16
    return data[:16], place, zlib.decompress(data[place:])


def with_header(data: bytes, header: bytes) -> bytes:
    """The file with another header, packed as it should be."""
    magic, place, _ = opened(data)
    return magic + HEAD.pack(place, len(header)) + data[32:place] + zlib.compress(header, 1)


def test_the_undamaged_is_read(whole: bytes, tmp_path: Path) -> None:
    assert is_kept(whole)
    assert outcome(tmp_path / "f", whole) == ""
    assert outcome(tmp_path / "f", with_header(whole, opened(whole)[2])) == ""


def test_truncated_anywhere(whole: bytes, tmp_path: Path) -> None:
    for size in range(0, len(whole), 1 + len(whole) // examples(2000, 10)):
        assert outcome(tmp_path / "f", whole[:size]) or size == 0


@pytest.mark.usefixtures("no_disassembler")
@settings(max_examples=examples(2000), deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_damaged_by_chance(whole: bytes, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    data = damaged_bytes(whole, random.Random(seed))
    path = tmp_path_factory.getbasetemp() / "f"
    if is_kept(data) and not outcome(path, data):
        # Each part has a checksum: what goes unnoticed, such as the last bits of a packed part, changes nothing.
        assert content(path) == unchanged(whole, path)


@pytest.mark.usefixtures("no_disassembler")
@settings(max_examples=examples(2000), deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_forged_headers(whole: bytes, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    header = damaged_bytes(opened(whole)[2], random.Random(seed))
    outcome(tmp_path_factory.getbasetemp() / "f", with_header(whole, header))


FORGED: list[dict[str, Any]] = [
    {"grid": (0, 1, 1)}, {"grid": (1 << 31, 1, 1)}, {"grid": (1, 1 << 16, 1)}, {"block": (1024, 2, 1)},
    {"block": (-1, 1, 1)}, {"cluster": (17, 1, 1)}, {"cluster": (3, 1, 1)}, {"shared": 1 << 40}, {"shared": -1},
    {"parameters": b""}, {"parameters": bytes(1 << 17)}, {"constants": bytes(1 << 20)}, {"start": 0},
    {"start": 1 << 60}, {"start": START + 8}, {"areas": []}, {"areas": [("a", START, 1 << 46)]},
    {"areas": [("a", START, 100), ("b", START + 50, 100)]}, {"areas": [("a", START - 512, 100)]},
    {"areas": [("a", START, 0)]}, {"areas": [("a", (1 << 64) - 1, 1)]}, {"areas": [("a" * 5000, START, 100)]},
    {"code": b""}, {"code": b"\x7fELF"}, {"code": b"noise" * 20}, {"symbol": "another"}, {"symbol": ""},
    {"form": 0}, {"form": 1 << 40}, {"objects": [(1, START, "noise", 0)]}, {"objects": [(1, 0, "texture:f32[4]", 0)]},
    {"objects": [(1, START, "texture:f32[1000000000,1000000000]", 0)]}, {"objects": [(1, START, "texture:f32[4]", -1)]},
]  # fmt: skip


@pytest.mark.parametrize("changes", FORGED, ids=lambda changes: f"{next(iter(changes))}-{len(str(changes))}")
def test_forged_numbers(changes: dict[str, Any], whole: bytes, tmp_path: Path) -> None:
    held = msgspec.msgpack.decode(opened(whole)[2], type=KeptLaunch)
    header = msgspec.msgpack.encode(msgspec.structs.replace(held, **changes))
    assert outcome(tmp_path / "f", with_header(whole, header))
    assert complaint(command("analyze", str(tmp_path / "f"), cwd=tmp_path)).startswith(f"drywarp: {tmp_path / 'f'}: ")


@pytest.mark.parametrize(
    "pieces",
    [
        [(START - 1, 1, 9)],
        [(START + (1 << 39), 1, 9)],
        [(START, 1 << 30, 9)],
        [(START, 8, 1 << 40)],
        [(START, 8, 9)],
        [(START, 8, 0)],
        [(START + 24, 8, 9), (START, 8, 9)],
        [(START, 8, 9)] * 2,
        [(START, 1 << 20, 9)] * 100_000,
    ],
    ids=range(9),
)
def test_forged_memory(pieces: list[tuple[int, int, int]], whole: bytes, tmp_path: Path) -> None:
    held = msgspec.msgpack.decode(opened(whole)[2], type=KeptLaunch)
    header = msgspec.msgpack.encode(msgspec.structs.replace(held, pieces=pieces))
    assert "damaged kept launch" in outcome(tmp_path / "f", with_header(whole, header))


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Little that unpacks to 300 MiB."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(300)) + packer.flush()
    assert len(packed) < 1 << 20
    return packed


@pytest.mark.parametrize("size", [1 << 20, 1 << 27, 1 << 29, 1 << 62])
def test_a_header_that_unpacks_to_more_than_it_may(size: int, bomb: bytes, whole: bytes, tmp_path: Path) -> None:
    for place in (32, 1 << 62, (1 << 64) - 1):
        path = tmp_path / "f"
        path.write_bytes(whole[:16] + HEAD.pack(place, size) + bomb)
        with pytest.raises(DrywarpError, match="damaged kept launch"):
            load(path, arch="sm_80")


def test_pieces_that_unpack_to_more_than_they_say(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f"
    held = read_kept(whole, "f")
    write_kept(path, held, [(held.areas[-1][1], bytes(1 << 20))])
    data = path.read_bytes()
    header = msgspec.msgpack.decode(opened(data)[2], type=KeptLaunch)
    (piece,) = header.pieces
    forged = msgspec.structs.replace(header, pieces=[(piece[0], 8, piece[2])])
    assert "another size than stated" in outcome(path, with_header(data, msgspec.msgpack.encode(forged)))


def test_in_a_process_with_little_memory(whole: bytes, tmp_path: Path) -> None:
    """What tracemalloc does not see counts here: the memory of the launch itself."""
    held = msgspec.msgpack.decode(opened(whole)[2], type=KeptLaunch)
    wide = msgspec.structs.replace(held, areas=[*held.areas, ("far", START + (1 << 39), 1 << 38)])
    path = tmp_path / "f"
    path.write_bytes(with_header(whole, msgspec.msgpack.encode(wide)))
    script = f"""
import resource
from pathlib import Path
from drywarp.frontends.load import load
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
load(Path({str(path)!r}), arch="sm_80")
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300 << 10


@pytest.mark.parametrize(
    "changes",
    [{"parameters": b"\xff" * 20}, {"parameters": bytes(20)}, {"constants": b"\xff" * 16}, {"variables": 1 << 46},
     {"grid": ((1 << 31) - 1, 65535, 65535)}],
    ids=["wild pointers", "null pointers", "endless loop", "variables nowhere", "a huge grid"],
)  # fmt: skip
def test_launches_that_make_no_sense_end_all_the_same(changes: dict[str, Any], whole: bytes, tmp_path: Path) -> None:
    held = msgspec.msgpack.decode(opened(whole)[2], type=KeptLaunch)
    path = tmp_path / "f"
    path.write_bytes(with_header(whole, msgspec.msgpack.encode(msgspec.structs.replace(held, **changes))))
    with no_hang(MOST_SECONDS):
        ran = command("analyze", str(path), "--json", cwd=tmp_path)
    if ran.returncode:
        complaint(ran)
    else:
        assert json.loads(ran.stdout)["prediction"]["time_s"] > 0
