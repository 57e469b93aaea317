"""Reading profilers' exports: the shapes of all years, broken ones, and anything at all."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drywarp.errors import DrywarpError, InputFileError, UsageError
from drywarp.frontends.profiles import matching, parse_rocprof, read_measured, write_measured
from drywarp.frontends.profiles.ncu import number, parse_ncu, scale
from tests.effort import examples

from .profiler_reports import LONG_2019, LONG_RULES, ROCPROF, WIDE

TIME = "gpu__time_duration.sum"


def test_wide_with_units_separators_and_noise() -> None:
    saxpy, scaled = parse_ncu(WIDE, "r.csv")
    assert saxpy.name.startswith("saxpy(")
    assert (saxpy.grid, saxpy.block) == ((65536, 1, 1), (256, 1, 1))
    assert saxpy.time_s == pytest.approx(456.7e-6)
    assert saxpy.clock_hz == pytest.approx(1.35e9)
    assert saxpy.metrics["smsp__inst_executed.sum"] == 7_864_320
    assert saxpy.metrics["dram__bytes_read.sum"] == pytest.approx(134.22e6)
    assert "launch__func_cache_config" not in saxpy.metrics
    assert "dram__bytes_read.sum" not in scaled.metrics  # n/a
    assert scaled.place == "r.csv: line 7"


def test_the_details_page_of_2019() -> None:
    (kernel,) = parse_ncu(LONG_2019, "r.csv")
    assert (kernel.name, kernel.grid, kernel.block) == ("saxpy", None, None)
    assert kernel.time_s == pytest.approx(1.5e-3)
    assert kernel.clock_hz == pytest.approx(1.35e9)
    assert kernel.metrics["dram__bytes.sum.per_second"] == pytest.approx(512.5e9)
    assert kernel.metrics["launch__registers_per_thread"] == 16
    assert kernel.metrics["smsp__inst_executed.sum"] == 7_864_320


def test_rules_between_the_metrics() -> None:
    (kernel,) = parse_ncu(LONG_RULES, "r.csv")
    assert kernel.metrics == {TIME: pytest.approx(130.4e-6), "lts__t_sector_hit_rate.pct": 33.3}


def test_rocprof() -> None:
    (kernel,) = parse_rocprof(ROCPROF, "r.csv")
    assert (kernel.name, kernel.grid, kernel.block) == ("saxpy", (65536, 1, 1), (256, 1, 1))
    assert kernel.time_s == pytest.approx(151234e-9)
    assert kernel.metrics["smsp__inst_executed.sum"] == 2621440


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_byte_order_marks_and_line_ends(tmp_path: Path, encoding: str, newline: str) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(WIDE.replace("\n", newline).encode(encoding))
    assert len(read_measured(path).kernels) == 2


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(WIDE)
    imported = read_measured(path)
    write_measured(imported, tmp_path / "r.json")
    assert read_measured(tmp_path / "r.json").kernels == imported.kernels


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234,567", 1234567), ("12.5", 12.5), ("1.234.567,5", 1234567.5), ("0,5", 0.5), ("1e-3", 1e-3),
        ("12 (3; 4; 5)", 12), ("n/a", None), ("(!) n/a", None), ("", None), ("inf", None), ("True", None), ("-3", -3),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("usecond", 1e-6), ("us", 1e-6), ("nsecond", 1e-9), ("ms", 1e-3), ("s", 1), ("Gbyte/second", 1e9),
        ("Kbyte/block", 1e3), ("cycle/nsecond", 1e9), ("Ghz", 1e9), ("MHz", 1e6), ("inst", 1), ("%", 1), ("", 1),
        ("register/thread", 1), ("cycle/usecond", 1e6),
    ],
)  # fmt: skip
def test_units(unit: str, factor: float) -> None:
    assert scale(unit) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no table found"),
        ("hello\nworld\n", "no table found"),
        (WIDE.splitlines()[3] + "\n", "line 1: the table has no rows"),
        ("\n".join(WIDE.splitlines()[:6]).removesuffix(',"CachePreferNone"') + "\n", "line 6: 16 cells, expected 17"),
        ('"ID","Kernel Name","Metric Name"\n"0","k","m"\n', '"Metric Value"'),
        (LONG_2019.replace(',"msecond","1.5"', ""), "line 3: 10 cells, expected a value of 'Duration' in cell 12"),
        ("\0" + WIDE, "NUL bytes"),
    ],
)
def test_broken_reports_name_the_line(text: str, said: str) -> None:
    with pytest.raises(InputFileError, match=r"r\.csv") as caught:
        parse_ncu(text, "r.csv")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", '{"format": 9, "kernels": []}', '{"kernels": 3}', "[" * 100_000])
def test_broken_profiles_of_ours(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(InputFileError, match=r"p\.json"):
        read_measured(path)


def test_the_launch_that_is_meant() -> None:
    kernels = parse_ncu(WIDE, "r.csv")
    assert matching(kernels, "scale<float,4>", "_Z5scale", (10, 2, 1), (32, 4, 1)).time_s == pytest.approx(3.2e-6)
    with pytest.raises(UsageError, match="no kernel 'other'; it holds: saxpy"):
        matching(kernels, "other", "other", (1, 1, 1), (1, 1, 1))
    with pytest.raises(UsageError, match="no launch of saxpy with grid"):
        matching(kernels, "saxpy", "saxpy", (1, 1, 1), (256, 1, 1))


def test_repeated_launches_are_averaged() -> None:
    twice = WIDE + WIDE.splitlines()[5].replace('"0","4242"', '"2","4242"', 1).replace("456.70", "500.70") + "\n"
    kernels = parse_ncu(twice, "r.csv")
    assert matching(kernels, "saxpy", "saxpy", (65536, 1, 1), (256, 1, 1)).time_s == pytest.approx(478.7e-6)


@given(st.sampled_from([WIDE, LONG_2019, LONG_RULES, ROCPROF]), st.data())
@settings(max_examples=examples(300, 4), deadline=None)
def test_mutated_reports_give_an_answer_or_one_line(report: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(report)))
    end = data.draw(st.integers(start, min(len(report), start + 200)))
    text = report[:start] + data.draw(st.text(max_size=20)) + report[end:]
    for parse in (parse_ncu, parse_rocprof):
        with contextlib.suppress(DrywarpError):
            kernels = parse(text, "r.csv")
            assert all(isinstance(value, float) for kernel in kernels for value in kernel.metrics.values())


def test_a_lone_carriage_return_is_no_traceback() -> None:
    for parse in (parse_ncu, parse_rocprof):
        with contextlib.suppress(DrywarpError):
            parse("\r" + WIDE, "r.csv")


@given(st.binary(max_size=2000))
@settings(max_examples=examples(200, 4), deadline=None)
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "r.csv"
    path.write_bytes(data)
    with contextlib.suppress(DrywarpError):
        read_measured(path)
