"""The core's structs are those that Python fills: the same fields, in the same order, and the same constants."""

from __future__ import annotations

import re

import pytest

from drywarp.core.build import FOLDER
from drywarp.pipeline import columns, reasons
from drywarp.pipeline.engine_dataflow import DATAFLOW
from drywarp.pipeline.engine_inorder import IN_ORDER
from drywarp.pipeline.result import PROFILE_COLUMNS
from drywarp.pipeline.state import MACHINE
from drywarp.workload import cost

TEXT = "\n".join(path.read_text() for path in sorted((FOLDER / "native").glob("*.[ch]")))


def fields(name: str) -> list[str]:
    """The fields of a struct, those of a struct within it included."""
    body = re.search(rf"typedef struct \{{([^}}]*)\}} {name};", TEXT)
    assert body, name
    found: list[str] = []
    for declared in body[1].split(";"):
        if inner := re.fullmatch(r"\s*(Machine|Warp) \w+\s*", declared):
            found += fields(inner[1])
        else:
            names = re.sub(r"^\s*(?:const )?\w+ ", "", declared.strip())
            found += [one.strip().lstrip("*") for one in names.split(",") if one.strip()]
    return found


@pytest.mark.parametrize(("struct", "names"), [("Machine", MACHINE), ("InOrder", IN_ORDER), ("Dataflow", DATAFLOW)])
def test_records_have_the_fields_of_their_structs(struct: str, names: tuple[str, ...]) -> None:
    assert fields(struct) == list(names)


@pytest.mark.parametrize(
    ("struct", "count"),
    [
        ("Node", columns.NODE_COLUMNS), ("Level", columns.LEVEL_COLUMNS), ("LoopEnd", columns.LOOP_COLUMNS),
        ("Slot", columns.SLOT_COLUMNS), ("Partition", columns.PARTITION_COLUMNS), ("Spell", columns.SPELL_COLUMNS),
        ("Block", columns.BLOCK_COLUMNS), ("Clock", columns.CLOCK_COLUMNS), ("Watch", columns.WATCH_COLUMNS),
        ("PhaseState", columns.PHASE_STATE_COLUMNS), ("Waiting", columns.WAITING_COLUMNS),
        ("InOrderWarp", columns.IN_ORDER_COLUMNS),
    ],
)  # fmt: skip
def test_rows_are_as_long_as_their_structs(struct: str, count: int) -> None:
    names = fields(struct)
    assert len(names) == count
    # A column's name ends in that of its field, whatever stands before it.
    known = {name.lower(): value for name, value in vars(columns).items() if isinstance(value, int)}
    for place, name in enumerate(names):
        same = [value for key, value in known.items() if key == name or key.endswith(f"_{name}")]
        assert not same or place in same, (struct, name)


def test_dataflow_warps_are_as_long_as_their_struct() -> None:
    names = [name for name in fields("DataflowWarp") if name != "met[3]"]
    assert len(names) + 3 == columns.DATAFLOW_COLUMNS


def test_constants() -> None:
    def value(name: str) -> int:
        found = re.search(rf"\b{name} = (\d+)", TEXT)
        assert found
        return int(found[1])

    assert [value(name) for name in ("SYNC_SIGNALS", "SYNC_AT_END", "SYNC_AWAITS")] == [
        cost.SYNC_SIGNALS,
        cost.SYNC_AT_END,
        cost.SYNC_AWAITS,
    ]
    codes = {"SELECTED": "selected", "NOT_SELECTED": "not_selected", "WAIT": "wait", "AT_BARRIER": "barrier"}
    for name, reason in {**codes, "DRAIN": "drain"}.items():
        assert value(name) == reasons.REASONS.index(reason)
    assert "enum { DONE_ALL, NO_ROWS, NOTICED, STOPPED };" in TEXT
    assert (columns.DONE_ALL, columns.NO_ROWS, columns.NOTICED, columns.STOPPED) == (0, 1, 2, 3)
    assert "#define NEVER ((int64_t)1 << 50)" in TEXT
    assert columns.NEVER == 1 << 50
    assert f"#define PRIORITY_BITS {columns.PRIORITY_BITS}" in TEXT
    assert fields("Issue") == list(PROFILE_COLUMNS)
