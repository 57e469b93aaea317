"""Values as users write them become a launch that fits the kernel, or one line that says why not."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drywarp.errors import DrywarpError, InputFileError, UsageError
from drywarp.kernel.kernel import Kernel, Parameter, Resources, Symbol
from drywarp.kernel.launch.arguments import make_launch, parse_dim3, signature
from drywarp.kernel.launch.launch import Buffer, Launch, Scalar

ONE = (1, 1, 1)


def kernel(*parameters: tuple[str, str, int, bool]) -> Kernel:
    """A kernel with parameters (name, type, bytes, pointer), and two variables."""
    made = tuple(
        Parameter(n, 8 * n, size, name, type_, pointer) for n, (name, type_, size, pointer) in enumerate(parameters)
    )
    symbols = {"w": Symbol("constant", 0, 36), "g": Symbol("global", 0, 4)}
    return Kernel("k", "k", "sm_80", (), made, 0x160, Resources(32, 0), symbols=symbols)


POINTER = ("x", "float", 8, True)
SAXPY = kernel(POINTER, ("n", "int", 4, False))


def scalar(type_: str, size: int, value: Any) -> bytes:
    (argument,) = make_launch(kernel(("v", type_, size, False)), ONE, ONE, {"v": value}).arguments
    assert isinstance(argument, Scalar)
    return argument.data


def buffer(value: Any) -> Buffer:
    (argument,) = make_launch(kernel(POINTER), ONE, ONE, {"x": value}).arguments
    assert isinstance(argument, Buffer)
    return argument


def message(function: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(DrywarpError) as raised:
        function(*arguments, **named)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_arguments_may_be_given_by_their_places() -> None:
    assert (
        make_launch(SAXPY, ONE, ONE, {"arg1": 7, "x": "f32[4]"}).arguments
        == make_launch(SAXPY, ONE, ONE, {"n": 7, "arg0": "f32[4]"}).arguments
    )
    assert "no parameter named 'arg2'" in message(make_launch, SAXPY, ONE, ONE, {"x": "f32[4]", "n": 1, "arg2": 1})
    named = kernel(("arg1", "int", 4, False), ("n", "int", 4, False))
    assert make_launch(named, ONE, ONE, {"arg1": 5, "n": 6}).arguments[0] == scalar_of(5)


def test_random_contents_are_those_of_seed_0_unless_said() -> None:
    given = {"x": "f32[4]:random", "n": 4}
    assert make_launch(SAXPY, ONE, ONE, given) == make_launch(SAXPY, ONE, ONE, given, seed=0)
    assert make_launch(SAXPY, ONE, ONE, given) != make_launch(SAXPY, ONE, ONE, given, seed=1)


def scalar_of(value: int) -> Any:
    return make_launch(kernel(("v", "int", 4, False)), ONE, ONE, {"v": value}).arguments[0]


# Extents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"), [("64", (64, 1, 1)), ("64,32", (64, 32, 1)), ("64,32,2", (64, 32, 2)), (" 4 , 2", (4, 2, 1))]
)
def test_extents(text: str, expected: tuple[int, int, int]) -> None:
    assert parse_dim3(text, "grid") == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "1,2,3,4", "a", "4,", "1.5", "64x32"])
def test_bad_extents(text: str) -> None:
    expected = f"grid {text!r}: expected one to three positive integers, as in 64,32"
    assert message(parse_dim3, text, "grid") == expected


# Buffers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[1024]", Buffer("f32", (1024,))),
        ("f32[32,64]:random", Buffer("f32", (32, 64), "random")),
        ("i32[4]:iota", Buffer("i32", (4,), "iota")),
        ("u32[4]:ones", Buffer("u32", (4,), "ones")),
        (" u8[ 4, 4 ]:zeros ", Buffer("u8", (4, 4), "zeros")),
    ],
)
def test_buffers_as_text(text: str, expected: Buffer) -> None:
    assert buffer(text) == expected


def test_arrays_and_files(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = tmp_path / "a.npy"
    np.save(path, array)
    for value in (array, f"@{path}", f"f32[6]:@{path}"):
        found = buffer(value)
        assert (found.dtype, found.fill, found.count) == ("f32", "array", 6)
        assert found.array is not None
        assert found.array.tobytes() == array.tobytes()
    assert buffer(f"f32[6]:@{path}").shape == (6,)


class Tensor:
    """An array of another library, as NumPy reads it."""

    shape = (2, 3)

    def __init__(self, array: np.ndarray | None) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        if self.array is None:
            raise TypeError("it is on a GPU")
        return self.array


def test_arrays_of_other_libraries() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = buffer(Tensor(array))
    assert found.shape == (2, 3)
    assert found.array is not None
    np.testing.assert_array_equal(found.array, array)
    assert message(buffer, Tensor(None)) == f"{PLACE}: Tensor cannot be read as a NumPy array: it is on a GPU"


FILL_TEXTS = "zeros, ones, iota, random, random(low,high), normal(mean,deviation), permutation, a number, or @file.npy"
PLACE = "k: argument x (float*)"
TYPES = "f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("q32[4]", f"{PLACE}: unknown type 'q32' in 'q32[4]'; expected one of {TYPES}"),
        ("f32[]", f"{PLACE}: 'f32[]': expected positive extents, as in f32[1024,1024]"),
        ("f32[0]", f"{PLACE}: 'f32[0]': expected positive extents, as in f32[1024,1024]"),
        ("f32[4,-1]", f"{PLACE}: 'f32[4,-1]': expected positive extents, as in f32[1024,1024]"),
        ("f32[a]", f"{PLACE}: 'f32[a]': expected positive extents, as in f32[1024,1024]"),
        ("f32[4]:rand", f"{PLACE}: unknown fill 'rand'; expected {FILL_TEXTS}"),
        ("f32[4]:array", f"{PLACE}: unknown fill 'array'; expected {FILL_TEXTS}"),
        ("f64[99999999999999]", f"{PLACE}: 799999999999992 bytes exceed any GPU's address space"),
        ("4", f"{PLACE}: got '4', expected a buffer or null, as in f32[1024]:random or @file.npy"),
        (4, f"{PLACE}: got 4, expected a buffer or null, as in f32[1024]:random or @file.npy"),
        (
            np.zeros(3, np.complex64),
            f"{PLACE}: no device type for NumPy elements of type complex64; expected one of {TYPES}",
        ),
        ("@nothing.npy", f"{PLACE}: nothing.npy: no such file (expected a NumPy .npy file)"),
    ],
)
def test_bad_buffers(value: Any, expected: str) -> None:
    assert message(buffer, value) == expected


def test_bad_files(tmp_path: Path) -> None:
    np.save(tmp_path / "complex.npy", np.zeros(3, np.complex64))
    np.save(tmp_path / "three.npy", np.zeros(3, np.float32))
    np.savez(tmp_path / "many.npz", a=np.zeros(3))
    (tmp_path / "text.npy").write_text("hello")
    expected = {
        "complex.npy": f"no device type for NumPy elements of type complex64; expected one of {TYPES}",
        "text.npy": f"{tmp_path}/text.npy: not a NumPy .npy file",
        "many.npz": f"{tmp_path}/many.npz: holds several arrays; expected a NumPy .npy file",
    }
    for name, text in expected.items():
        assert message(buffer, f"@{tmp_path}/{name}") == f"{PLACE}: {text}"
    held = message(buffer, f"f32[4]:@{tmp_path}/three.npy")
    assert held == f"{PLACE}: {tmp_path}/three.npy holds f32[3], expected f32[4]"
    with pytest.raises(InputFileError):
        buffer(f"@{tmp_path}")


# Scalars --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "size", "value", "expected"),
    [
        ("int", 4, "4096", struct.pack("<i", 4096)),
        ("int", 4, "-0x10", struct.pack("<i", -16)),
        ("int", 4, "1e3", struct.pack("<i", 1000)),
        ("int", 4, 7.0, struct.pack("<i", 7)),
        ("int", 4, np.int64(-5), struct.pack("<i", -5)),
        ("unsigned int", 4, "0xffffffff", b"\xff" * 4),
        ("unsigned", 4, "4294967295", b"\xff" * 4),
        ("unsigned char", 1, "255", b"\xff"),
        ("char", 1, "-1", b"\xff"),
        ("short", 2, "-2", struct.pack("<h", -2)),
        ("unsigned short int", 2, "65535", b"\xff\xff"),
        ("long", 8, "-1", b"\xff" * 8),
        ("long unsigned int", 8, str(2**64 - 1), b"\xff" * 8),
        ("std::size_t", 8, "3", struct.pack("<Q", 3)),
        ("cuda::std::int16_t", 2, "-3", struct.pack("<h", -3)),
        ("bool", 1, "true", b"\x01"),
        ("bool", 1, False, b"\x00"),
        ("float", 4, "2.5", struct.pack("<f", 2.5)),
        ("float", 4, "2.5f", struct.pack("<f", 2.5)),
        ("float", 4, "inf", struct.pack("<f", float("inf"))),
        ("float", 4, "-inf", struct.pack("<f", float("-inf"))),
        ("float", 4, np.float32(0.1), struct.pack("<f", 0.1)),
        ("float", 4, 3, struct.pack("<f", 3)),
        ("double", 8, "0.1", struct.pack("<d", 0.1)),
        ("__half", 2, "1.5", struct.pack("<e", 1.5)),
        ("__nv_bfloat16", 2, "1", b"\x80\x3f"),
        ("__nv_bfloat16", 2, "inf", b"\x80\x7f"),
        ("__nv_bfloat16", 2, 1 + 2**-8, b"\x80\x3f"),  # ties go to even
        ("__nv_bfloat16", 2, 1 + 3 * 2**-8, b"\x82\x3f"),
        ("float2", 8, "1,2.5", struct.pack("<2f", 1, 2.5)),
        ("float3", 12, [1, 2, 3], struct.pack("<3f", 1, 2, 3)),
        ("uint4", 16, np.array([1, 2, 3, 4]).tolist(), struct.pack("<4I", 1, 2, 3, 4)),
        ("longlong2", 16, "-1,2", struct.pack("<2q", -1, 2)),
        ("uchar4", 4, "1,2,3,255", bytes([1, 2, 3, 255])),
        # Types that we do not know: the number says what it is.
        ("Mode", 4, "2", struct.pack("<i", 2)),
        ("real_t", 4, "2.0", struct.pack("<f", 2.0)),
        ("real_t", 8, 0.5, struct.pack("<d", 0.5)),
        ("", 4, "7", struct.pack("<i", 7)),
        ("", 4, "7.5", struct.pack("<f", 7.5)),
        ("", 8, "7", struct.pack("<q", 7)),
        ("", 4, "-1", struct.pack("<i", -1)),
        ("", 4, str(2**32 - 1), struct.pack("<I", 2**32 - 1)),
    ],
)
def test_scalars(type_: str, size: int, value: Any, expected: bytes) -> None:
    assert scalar(type_, size, value) == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_bfloat_rounds_to_nearest_even(value: float) -> None:
    def widened(bits: int) -> float:
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]

    bits = int.from_bytes(scalar("__nv_bfloat16", 2, value), "little")
    exact = int.from_bytes(struct.pack("<f", value), "little")
    below = exact >> 16
    if below & 0x7FFF >= 0x7F7F:
        return  # rounds to infinity at the end of the range
    low, high = abs(widened(below)), abs(widened(below + 1))
    nearest = below if abs(value) - low < high - abs(value) else below + 1
    if abs(value) - low == high - abs(value):
        nearest = below + (below & 1)
    assert bits == nearest


@pytest.mark.parametrize(
    ("type_", "size", "value", "expected"),
    [
        ("int", 4, "x", "got 'x', expected a number"),
        ("int", 4, "1.5", "got 1.5, expected a whole number"),
        ("int", 4, "inf", "got inf, expected a whole number"),
        ("int", 4, "nan", "got nan, expected a whole number"),
        ("int", 4, str(2**31), "2147483648 does not fit into 4 bytes"),
        ("unsigned int", 4, "-1", "-1 does not fit into 4 bytes"),
        ("char", 1, "200", "200 does not fit into 1 bytes"),
        ("float", 4, "1e39", "1e39 does not fit into 4 bytes"),
        ("float", 4, 10**400, f"{10**400} does not fit into 4 bytes"),
        ("__half", 2, "70000", "70000 does not fit into 2 bytes"),
        ("__nv_bfloat16", 2, "1e39", "1e39 does not fit into 4 bytes"),
        ("float2", 8, "1", "got 1 number, expected 2, as in 1,1"),
        ("int2", 8, "1,2.5", "got 1,2.5, expected a whole number"),
        ("int2", 8, "1,nan", "got 1,nan, expected a whole number"),
        ("uchar2", 2, "1,256", "1,256 does not fit into 2 bytes"),
        (
            "Point",
            24,
            "1",
            "24 bytes passed by value; give its fields, as in v={n=1024}, or all bytes, as v=u8[24] or a .npy file",
        ),
        ("int", 4, "f32[4]", "got a buffer, expected a value, as in v=1"),
        ("float2", 8, "f32[4]", "got a buffer, expected a value, as in v=1"),
        ("size_t", 8, "f32[4]", "got a buffer, expected a value, as in v=1"),
    ],
)
def test_bad_scalars(type_: str, size: int, value: Any, expected: str) -> None:
    assert message(scalar, type_, size, value) == f"k: argument v ({type_}): {expected}"


@pytest.mark.parametrize("type_", ["", "float_ptr", "Iterator<float>"])
def test_eight_bytes_of_an_unknown_type_may_be_an_address(type_: str) -> None:
    launch = make_launch(kernel(("p", type_, 8, False)), ONE, ONE, {"p": "f32[4]"})
    assert launch.arguments == (Buffer("f32", (4,)),)


# The launch -----------------------------------------------------------------------------------------------------


def test_arguments_follow_the_parameters_not_the_order_given() -> None:
    launch = make_launch(SAXPY, (4, 1, 1), (32, 1, 1), {"n": 3, "x": "f32[8]"}, dynamic_shared=64, seed=5)
    assert launch == Launch((4, 1, 1), (32, 1, 1), (Buffer("f32", (8,)), Scalar(struct.pack("<i", 3), "3")), 64, {}, 5)


def test_parameters_without_names_go_by_number() -> None:
    bare = kernel(("", "", 8, False), ("", "", 4, False))
    assert signature(bare) == "8-byte arg0, 4-byte arg1"
    assert make_launch(bare, ONE, ONE, {"arg1": 1, "arg0": "f32[4]"}).arguments[0] == Buffer("f32", (4,))


def test_constants() -> None:
    bare = kernel()
    launch = make_launch(bare, ONE, ONE, {}, constants={"w": "f32[9]:ones"})
    assert launch.constants == {"w": Buffer("f32", (9,), "ones")}


@pytest.mark.parametrize(
    ("given", "named", "expected"),
    [
        ({"x": "f32[4]", "n": 1, "m": 2}, {}, "k: no parameter named 'm'; it takes: float* x, int n"),
        ({}, {}, "k: no value for x, n; give each, as in --arg x=f32[1024]"),
        ({"x": "f32[4]"}, {}, "k: no value for n; give each, as in --arg n=1"),
        (
            {"x": "f32[4]", "n": 1},
            {"dynamic_shared": -1},
            "dynamic shared memory -1: expected a number of bytes, 0 or more",
        ),
        (
            {"x": "f32[4]", "n": 1},
            {"constants": {"v": "f32[1]"}},
            "k: no __constant__ or __device__ variable named 'v'; it has: w, g",
        ),
        ({"x": "f32[4]", "n": 1}, {"constants": {"w": "f32[10]"}}, "constant w: got 40 bytes, but the variable has 36"),
        (
            {"x": "f32[4]", "n": 1},
            {"constants": {"w": 1}},
            "constant w: got 1, expected a buffer, as in f32[9]:ones or @file.npy",
        ),
    ],
)
def test_launches_that_do_not_fit(given: dict[str, Any], named: dict[str, Any], expected: str) -> None:
    assert message(make_launch, SAXPY, ONE, ONE, given, **named) == expected


def test_a_kernel_without_parameters_takes_none() -> None:
    assert message(make_launch, kernel(), ONE, ONE, {"n": 1}) == "k: no parameter named 'n'; it takes: none"
    with pytest.raises(UsageError):
        make_launch(SAXPY, ONE, ONE, {})


# Null pointers, structures, pairs of halves -------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "null", "nullptr", 0, None])
def test_a_pointer_may_be_null(value: Any) -> None:
    (argument,) = make_launch(kernel(POINTER), ONE, ONE, {"x": value}).arguments
    assert argument == Scalar(bytes(8), "null")


def test_a_structure_by_value_is_its_bytes(tmp_path: Path) -> None:
    held = np.array([(1, 2.0)], np.dtype([("a", np.int32), ("b", np.float64)], align=True))
    np.save(tmp_path / "p.npy", held.view(np.uint8))
    assert scalar("Point", 16, held[0]) == held.tobytes()
    assert scalar("Point", 16, held.tobytes()) == held.tobytes()
    assert scalar("Point", 16, f"@{tmp_path / 'p.npy'}") == held.tobytes()
    assert scalar("Point", 16, "u8[16]") == bytes(16)
    assert "got 15 bytes, expected the 16 bytes of the structure" in message(scalar, "Point", 16, "u8[15]")
    assert "got 16 bytes filled with iota, expected the 16 bytes" in message(scalar, "Point", 16, "u8[16]:iota")
    assert "got a buffer" in message(scalar, "float4", 16, "u8[16]")


@pytest.mark.parametrize(
    ("type_", "expected"), [("half2", b"\x00\x3e\x00\xc0"), ("__nv_bfloat162", b"\xc0\x3f\x00\xc0")]
)
def test_two_halves(type_: str, expected: bytes) -> None:
    assert scalar(type_, 4, "1.5,-2") == expected
    assert "got 1 number, expected 2" in message(scalar, type_, 4, "1.5")
