"""Damaged input of every kind ends in one clear error, soon and in little memory.

More of it: `python -m benchmarks.fuzz_readers`.
"""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import lz4.block
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.errors import DrywarpError
from drywarp.frontends import loaded as machine_code
from drywarp.frontends.binary import is_binary
from drywarp.frontends.binary.containers import load_binary_module
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.binary.elf import parse_elf
from drywarp.frontends.binary.sass import disassemble, parse_listing
from drywarp.frontends.cuda.nvrtc import compile_program
from drywarp.frontends.cuda.source import find_kernels
from drywarp.frontends.loaded import launch_comment
from drywarp.frontends.ptx import is_ptx, read_ptx, with_own_lines
from tests.counting import calls_of, no_hang
from tests.effort import examples
from tests.frontends.damage import code_of, container, damaged_bytes, damaged_text, entry, fat_binary, host_elf
from tests.listing import listing

STOP_SECONDS = 300
"""Ends a reader that does not end: each of these takes seconds, a quadratic reader of a million letters hours."""
MOST_BYTES = 400 << 20

SOURCE = """__constant__ float table[4]; __device__ int count;
template <int N> __device__ __noinline__ float turn(float x) {
  for (int i = 0; i < N; i++) x = x * x + table[i & 3];
  return x;
}
__global__ void spin(float* a, int n) {
  __shared__ float tile[64];
  tile[threadIdx.x] = a[threadIdx.x]; __syncthreads();
  if (n > 3) atomicAdd(&count, 1);
  switch (n) {
    case 0: a[0] = 1; break;
    case 1: a[1] = turn<9>(a[2]); break;
    case 2: a[2] = 4; break;
    case 3: a[5] = 6;
  }
  a[threadIdx.x + n] = turn<7>(tile[63 - threadIdx.x]);
}
"""


@cache
def cubin() -> bytes:
    return compile_program(SOURCE, "k.cu", ["--gpu-architecture=sm_80", "-lineinfo"]).cubin


@cache
def text() -> str:
    return disassemble(cubin(), "f")


PTX = (Path(__file__).parents[2] / "examples" / "axpy.ptx").read_text()


@contextmanager
def bounded() -> Iterator[None]:
    """Fails where what runs in it does not end or takes too much memory."""
    tracemalloc.start()
    try:
        with no_hang(STOP_SECONDS):
            yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES


def refused(read: Callable[[], object]) -> str:
    """The one line that a reader refuses its input with."""
    with bounded(), pytest.raises(DrywarpError) as caught:
        read()
    message = str(caught.value)
    assert message.startswith("f:")
    assert "\n" not in message
    assert len(message) < 1000
    return message


def read_or_refused(read: Callable[[], object]) -> None:
    """Damage that changes nothing of importance may pass; everything else is one line."""
    message = "read"
    try:
        read()
    except DrywarpError as error:
        message = str(error)
    assert message
    assert "\n" not in message


@pytest.fixture(scope="module", autouse=True)
def no_disassembler() -> Iterator[None]:
    """nvdisasm is another program: what it prints for the undamaged file stands for what it would print."""
    printed = text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_code, "listing_of", lambda made, origin: printed)
        yield


def load(data: bytes) -> object:
    return load_binary_module(Path("f"), data, arch="sm_80")


def test_the_undamaged_is_read() -> None:
    assert [k.name for k in kernels_of(cubin(), text(), "sm_80", "f").values()] == ["spin"]
    chance = random.Random(0)
    assert load(container(cubin(), chance))
    assert load(host_elf(cubin(), chance))


# Truncated -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["cubin", "plain", "packed", "executable"])
def test_truncated_anywhere(make: str) -> None:
    small = cubin()
    packed = zstandard.ZstdCompressor().compress(small)
    data = {
        "cubin": small,
        "plain": fat_binary(entry(2, 80, 0, small, 0)),
        "packed": fat_binary(entry(2, 80, 0x8000, packed, len(small))),
        "executable": host_elf(small, random.Random(0)),
    }[make]
    for size in range(len(data) - 8):
        cut = data[:size]
        if not is_binary(cut):
            continue
        with pytest.raises(DrywarpError, match=r"^f: [^\n]+$"):
            load(cut)


