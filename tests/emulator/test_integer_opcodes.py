"""Integer operations, written as inline PTX, against models of what the PTX manual says they do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.effort import first

from .support import ARCHES, run

RNG = np.random.default_rng(11)
COUNT = 256


M32 = 0xFFFFFFFF


def inputs() -> tuple[list[int], list[int], list[int]]:
    """Three columns of words: random ones of all magnitudes, and the corners in every combination."""
    corners = [0, 1, 31, 32, 33, 0x7FFFFFFF, 0x80000000, M32]
    columns = [RNG.integers(0, 2**32, COUNT) >> RNG.integers(0, 32, COUNT) for _ in range(3)]
    for n, (x, y) in enumerate((x, y) for x in corners for y in corners):
        columns[0][n], columns[1][n], columns[2][n] = x, y, corners[(n * 5 + n // 8) % 8]
    a, b, c = (column.tolist() for column in columns)
    return a, b, c


def s32(x: int) -> int:
    return (x & M32) - ((x & 0x80000000) << 1)


def prmt(mode: str) -> Callable[[int, int, int], int]:
    def model(a: int, b: int, c: int) -> int:
        source = (a | b << 32).to_bytes(8, "little")
        n = c & 3
        special = {
            "f4e": [n, n + 1, n + 2, n + 3], "b4e": [n, (n - 1) & 7, (n - 2) & 7, (n - 3) & 7], "rc8": [n] * 4,
            "ecl": [max(n, k) for k in range(4)], "ecr": [min(n, k) for k in range(4)],
            "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
        }  # fmt: skip
        picks = special.get(mode) or [c >> 4 * k & 15 for k in range(4)]
        out = [(0xFF if source[p & 7] & 0x80 else 0) if p & 8 and not mode else source[p & 7] for p in picks]
        return int.from_bytes(bytes(out), "little")

    return model


def bfe(signed: bool) -> Callable[[int, int, int], int]:
    def model(a: int, b: int, c: int) -> int:
        position, length = b & 0xFF, c & 0xFF
        if length == 0:
            return 0
        sign = (a >> min(position + length - 1, 31) & 1) if signed else 0
        field = 0
        for k in range(32):
            bit = a >> (position + k) & 1 if k < length and position + k <= 31 else sign
            field |= bit << k
        return field

    return model


def bfi(a: int, b: int, c: int) -> int:
    position, length = 5, c & 31
    mask = ((1 << length) - 1) << position & M32
    return b & ~mask & M32 | a << position & mask


def lop3(table: int) -> Callable[[int, int, int], int]:
    return lambda a, b, c: sum(
        (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k for k in range(32)
    )


def shf(left: bool, wrap: bool) -> Callable[[int, int, int], int]:
    def model(a: int, b: int, c: int) -> int:
        n = c & 31 if wrap else min(c, 32)
        both = b << 32 | a
        return both << n >> 32 & M32 if left else both >> n & M32

    return model


def bfind(signed: bool, shift: bool) -> Callable[[int, int, int], int]:
    def model(a: int, b: int, c: int) -> int:
        x = a ^ M32 if signed and a >> 31 else a
        if x == 0:
            return M32
        return 31 - (x.bit_length() - 1) if shift else x.bit_length() - 1

    return model


def saturate(x: int) -> int:
    return max(-(2**31), min(2**31 - 1, x))


def szext(a: int, b: int, c: int) -> int:
    n = b & 31
    if n == 0:
        return 0
    field = a & ((1 << n) - 1)
    return field - (1 << n) if field >> (n - 1) else field


THREE: dict[str, Callable[[int, int, int], int]] = {
    "mad.lo.u32": lambda a, b, c: a * b + c,
    "mad.hi.u32": lambda a, b, c: (a * b >> 32) + c,
    "mad.hi.s32": lambda a, b, c: (s32(a) * s32(b) >> 32) + c,
    "prmt.b32": prmt(""),
    **{f"prmt.b32.{mode}": prmt(mode) for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")},
    "bfe.u32": bfe(False),
    "bfe.s32": bfe(True),
    "shf.l.clamp.b32": shf(True, False),
    "shf.l.wrap.b32": shf(True, True),
    "shf.r.clamp.b32": shf(False, False),
    "shf.r.wrap.b32": shf(False, True),
    "sad.s32": lambda a, b, c: abs(s32(a) - s32(b)) + c,
    "sad.u32": lambda a, b, c: abs(a - b) + c,
    "vadd.s32.s32.s32.sat": lambda a, b, c: saturate(s32(a) + s32(b)),
    "dp4a.u32.u32": lambda a, b, c: sum((a >> 8 * k & 255) * (b >> 8 * k & 255) for k in range(4)) + c,
}


TWO: dict[str, Callable[[int, int, int], int]] = {
    "mul.hi.u32": lambda a, b, c: a * b >> 32,
    "mul.hi.s32": lambda a, b, c: s32(a) * s32(b) >> 32,
    "mul24.lo.s32": lambda a, b, c: (s32(a << 8) >> 8) * (s32(b << 8) >> 8),
    "shl.b32": lambda a, b, c: a << min(b, 32),
    "shr.u32": lambda a, b, c: a >> min(b, 32),
    "shr.s32": lambda a, b, c: s32(a) >> min(b, 32),
    "min.s32": lambda a, b, c: min(s32(a), s32(b)),
    "max.s32": lambda a, b, c: max(s32(a), s32(b)),
    "min.u32": lambda a, b, c: min(a, b),
    "max.u32": lambda a, b, c: max(a, b),
    "bmsk.clamp.b32": lambda a, b, c: ((1 << min(b, 32)) - 1) << min(a, 32),
    "bmsk.wrap.b32": lambda a, b, c: ((1 << (b & 31)) - 1) << (a & 31),
    "szext.wrap.s32": szext,
    "add.sat.s32": lambda a, b, c: saturate(s32(a) + s32(b)),
    "sub.sat.s32": lambda a, b, c: saturate(s32(a) - s32(b)),
}


ONE: dict[str, Callable[[int, int, int], int]] = {
    "popc.b32": lambda a, b, c: a.bit_count(),
    "clz.b32": lambda a, b, c: 32 - a.bit_length(),
    "brev.b32": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "bfind.u32": bfind(False, False),
    "bfind.s32": bfind(True, False),
    "bfind.shiftamt.u32": bfind(False, True),
    "bfind.shiftamt.s32": bfind(True, True),
    "abs.s32": lambda a, b, c: abs(s32(a)),
    "not.b32": lambda a, b, c: ~a,
    "neg.s32": lambda a, b, c: -a,
}


TABLES = (0x96, 0xE8, 0x1B, 0xCA, 0x35, 0x7F, 0x01, 0xB2)


SPELLED: dict[str, tuple[str, Callable[[int, int, int], int]]] = {
    **{f"lop3 {table:#x}": (f"lop3.b32 %0, %1, %2, %3, {table:#x};", lop3(table)) for table in TABLES},
    "bfi": ("{ .reg .u32 n; and.b32 n, %3, 31; bfi.b32 %0, %1, %2, 5, n; }", bfi),
    "carry chain": (
        "{ .reg .u32 l; add.cc.u32 l, %1, %2; addc.cc.u32 %0, %2, %3; addc.u32 %0, %0, l; }",
        lambda a, b, c: ((b + c + (a + b >> 32)) & M32) + (a + b & M32) + (b + c + (a + b >> 32) >> 32),
    ),
    "borrow chain": (
        "{ .reg .u32 l; sub.cc.u32 l, %1, %2; subc.cc.u32 %0, %2, %3; subc.u32 %0, %0, l; }",
        lambda a, b, c: (b - c - (a < b)) % 2**32 - (a - b) % 2**32 - (b - c - (a < b) < 0),
    ),
    "mad with carry": (
        "{ .reg .u32 l; mad.lo.cc.u32 l, %1, %2, %3; madc.hi.u32 %0, %1, %2, %3; xor.b32 %0, %0, l; }",
        lambda a, b, c: ((a * b >> 32) + c + ((a * b & M32) + c >> 32)) ^ (a * b + c),
    ),
    "64-bit compare": (
        "{ .reg .u64 x, y; .reg .pred p; mov.b64 x, {%1, %2}; mov.b64 y, {%3, %1};"
        " setp.lt.s64 p, x, y; selp.u32 %0, 3, 9, p; }",
        lambda a, b, c: 3 if (s32(b), a) < (s32(a), c) else 9,
    ),
}  # fmt: skip


def all_operations() -> dict[str, tuple[str, Callable[[int, int, int], int]]]:
    table = {name: (f"{name} %0, %1, %2, %3;", model) for name, model in THREE.items()}
    table |= {name: (f"{name} %0, %1, %2;", model) for name, model in TWO.items()}
    table |= {name: (f"{name} %0, %1;", model) for name, model in ONE.items()}
    return table | SPELLED


@pytest.mark.parametrize("arch", first(ARCHES))
def test_integer_operations(arch):
    """All of them in one kernel, as the compiler takes longer than the emulator."""
    operations = all_operations()
    body = "\n".join(
        f'asm volatile("{text}" : "=r"(r) : "r"(x), "r"(y), "r"(z)); o[{n} * {COUNT} + i] = r;'
        for n, (text, _) in enumerate(operations.values())
    )
    source = f"""extern "C" __global__ void k(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* o) {{
        int i = threadIdx.x; unsigned x = a[i], y = b[i], z = c[i], r; {body} }}"""
    columns = inputs()
    arrays = [np.array(column, np.uint32) for column in columns]
    out = np.zeros((len(operations), COUNT), np.uint32)
    o = run(source, 1, COUNT, *arrays, out, arch=arch).buffer("o")
    wrong = []
    for n, (name, (_, model)) in enumerate(operations.items()):
        for i, (x, y, z) in enumerate(zip(*columns, strict=True)):
            want = model(x, y, z) & M32
            if int(o[n, i]) != want:
                wrong.append(f"{name}({x:#x}, {y:#x}, {z:#x}) gave {int(o[n, i]):#x}, not {want:#x}")
                break
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("arch", first(["sm_90", "sm_120"]))
def test_64_bit_minima(arch):
    source = """
extern "C" __global__ void k(const long long* a, long long* o, int n, long long all) {
  int i = threadIdx.x;
  o[i] = min(a[i], a[i + n]);
  o[i + n] = max(a[i], a[i + n]);
  o[i + 2 * n] = min((unsigned long long)a[i], (unsigned long long)a[i + n]);
  o[i + 3 * n] = max(a[blockIdx.x], all) + i;
}"""
    a = RNG.integers(-(2**63), 2**63, 64)
    a[:4] = [0, -1, 5, -(2**63)]
    o = run(source, 1, 32, a, np.zeros(128, np.int64), 32, np.int64(7), arch=arch).buffer("o").reshape(4, 32)
    x, y = a[:32], a[32:]
    np.testing.assert_array_equal(o[0], np.minimum(x, y))
    np.testing.assert_array_equal(o[1], np.maximum(x, y))
    np.testing.assert_array_equal(o[2], np.minimum(x.view(np.uint64), y.view(np.uint64)).view(np.int64))
    np.testing.assert_array_equal(o[3], np.maximum(a[0], 7) + np.arange(32))
