"""What a buffer holds before a launch: constants, ranges, distributions, permutations and their seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.errors import UsageError
from drywarp.execution.emulator import buffer_content
from drywarp.kernel.launch.launch import Buffer
from drywarp.kernel.launch.values import as_buffer


def content(text: str, ordinal: int = 0, seed: int = 0) -> np.ndarray:
    buffer = as_buffer(text, "argument x")
    assert buffer is not None
    return buffer_content(buffer, ordinal, seed)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32[5]:0.001", 0.001),
        ("f64[5]:-2.5", -2.5),
        ("i32[5]:-7", -7),
        ("u8[5]:0xff", 255),
        ("i64[5]:-9007199254740993", -(2**53) - 1),
    ],
)
def test_a_number_fills_all_elements(text: str, value: float) -> None:
    found = content(text)
    assert (found == found.dtype.type(value)).all()
    assert len(found) == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [("f32[3]:1.5f", 1.5), ("f32[3]:0xff", 255), ("f32[3]:true", 1), ("i32[3]:4.0", 4), ("f64[3]:-inf", -np.inf)],
)
def test_a_number_may_be_spelt_as_any_argument(text: str, value: float) -> None:
    assert content(text).tolist() == [value] * 3


def test_numbers_drawn_stay_within_the_type() -> None:
    found = content("u8[10000]:normal(0,100)")
    assert found.min() == 0
    assert 200 < found.max() <= 255
    assert found.mean() > 30
    assert content("i64[1000]:normal(9e18,1e18)").max() > 9e18


def test_bf16_holds_the_upper_half_of_a_float() -> None:
    assert content("bf16[3]:1.5").tolist() == [0x3FC0] * 3


def test_a_range_is_half_open() -> None:
    found = content("i32[100000]:random(-3,4)")
    assert sorted(set(found.tolist())) == [-3, -2, -1, 0, 1, 2, 3]
    floats = content("f32[100000]:random(2,3)")
    assert floats.min() >= 2
    assert floats.max() <= 3
    assert abs(floats.mean() - 2.5) < 0.01


def test_a_normal_distribution_has_its_mean_and_deviation() -> None:
    found = content("f64[200000]:normal(5,2)")
    assert abs(found.mean() - 5) < 0.05
    assert abs(found.std() - 2) < 0.05
    whole = content("i32[200000]:normal(5,2)")
    assert abs(whole.mean() - 5) < 0.05


@given(count=st.integers(1, 70000))
def test_a_permutation_holds_every_number_once(count: int) -> None:
    found = content(f"u32[{count}]:permutation")
    assert (np.sort(found) == np.arange(count)).all()


def test_a_permutation_is_not_an_orderly_one() -> None:
    steps = np.diff(content("i64[50000]:permutation"))
    assert len(np.unique(steps)) > 20000


def test_seeds_decide() -> None:
    for fill in ("random(0,1000)", "normal(0,1000)", "permutation()"):
        seeded = f"i32[4096]:{fill[:-1]}{'' if fill.endswith('()') else ','}seed=7)"
        other = seeded.replace("seed=7", "seed=8")
        plain = f"i32[4096]:{fill}"
        assert (content(seeded, 0, 1) == content(seeded, 3, 2)).all()
        assert (content(seeded) != content(other)).any()
        assert (content(plain, 0) != content(plain, 1)).any()
        assert (content(plain, 0, 5) == content(plain, 0, 5)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i32[4]:0.5", "expected a whole number from -2147483648 to 2147483647 for i32"),
        ("u8[4]:256", "expected a whole number from 0 to 255 for u8"),
        ("i32[4]:nan", "expected a whole number from"),
        ("u8[4]:random(0,257)", "expected numbers from 0 to 255 for u8"),
        ("u8[4]:random(-1,4)", "expected numbers from 0 to 255 for u8"),
        ("i8[129]:permutation", "expected numbers from -128 to 127 for i8"),
        ("f32[4]:random(1)", "expected random(low,high)"),
        ("f32[4]:random(2,1)", "expected random(low,high)"),
        ("f32[4]:random(0,inf)", "expected random(low,high)"),
        ("f32[4]:normal(0,-1)", "expected normal(mean,deviation)"),
        ("f32[4]:random(0,1,seed=x)", "expected random(low,high)"),
        ("i32[4]:permutation(3)", "expected permutation"),
        ("f32[4]:rnd", "expected zeros, ones, iota, random, random(low,high)"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        content(text)
    assert message in str(raised.value)
    assert "argument x" in str(raised.value)


def test_host_memory_is_marked() -> None:
    buffer = as_buffer("host f32[8]:ones", "x")
    assert buffer == Buffer("f32", (8,), "ones", host=True)
    assert buffer.text == "host f32[8]:ones"
