"""Small readers of text: operands of AMD's assembly, and the types of constants."""

from __future__ import annotations

import pytest

from drywarp.frontends.amdgcn_operands import split_operands
from drywarp.frontends.constant_types import constant_types


@pytest.mark.parametrize(
    ("text", "operands", "modifiers"),
    [
        ("v[0:1], off offset:16 glc", ["v[0:1]", "off"], ["offset:16", "glc"]),
        ("v0", ["v0"], []),
        ("vmcnt(0)", ["vmcnt(0)"], []),
        ("offset:16 glc", [], ["offset:16", "glc"]),
        ("v0, |v1|, abs(v2) clamp", ["v0", "|v1|", "abs(v2)"], ["clamp"]),
        ("v0, row_shl:1", ["v0", "row_shl:1"], []),
        ("", [], []),
    ],
)
def test_operands_of_amds_assembly(text: str, operands: list[str], modifiers: list[str]) -> None:
    assert split_operands(text) == (operands, modifiers)


def test_types_of_constants() -> None:
    text = """
    __constant__ float one, *two, three[4];
    __constant__ unsigned int four = 4;
    __constant__ const double *five, six;
    """
    assert constant_types(text) == {
        "one": ("float", False, False),
        "two": ("float", True, False),
        "three": ("float", False, True),
        "four": ("unsigned int", False, False),
        "five": ("double", True, False),
        "six": ("double", False, False),
    }