def test_a_listing_truncated_anywhere() -> None:
    whole = listing(
        *("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", "@!P0 LDG.E.64 R4, [R2.64+0x10]", ".L_x_0:"),
        *('//## File "/tmp/a.cu", line 4 inlined at "/tmp/a.cu", line 8', '//## File "/tmp/a.cu", line 8'),
        *("@P1 BRA `(.L_x_0)", 'BRX R4 -0x9c0 (*"BRANCH_TARGETS .L_x_0,.L_x_0"*)', "EXIT"),
    )
    for size in range(len(whole)):
        read_or_refused(lambda size=size: parse_listing(whole[:size], "f"))
    for line in range(text().count("\n")):
        assert parse_listing("\n".join(text().split("\n")[: 2 * line]), "f", code_of(cubin())) is not None
        if line > 40:
            break


# Damaged by chance -----------------------------------------------------------------------------------------------


@settings(max_examples=examples(300, 4), deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_damaged_cubins(seed: int) -> None:
    data = damaged_bytes(cubin(), random.Random(seed))
    read_or_refused(lambda: kernels_of(data, text(), "sm_80", "f"))


@settings(max_examples=examples(300, 4), deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_damaged_containers(seed: int) -> None:
    chance = random.Random(seed)
    data = damaged_bytes(chance.choice((container, host_elf))(cubin(), chance), chance)
    if is_binary(data):
        read_or_refused(lambda: load(data))


@settings(max_examples=examples(200, 4), deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_damaged_listings(seed: int) -> None:
    chance = random.Random(seed)
    read_or_refused(lambda: parse_listing(damaged_text(text(), chance), "f", code_of(cubin())))


@settings(max_examples=examples(100, 4), deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_damaged_ptx_and_sources(seed: int) -> None:
    chance = random.Random(seed)
    ptx, source = damaged_text(PTX, chance), damaged_text(SOURCE, chance)
    read_or_refused(lambda: (read_ptx(ptx), with_own_lines(ptx, "f")))
    read_or_refused(lambda: (launch_comment(source, "f"), find_kernels(source)))


@settings(max_examples=examples(200, 4), deadline=None)
@given(data=st.binary(max_size=400), kind=st.sampled_from([b"\x7fELF\x02\x01\x01", b"\x50\xed\x55\xba", b""]))
def test_noise(data: bytes, kind: bytes) -> None:
    if is_binary(kind + data):
        with pytest.raises(DrywarpError, match=r"^f: [^\n]+$"):
            load(kind + data)


@settings(max_examples=examples(200, 4), deadline=None)
@given(noise=st.text(max_size=300))
def test_noise_as_text(noise: str) -> None:
    read_or_refused(lambda: parse_listing(noise, "f"))
    read_or_refused(lambda: parse_listing(f'\t.section\t.text.k,"ax"\n{noise}', "f"))
    assert is_ptx(noise) in (True, False)
    read_ptx(noise)


# Numbers beyond reason -------------------------------------------------------------------------------------------


def patched(data: bytes, *changes: tuple[int, str, int]) -> bytes:
    body = bytearray(data)
    for at, form, value in changes:
        struct.pack_into(form, body, at, value)
    return bytes(body)


def section_headers(data: bytes) -> list[int]:
    """Where each section header of an ELF file stands."""
    start, size, count = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58))
    return [start + size * number for number in range(count)]


def of_type(data: bytes, wanted: int) -> list[int]:
    return [at for at in section_headers(data) if struct.unpack_from("<I", data, at + 4)[0] == wanted]


def damaged_cubin(case: str) -> bytes:
    data = cubin()
    everywhere = section_headers(data)
    code = next(at for at in everywhere if struct.unpack_from("<Q", data, at + 8)[0] & 4)
    (symbols,) = of_type(data, 2)
    return {
        "no sections": patched(data, (60, "<H", 0)),
        "most sections": patched(data, (60, "<H", 0xFFFF)),
        "headers of no size, most sections": patched(data, (58, "<H", 0), (60, "<H", 0xFFFF)),
        "headers far out": patched(data, (40, "<Q", (1 << 64) - 1)),
        "headers past the end": patched(data, (40, "<Q", len(data) - 3)),
        "segments far out": patched(data, (32, "<Q", (1 << 64) - 1)),
        "names by a section that is not there": patched(data, (62, "<H", 0xFFFE)),
        "size of 2^63": patched(data, (code + 32, "<Q", 1 << 63)),
        "size of 2^32": patched(data, (code + 32, "<Q", 1 << 32)),
        "size past the end": patched(data, (code + 32, "<Q", len(data))),
        "place far out": patched(data, (code + 24, "<Q", (1 << 64) - 1)),
        "name far out": patched(data, (code, "<I", 0xFFFFFFFF)),
        "alignment of 2^40": patched(data, (code + 48, "<Q", 1 << 40)),
        "symbols named by a section that is not there": patched(data, (symbols + 40, "<I", 0xFFFFFFFF)),
        "all sections hold the whole file": patched(
            data, *((at + 24, "<Q", 0) for at in everywhere), *((at + 32, "<Q", len(data)) for at in everywhere)
        ),
        "zeros of 2^40 bytes": patched(data, (code + 4, "<I", 8), (code + 32, "<Q", 1 << 40)),
        "symbols of one and a half entries": patched(data, (symbols + 32, "<Q", 36)),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        *("no sections", "most sections", "headers of no size, most sections", "headers far out"),
        *("headers past the end", "segments far out", "names by a section that is not there", "size of 2^63"),
        *("size of 2^32", "size past the end", "place far out", "name far out", "alignment of 2^40"),
        *("symbols named by a section that is not there", "all sections hold the whole file", "zeros of 2^40 bytes"),
        "symbols of one and a half entries",
    ],
)
def test_forged_numbers(case: str) -> None:
    data = damaged_cubin(case)
    message = refused(lambda: kernels_of(data, text(), "sm_80", "f"))
    assert "damaged" in message or "at most" in message


def test_sections_that_refer_to_themselves() -> None:
    data = cubin()
    (symbols,) = of_type(data, 2)
    own = (symbols - section_headers(data)[0]) // 64
    # The table of symbols as its own table of names; relocations as relocations of themselves.
    read_or_refused(lambda: kernels_of(patched(data, (symbols + 40, "<I", own)), text(), "sm_80", "f"))
    for at in (*of_type(data, 4), *of_type(data, 9)):
        number = (at - section_headers(data)[0]) // 64
        looped = patched(data, (at + 40, "<I", number), (at + 44, "<I", number))
        with bounded():
            read_or_refused(lambda looped=looped: kernels_of(looped, text(), "sm_80", "f"))


def test_names_that_overlap_a_million_times() -> None:
    """Symbols whose names all begin in one long string: each is short to write and long to read."""
    count, long = 200_000, 60_000
    names = b"\0" + b"a" * long + b"\0"
    symbols = b"".join(struct.pack("<IBBHQQ", 1 + n % 64, 2, 0, 1, 0, 0) for n in range(count))
    shstr = b"\0.symtab\0.strtab\0.shstrtab\0"
    bodies, places, at = [symbols, names, shstr], [], 64
    for body in bodies:
        places.append(at)
        at += len(body)
    head = b"\x7fELF\x02\x01\x01\x07" + bytes(8)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at, 0x00500550, 64, 56, 0, 64, 4, 3)
    table = bytes(64)
    for name, type_, link, place, body in zip((1, 9, 17), (2, 3, 3), (2, 0, 0), places, bodies, strict=True):
        table += struct.pack("<IIQQQQIIQQ", name, type_, 0, 0, place, len(body), link, 0, 1, 24)
    refused(lambda: parse_elf(head + b"".join(bodies) + table, "f"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([(6, "<H", 0), (8, "<Q", 0)], "damaged"),  # a container of nothing: the next one begins where it does
        ([(8, "<Q", (1 << 64) - 1)], "truncated"),
        ([(8, "<Q", 1 << 40)], "truncated"),
        ([(20, "<I", 0)], "damaged"),
        ([(20, "<I", 0xFFFFFFFF)], "damaged"),
        ([(24, "<Q", 1 << 63)], "damaged"),
        ([(24, "<Q", (1 << 64) - 64)], "damaged"),
    ],
    ids=range(7),
)
def test_forged_fat_binaries(changes: list[tuple[int, str, int]], said: str) -> None:
    assert said in refused(lambda: load(patched(fat_binary(entry(2, 80, 0, cubin(), 0)), *changes)))


