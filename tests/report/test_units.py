"""Numbers as people read them: three digits, the unit that keeps them short, no 1,000 of a unit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.support.text import bytes_text, count_text, energy_text, percent_text, time_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 ns"),
        (1e-9, "1.00 ns"),
        (12.34e-9, "12.3 ns"),
        (123.4e-9, "123 ns"),
        (999.4e-9, "999 ns"),
        (999.6e-9, "1.00 µs"),
        (1.2345e-6, "1.23 µs"),
        (99.96e-6, "100 µs"),
        (9.996e-3, "10.0 ms"),
        (0.9996, "1.00 s"),
        (1, "1.00 s"),
        (1234, "1,234 s"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (49152, "48.0 KiB"),
        (1 << 20, "1.00 MiB"),
        ((1 << 20) - 1, "1.00 MiB"),
        (1.5 * (1 << 30), "1.50 GiB"),
        (1 << 42, "4,096 GiB"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (99_999, "99,999"),
        (100_000, "100 k"),
        (999_499, "999 k"),
        (999_600, "1.00 M"),
        (12_345_678, "12.3 M"),
        (2.5e9, "2.50 G"),
    ],
)
def test_counts(count: float, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (0, "0.00 µJ"),
        (1.234e-6, "1.23 µJ"),
        (999.4e-6, "999 µJ"),
        (999.6e-6, "1.00 mJ"),
        (36.24e-3, "36.2 mJ"),
        (0.9996, "1.00 J"),
        (1234, "1,234 J"),
    ],
)
def test_energies(joules: float, text: str) -> None:
    assert energy_text(joules) == text


def test_percentages() -> None:
    assert (percent_text(None), percent_text(0), percent_text(0.875), percent_text(1)) == ("–", "0%", "88%", "100%")


@given(st.floats(1e-9, 0.9))
def test_a_time_reads_back_to_three_digits(seconds: float) -> None:
    number, unit = time_text(seconds).split()
    assert re.fullmatch(r"\d\.\d\d|\d\d\.\d|\d\d\d", number)
    assert float(number) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit] == pytest.approx(seconds, rel=0.0051)


@given(st.floats(1e-6, 900))
def test_an_energy_reads_back_to_three_digits(joules: float) -> None:
    number, unit = energy_text(joules).split()
    assert re.fullmatch(r"\d\.\d\d|\d\d\.\d|\d\d\d", number)
    assert float(number) * {"J": 1, "mJ": 1e-3, "µJ": 1e-6}[unit] == pytest.approx(joules, rel=0.0051)


@given(st.lists(st.floats(1e-9, 0.9), min_size=2, max_size=2))
def test_a_longer_time_never_reads_shorter(pair: list[float]) -> None:
    def read(seconds: float) -> float:
        number, unit = time_text(seconds).split()
        return float(number) * {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[unit]

    shorter, longer = sorted(pair)
    assert read(shorter) <= read(longer) * (1 + 1e-9)
