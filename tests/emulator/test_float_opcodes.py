"""Floating-point operations and conversions in every rounding mode, against exact rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.effort import first

from .support import ARCHES, run

RNG = np.random.default_rng(11)
COUNT = 256


def special_singles() -> np.ndarray:
    values = RNG.standard_normal(COUNT) * 10.0 ** RNG.uniform(-12, 22, COUNT)
    special = [
        0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 2147483648.0, -2147483648.0, -2147483904.0, 4294967296.0,
        9.3e18, -9.3e18, 1.9e19, np.inf, -np.inf, np.nan, 255.5, 127.5, -129.0, 65536.0,
    ]  # fmt: skip
    values[: len(special)] = special
    return values.astype(np.float32)


ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@pytest.mark.parametrize("arch", first(ARCHES))
def test_float_to_integer_conversions_round_and_saturate(arch):
    kinds = ["s32", "u32", "s64", "u64", "s16", "u16"]
    cases = [(f"cvt.{r}.{k}.f32", k, r) for k in kinds for r in ROUND]
    body = "\n".join(
        f'asm("{{ .reg .{k} t; {text} t, %1; cvt.s64.{k} %0, t; }}" : "=l"(r) : "f"(a[i])); o[{n} * {COUNT} + i] = r;'
        for n, (text, k, _) in enumerate(cases)
    )
    source = (
        f'extern "C" __global__ void k(const float* a, long long* o) {{ long long r; int i = threadIdx.x; {body} }}'
    )
    a = special_singles()
    o = run(source, 1, COUNT, a, np.zeros((len(cases), COUNT), np.int64), arch=arch).buffer("o")
    for n, (text, kind, rounding) in enumerate(cases):
        bits, signed = int(kind[1:]), kind[0] == "s"
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        for i, x in enumerate(a.tolist()):
            if x != x:
                continue
            rounded = ROUND[rounding](x)
            want = low if rounded == -np.inf else high if rounded == np.inf else max(low, min(high, int(rounded)))
            assert int(o[n, i]) % 2**bits == want % 2**bits, f"{text}({x})"


@pytest.mark.parametrize("arch", first(ARCHES))
def test_integer_to_float_conversions_round_in_every_mode(arch):
    cases = [
        (f"cvt.{r}.{f}.{k}", k, r, f)
        for k in ("s32", "u32", "s64", "u64")
        for r in ("rn", "rz", "rm", "rp")
        for f in ("f32", "f64")
    ]
    body = "\n".join(
        f'asm("{{ .reg .{k} t; cvt.{k}.s64 t, %1; {text} %0, t; }}" : "={f[0] if f == "f32" else "d"}"({f}) : "l"(x));'
        f" o[{n} * {COUNT} + i] = {f};"
        for n, (text, k, _, f) in enumerate(cases)
    )
    source = f"""extern "C" __global__ void k(const long long* a, double* o) {{
        int i = threadIdx.x; long long x = a[i]; float f32; double f64; {body} }}"""
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


@pytest.mark.parametrize("arch", first(ARCHES))
def test_float_arithmetic_rounds_in_every_mode(arch):
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
    source = f"""extern "C" __global__ void k(const double* a, const double* b, const double* c, double* o) {{
        int i = threadIdx.x; double x = a[i], y = b[i], z = c[i]; float u = x, v = y, w = z; {" ".join(lines)} }}"""
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


@pytest.mark.parametrize("arch", first(ARCHES))
def test_float_compares_and_minima_with_nan_and_zeros(arch):
    names = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
    body = "\n".join(
        f'asm("{{ .reg .pred p; setp.{name}.f32 p, %1, %2; selp.f32 %0, 0f3f800000, 0f00000000, p; }}"'
        f' : "=f"(r) : "f"(x), "f"(y)); o[{n * COUNT} + i] = r;'
        for n, name in enumerate(names)
    )
    tail = "\n".join(
        f'asm("{name} %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); o[{(n + len(names)) * COUNT} + i] = r;'
        for n, name in enumerate(("min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32"))
    )
    source = f"""extern "C" __global__ void k(const float* a, const float* b, float* o) {{
        int i = threadIdx.x; float x = a[i], y = b[i], r; {body} {tail} }}"""
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


@pytest.mark.parametrize("arch", first(ARCHES))
def test_flushing_and_saturation(arch):
    source = """
extern "C" __global__ void k(const float* a, float* o) {
  int i = threadIdx.x;
  float x = a[i], r;
  asm("add.ftz.f32 %0, %1, 0f00000000;" : "=f"(r) : "f"(x));
  o[i] = r;
  asm("mul.ftz.f32 %0, %1, 0f20000000;" : "=f"(r) : "f"(x));
  o[8 + i] = r;
  asm("fma.rn.sat.f32 %0, %1, %1, 0fbf000000;" : "=f"(r) : "f"(x));
  o[16 + i] = r;
  o[24 + i] = x + 0.0f;
}"""
    a = np.array([1e-40, -1e-40, 1.0, -3.0, np.nan, 1e-30, 0.9, np.inf], np.float32)
    o = run(source, 1, 8, a, np.zeros(32, np.float32), arch=arch).buffer("o").reshape(4, 8)
    flushed = np.where(np.abs(a) < 1e-38, np.copysign(0, a), a).astype(np.float32)
    np.testing.assert_array_equal(o[0], flushed)
    product = flushed * np.float32(2.0**-63)
    np.testing.assert_array_equal(o[1], np.where(np.abs(product) < 1.17549435e-38, np.copysign(0, product), product))
    np.testing.assert_allclose(o[2], np.clip(np.nan_to_num(a.astype(np.float64) ** 2 - 0.5, nan=0.0), 0, 1), rtol=1e-6)
    np.testing.assert_array_equal(o[3], a)


@pytest.mark.parametrize("arch", first(ARCHES))
def test_half_conversions_round_once(arch):
    source = """
#include <cuda_fp16.h>
extern "C" __global__ void k(const float* a, const double* d, half* o, float* f) {
  int i = threadIdx.x;
  o[i] = __float2half_rn(a[i]);
  o[i + 64] = __float2half_rz(a[i]);
  o[i + 128] = __double2half(d[i]);
  f[i] = __half2float(__float2half(a[i]));
  ((int*)(f + 64))[i] = __half2int_rz(__float2half(a[i]));
}"""
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