# Stored code that unpacks to more than it may ---------------------------------------------------------------------


@cache
def zstd_zeros(size: int = 1 << 30) -> bytes:
    """Zeros, packed without ever being there."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    part = bytes(1 << 20)
    return b"".join(packer.compress(part) for _ in range(size >> 20)) + packer.flush()


@pytest.mark.parametrize("declared", [100, 1 << 20, 1 << 27, 1 << 40, (1 << 64) - 1])
def test_a_bomb_of_zstd(declared: int) -> None:
    data = fat_binary(entry(2, 80, 0x8000, zstd_zeros(), declared))
    assert len(data) < 1 << 20
    refused(lambda: load(data))


@cache
def lz4_zeros(size: int = 100 << 20) -> bytes:
    packed: bytes = lz4.block.compress(bytes(size), store_size=False)
    return packed


@pytest.mark.parametrize("declared", [100, 1 << 27, 1 << 31, 1 << 40])
def test_a_bomb_of_lz4(declared: int) -> None:
    refused(lambda: load(fat_binary(entry(2, 80, 0x2000, lz4_zeros(), declared))))


def test_bombs_in_a_process_with_little_memory(tmp_path: Path) -> None:
    """What tracemalloc does not see, such as what the libraries themselves hold, counts here."""
    (tmp_path / "zstd").write_bytes(fat_binary(entry(2, 80, 0x8000, zstd_zeros(), 1 << 27)))
    (tmp_path / "lz4").write_bytes(fat_binary(entry(2, 80, 0x2000, lz4_zeros(), 1 << 27)))
    (tmp_path / "zeros").write_bytes(damaged_cubin("zeros of 2^40 bytes"))
    program = f"""
