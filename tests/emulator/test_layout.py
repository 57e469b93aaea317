"""The C header of the emulator's tables is the one that the layout makes."""

from __future__ import annotations

from drywarp.execution.emulator.compiled.header import HEADER, header


def test_the_header_is_up_to_date() -> None:
    expected = "python -m drywarp.execution.emulator.compiled.header writes it"
    assert HEADER.read_text(encoding="utf-8") == header(), expected
