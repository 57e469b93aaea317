"""The launch comment: every form, and one line for what is wrong."""

from __future__ import annotations

import pytest

from drywarp.errors import InputFileError
from drywarp.frontends.loaded import LaunchComment, launch_comment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", LaunchComment()),
        ("// nothing for us\n__global__ void k() {}", LaunchComment()),
        ("// drywarp: --grid 64,64 --block 16,16", LaunchComment(grid="64,64", block="16,16")),
        ("//drywarp:--grid=64", LaunchComment(grid="64")),
        ("/* drywarp: --grid 64 */", LaunchComment(grid="64")),
        ("/*\n * drywarp: --grid 64\n * drywarp: --block 32\n */", LaunchComment(grid="64", block="32")),
        ("   // drywarp: --shared 4096 --std c++20", LaunchComment(shared="4096", std="c++20")),
        ("// drywarp: --entry 'sgemm<128, 8>'", LaunchComment(entry="sgemm<128, 8>")),
        (
            "// drywarp: --arg a=f32[4]:random\n// drywarp: --arg=n=4 --const w=f32[9]:ones",
            LaunchComment(arguments={"a": "f32[4]:random", "n": "4"}, constants={"w": "f32[9]:ones"}),
        ),
        ("// drywarp: -D TILE=16 -DN=4 -DFAST", LaunchComment(defines={"TILE": "16", "N": "4", "FAST": ""})),
        (
            "// drywarp: --use_fast_math --compiler-option=-fmad=false --compiler-option '-Xptxas -O2'",
            LaunchComment(compiler_options=["--use_fast_math", "-fmad=false", "-Xptxas -O2"]),
        ),
        ("// drywarp: --grid 1\n// drywarp: --grid 2", LaunchComment(grid="2")),
        ("int x; // drywarp: --grid 64", LaunchComment()),  # only at the start of a line
    ],
)
def test_what_a_comment_may_say(text: str, expected: LaunchComment) -> None:
    assert launch_comment(text, "k.cu") == expected


OPTIONS = (
    "--grid, --block, --shared, --cluster, --entry, --std, --config, --arg, --const, -D, --compiler-option,"
    " --use_fast_math"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n// drywarp: --gird 4", f"k.cu:2: launch comment: unknown option '--gird'; expected {OPTIONS}"),
        ("// drywarp: grid 4", f"k.cu:1: launch comment: unknown option 'grid'; expected {OPTIONS}"),
        ("// drywarp: --grid", "k.cu:1: launch comment: --grid needs a value"),
        ("// drywarp: --grid= --block 4", "k.cu:1: launch comment: --grid needs a value"),
        ("// drywarp: --arg n", "k.cu:1: launch comment: --arg 'n': expected name=value"),
        ("// drywarp: --shared 4k", "k.cu:1: launch comment: --shared '4k': expected a number of bytes"),
        ("// drywarp: --entry 'k", "k.cu:1: launch comment: No closing quotation"),
        (
            "// drywarp: --compiler-option -I/x",
            "k.cu:1: launch comment: --compiler-option -I/x: include folders are given on the command line",
        ),
        (
            "// drywarp: --compiler-option=-fmat=1",
            "k.cu:1: launch comment: --compiler-option -fmat=1: unknown (did you mean -fmad?)",
        ),
        ("// drywarp: -D", "k.cu:1: launch comment: -D needs a value"),
    ],
)
def test_what_it_may_not(text: str, message: str) -> None:
    with pytest.raises(InputFileError) as raised:
        launch_comment(text, "k.cu")
    assert str(raised.value) == message
