"""Lines are matched by content: each occurs once, what is the same stays together, whatever the numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drywarp.analysis.compare.judge import match_lines
from drywarp.analysis.compare.result import Line

TEXTS = st.lists(st.sampled_from(["int x = 1;", "y += a[i];", "}", "__syncthreads();", "z = f(x);", ""]), max_size=12)


def lines(texts: list[str], file: str = "k.cu", first: int = 1) -> list[Line]:
    return [Line(file, first + i, float(i), 0.1, "wait", text) for i, text in enumerate(texts)]


def texts_of(old: list[str], new: list[str]) -> list[tuple[str | None, str | None]]:
    return [(a and a.text, b and b.text) for a, b in match_lines(lines(old), lines(new), "k.cu", "k.cu")]


@given(TEXTS, TEXTS)
def test_every_line_occurs_exactly_once(old: list[str], new: list[str]) -> None:
    before, after = lines(old), lines(new)
    pairs = match_lines(before, after, "k.cu", "k.cu")
    assert sorted(a.line for a, _ in pairs if a) == [line.line for line in before]
    assert sorted(b.line for _, b in pairs if b) == [line.line for line in after]
    assert all(a or b for a, b in pairs)


@given(TEXTS, st.integers(0, 50))
def test_moving_all_lines_changes_no_pair(texts: list[str], by: int) -> None:
    texts = [text or "{" for text in texts]
    pairs = match_lines(lines(texts), lines(texts, first=1 + by), "k.cu", "k.cu")
    assert [(a.line + by, b.line) for a, b in pairs if a and b] == [(n, n) for n in range(1 + by, 1 + by + len(texts))]


def test_an_inserted_line_is_the_only_one_added() -> None:
    assert texts_of(["a = 1;", "b = 2;"], ["a = 1;", "something();", "b = 2;"]) == [
        ("a = 1;", "a = 1;"),
        (None, "something();"),
        ("b = 2;", "b = 2;"),
    ]


def test_an_edited_line_is_one_line() -> None:
    pairs = texts_of(["float v = in[i];", "out[i] = v * 2;"], ["float v = in[i + 1];", "out[i] = v * 2;"])
    assert pairs == [("float v = in[i];", "float v = in[i + 1];"), ("out[i] = v * 2;", "out[i] = v * 2;")]


def test_lines_that_are_less_than_three_fifths_alike_are_two() -> None:
    # Twice the letters in common over all of both: 2 · 3 / 10 and 2 · 4 / 14.
    assert texts_of(["abcde"], ["abcxy"]) == [("abcde", "abcxy")]
    assert texts_of(["abcdefg"], ["abcdxyz"]) == [("abcdefg", None), (None, "abcdxyz")]


def test_a_moved_line_is_one_line() -> None:
    old = ["first(1, 2);", "aaaa += bbbb;", "last[0] = 9;"]
    assert ("first(1, 2);", "first(1, 2);") in texts_of(old, [*old[1:], old[0]])


def test_spacing_does_not_count() -> None:
    assert texts_of(["a  =  1;"], ["a = 1;"]) == [("a  =  1;", "a = 1;")]


def test_lines_without_text_are_told_apart_by_number() -> None:
    pairs = match_lines(lines(["", ""]), lines([""]), "k.cu", "k.cu")
    assert [(a and a.line, b and b.line) for a, b in pairs] == [(1, 1), (2, None)]


def test_headers_are_paired_by_how_their_paths_end() -> None:
    old = [*lines(["x();"], "/base/one/h.cuh"), *lines(["y();"], "/base/two/h.cuh"), *lines(["k();"], "/base/k.cu")]
    new = [
        *lines(["y();"], "/head/two/h.cuh"),
        *lines(["k();"], "/head/renamed.cu"),
        *lines(["x();"], "/head/one/h.cuh"),
    ]
    pairs = match_lines(old, new, "/base/k.cu", "/head/renamed.cu")
    assert sorted((a.file, b.file) for a, b in pairs if a and b) == [
        ("/base/k.cu", "/head/renamed.cu"),
        ("/base/one/h.cuh", "/head/one/h.cuh"),
        ("/base/two/h.cuh", "/head/two/h.cuh"),
    ]
