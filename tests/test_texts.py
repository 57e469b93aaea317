"""Texts for people: lists of names that may be long, and output on terminals without Unicode."""

from __future__ import annotations

import codecs

import pytest

from drywarp.support.text import in_other_words, kernels_text, some_text


def test_short_lists_are_shown_in_full() -> None:
    assert kernels_text(["first", "second"], "third", "k.cu") == "first, second"
    assert kernels_text([], "third", "k.cu") == ""


def test_long_lists_become_a_count_and_the_nearest_names() -> None:
    names = [f"_ZN3lib6kernelI{'x' * 300}Li{n}EEvPT_" for n in range(400)] + ["_Z6reducePf", "_Z6reduceP6__half"]
    text = kernels_text(names, "reduce", "lib.so")
    assert text.startswith("402 kernels in lib.so, which drywarp list shows; nearest: _Z6reducePf, _Z6reduceP6__half, ")
    assert len(text) < 500
    assert "the first: _ZN3lib" in kernels_text(names, None, "lib.so")
    # One letter wrong, and none that holds the name.
    assert "nearest: _Z6reducePf, " in kernels_text(names, "_Z6redusePf", "lib.so")
    assert len(kernels_text(["x" * 5000], None, "lib.so")) <= 600


def test_some_names() -> None:
    assert some_text(["a", "b", "c"]) == "a, b, c"
    assert some_text(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3.12 µs – 4 × 2", "3.12 us - 4 x 2"),
        ("│ ██▌ │", "| ### |"),
        ("┌─┐", "+-+"),
        ("Λ and λ", "Lambda and lambda"),
        ("größer", "gro?er"),
        ("漢", "?"),
    ],
)
def test_characters_that_a_terminal_lacks(text: str, shown: str) -> None:
    codecs.register_error("tested", in_other_words)
    assert text.encode("ascii", "tested").decode() == shown
    assert text.encode("utf-8", "tested").decode() == text
