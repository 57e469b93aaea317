"""Textures and surfaces as users write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import drywarp
from drywarp.errors import UsageError
from drywarp.kernel.kernel import Kernel, Parameter, Resources
from drywarp.kernel.launch.arguments import make_launch
from drywarp.kernel.launch.launch import Texture, TextureTable

ONE = (1, 1, 1)


def kernel(type_: str, size: int = 8, pointer: bool = False) -> Kernel:
    return Kernel("k", "k", "sm_80", (), (Parameter(0, 0, size, "t", type_, pointer),), 0x160, Resources(32, 0))


def given(value: Any, type_: str = "cudaTextureObject_t") -> Texture:
    (argument,) = make_launch(kernel(type_), ONE, ONE, {"t": value}).arguments
    assert isinstance(argument, Texture)
    return argument


@pytest.mark.parametrize(
    ("text", "shape", "sizes", "layers"),
    [
        ("texture:f32[64]", "1D", (64,), 1),
        ("texture:f32[48,64]:random", "2D", (64, 48), 1),
        ("texture:u8x4[3,48,64]", "3D", (64, 48, 3), 1),
        ("texture(layered):f16x2[5,64]:iota", "ARRAY_1D", (64,), 5),
        ("texture(layered,linear):f32[5,48,64]:ones", "ARRAY_2D", (64, 48), 5),
        ("texture(cube):f32[6,8,8]", "CUBE", (8, 8), 6),
        ("texture(cube,layered):f32[12,8,8]", "ARRAY_CUBE", (8, 8), 12),
    ],
)
def test_shapes(text: str, shape: str, sizes: tuple[int, ...], layers: int) -> None:
    made = given(text)
    assert (made.shape, made.sizes, made.layers) == (shape, sizes, layers)
    assert given(made.text) == made, "what is shown can be typed again"


def test_what_is_not_said_is_as_in_a_descriptor_of_zeros() -> None:
    made = given("texture:u8[8]")
    assert (made.linear, made.address, made.normalized, made.normalized_float, made.border) == (
        False, "wrap", False, False, 0.0,
    )  # fmt: skip


def test_options() -> None:
    made = given("texture( linear , mirror,normalized,normalized_float):u8x4[8,8]:random")
    assert made.linear
    assert made.normalized
    assert made.normalized_float
    assert (made.address, made.channels, made.buffer.shape, made.buffer.fill) == ("mirror", 4, (8, 8, 4), "random")
    bordered = given("texture(border=0.5):f32[8]")
    assert (bordered.address, bordered.border) == ("border", 0.5)


def test_python_and_text_mean_the_same() -> None:
    array = np.arange(32, dtype=np.float32).reshape(4, 4, 2)
    made = drywarp.texture(array, filter="linear", address="clamp", normalized=True, channels=2)
    assert made.extents == (4, 4)
    assert given(made) is made
    assert made.text == "texture(linear,clamp,normalized):f32x2[4,4]:array"
    assert drywarp.texture("f32[4,4]:ones", address="clamp") == given("texture(clamp):f32[4,4]:ones")
    assert given("surface:f32[4]", "cudaSurfaceObject_t") == drywarp.surface("f32[4]")


def test_an_array_in_a_file(tmp_path: Any) -> None:
    np.save(tmp_path / "image.npy", np.ones((3, 5), np.float32))
    assert given(f"texture:@{tmp_path}/image.npy").extents == (3, 5)
    assert given(f"texture:f32[3,5]:@{tmp_path}/image.npy").buffer.fill == "array"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("texture:f64[8]", "texture of f64: expected elements of f16, f32, i8, i16, i32, u8, u16, u32"),
        ("texture:f32x3[8]", "3 channels: expected 1, 2 or 4"),
        ("texture:f32[1,2,3,4]", "4 extents [1,2,3,4]: expected 1 to 3, or 2 to 3 if layered"),
        ("texture(layered):f32[8]", "1 extents [8]: expected 1 to 3, or 2 to 3 if layered"),
        ("texture(cube):f32[5,8,8]", "cube map of [5,8,8]: expected [6,size,size], or a multiple of 6 if layered"),
        ("texture(nearest):f32[8]", "unknown texture option 'nearest'; expected border, clamp, cube,"),
        ("surface(linear):f32[8]", "unknown surface option 'linear'; expected cube, layered"),
        ("texture(clamp,wrap):f32[8]", "clamp, wrap: expected one address mode and one filter"),
        ("texture(border=x):f32[8]", "'border=x': expected border=NUMBER"),
        ("texture(linear):u8[8]", "linear filtering of u8: expected f16 or f32, or integers with normalized_float"),
        ("texture(normalized_float):f32[8]", "normalized_float of f32: expected 8-bit or 16-bit integers"),
        ("texture", "'texture': expected texture(linear,clamp):f32[1024,1024]:random"),
        ("texture:1024", "'texture:1024': expected texture(linear,clamp):f32[1024,1024]:random"),
        ("texture:f32[8]:sparkling", "unknown fill 'sparkling'"),
        ("texture:f32[0]", "expected positive extents"),
        ("surface:f32[8]", "got a surface, expected a texture"),
        ("f32[8]", "got a buffer, expected a texture, as in texture:f32[1024,1024]"),
    ],
)
def test_bad_textures_are_named(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        given(text)
    assert str(error.value).startswith("k: argument t (cudaTextureObject_t): ")
    assert expected in str(error.value)


@pytest.mark.parametrize(("type_", "size", "pointer"), [("float", 8, True), ("int", 4, False)])
def test_a_parameter_of_another_kind_takes_no_texture(type_: str, size: int, pointer: bool) -> None:
    with pytest.raises(UsageError, match="got a texture, expected a value or a buffer"):
        make_launch(kernel(type_, size, pointer), ONE, ONE, {"t": "texture:f32[8]"})


def test_several_objects() -> None:
    many = kernel("cudaTextureObject_t", 8, True)
    text = "[texture:f32[4,4]:ones; texture(clamp):u8x4[2,3]:random]"
    (table,) = make_launch(many, ONE, ONE, {"t": text}).arguments
    assert isinstance(table, TextureTable)
    assert [o.shape for o in table.objects] == ["2D", "2D"]
    assert make_launch(many, ONE, ONE, {"t": table.text}).arguments == (table,)
    assert make_launch(many, ONE, ONE, {"t": list(table.objects)}).arguments == (table,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("texture:f32[8]", "got one texture, expected several, as in [texture:f32[8,8]; texture:f32[8,8]]"),
        ("[]", "an empty list, expected at least one texture"),
        ("[texture:f32[8]; surface:f32[8]]", "[1]: got ' surface:f32[8]', expected a texture"),
        ([7], "[0]: got 7, expected a texture"),
    ],
)
def test_bad_lists_of_objects(value: Any, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        make_launch(kernel("cudaTextureObject_t", 8, True), ONE, ONE, {"t": value})
    assert expected in str(error.value)


def test_a_handle_of_zero_is_a_number() -> None:
    assert make_launch(kernel("cudaTextureObject_t"), ONE, ONE, {"t": 0}).arguments[0].text == "0"


@pytest.mark.parametrize(
    ("options", "expected"), [({"filter": "cubic"}, "cubic"), ({"channels": 4}, "last extent to be 4 channels")]
)
def test_bad_textures_in_python(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        drywarp.texture(np.zeros((4, 5), np.float32), **options)
    with pytest.raises(UsageError, match="expected an array"):
        drywarp.texture(7)
