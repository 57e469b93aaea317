"""Single operations, written as inline PTX, against models of what the PTX manual says they do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

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
SPELLED: dict[str, tuple[str, Callable[[int, int, int], int]]] = {
    **{f"lop3 {t:#x}": (f"lop3.b32 %0, %1, %2, %3, {t:#x};", lop3(t)) for t in (0x96, 0xE8, 0x1B, 0xCA, 0x35, 0x7F, 0x01, 0xB2)},
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
    "isspacep and 64-bit compare": (
        "{ .reg .u64 x, y; .reg .pred p; mov.b64 x, {%1, %2}; mov.b64 y, {%3, %2}; setp.lt.s64 p, x, y; selp.u32 %0, 3, 9, p; }",
        lambda a, b, c: 3 if a < c else 9,
    ),
}  # fmt: skip


def all_operations() -> dict[str, tuple[str, Callable[[int, int, int], int]]]:
    table = {name: (f"{name} %0, %1, %2, %3;", model) for name, model in THREE.items()}
    table |= {name: (f"{name} %0, %1, %2;", model) for name, model in TWO.items()}
    table |= {name: (f"{name} %0, %1;", model) for name, model in ONE.items()}
    return table | SPELLED


@pytest.mark.parametrize("arch", ARCHES)
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


def special_singles() -> np.ndarray:
    values = RNG.standard_normal(COUNT) * 10.0 ** RNG.uniform(-12, 22, COUNT)
    special = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 2147483648.0, -2147483648.0, -2147483904.0, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, np.inf, -np.inf, np.nan, 255.5, 127.5, -129.0, 65536.0]  # fmt: skip
    values[: len(special)] = special
    return values.astype(np.float32)


ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@pytest.mark.parametrize("arch", ARCHES)
def test_float_to_integer_conversions_round_and_saturate(arch):
    kinds = ["s32", "u32", "s64", "u64", "s16", "u16", "s8", "u8"]
    cases = [(f"cvt.{r}.{k}.f32", k, r) for k in kinds for r in ROUND]
    body = "\n".join(
        f'{{ long long r; asm("{{ .reg .{k} t; {text} t, %1; cvt.s64.{k} %0, t; }}" : "=l"(r) : "f"(x)); o[{n} * {COUNT} + i] = r; }}'
        for n, (text, k, _) in enumerate(cases)
        if k[1:] != "8"
    )
    source = (
        f'extern "C" __global__ void k(const float* a, long long* o) {{ int i = threadIdx.x; float x = a[i]; {body} }}'
    )
    a = special_singles()
    o = run(source, 1, COUNT, a, np.zeros((len(cases), COUNT), np.int64), arch=arch).buffer("o")
    for n, (text, kind, rounding) in enumerate(cases):
        if kind[1:] == "8":
            continue
        bits, signed = int(kind[1:]), kind[0] == "s"
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        for i, x in enumerate(a.tolist()):
            if x != x:
                continue
            rounded = ROUND[rounding](x)
            want = low if rounded == -np.inf else high if rounded == np.inf else max(low, min(high, int(rounded)))
            assert int(o[n, i]) % 2**bits == want % 2**bits, f"{text}({x})"


@pytest.mark.parametrize("arch", ARCHES)
def test_integer_to_float_conversions_round_in_every_mode(arch):
    from fractions import Fraction

    cases = [
        (f"cvt.{r}.{f}.{k}", k, r, f)
        for k in ("s32", "u32", "s64", "u64")
        for r in ("rn", "rz", "rm", "rp")
        for f in ("f32", "f64")
    ]
    body = "\n".join(
        f'{{ {"float" if f == "f32" else "double"} r; asm("{{ .reg .{k} t; cvt.{k}.s64 t, %1; {text} %0, t; }}" : "={"f" if f == "f32" else "d"}"(r) : "l"(x)); o[{n} * {COUNT} + i] = r; }}'
        for n, (text, k, _, f) in enumerate(cases)
    )
    source = f'extern "C" __global__ void k(const long long* a, double* o) {{ int i = threadIdx.x; long long x = a[i]; {body} }}'
    a = RNG.integers(-(2**63), 2**63 - 1, COUNT) >> RNG.integers(0, 63, COUNT)
    a[:12] = [
        0,
        1,
        -1,
        2**24 + 1,
        2**25 + 3,
        -(2**24) - 1,
        2**53 + 1,
        2**54 + 2,
        2**63 - 1,
        -(2**63),
        2**63 - 513,
        -(2**53) - 1,
    ]
    o = run(source, 1, COUNT, a, np.zeros((len(cases), COUNT)), arch=arch).buffer("o")
    for n, (text, kind, rounding, form) in enumerate(cases):
        bits, signed = int(kind[1:]), kind[0] == "s"
        for i, raw in enumerate(a.tolist()):
            x = raw % 2**bits
            x = x - 2**bits if signed and x >> (bits - 1) else x
            got = Fraction(float(o[n, i]))
            digits = 24 if form == "f32" else 53
            unit = max(abs(x).bit_length() - digits, 0)
            floor, scale = x >> unit, 2**unit
            lower, upper = Fraction(floor * scale), Fraction((floor + (floor * scale != x)) * scale)
            nearest = lower if x - lower < upper - x or (x - lower == upper - x and floor % 2 == 0) else upper
            toward_zero = lower if x >= 0 else upper
            want = {"rn": nearest, "rz": toward_zero, "rm": lower, "rp": upper}[rounding]
            assert got == want, f"{text}({x})"


@pytest.mark.parametrize("arch", ARCHES)
def test_float_arithmetic_rounds_in_every_mode(arch):
    from fractions import Fraction

    operations = {"add": lambda x, y, z: x + y, "mul": lambda x, y, z: x * y, "fma": lambda x, y, z: x * y + z}
    cases = [(op, r, f) for op in operations for r in ("rn", "rz", "rm", "rp") for f in ("f32", "f64")]
    lines = []
    for n, (op, r, f) in enumerate(cases):
        letter, args = ("f", "uvw") if f == "f32" else ("d", "xyz")
        inputs_ = ", ".join(f'"{letter}"({v})' for v in (args if op == "fma" else args[:2]))
        places = "%1, %2, %3" if op == "fma" else "%1, %2"
        kind = "float" if f == "f32" else "double"
        lines.append(
            f'{{ {kind} r; asm("{op}.{r}.{f} %0, {places};" : "={letter}"(r) : {inputs_}); o[{n} * {COUNT} + i] = r; }}'
        )
    source = f"""extern "C" __global__ void k(const double* a, const double* b, const double* c, double* o) {{ int i = threadIdx.x;
        double x = a[i], y = b[i], z = c[i]; float u = x, v = y, w = z; {" ".join(lines)} }}"""
    # Numbers that float32 holds exactly: sums that cancel, ties, and addends just below half a unit.
    a, b, c = (RNG.integers(-(2**24), 2**24, COUNT) * 2.0 ** RNG.integers(-40, 40, COUNT) for _ in range(3))
    c[:64] = -(a[:64] * b[:64]).astype(np.float32)
    a[64:96], b[64:96] = 2.0**24 + 2, RNG.integers(1, 4, 32) * 0.5
    c[96:128] = 2.0 ** -RNG.integers(20, 60, 32) * RNG.choice([-1, 1], 32)
    a[96:128], b[96:128] = 2**12 + 1, 2**12 + 1
    o = run(source, 1, COUNT, a, b, c, np.zeros((len(cases), COUNT)), arch=arch).buffer("o")
    for n, (op, rounding, form) in enumerate(cases):
        for i in range(COUNT):
            exact = operations[op](*(Fraction(float(v[i])) for v in (a, b, c)))
            got = Fraction(float(o[n, i]))
            if exact == 0:
                assert got == 0
                continue
            digits = 24 if form == "f32" else 53
            exponent = exact.numerator.bit_length() - exact.denominator.bit_length() - digits - 1
            unit = Fraction(2) ** exponent
            while abs(exact) / unit >= 2**digits:
                unit *= 2
            lower = (exact / unit).__floor__() * unit
            upper = lower if lower == exact else lower + unit
            even = (lower / unit) % 2 == 0
            nearest = lower if exact - lower < upper - exact or (exact - lower == upper - exact and even) else upper
            want = {"rn": nearest, "rz": lower if exact > 0 else upper, "rm": lower, "rp": upper}[rounding]
            assert got == want, f"{op}.{rounding}.{form}({a[i]!r}, {b[i]!r}, {c[i]!r})"


@pytest.mark.parametrize("arch", ARCHES)
def test_float_compares_and_minima_with_nan_and_zeros(arch):
    names = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
    body = "\n".join(
        f'asm("{{ .reg .pred p; setp.{name}.f32 p, %1, %2; selp.f32 %0, 0f3f800000, 0f00000000, p; }}" : "=f"(r) : "f"(x), "f"(y)); o[{n * COUNT} + i] = r;'
        for n, name in enumerate(names)
    )
    tail = "\n".join(
        f'asm("{name} %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[{(n + len(names)) * COUNT} + i] = r;'
        for n, name in enumerate(("min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32"))
    )
    source = f'extern "C" __global__ void k(const float* a, const float* b, float* o) {{ int i = threadIdx.x; float x = a[i], y = b[i], r; {body} {tail} }}'
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40]
    pairs = [(x, y) for x in values for y in values]
    a, b = (np.resize(np.array(column, np.float32), COUNT) for column in zip(*pairs, strict=True))
    o = run(source, 1, COUNT, a, b, np.zeros((len(names) + 4, COUNT), np.float32), arch=arch).buffer("o")
    ordered = {"eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
    unordered = np.isnan(a) | np.isnan(b)
    for n, name in enumerate(names):
        base = name[:2]
        if name in ("num", "nan"):
            want = unordered if name == "nan" else ~unordered
        else:
            plain = (a != b) & ~unordered if base == "ne" else ordered[base](a, b)
            want = plain | unordered if name.endswith("u") else plain
        np.testing.assert_array_equal(o[n], want, err_msg=name)
    least, greatest, least_nan, greatest_nan = o[len(names) :]
    np.testing.assert_array_equal(least, np.fmin(a, b))
    np.testing.assert_array_equal(greatest, np.fmax(a, b))
    np.testing.assert_array_equal(least_nan, np.minimum(a, b))
    np.testing.assert_array_equal(greatest_nan, np.maximum(a, b))
    zeros = (a == 0) & (b == 0)
    np.testing.assert_array_equal(np.signbit(least[zeros]), (np.signbit(a) | np.signbit(b))[zeros])
    np.testing.assert_array_equal(np.signbit(greatest[zeros]), (np.signbit(a) & np.signbit(b))[zeros])


@pytest.mark.parametrize("arch", ARCHES)
def test_flushing_and_saturation(arch):
    source = """extern "C" __global__ void k(const float* a, float* o) { int i = threadIdx.x; float x = a[i], r;
        asm("add.ftz.f32 %0, %1, 0f00000000;" : "=f"(r) : "f"(x)); o[i] = r; asm("mul.ftz.f32 %0, %1, 0f20000000;" : "=f"(r) : "f"(x)); o[8 + i] = r;
        asm("fma.rn.sat.f32 %0, %1, %1, 0fbf000000;" : "=f"(r) : "f"(x)); o[16 + i] = r; o[24 + i] = x + 0.0f; }"""
    a = np.array([1e-40, -1e-40, 1.0, -3.0, np.nan, 1e-30, 0.9, np.inf], np.float32)
    o = run(source, 1, 8, a, np.zeros(32, np.float32), arch=arch).buffer("o").reshape(4, 8)
    flushed = np.where(np.abs(a) < 1e-38, np.copysign(0, a), a).astype(np.float32)
    np.testing.assert_array_equal(o[0], flushed)
    product = flushed * np.float32(2.0**-63)
    np.testing.assert_array_equal(o[1], np.where(np.abs(product) < 1.17549435e-38, np.copysign(0, product), product))
    np.testing.assert_allclose(o[2], np.clip(np.nan_to_num(a.astype(np.float64) ** 2 - 0.5, nan=0.0), 0, 1), rtol=1e-6)
    np.testing.assert_array_equal(o[3], a)


@pytest.mark.parametrize("arch", ARCHES)
def test_shuffle_modes_with_segments_and_clamps(arch):
    modes = ["up", "down", "bfly", "idx"]
    body = "\n".join(
        f'asm volatile("{{ .reg .pred p; shfl.sync.{m}.b32 %0|p, %2, %3, %4, -1; selp.u32 %1, 1, 0, p; }}" : "=r"(r), "=r"(q) : "r"(t * 7), "r"(b[n * 32 + t]), "r"(c[n])); o[((n * 4 + {k}) * 2) * 32 + t] = r; o[((n * 4 + {k}) * 2 + 1) * 32 + t] = q;'
        for k, m in enumerate(modes)
    )
    source = f'extern "C" __global__ void k(const unsigned* b, const unsigned* c, unsigned* o) {{ int t = threadIdx.x; unsigned r, q; for (int n = 0; n < 8; ++n) {{ {body} }} }}'
    controls = [31, 0, 0x1C1F, 0x101F, 0x1803, 0x1E00, 15, 0x180F]
    b = RNG.integers(0, 40, (8, 32)).astype(np.uint32)
    o = run(source, 1, 32, b, np.array(controls, np.uint32), np.zeros((8, 4, 2, 32), np.uint32), arch=arch).buffer("o")
    for n, control in enumerate(controls):
        clamp, segment = control & 31, control >> 8 & 31
        for k, mode in enumerate(modes):
            for lane in range(32):
                amount = int(b[n, lane]) & 31
                lowest = lane & segment
                limit = lowest | clamp & ~segment
                source_lane = {
                    "up": lane - amount,
                    "down": lane + amount,
                    "bfly": lane ^ amount,
                    "idx": lowest | amount & ~segment,
                }[mode]
                valid = source_lane >= limit if mode == "up" else source_lane <= limit
                want = (source_lane if valid else lane) * 7
                assert (int(o[n, k, 0, lane]), int(o[n, k, 1, lane])) == (want, int(valid)), (
                    mode,
                    hex(control),
                    lane,
                    amount,
                )


@pytest.mark.parametrize("arch", ARCHES)
def test_votes_matches_and_reductions(arch):
    source = """extern "C" __global__ void k(const int* a, unsigned* o) { int t = threadIdx.x, v = a[t]; int p;
        o[t] = __all_sync(~0u, v > 0) * 2 + __any_sync(~0u, v == 3); o[32 + t] = __ballot_sync(~0u, v & 1); o[64 + t] = __match_any_sync(~0u, v);
        o[96 + t] = __match_all_sync(~0u, v, &p) + p; o[128 + t] = __match_any_sync(~0u, (long long)v << 40);
        o[160 + t] = __reduce_min_sync(~0u, v - 4); o[192 + t] = __reduce_max_sync(~0u, v - 4); o[224 + t] = __reduce_or_sync(~0u, v); o[256 + t] = __reduce_and_sync(~0u, v | 8); o[288 + t] = __reduce_xor_sync(~0u, v); o[320 + t] = __reduce_max_sync(~0u, (unsigned)(v - 4)); }"""
    a = RNG.integers(0, 7, 32).astype(np.int32)
    o = run(source, 1, 32, a, np.zeros((11, 32), np.uint32), arch=arch).buffer("o")
    assert set(o[0]) == {2 * int((a > 0).all()) + int((a == 3).any())}
    assert set(o[1]) == {sum(1 << k for k in range(32) if a[k] & 1)}
    match = [sum(1 << k for k in range(32) if a[k] == a[lane]) for lane in range(32)]
    assert o[2].tolist() == match == o[4].tolist()
    assert set(o[3]) == {0}
    assert set(o[5].view(np.int32)) == {a.min() - 4}
    assert set(o[6].view(np.int32)) == {a.max() - 4}
    assert [set(row) for row in o[7:10]] == [
        {np.bitwise_or.reduce(a)},
        {np.bitwise_and.reduce(a | 8)},
        {np.bitwise_xor.reduce(a)},
    ]
    assert set(o[10]) == {int((a - 4).view(np.uint32).max())}


@pytest.mark.parametrize("arch", ARCHES)
def test_transposition_of_matrix_fragments(arch):
    source = """extern "C" __global__ void k(const unsigned* a, unsigned* o) { unsigned r; asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(a[threadIdx.x])); o[threadIdx.x] = r; }"""
    a = RNG.integers(0, 2**32, 32).astype(np.uint32)
    o = run(source, 1, 32, a, np.zeros(32, np.uint32), arch=arch).buffer("o")
    np.testing.assert_array_equal(o.view(np.uint16).reshape(8, 8), a.view(np.uint16).reshape(8, 8).T)


@pytest.mark.parametrize("arch", ARCHES)
def test_half_conversions_round_once(arch):
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void k(const float* a, const double* d, half* o, float* f) { int i = threadIdx.x; o[i] = __float2half_rn(a[i]); o[i + 64] = __float2half_rz(a[i]); o[i + 128] = __double2half(d[i]); f[i] = __half2float(__float2half(a[i])); ((int*)(f + 64))[i] = __half2int_rz(__float2half(a[i])); }"""
    a = (RNG.standard_normal(64) * 10.0 ** RNG.uniform(-8, 4, 64)).astype(np.float32)
    a[:4] = 65519.0, 65520.0, 6e-8, 2049.0
    d = a.astype(np.float64) * (1 + 2.0**-30)
    e = run(source, 1, 64, a, d, np.zeros((3, 64), np.float16), np.zeros(128, np.float32), arch=arch)
    o = e.buffer("o")
    with np.errstate(over="ignore"):
        nearest = a.astype(np.float16)
        np.testing.assert_array_equal(o[0], nearest)
        np.testing.assert_array_equal(o[2], d.astype(np.float16))
    assert (np.abs(o[1].astype(np.float64)) <= np.abs(a)).all()
    near = np.where(np.abs(nearest.astype(np.float64)) > np.abs(a), np.nextafter(nearest, np.float16(0)), nearest)
    np.testing.assert_array_equal(o[1], near)
    np.testing.assert_array_equal(e.buffer("f")[:64], nearest.astype(np.float32))
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(e.buffer("f")[64:].view(np.int32)[finite], np.trunc(nearest[finite]).astype(np.int32))
