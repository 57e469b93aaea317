"""The launch that a caller and a launch comment state together, and names as one line of visible characters."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.analysis.placeholders import placeholders
from drywarp.analysis.settle import stated_launch
from drywarp.errors import UsageError
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.loaded import LaunchComment, launch_options
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Buffer, Launch, Scalar
from drywarp.support.text import plain

SOURCE = (
    "__constant__ float k[2]; __global__ void f(float* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = k[n & 1]; }"
)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return compile_cuda(SOURCE, arch="sm_80")


def launch(kernel: Kernel, comment: str, **given: Any) -> Launch:
    said: LaunchComment = launch_options(comment, "comment")
    names = ("grid", "block", "args", "shared", "constants")
    return stated_launch(kernel, said, **{name: given.get(name) for name in names})


def arguments(found: Launch) -> tuple[int, int]:
    """Elements of the buffer, and the number."""
    buffer, number = found.arguments
    assert isinstance(buffer, Buffer)
    assert isinstance(number, Scalar)
    return buffer.count, int.from_bytes(number.data, "little")


SAID = "--grid 4,2 --block 64 --arg a=f32[64] --arg n=3 --shared 128"


def test_a_comment_fills_in_what_is_left_out(kernel: Kernel) -> None:
    found = launch(kernel, SAID)
    assert (tuple(found.grid), tuple(found.block), found.dynamic_shared) == ((4, 2, 1), (64, 1, 1), 128)
    assert arguments(found) == (64, 3)


@pytest.mark.parametrize(("grid", "extents"), [(7, (7, 1, 1)), ((7, 3), (7, 3, 1)), ("7,3,2", (7, 3, 2))])
def test_what_is_given_holds(grid: Any, extents: tuple[int, ...], kernel: Kernel) -> None:
    found = launch(kernel, SAID, grid=grid, block=(32, 2), shared=0, args={"n": 5})
    assert (tuple(found.grid), tuple(found.block), found.dynamic_shared) == (extents, (32, 2, 1), 0)
    assert arguments(found) == (64, 5)


def test_arguments_of_another_kernels_comment_do_not_disturb(kernel: Kernel) -> None:
    found = launch(kernel, "--grid 1 --block 32 --arg n=3 --arg other=1", args={"a": "f32[64]"})
    assert tuple(found.grid) == (1, 1, 1)
    with pytest.raises(UsageError, match="other"):
        launch(kernel, "--grid 1 --block 32 --arg a=f32[64] --arg n=3 --arg other=1")


@pytest.mark.parametrize(
    ("comment", "missing", "example"),
    [
        (
            SAID.replace("--grid 4,2", ""),
            "no grid given",
            "--grid 1 --block 64 --shared 128 --arg 'a=f32[64]' --arg n=3",
        ),
        (
            SAID.replace("--block 64", ""),
            "no block given",
            "--grid 4,2 --block 256 --shared 128 --arg 'a=f32[64]' --arg n=3",
        ),
        (
            "",
            "no grid or block given, no value for a (float*), n (int)",
            "--grid 4096 --block 256 --arg 'a=f32[1048576]:random' --arg n=1048576",
        ),
        (
            "--grid 1 --block 32 --arg n=3",
            "no value for a (float*)",
            "--grid 1 --block 32 --arg 'a=f32[1048576]:random' --arg n=3",
        ),
    ],
)
def test_all_that_is_missing_is_said_at_once_with_a_command(
    comment: str, missing: str, example: str, kernel: Kernel
) -> None:
    with pytest.raises(UsageError) as caught:
        launch(kernel, comment)
    assert str(caught.value) == (
        f"<source>: f: {missing}; for example: drywarp analyze FILE {example} (values to replace), "
        "or --static, which assumes what is missing"
    )


@given(st.text(), st.integers(1, 200))
def test_plain_text_is_one_visible_line_of_limited_length(text: str, longest: int) -> None:
    shown = plain(text, longest)
    assert len(shown) == min(len(text), longest)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    if len(text) > longest:
        assert shown.endswith("…")
    visible = "".join(c for c in text if c.isalnum())
    if len(text) <= longest:
        assert "".join(c for c in shown if c.isalnum()) == visible


def test_plain_text_by_hand() -> None:
    assert plain("a\tb\nc\rd") == "a b c d"
    assert plain("x\u202ey\x1bz") == "x\ufffdy\ufffdz"
    assert plain("abcdef", 4) == "abc…"
    assert plain("abcd", 4) == "abcd"
    assert len(plain("x" * 161)) == 160


def test_values_that_stand_for_missing_ones_fit_the_parameters_types() -> None:
    source = (
        "struct P { float a[4]; }; __global__ void k(float4* a, int3 v, half2 h, P p, double d, bool b, short width,"
    )
    source += (
        " int seed, unsigned char* c, cudaTextureObject_t t, float* const* q) { if (b) a[v.x].x = d + p.a[seed]; }"
    )
    made = compile_cuda("#include <cuda_fp16.h>\n" + source, arch="sm_80")
    instead = placeholders(made)
    assert [instead[f"={name}"] for name in ("a", "v", "h", "p", "d", "b", "width", "seed", "c", "t")] == [
        "f32[4194304]:random", "1,1,1", "1,1", "u8[16]", "1.0", "1", "1024", "1", "u8[1048576]:random",
        "texture:f32[1024,1024]",
    ]  # fmt: skip
    said = {name.removeprefix("="): value for name, value in instead.items() if name[0] == "="}
    found = launch(made, f"--grid {instead['grid']} --block {instead['block']}", args=said)
    assert len(found.arguments) == 11
