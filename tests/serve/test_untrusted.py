"""A pasted kernel has no file of this machine read."""

from __future__ import annotations

from contextlib import suppress

import pytest

from drywarp.errors import DrywarpError, UsageError
from drywarp.report.serve.asked import MOST_SOURCE, check_source, read_launch
from tests.counting import no_hang

KERNEL = "__global__ void k(int* a) { a[0] = 1; }\n"


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"', "#include </etc/passwd>", '#include "../secret.h"', "#include <a/../../secret.h>",
        '%:include "/etc/passwd"', '??=include "/etc/passwd"', '# /* x */ include /* y */ "/etc/passwd"',
        '#inc\\\nlude "/etc/passwd"', '#inc\\  \r\nlude "/etc/passwd"', '#include \\\n"/etc/passwd"',
        'const char* s = "/*";\n#/**/include "/etc/passwd"\n/* */', "#define F <stdio.h>\n#include F",
        # What looks like a directive in a string hides none behind it.
        'const char* s = "#/*";\n#include "/etc/passwd"\n/* */ line 5', 'const char* s = "#include <a>#include </b>";',
        'const char* s = "#/*"; /* */ /*\n#/* */include "/etc/passwd"\n*/',
        '#include_next "/etc/passwd"', '#import "/etc/passwd"', '#embed "/etc/passwd"',
        '#if __has_include("/etc/shadow")\n#endif', '#line 1 "/etc/passwd"', '# 1 "/etc/passwd"', "#line 1 F",
        '#include "~/.ssh/id_rsa"', '#include "C:\\\\x"', "\0", "// drywarp: --arg a=@/etc/passwd",
        "// drywarp: --arg 'a=f32[4]:@/etc/passwd'", "// drywarp: --const 'c=@x.npy'", "// drywarp: -D '-I/etc'",
        "// drywarp: -D 'X -I/etc'", "// drywarp: --std 'c++17 -I/etc'", "// drywarp: --entry '#include <x>'",
        "// drywarp: --include /etc", "// drywarp: --compiler-option '-Xptxas -o,/tmp/x'",
        "// drywarp: --compiler-option -I/etc", "// drywarp: --compiler-option '-D X=1 -std=/etc'",
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }",
    ],
)  # fmt: skip
def test_what_would_read_a_file_is_refused(line: str) -> None:
    with pytest.raises(DrywarpError) as refused:
        check_source(line + "\n" + KERNEL)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "#include <cuda_fp16.h>", '#include "cuda_fp16.h"', "#include <cub/block/block_reduce.cuh>",
        "# include <cmath>",
        "#if __has_include(<cuda_bf16.h>)\n#endif", "#line 7", "#pragma unroll", "#define X 1",
        "#include <mma.h> // wmma",
        "// drywarp: --grid 4 --block 32 --arg a=i32[32]:random -DTILE=16 --std c++17 --entry 'k<4, int>'",
        "// drywarp: --use_fast_math --compiler-option '-fmad=false -maxrregcount 32'",
    ],
)  # fmt: skip
def test_the_compilers_own_headers_are_not(line: str) -> None:
    check_source(line + "\n" + KERNEL)


@pytest.mark.parametrize(
    "text", ["--arg a=@x.npy", "--gpu x", "--arg", "--shared x", "-D 'a b'", "--grid '", "-I /etc"]
)
def test_launch_options(text: str) -> None:
    with pytest.raises(DrywarpError) as refused:
        read_launch(text)
    assert "launch options" in str(refused.value)


def test_launch_options_may_stand_on_several_lines() -> None:
    given = read_launch("--grid 4\n--block 32 --arg n=4")
    assert (given.grid, given.block, given.arguments) == ("4", "32", {"n": "4"})


@pytest.mark.parametrize(
    "piece",
    [
        *("#", "#/*", "/*", "#include", "\\\n", "#include /*", '__has_include("', "#/**/", "#line 5 //"),
        *("#include <a>", " ", '#include "a" /*', "__has_include(/*", "#1", "*/#/*", "#\n", "\\ "),
    ],
)
def test_a_text_made_to_take_long_does_not(piece: str) -> None:
    """Twice the longest text that a page may send.

    Where each piece were read to the end of the text, or comments could end in more than one place, it would take
    from minutes to for ever.
    """
    with suppress(UsageError), no_hang(60):
        check_source("#" + piece * (2 * MOST_SOURCE // len(piece)) + "include </x>")


def test_a_directive_behind_many_comments_is_found() -> None:
    """Were comments to end at any later `*/` too, a thousand of them would be read in 2^999 ways."""
    with pytest.raises(UsageError, match=r"#include </x>: local files"), no_hang(60):
        check_source("#" + "/**/" * 1000 + "include </x>\n")
    with no_hang(60):
        check_source("#" + "/**/" * 1000 + "define X\n")
