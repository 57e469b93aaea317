"""Instructions of PTX, as ptxas translates each, on boundary values: against exact arithmetic, rounded once.

`test_integer_values` and `test_float_values` try machine instructions in every form of operands; here the question is
whether every modifier that PTX has arrives at the right result, and that nothing is refused.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drywarp.execution.emulator import emulate
from drywarp.frontends.binary.cubin import kernels_of
from drywarp.frontends.binary.sass import disassemble
from drywarp.frontends.ptx.assembler import find_ptxas
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Launch, array_buffer
from tests.effort import exhaustive, first

from . import exact
from .ptx_forms import ALL, LEAST, SMALL, Form, bits_of, small_numbers

THREADS = 96
COUNTS = {"sm_80": 660, "sm_90a": 810, "sm_100a": 950, "sm_120a": 970}
"""At least so many of the forms assemble for an architecture; what it lacks is passed over."""
REAL = {
    "f16": [
        0, 0x8000, 0x3C00, 0xBC00, 1, 0x83FF, 0x400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E01, 0x3800, 0x3E00, 0xC100,
    ],
    "bf16": [
        0, 0x8000, 0x3F80, 0xBF80, 1, 0x807F, 0x80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC1, 0x3F00, 0x3FC0, 0xC020,
    ],
    "f32": [
        0, 0x80000000, 0x3F800000, 0xBF800000, 1, 0x807FFFFF, 0x800000, 0x80800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
        0xFF800000, 0x7FC00001, 0x3F000000, 0x3FC00000, 0xC0200000, 0x477FF000, 0xC77FE000, 0x3F803000, 0x33000000,
        0x4B800001, 0xCF000001, 0x40D00000, 0xC0FF0000, 0x43F00000, 0x3B700000, 0x7E800000, 0x3F7FFFFF, 0x00400000,
    ],
    "f64": [
        0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000001, 1, 0x800FFFFFFFFFFFFF, 0x0010000000000000,
        0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000001,
        0x3FE0000000000000, 0xC004000000000000, 0x36A0000000000000, 0x47EFFFFFF0000000, 0xC1E0000000100000,
        0x3FF8000000000001, 0x1E60000000000001, 0x4340000000000001,
    ],
}  # fmt: skip
"""Zeros, ones, denormal numbers, ends of the range, infinities, NaN, ties, ends of other formats."""


def scalar_of(kind: str) -> tuple[str, int]:
    """The type of one number of a packed type, and how many there are."""
    match = re.match(r"(.+)x(\d)$", kind)
    return (match[1], int(match[2])) if match else (kind, 1)


def random_bits(kind: str, rng: np.random.Generator) -> list[int]:
    """Bits of a type for every thread, packed numbers from boundary values, too."""
    one, count = scalar_of(kind)
    width = bits_of(one)
    if one in REAL:
        moderate = rng.uniform(-8, 8, THREADS)
        some = [exact.bits_of(exact.converted(x, FORMATS[one]), FORMATS[one]) for x in moderate]
        pool = [REAL[one][rng.integers(len(REAL[one]))] if rng.random() < 0.7 else x for x in some * count]
    else:
        ends = [0, 1, 2, 31, (1 << width) - 1, 1 << width - 1, (1 << width - 1) - 1, (1 << width - 1) + 1]
        wild = [int(rng.integers(1 << 62)) >> int(rng.integers(62)) for _ in range(THREADS * count)]
        pool = [ends[rng.integers(len(ends))] & (1 << width) - 1 if rng.random() < 0.5 else x for x in wild]
    pool = [x & (1 << width) - 1 for x in pool]
    return [exact_joined(pool[count * n : count * (n + 1)], width) for n in range(THREADS)]


FORMATS = {"f16": exact.HALF, "bf16": exact.BRAIN, "f32": exact.SINGLE, "f64": exact.DOUBLE}
READ = {"f16": exact.half, "bf16": exact.brain, "f32": exact.single, "f64": exact.double}


def exact_joined(fields: list[int], bits: int) -> int:
    return sum(field << bits * k for k, field in enumerate(fields))


def number_of(bits: int, kind: str) -> Any:
    """What bits of a type say: a number, or a tuple of those that are packed, the lowest first."""
    one, count = scalar_of(kind)
    width = bits_of(one)
    if count > 1:
        return tuple(number_of(bits >> n * width & (1 << width) - 1, one) for n in range(count))
    if one in READ:
        return READ[one](bits)
    if one in SMALL:
        return small_numbers(one)[bits % len(small_numbers(one))]
    if one == "ue8m0":
        return math.nan if bits == 255 else 2.0 ** (bits - 127)
    return exact.signed(bits, width) if one[0] == "s" else bits


def agrees(found: int, wanted: Any, kind: str, off: float) -> bool:
    """Whether a result's bits are what they should be; any NaN is as good as another, and None is left open."""
    one, count = scalar_of(kind)
    width = bits_of(one)
    if count > 1 and isinstance(wanted, tuple | list):
        fields = [found >> n * width & (1 << width) - 1 for n in range(count)]
        return all(agrees(x, y, one, off) for x, y in zip(fields, wanted, strict=True))
    if wanted is None:
        return True
    if one not in (*READ, "tf32"):
        return found == int(wanted) & (1 << width) - 1
    value = READ["f32" if one == "tf32" else one](found)
    if wanted != wanted or value != value:
        return bool(wanted != wanted and value != value)
    if one == "tf32" and found & 0x1FFF:
        return False
    if off and math.isfinite(wanted) and math.isfinite(value):
        return abs(value - wanted) <= off * max(abs(wanted), LEAST[one]) and (
            value != 0 or exact.sign_of(value) == exact.sign_of(wanted)
        )
    return bool(value == wanted and exact.sign_of(value) == exact.sign_of(wanted))


