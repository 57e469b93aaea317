"""Answers that the tests of the HTML report show: real ones, and ones with what a user may not be trusted with."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import drywarp
from drywarp.analysis.result.detail import CodeLine, SourceText

ROOT = Path(__file__).parents[2]
NASTY = "</script><img src=x onerror=alert(1)><!--<script>\u2028\u2029&amp;'\"{{ 7*7 }}"


@cache
def answer(example: str = "tiled_matmul", gpu: str = "a100", events: int = 5000) -> drywarp.Analysis:
    return drywarp.analyze(ROOT / "examples" / f"{example}.cu", gpu=gpu, detail=events)


def nasty() -> drywarp.Analysis:
    """Markup wherever a name, a comment or a note can stand."""
    given = answer()
    assert given.detail is not None
    source = given.detail.sources[0]
    lines = tuple((number, text + " // " + NASTY) for number, text in source.lines)
    file = "/tmp/" + NASTY.replace("/", "|") + ".cu"
    code = tuple(replace(line, file=file, text=line.text + NASTY) for line in given.detail.code)
    detail = replace(given.detail, sources=(replace(source, file=file, lines=lines),), code=code)
    cost = tuple(replace(line, text=NASTY, file=file) for line in given.lines)
    return replace(
        given,
        kernel=f"f{NASTY}",
        source_file=file,
        gpu_title=NASTY,
        arguments={NASTY: NASTY},
        notes=(NASTY,),
        lines=cost,
        detail=detail,
    )


def large(lines: int = 20_000, instructions: int = 40_000) -> drywarp.Analysis:
    """The code of a very large kernel, as `in_detail` leaves it."""
    given = answer()
    assert given.detail is not None
    file = "large.cu"
    text = tuple(
        (n, f"    value[{n}] = fmaf(left[{n % 97}], right[{n % 89}], value[{n - 1}]);") for n in range(1, lines)
    )
    stalls = {"selected": 12.0, "wait": 30.125, "long_scoreboard": 123.5, "not_selected": 1.25}
    code = tuple(
        CodeLine(n, 16 * n, f"FFMA.FTZ R{n % 200}, R{n % 190}, R{n % 180}, c[0x0][0x160]", "fp32", file,
                 1 + n * (lines - 2) // instructions, 4096.0, stalls, "fma", 2.0, 4.0)
        for n in range(instructions)
    )  # fmt: skip
    detail = replace(given.detail, sources=(SourceText(file, text, lines - 1),), code=code)
    return replace(given, source_file=file, detail=detail)
