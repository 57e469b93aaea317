"""The device's printf against the C library's, and whole launches that print."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.errors import EmulationError
from drywarp.execution.emulator.printf import formatted
from drywarp.execution.emulator.run import run_whole
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.launch.arguments import make_launch

LIBC = ctypes.CDLL(None)
FLAGS = st.lists(st.sampled_from("-+ #0"), unique=True, max_size=3).map("".join)
SIZES = st.sampled_from(["", "1", "7", "12"])
PRECISIONS = st.sampled_from(["", ".0", ".3", ".9"])


class Arguments:
    """Arguments as the compiler lays them out."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    def take(self, size: int) -> bytes:
        part = self.parts.pop(0)
        assert len(part) == size
        return part


def as_c(text: str, *values: object) -> str:
    room = ctypes.create_string_buffer(4096)
    LIBC.snprintf(room, ctypes.c_size_t(len(room)), text.encode(), *values)
    return room.value.decode()


@given(FLAGS, SIZES, PRECISIONS, st.sampled_from("diouxX"), st.integers(-(2**31), 2**31 - 1))
def test_integers(flags: str, size: str, precision: str, kind: str, value: int) -> None:
    text = f"<%{flags}{size}{precision}{kind}>"
    given = value if kind in "di" else value & 0xFFFFFFFF
    expected = as_c(text, ctypes.c_int(given))
    assert formatted(text, Arguments(struct.pack("<i", value))) == expected


@given(FLAGS, SIZES, PRECISIONS, st.sampled_from("dux"), st.integers(-(2**63), 2**63 - 1))
def test_wide_integers(flags: str, size: str, precision: str, kind: str, value: int) -> None:
    text = f"<%{flags}{size}{precision}ll{kind}>"
    assert formatted(text, Arguments(struct.pack("<q", value))) == as_c(text, ctypes.c_longlong(value))


@given(FLAGS, SIZES, PRECISIONS, st.sampled_from("eEfFgG"), st.floats(allow_nan=False, width=64))
def test_floating_point_numbers(flags: str, size: str, precision: str, kind: str, value: float) -> None:
    text = f"<%{flags}{size}{precision}{kind}>"
    assert formatted(text, Arguments(struct.pack("<d", value))) == as_c(text, ctypes.c_double(value))


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("100%% of %c%5c|%-3c|", [b"a\0\0\0", b"b\0\0\0", b"c\0\0\0"], "100% of a    b|c  |"),
        ("%*d|%-*d|%.*f", [struct.pack("<i", n) for n in (4, 7, -4, 7, 1)] + [struct.pack("<d", 2.25)], None),
        ("%hhd %hu %hd", [struct.pack("<i", n) for n in (511, 65537, 65535)], "-1 1 -1"),
        ("%c%c", [b"\xc3\0\0\0", b"\xa9\0\0\0"], b"\xc3\xa9".decode("ascii", "surrogateescape")),
        ("%p", [struct.pack("<Q", 0x7F0000000010)], "0x7f0000000010"),
        ("ends in %", [], "ends in %"),
    ],
)
def test_the_rest(text: str, parts: list[bytes], expected: str | None) -> None:
    if expected is None:
        parts = [parts[0], parts[1], struct.pack("<i", -4), parts[3], *parts[4:]]
        expected = as_c("%*d|%-*d|%.*f", 4, 7, -4, 7, 1, ctypes.c_double(2.25))
    assert formatted(text, Arguments(*parts)) == expected


SOURCE = """
#include <cstdio>
#include <cassert>
extern "C" __global__ void k(int* counts, int worst) {
  int t = threadIdx.x;
  assert(t != worst);
  if (t % 20 == 3) counts[blockIdx.x] =
    printf("%d/%u %c%lld %s %f\\n", t, blockIdx.x, 'x', 1ll << 40, t < 30 ? "low" : "high", t / 8.0);
}"""


@pytest.mark.parametrize("arch", ["sm_80"])
def test_a_launch_prints_in_the_order_of_its_blocks(arch: str) -> None:
    kernel = compile_cuda(SOURCE, arch=arch)
    launch = make_launch(kernel, (700, 1, 1), (64, 1, 1), {"counts": np.zeros(700, np.int32), "worst": -1})
    done = run_whole(kernel, launch, 10**9)
    assert done is not None
    lines = [
        f"{t}/{block} x{1 << 40} {'low' if t < 30 else 'high'} {t / 8:f}"
        for block in range(700)
        for t in (3, 23, 43, 63)
    ]
    assert done.printed.splitlines() == lines
    counts = done.memory.content(done.memory.region_named("counts"))
    np.testing.assert_array_equal(counts, 6)
    launch = make_launch(kernel, (2, 1, 1), (64, 1, 1), {"counts": np.zeros(2, np.int32), "worst": 40})
    with pytest.raises(
        EmulationError, match=r"assertion `t != worst` \(line 6\) failed in block \(0, 0, 0\) thread \(40"
    ):
        run_whole(kernel, launch, 10**9)