# Kernels ------------------------------------------------------------------------------------------

_START = (
    ".reg .u64 %i, %o, %t, %w; .reg .u32 %x; ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; "
    "cvta.to.global.u64 %i, %i; cvta.to.global.u64 %o, %o; mov.u32 %x, %tid.x; mul.wide.u32 %t, %x, 8; "
    "add.u64 %i, %i, %t; add.u64 %o, %o, %t;"
)


def entry(number: int, one: Form) -> list[str]:
    """The lines of a kernel that applies the instruction to the thread's numbers, 64 bits for each."""
    before, after, names = _START, "", []
    for place, kind in enumerate(one.results):
        width = max(bits_of(kind), 16) if kind != "pred" else 1
        before += f" .reg .{'pred' if kind == 'pred' else f'b{width}'} %d{place};"
        move = {1: "selp.u64 %w, 1, 0, ", 64: "mov.b64 %w, "}.get(width, f"cvt.u64.u{width} %w, ")
        mask = f" and.b64 %w, %w, {(1 << bits_of(kind)) - 1};" if 1 < bits_of(kind) < 64 else ""
        after += f" {move}%d{place};{mask} st.global.u64 [%o+{8 * THREADS * place}], %w;"
        names.append(f"%d{place}")
    for place, kind in enumerate(one.sources):
        width = max(bits_of(kind), 16)
        move = "mov.b64" if width == 64 else f"cvt.u{width}.u64"
        before += f" .reg .b{width} %s{place}; ld.global.u64 %w, [%i+{8 * THREADS * place}]; {move} %s{place}, %w;"
        names.append(f"%s{place}")
    text = one.spelled.format(*names) if one.spelled else f"{one.name} {', '.join(names)};"
    return [
        f".visible .entry k{number}(.param .u64 in, .param .u64 out) {{ {before}",
        text,
        f"{after} ret; }}",
    ]


@cache
def made(arch: str, folder: Path, share: int) -> dict[int, Kernel]:
    """Kernels of the forms, one in `share`, that the architecture has, by the form's number."""
    chosen = {n: one for n, one in enumerate(ALL) if n % share == 0}
    tool = find_ptxas()
    assert tool, "the tests need ptxas, which the extra brings"
    while True:
        lines, where = [".version 9.2", f".target {arch}", ".address_size 64"], {}
        for number, one in chosen.items():
            where.update({len(lines) + k + 1: number for k in range(3)})
            lines += entry(number, one)
        (folder / "k.ptx").write_text("\n".join(lines))
        command = [str(tool), f"--gpu-name={arch}", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            break
        refused = {where[int(m[1])] for m in re.finditer(r"line (\d+); ", run.stdout + run.stderr)}
        assert refused, run.stderr[:1000]
        chosen = {n: one for n, one in chosen.items() if n not in refused}
    cubin = (folder / "k.cubin").read_bytes()
    kernels = kernels_of(cubin, disassemble(cubin, "k"), arch, "k")
    return {number: kernels[f"k{number}"] for number in chosen}


def failures(kernels: Iterable[tuple[Form, Kernel]], compiled: bool = True) -> list[str]:
    """What is refused or wrong, one line for each instruction."""
    found = []
    for one, kernel in kernels:
        rng = np.random.default_rng(len(one.name))
        given = [random_bits(kind, rng) for kind in one.sources]
        buffers = np.array(given, np.uint64), np.zeros((len(one.results), THREADS), np.uint64)
        launch = Launch((1, 1, 1), (THREADS, 1, 1), tuple(array_buffer(buffer) for buffer in buffers))
        try:
            results = emulate(kernel, launch, blocks="all", compiled=compiled).buffer(1).T.tolist()
        except Exception as error:
            found.append(f"{one.name}: {error}")
            continue
        for bits, result in zip(zip(*given, strict=True), results, strict=True):
            numbers = [number_of(x, kind) for x, kind in zip(bits, one.sources, strict=True)]
            wanted = one.answer(*numbers)
            each = wanted if len(one.results) > 1 else [wanted]
            if not all(agrees(x, y, kind, one.off) for x, y, kind in zip(result, each, one.results, strict=True)):
                shown = " ".join(map(hex, result))
                found.append(f"{one.name}{tuple(map(hex, bits))} gave {shown}, not {wanted}")
                break
    return found


SHARE = 1 if exhaustive() else 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forms")


@pytest.mark.parametrize("arch", first(("sm_120a", "sm_90a", "sm_100a", "sm_80")))
def test_every_instruction_gives_what_exact_arithmetic_gives(arch: str, folder: Path) -> None:
    kernels = made(arch, folder, SHARE)
    assert len(kernels) >= COUNTS[arch] // SHARE
    assert failures((ALL[number], kernel) for number, kernel in kernels.items()) == []
