"""Small readers of text: operands of AMD's assembly, and the types of constants."""

from __future__ import annotations

import pytest

from drywarp.frontends.amd.code import split_operands
from drywarp.frontends.amd.metadata import KernelMetadata, abi_of
from drywarp.frontends.cuda.instances import constant_types


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


def test_where_an_amd_kernel_finds_what_it_is_given() -> None:
    """User registers in the manual's order: 2 of the dispatch, 2 of the arguments; the work-group follows."""
    given = ("user_sgpr_dispatch_ptr", "user_sgpr_kernarg_segment_ptr", "system_sgpr_workgroup_id_y")
    directives = dict.fromkeys(given, "1")
    arguments = [{"value_kind": "hidden_block_count_x", "offset": "24"}, {"value_kind": "by_value", "offset": "0"}]
    found = abi_of(KernelMetadata(directives, {}, arguments), "gfx90a", "k")
    assert found == {
        "dispatch_ptr": 0,
        "kernarg_segment_ptr": 2,
        "workgroup_id_x": 4,
        "workgroup_id_y": 5,
        "packed_work_item_id": 1,
        "work_item_dimensions": 3,
        "hidden_block_count_x": 24,
    }
    # A kernel may say that more registers are filled than it names, and how many coordinates it asks for.
    more = {**directives, "user_sgpr_count": "8", "system_vgpr_workitem_id": "0"}
    stated = abi_of(KernelMetadata(more, {}, []), "gfx802", "k")
    assert (stated["workgroup_id_x"], stated["workgroup_id_y"]) == (8, 9)
    assert (stated["packed_work_item_id"], stated["work_item_dimensions"]) == (0, 1)
