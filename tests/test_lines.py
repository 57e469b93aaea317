"""Costs by source line, from stalls by instruction, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from drywarp.analysis.build_result import line_costs, shown_stalls
from drywarp.analysis.result import LineCost
from drywarp.kernel.kernel import Kernel, Resources
from tests.listing import code


def kernel(file: str = "k.cu") -> Kernel:
    instructions = code(
        f'//## File "{file}", line 3', "FADD R4, R4, R5", "LDG.E R4, [R2.64]",
        f'//## File "{file}", line 5', "BAR.SYNC 0x0",
        f'//## File "{file}", line 9', "FADD R4, R4, R5", "EXIT",
    )  # fmt: skip
    return Kernel("k", "k", "sm_80", instructions, (), 0, Resources(32, 0), source_file=file)


STALLS = {
    0: {"selected": 1.0, "wait": 4.0},
    1: {"selected": 1.0, "lg_throttle": 2.0},
    2: {"selected": 1.0, "long_scoreboard": 20.0},
    3: {"selected": 1.0, "barrier": 8.0, "wait": 2.0},
}


def test_time_at_a_barrier_is_shown_there() -> None:
    shown = shown_stalls(kernel(), STALLS)
    assert shown == {
        **STALLS,
        2: {"selected": 1.0, "long_scoreboard": 20.0, "barrier": 8.0},
        3: {"selected": 1, "wait": 2},
    }
    # Only behind a barrier, and only that time.
    elsewhere = {0: {"barrier": 1.0}, 1: {"barrier": 2.0}, 4: {"barrier": 3.0}}
    assert shown_stalls(kernel(), elsewhere) == elsewhere
    # Two instructions may put time to the same place.
    assert shown_stalls(kernel(), {2: {"barrier": 1.0}, 3: {"barrier": 2.0}})[2] == {"barrier": 3.0}


def test_lines_add_up_to_all_of_the_time() -> None:
    source = "\n".join(f"  text {n} " for n in range(1, 9))
    found = line_costs(kernel(), STALLS, source)
    # Line 3: 5 + 3; line 5: 21 and the 8 at the barrier; line 9: 3 of 40 in all.
    assert found == [
        LineCost("k.cu", 5, 29.0, 29 / 40, "long_scoreboard", "text 5"),
        LineCost("k.cu", 3, 8.0, 8 / 40, "wait", "text 3"),
        LineCost("k.cu", 9, 3.0, 3 / 40, "wait", ""),  # the text has 8 lines
    ]
    assert sum(cost.share for cost in found) == pytest.approx(1)
    assert line_costs(kernel(), {0: {"wait": 0.0}})[0].share == 0
    assert line_costs(kernel(), {}) == []


def test_equal_costs_are_in_the_order_of_the_lines_and_code_without_a_line_has_none() -> None:
    found = line_costs(kernel(), {3: {"wait": 1.0}, 0: {"wait": 1.0}})
    assert [cost.line for cost in found] == [3, 9]
    bare = Kernel("k", "k", "sm_80", code("FADD R4, R4, R5", "EXIT"), (), 0, Resources(32, 0))
    assert line_costs(bare, {0: {"wait": 1.0}}) == [LineCost("", 0, 1.0, 1.0, "wait", "")]


def test_texts_come_from_the_files(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("one\ntwo\n  three;\n")
    (found,) = line_costs(kernel(str(path)), {0: {"wait": 1.0}})
    assert found.text == "three;"
    (gone,) = line_costs(kernel(str(tmp_path / "none.cu")), {0: {"wait": 1.0}})
    assert gone.text == ""
