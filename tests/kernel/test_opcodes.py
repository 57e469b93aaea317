"""The table of opcodes: complete rows, known words, and each opcode once."""

from __future__ import annotations

from pathlib import Path

import pytest

from drywarp.kernel.isa.nvidia import opcodes
from drywarp.kernel.isa.nvidia.opcodes import CLASSES, OPCODES, UNKNOWN, class_of, having

TABLE = Path(opcodes.__file__).with_name("opcodes.txt").read_text()
ROWS = [line for line in TABLE.splitlines() if not line.startswith("#")]
FLOW = {"direct", "indirect", "call", "return", "exit"}
TRAITS = FLOW | {"pairs", "packed", "jump", "ends", "moves", "finish", "compare", "lanes", "alike", "even", "least",
                 "idle", "sized", "of_size", "two", "converts", "flop", "fma"}  # fmt: skip
ENDINGS = {"load", "store", "copy", "atomic", "reduction", "bulk_load", "bulk_store", "bulk_reduction"}


def test_each_opcode_has_one_row() -> None:
    assert len(ROWS) == len(OPCODES)


@pytest.mark.parametrize("row", OPCODES.values(), ids=lambda row: row.name)
def test_a_row_uses_known_words(row: opcodes.Opcode) -> None:
    assert row.class_ in CLASSES
    assert row.class_ != UNKNOWN
    assert class_of(row.name, ()) == row.class_
    assert row.traits <= TRAITS
    assert row.results in ("none", "all", "R") or row.results[0] == "P"
    assert row.memory is None or (
        row.memory[0] in {"global", "shared", "local", "generic", "texture"} and row.memory[1] in ENDINGS
    )


def test_every_word_is_explained_and_used() -> None:
    for trait in TRAITS:
        assert having(trait), trait
        assert f" {trait} " in TABLE.partition(ROWS[0])[0].replace("\n", " "), trait


def test_what_leaves_a_block_does_not_go_on_behind_it() -> None:
    assert not having("jump") & having("ends")
    assert having("moves") <= having("jump") | having("ends")


def test_each_jump_is_of_one_kind() -> None:
    assert sorted(name for kind in FLOW for name in having(kind)) == sorted(having("jump"))


def test_an_opcode_without_a_row_is_unknown_but_for_the_uniform_datapath() -> None:
    assert class_of("XYZZY", ()) == UNKNOWN
    assert class_of("UXYZZY", ()) == "uniform"