import resource, sys
from pathlib import Path
from drywarp.errors import DrywarpError
from drywarp.frontends.binary.containers import load_binary_module
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
for name in ("zstd", "lz4", "zeros"):
    path = Path({str(tmp_path)!r}, name)
    try:
        load_binary_module(path, path.read_bytes(), arch="sm_80")
    except DrywarpError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 3


# Text that makes regular expressions slow ------------------------------------------------------------------------

LONG = 300_000
"""Letters: what is quadratic in them takes 10^11 steps, and is not done before the outer stop."""


@pytest.mark.parametrize(
    "line",
    [
        *(" " * LONG, "\t" * LONG, "/*0000*/" + " " * LONG, "/*0000*/ " + "R1, " * LONG, "/*" + "0" * LONG),
        *('//## File "' + "a" * LONG, '//## File "a", line ' + "9" * LONG, "/* 0x" + "0" * LONG),
        *(".section .text." + "a" * LONG, ".L" * LONG, "/*0010*/ @" + "!" * LONG, "[" * LONG, "(*" * LONG),
    ],
    ids=range(13),
)
def test_long_lines_of_a_listing(line: str) -> None:
    with bounded():
        read_or_refused(lambda: parse_listing(listing("NOP") + "\n" + line, "f"))
        read_or_refused(lambda: parse_listing(listing("NOP") + f"\n{line} ;  /* 0x{7:016x} */\n", "f"))


@pytest.mark.parametrize(
    "operand",
    [
        *(
            "R" + "9" * LONG,
            "R300",
            "UR256",
            "P9",
            "R1" + ".A" * 5000,
            "R1" + ".A" * 5000 + "!",
            "0x" + "f" * LONG + "g",
        ),
        *("c[0x0]" + "[" * LONG, "[R999]", "[" + "R1+" * 5000 + "]", "9" * LONG, "1." + "0" * LONG + "e", "-" * LONG),
    ],
    ids=range(13),
)
def test_operands_that_are_none(operand: str) -> None:
    message = refused(lambda: parse_listing(listing(f"IADD3 R1, {operand}"), "f"))
    assert "instruction at 0x0000 cannot be parsed" in message


@pytest.mark.parametrize(
    "part",
    [
        *("\n", " ", ".entry k(", ".entry k ", ".param ", ".param .align 8 ", ".target ", ".file 1", "a:", "{", "/*"),
        ".param .u64 .ptr .global .align 4 ",
    ],
)
def test_long_ptx(part: str) -> None:
    long = ".version 8.0\n" + part * (LONG // len(part)) + "9" * 5000
    with bounded():
        read_ptx(long)
        with_own_lines(long[:200_000], "f")


@pytest.mark.parametrize(
    "part", ["// drywarp: --grid " + " " * 2000 + "x\n", "__global__ ", "__global__ void k(", "template <", "\n", "/*"]
)
def test_long_sources(part: str) -> None:
    # Each `__global__ void k(` begins a kernel, which takes longer to look at than anything else here.
    long = part * (LONG // (10 if "k(" in part else 1) // len(part) + 1)
    with bounded():
        read_or_refused(lambda: launch_comment(long, "f"))
        find_kernels(long)


def test_a_source_of_twice_the_kernels_takes_twice_the_calls() -> None:
    once, twice = (calls_of(lambda n=n: find_kernels("__global__ void k(" * n)) for n in (1000, 2000))
    assert once > 1000
    assert twice == pytest.approx(2 * once, rel=0.1)


def test_empty() -> None:
    assert refused(lambda: parse_elf(b"", "f")) == "f: not an ELF file (expected a CUBIN)"
    assert parse_listing("", "f") == {}
    assert not is_ptx("")
    assert not is_binary(b"")
